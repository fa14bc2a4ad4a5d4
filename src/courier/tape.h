/* The tape: what has come back of one answer so far, in order.
 *
 * One writer (whoever drives the courier), any number of readers in this process, each with a
 * cursor of its own. Pieces never move or change once written, so a reader uses the one it was
 * given without a lock until it reads on. Counted references; a mutex inside. */
#ifndef SENDONCE_COURIER_TAPE_H
#define SENDONCE_COURIER_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/curlapi.h"
#include "player/info.h"

struct tape;

enum tape_kind {
	TAPE_HEADER,
	TAPE_BODY,
	TAPE_DEBUG,
	TAPE_REQUEST /* "METHOD URL": what is asked from here on, where redirects are followed */
};

struct tape_piece {
	enum tape_kind kind;
	int debug; /* curl_infotype of TAPE_DEBUG */
	const char *data;
	size_t n;
	bool connect;     /* a header line of a CONNECT answer */
	unsigned request; /* which of the requests of this transfer, 0-based */
};

/* Where a reader is. All zero: at the start. */
struct tape_cursor {
	void *at;
	size_t body_bytes;
};

/* How it ended. */
struct tape_end {
	bool ended;
	bool stopped;  /* before the gate: withdrawn, or the gate was lost. Nothing was sent */
	bool complete; /* the answer came whole */
	CURLcode code; /* of the sender's own transfer */
	char text[CURL_ERROR_SIZE];
	long status;
	long seen_at; /* 302 or 303: the write's own answer, when `status` is what was asked next */
};

struct tape *tape_new(size_t keep); /* keep: bytes of body that must stay for late readers */
struct tape *tape_ref(struct tape *t);
void tape_unref(struct tape *t);

/* writer */
int tape_add(struct tape *t, const struct tape_piece *piece); /* copies; 0, -1 no memory */
/* From now on readers see what is added only when it is shown, or the tape has ended: a program
 * that asks getinfo in its callback gets an answer that is not older than what it was given. */
void tape_hold(struct tape *t);
void tape_show(struct tape *t);
/* An empty tape gets a whole answer, in one piece of memory; nothing is added to it afterwards. 0,
 * -1 no memory. */
int tape_fill(struct tape *t, struct span head, struct span body);
void tape_finish(struct tape *t, const struct tape_end *end);
/* Snapshot of getinfo so far; takes ownership. */
void tape_info(struct tape *t, struct info *info);
bool tape_full(struct tape *t); /* 4 MiB unplayed while a reader is there: pause the sender */

/* readers */
bool tape_attach(struct tape *t); /* false: its beginning is no longer kept */
void tape_detach(struct tape *t);
/* The next piece: 1 and *piece, 0 when there is none yet (or no more). Valid until this cursor
 * reads on: above `keep`, what every attached reader has passed is freed. Attach before the first
 * read. */
int tape_read(struct tape *t, struct tape_cursor *cursor, struct tape_piece *piece);
void tape_ended(struct tape *t, struct tape_end *out);
bool tape_has_ended(struct tape *t);
/* To be read only; the caller frees; null when there is none yet. */
struct info *tape_info_ref(struct tape *t);
struct info *tape_info_copy(struct tape *t); /* the caller frees; null when there is none yet */
/* The snapshot itself, for the one user of a tape that has no other. */
struct info *tape_info_take(struct tape *t);

/* by who fills it, or once it has ended: what is given stays as it is until more is added */
/* The whole body when all of it is still there and not above `max`; -1 otherwise. Where it does not
 * lie in one piece it is put together in `spare`, which is empty. */
int tape_body(struct tape *t, size_t max, struct buf *spare, struct span *out);
/* The last origin header block, raw; with a NUL behind it, or null. */
struct span tape_head(struct tape *t);

#endif
