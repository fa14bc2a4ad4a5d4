/* The header fields of an answer that is kept: which of them, and with which length. */
#ifndef SENDONCE_COURIER_FIELDS_H
#define SENDONCE_COURIER_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* False for a field that says something about one exchange and not about the result: cookies,
 * dates, connection handling, request ids, rate limits, tracing. */
bool field_is_kept(struct span name);

/* The next field of a block with its folded lines, taken off the front; empty at the end. */
struct span fields_next(struct span *rest);
/* Name of a field line; empty for a status line, a blank line and what has no colon. */
struct span field_name(struct span line);
/* First field of that name, its value trimmed; p is null when there is none. */
struct span fields_find(struct span block, const char *name);

/* How the body that belongs to the block is kept. */
struct body_shape {
	bool decoded;   /* libcurl has taken Content-Encoding off */
	bool no_length; /* no Content-Length may stand there (204) */
	bool as_sent;   /* keep Content-Length as it is (HEAD) */
	size_t size;
};

/* The status line and the kept fields, without the blank line. */
void fields_keep(struct span block, const struct body_shape *shape, struct buf *out);

/* A whole header block: a status line "HTTP/..." first and no other, lines that end in \n, no NUL,
 * a blank line at the end and only there. */
bool fields_whole(struct span block);
/* The number in the status line; 0 when there is none. */
long fields_status(struct span block);

#endif
