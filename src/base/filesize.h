/* Growing a file of ours in somebody else's process, under that process's RLIMIT_FSIZE. */
#ifndef SENDONCE_BASE_FILESIZE_H
#define SENDONCE_BASE_FILESIZE_H

#include <signal.h>
#include <stdbool.h>

struct filesize_guard {
	sigset_t mask; /* of the thread, as it was */
	bool on;
	bool pending; /* the program has one waiting already: it stays */
};

/* Between the two a write beyond the limit is EFBIG and nothing else. errno is kept. */
void filesize_enter(struct filesize_guard *g);
void filesize_leave(struct filesize_guard *g);

#endif
