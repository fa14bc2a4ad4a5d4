/* The bytes that are hashed: parts of tag, length and value.
 *
 * Lengths come first, so that no value, whatever a program or a peer puts into it, can look like
 * the beginning of the next part. Text helpers of the room are here too. */
#include "identity/parts.h"

#include <endian.h>
#include <string.h>

enum { LENGTH = 8 };

static void put_length(char *to, size_t n)
{
	uint64_t v = htobe64(n);

	memcpy(to, &v, LENGTH);
}

size_t part_open(struct buf *out, char tag)
{
	static const char none[LENGTH];

	buf_add_char(out, tag);
	buf_add(out, none, LENGTH);
	return out->n;
}

void part_close(struct buf *out, size_t at)
{
	if (!out->failed)
		put_length(out->data + at - LENGTH, out->n - at);
}

void part_add(struct buf *out, char tag, struct span value)
{
	char *at = value.n < SIZE_MAX - 1 - LENGTH ? buf_grow(out, 1 + LENGTH + value.n) : NULL;

	if (!at) {
		out->failed = true;
		return;
	}
	*at = tag;
	put_length(at + 1, value.n);
	if (value.n)
		memcpy(at + 1 + LENGTH, value.p, value.n);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

void part_add_lower(struct buf *out, char tag, struct span value)
{
	size_t at = out->n;

	part_add(out, tag, value);
	if (out->failed)
		return;
	for (size_t i = at + 1 + LENGTH; i < out->n; i++)
		out->data[i] = lower(out->data[i]);
}

bool span_has_nocase(struct span text, const char *word)
{
	size_t n = strlen(word);

	for (; text.n >= n; text.p++, text.n--) {
		if (lower(*text.p) == lower(*word) &&
		    span_is_nocase((struct span){text.p, n}, word))
			return true;
	}
	return false;
}

struct span span_cut(struct span text, char c, struct span *rest)
{
	const char *at = text.n ? memchr(text.p, c, text.n) : NULL;
	size_t n = at ? (size_t)(at - text.p) : text.n;

	*rest = at ? (struct span){at + 1, text.n - n - 1} : (struct span){0};
	return (struct span){text.p, n};
}
