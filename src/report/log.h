/* The event log in memory: one entry an event, in the order the writes began.
 *
 * Made for a million events in a process of some 200 MB: texts are kept once and named by a number,
 * hashes are the 64 bits the log shows of them. */
#ifndef SENDONCE_REPORT_LOG_H
#define SENDONCE_REPORT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "verdict/verdict.h"

enum entry_kind {
	ENTRY_OTHER,       /* nothing the report counts (an event of a later version) */
	ENTRY_WRITE,       /* the end of a write a rule names */
	ENTRY_UNLISTED,    /* of one that no rule names */
	ENTRY_REFUSAL,     /* sendonce refused it: nothing was sent */
	ENTRY_UNPROTECTED, /* a write sendonce saw and could not protect */
	ENTRY_WARNING
};

/* Texts are numbers for log_text; 0 is the empty one. Numbers the event did not have are -1. */
struct entry {
	int64_t began_us, ended_us; /* wall clock, microseconds since 1970 */
	uint64_t identity;          /* 0: not known */
	uint64_t fingerprint;       /* 0: not known */
	uint64_t own_key;           /* hash of the program's own key; 0: it sent none */
	uint32_t run, scope, mode, exe, operation, method, host, path, key, reason, text;
	int32_t pid, curlcode;
	uint32_t parts_at; /* of `part_count` parts in log->parts */
	uint16_t part_count;
	int16_t status, wire_sends, attempt;
	uint8_t kind;     /* entry_kind */
	int8_t outcome;   /* outcome_kind, or -1 */
	int8_t verdict;   /* verdict_kind as told by enforce, or -1 */
	bool body_lost;   /* the body was not seen whole: the identity is not known */
	bool wire_resend; /* libcurl sent it again by itself */
};

/* One leaf of a request: where it is, what sort of value, and a hash of it. */
struct log_part {
	uint32_t name; /* text */
	uint32_t hash;
	char sort; /* n number, b word, s short text, v a time or a random id, t text */
};

struct log {
	struct entry *entry;
	uint32_t *order; /* of the entries, by when they began; null before log_sort */
	size_t count, room;
	struct log_part *part;
	size_t part_count, part_room;
	struct log_texts *texts;
	unsigned long damaged; /* lines that could not be read */
	unsigned long others;  /* left out by log_keep_run */
	unsigned long lost;    /* events that could not be written, as the log itself says */
};

enum { LOG_OK = 0, LOG_CANNOT = -1, LOG_NOMEM = -2 };

/* Adds the lines of one file, or of one that is open already, from an offset. LOG_CANNOT: errno
 * says why. */
int log_read_open(struct log *log, int fd, int64_t from);
int log_read(struct log *log, const char *path);
/* The same from memory, for tests; the last line needs no end. */
int log_add(struct log *log, struct span lines);
/* Leaves only what is of that run, and counts the rest; null or empty: all stays. Before log_sort.
 */
void log_keep_run(struct log *log, const char *run);
/* Orders the entries by the moment they began. After the last log_read. LOG_OK or LOG_NOMEM. */
int log_sort(struct log *log);
void log_free(struct log *log);

const char *log_text(const struct log *log, uint32_t text);
/* The number of a text that is there already, else 0. */
uint32_t log_find_text(const struct log *log, struct span text);

#endif
