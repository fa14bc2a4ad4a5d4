#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 128, NUMBER_MOST = sizeof("-9223372036854775808") };

struct span span_of(const char *text)
{
	return (struct span){text, text ? strlen(text) : 0};
}

struct span span_buf(const struct buf *b)
{
	return (struct span){b->data, b->n};
}

bool span_equal(struct span a, struct span b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool span_is(struct span a, const char *text)
{
	return span_equal(a, span_of(text));
}

/* ASCII only: the host's locale must not change what a header is called. */
static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static bool equal_nocase(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (lower(a[i]) != lower(b[i]))
			return false;
	}
	return true;
}

bool span_is_nocase(struct span a, const char *text)
{
	return a.n == strlen(text) && equal_nocase(a.p, text, a.n);
}

bool span_starts(struct span a, const char *prefix)
{
	size_t n = strlen(prefix);
	return a.n >= n && memcmp(a.p, prefix, n) == 0;
}

bool span_ends_nocase(struct span a, const char *suffix)
{
	size_t n = strlen(suffix);
	return a.n >= n && equal_nocase(a.p + a.n - n, suffix, n);
}

struct span span_trim(struct span a)
{
	while (a.n && (*a.p == ' ' || *a.p == '\t')) {
		a.p++;
		a.n--;
	}
	while (a.n && (a.p[a.n - 1] == ' ' || a.p[a.n - 1] == '\t'))
		a.n--;
	return a;
}

/* What failed has no room from then on, so that `reserve` asks one thing only. */
static bool give_up(struct buf *b)
{
	b->failed = true;
	b->room = b->data ? b->n + 1 : 0;
	return false;
}

static __attribute__((noinline)) bool make_room(struct buf *b, size_t n)
{
	size_t need, room;
	char *data;

	if (b->failed || n > SIZE_MAX / 2 - b->n - 1)
		return give_up(b);
	need = b->n + n + 1;
	room = b->room ? b->room * 2 : ROOM_FIRST;
	if (room < need)
		room = need;
	data = b->lent ? malloc(room) : realloc(b->data, room);
	if (!data)
		return give_up(b);
	if (b->lent)
		memcpy(data, b->data, b->n + 1);
	b->lent = false;
	b->data = data;
	b->room = room;
	return true;
}

struct buf buf_in(char *room, size_t n)
{
	room[0] = '\0';
	return (struct buf){.data = room, .room = n, .lent = true};
}

/* Room for n more bytes and a NUL. `room` is 0, or more than `n`. */
static inline bool reserve(struct buf *b, size_t n)
{
	return n < b->room - b->n || make_room(b, n);
}

char *buf_grow(struct buf *b, size_t n)
{
	char *at;

	if (!reserve(b, n))
		return NULL;
	at = b->data + b->n;
	b->n += n;
	b->data[b->n] = '\0';
	return at;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
	if (!reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->n, data, n);
	b->n += n;
	b->data[b->n] = '\0';
}

void buf_add_span(struct buf *b, struct span s)
{
	buf_add(b, s.p, s.n);
}

void buf_add_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_add_char(struct buf *b, char c)
{
	if (!reserve(b, 1))
		return;
	b->data[b->n++] = c;
	b->data[b->n] = '\0';
}

void buf_add_number(struct buf *b, int64_t value)
{
	char digits[NUMBER_MOST], *at = digits + sizeof(digits);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do
		*--at = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (value < 0)
		*--at = '-';
	buf_add(b, at, (size_t)(digits + sizeof(digits) - at));
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0 || !reserve(b, (size_t)n)) {
		b->failed = true;
		return;
	}
	va_start(args, format);
	vsnprintf(b->data + b->n, (size_t)n + 1, format, args);
	va_end(args);
	b->n += (size_t)n;
}

void buf_reset(struct buf *b)
{
	b->n = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

void buf_free(struct buf *b)
{
	if (!b->lent)
		free(b->data);
	*b = (struct buf){0};
}

char *span_dup(struct span s)
{
	char *copy = malloc(s.n + 1);

	if (!copy)
		return NULL;
	if (s.n)
		memcpy(copy, s.p, s.n);
	copy[s.n] = '\0';
	return copy;
}

void text_copy(char *to, const char *from)
{
	memcpy(to, from, strlen(from) + 1);
}

void hex_encode(char *out, const void *bytes, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digit[p[i] >> 4];
		out[2 * i + 1] = digit[p[i] & 15];
	}
	out[2 * n] = '\0';
}
