/* See fold.h. It errs on the side of folding: a word too many is lost to the report, a token too
 * many is in a file. Percent-encoded bytes count as the characters they are written with. */
#include "base/fold.h"

#include <stdbool.h>
#include <string.h>

enum { SECRET_MIN = 16, ID_DIGITS = 4, UUID_SIZE = 36 };

struct kinds {
	size_t digits, lower, upper;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct kinds kinds_of(struct span s)
{
	struct kinds k = {0};

	for (size_t i = 0; i < s.n; i++) {
		k.digits += is_digit(s.p[i]);
		k.lower += s.p[i] >= 'a' && s.p[i] <= 'z';
		k.upper += s.p[i] >= 'A' && s.p[i] <= 'Z';
	}
	return k;
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_uuid(struct span s)
{
	if (s.n != UUID_SIZE)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? s.p[i] != '-' : !is_hex(s.p[i]))
			return false;
	}
	return true;
}

const char *fold_word(struct span s)
{
	struct kinds k = kinds_of(s);

	if (s.n > 0 && (k.digits == s.n || is_uuid(s)))
		return "{id}";
	if (s.n >= SECRET_MIN && (k.digits > 0) + (k.lower > 0) + (k.upper > 0) > 1)
		return "{secret}";
	return k.digits >= ID_DIGITS ? "{id}" : NULL;
}

void fold_path(struct span path, struct buf *out)
{
	size_t at = 0;

	while (at < path.n && path.p[at] != '?') {
		size_t end = at;
		struct span segment;
		const char *text;

		while (end < path.n && path.p[end] != '/' && path.p[end] != '?')
			end++;
		segment = (struct span){path.p + at, end - at};
		text = fold_word(segment);
		if (text)
			buf_add_text(out, text);
		else
			buf_add_span(out, segment);
		at = end;
		if (at < path.n && path.p[at] == '/') {
			buf_add_char(out, '/');
			at++;
		}
	}
}
