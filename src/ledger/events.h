/* The event log: one JSON line per end of a write, refusal, warning or unprotected write.
 *
 * Each line is one write(2) to a descriptor opened O_APPEND|O_CLOEXEC for it and closed again, so
 * lines of many processes never mix and no descriptor is kept. Query strings, bodies and
 * credentials never get here. A line that cannot be written is lost and counted, never waited for.
 */
#ifndef SENDONCE_LEDGER_EVENTS_H
#define SENDONCE_LEDGER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"

/* Null text and negative numbers mean: leave the field out. */
struct event {
	const char *event; /* "write", "refusal", "unprotected", "warning", ... */
	const char *run, *scope, *mode, *operation, *method, *host, *path;
	const char *key;                                 /* whole; cut to 8 */
	const uint8_t *identity, *own_key, *fingerprint; /* 32 bytes; cut to 16 hex digits */
	const char *parts;                               /* identity_leaves: an object, as it is */
	uint64_t record;                                 /* 0: none */
	int64_t generation, attempt, wire_sends, status, curlcode, ms, bytes;
	int64_t lost; /* of "lost": how many lines */
	const char *verdict, *reason, *outcome, *served, *text;
	const uint8_t *trace; /* 16 bytes */
};

/* An event with every number set to "leave out". */
struct event event_make(const char *name);

/* A JSON string, with its quotes; what is not UTF-8 in it is replaced. */
void event_add_string(struct buf *out, struct span text);

/* The line itself, with its newline: time, pid and exe are filled in here. */
void event_format(struct buf *out, const struct event *event, struct stamp now);

/* Whether logs this process makes from now on are their folder's group's to write (0660), as the
 * ledger beside them is. */
void event_log_shared(bool group);

/* Whether a line could be written there now: 0, or -1 with errno. Makes the file as event_write
 * does. */
int event_log_try(const char *path);

/* Whether the disk has no room for another line there. Nothing is written. */
bool event_log_is_full(const char *path);

/* Lines of event_format, in one write. Returns how many of them are lost: not in the log, or not
 * whole. Keeps errno. The file is made 0600 when missing. */
size_t event_append(const char *path, struct span lines);

/* One line: 0, or -1 when it was lost. Keeps errno. The file is made 0600 when missing. */
int event_write(const char *path, const struct event *event);

#endif
