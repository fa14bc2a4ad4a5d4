/* The kinds of writes in an event log: what `sendonce init` proposes rules from. */
#ifndef SENDONCE_CLI_SEEN_H
#define SENDONCE_CLI_SEEN_H

#include <stdbool.h>
#include <stddef.h>

enum { SEEN_TEXT = 256, SEEN_NOISE = 8, SEEN_NOISE_TEXT = 64 };

/* One method, host and path pattern. */
struct seen {
	char method[32], host[SEEN_TEXT], path[4 * SEEN_TEXT];
	unsigned long count;
	unsigned long resent; /* events where libcurl itself sent it again */
	bool answered, own_key;
	bool covered; /* by a file that is included */
	long status;  /* of the last one that was answered */
	/* Selectors of parts that are new in each request by the look of them. */
	char noise[SEEN_NOISE][SEEN_NOISE_TEXT];
	size_t noise_count;
};
struct seen_list {
	struct seen *list;
	size_t count, room;
	unsigned long skipped; /* events of writes that no pattern can be made of */
};

/* The most frequent first. 0, or an exit code after a message; seen_free whatever comes. */
int seen_read(const char *path, struct seen_list *out);
void seen_free(struct seen_list *list);

#endif
