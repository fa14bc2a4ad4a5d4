/* Borrowed bytes (span) and growing bytes (buf). */
#ifndef SENDONCE_BASE_BYTES_H
#define SENDONCE_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes owned by somebody else; may hold NUL, is not terminated. */
struct span {
	const char *p;
	size_t n;
};

/* A growing buffer. All zero is an empty one. An allocation that fails sets `failed` and empties
 * no data; every later append is then a no-op, so that a caller may test once, at the end.
 * data[n] is always NUL once anything was appended. */
struct buf {
	char *data;
	size_t n;
	size_t room;
	bool failed;
	bool lent; /* data is the caller's room, not of the heap */
};

struct span span_of(const char *text); /* null gives an empty span */
struct span span_buf(const struct buf *b);
bool span_equal(struct span a, struct span b);
bool span_is(struct span a, const char *text);        /* equal, bytes */
bool span_is_nocase(struct span a, const char *text); /* equal, ASCII case folded */
bool span_starts(struct span a, const char *prefix);
bool span_ends_nocase(struct span a, const char *suffix);
struct span span_trim(struct span a); /* without spaces and tabs at both ends */

/* Empty, and in `room` (n > 0 bytes, which outlive it) as long as that is enough: data is never to
 * be kept longer than the room, nor freed but by buf_free. */
struct buf buf_in(char *room, size_t n);
void buf_add(struct buf *b, const void *data, size_t n);
/* n bytes more, which the caller fills; null when out of memory. */
char *buf_grow(struct buf *b, size_t n);
void buf_add_span(struct buf *b, struct span s);
void buf_add_text(struct buf *b, const char *text);
void buf_add_char(struct buf *b, char c);
void buf_add_number(struct buf *b, int64_t value); /* decimal */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_reset(struct buf *b); /* empty, keeps the memory, clears `failed` */
void buf_free(struct buf *b);

/* A NUL-terminated copy, or null when out of memory. The caller frees. */
char *span_dup(struct span s);

/* With its NUL; `to` has room for all of it. */
void text_copy(char *to, const char *from);

/* Lower-case hex of n bytes; `out` has room for 2n+1. */
void hex_encode(char *out, const void *bytes, size_t n);

#endif
