/* What single values of a policy mean.
 *
 * Every parser is exact: a unit is required where a bare number could be read two ways, nothing is
 * rounded, nothing wraps, and text after the value is an error. Nothing here knows where in the
 * file the text stood; the reader adds that. */
#include "policy/values.h"

#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t scale;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Leading digits off `text`; -1 when there are none, -2 when they don't fit. */
static int64_t take_number(struct span *text)
{
	int64_t n = 0;
	size_t i = 0;

	for (; i < text->n && is_digit(text->p[i]); i++) {
		int digit = text->p[i] - '0';

		if (n > (INT64_MAX - digit) / 10)
			return -2;
		n = n * 10 + digit;
	}
	text->p += i;
	text->n -= i;
	return i ? n : -1;
}

static const struct unit *find_unit(const struct unit *units, struct span name)
{
	for (; units->name; units++) {
		if (span_is(name, units->name))
			return units;
	}
	return NULL;
}

const char *value_duration(struct span text, int64_t *out)
{
	static const struct unit units[] = {{"ms", 1000},
	                                    {"s", 1000000},
	                                    {"m", 60 * INT64_C(1000000)},
	                                    {"h", 3600 * INT64_C(1000000)},
	                                    {"d", 86400 * INT64_C(1000000)},
	                                    {NULL, 0}};
	/* Far beyond any use, and far from where adding two of them could overflow. */
	const int64_t most = INT64_C(36500) * 86400 * 1000000;
	int64_t n = take_number(&text);
	const struct unit *unit = find_unit(units, text);

	if (n == -2)
		return "is too long: at most 36500d";
	if (n == 0 && text.n == 0) {
		*out = 0;
		return NULL;
	}
	if (n < 0 || !unit)
		return "is not a duration: write a whole number and ms, s, m, h or d, as in 10m";
	if (n > most / unit->scale)
		return "is too long: at most 36500d";
	*out = n * unit->scale;
	return NULL;
}

const char *value_size(struct span text, int64_t *out)
{
	static const struct unit units[] = {{"", 1},
	                                    {"B", 1},
	                                    {"KiB", INT64_C(1) << 10},
	                                    {"MiB", INT64_C(1) << 20},
	                                    {"GiB", INT64_C(1) << 30},
	                                    {"TiB", INT64_C(1) << 40},
	                                    {NULL, 0}};
	const int64_t most = INT64_C(1) << 46;
	int64_t n = take_number(&text);
	const struct unit *unit = find_unit(units, text);

	if (n == -1 || (n >= 0 && !unit))
		return "is not a size: write bytes, or a whole number and KiB, MiB or GiB, as in "
		       "32MiB";
	if (n < 0 || n > most / unit->scale)
		return "is too large: at most 64TiB";
	*out = n * unit->scale;
	return NULL;
}

static void set_status(struct status_set *set, int status)
{
	unsigned bit = (unsigned)status - 100;

	set->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

bool status_set_has(const struct status_set *set, long status)
{
	unsigned bit;

	if (status < 100 || status > 599)
		return false;
	bit = (unsigned)status - 100;
	return set->bits[bit / 64] >> (bit % 64) & 1;
}

const char *value_status(struct span text, struct status_set *set)
{
	int status;

	if (text.n != 3 || text.p[0] < '1' || text.p[0] > '5')
		return "is not a status: write 100 to 599, or a class as in 2xx";
	status = (text.p[0] - '0') * 100;
	if (span_is_nocase((struct span){text.p + 1, 2}, "xx")) {
		for (int i = 0; i < 100; i++)
			set_status(set, status + i);
		return NULL;
	}
	if (!is_digit(text.p[1]) || !is_digit(text.p[2]))
		return "is not a status: write 100 to 599, or a class as in 2xx";
	set_status(set, status + (text.p[1] - '0') * 10 + text.p[2] - '0');
	return NULL;
}

struct span value_after(struct span text, const char *prefix, bool *there)
{
	size_t n = strlen(prefix);

	*there = span_starts(text, prefix);
	return *there ? (struct span){text.p + n, text.n - n} : (struct span){NULL, 0};
}

bool value_is_token(struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !is_digit(c) && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return text.n > 0;
}

const char *value_pointer(struct span text)
{
	if (!span_starts(text, "/"))
		return "is not a JSON pointer: it begins with /, as in /metadata/order";
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] != '~')
			continue;
		if (i + 1 == text.n || (text.p[i + 1] != '0' && text.p[i + 1] != '1'))
			return "is not a JSON pointer: ~ is written ~0, and / in a name ~1";
	}
	return NULL;
}

const char *value_selector(struct span text)
{
	if (text.n == 0)
		return "names no part of a request: write /json/pointer, query:NAME, header:NAME "
		       "or the name of a form field";
	if (span_starts(text, "/"))
		return value_pointer(text);
	if (span_starts(text, "header:"))
		return value_is_token((struct span){text.p + 7, text.n - 7})
		               ? NULL
		               : "does not name a header: write header:NAME";
	if (span_starts(text, "query:"))
		return text.n > 6 ? NULL : "does not name a query parameter: write query:NAME";
	if (span_starts(text, "json:"))
		return "has no `json:` in front: write the pointer alone, as in /amount";
	if (span_starts(text, "form:"))
		return "has no `form:` in front: write the field's name alone";
	return NULL;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

enum { DISTANCE_MAX = 31 };

size_t value_distance(struct span a, struct span b, size_t limit)
{
	size_t row[3][DISTANCE_MAX + 1], *before = row[0], *last = row[1], *now = row[2];

	if (a.n > DISTANCE_MAX || b.n > DISTANCE_MAX)
		return limit;
	for (size_t j = 0; j <= b.n; j++)
		last[j] = before[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t *spare = before;

		now[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			bool same = a.p[i - 1] == b.p[j - 1];

			now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !same);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = spare;
	}
	return least(last[b.n], limit);
}

static bool is_name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (!first && is_digit(c));
}

/* The NAME of a ${NAME} at the start of `text`, copied to `name`; its length with the braces, or 0.
 */
static size_t take_variable(struct span text, char name[64])
{
	size_t i = 2;

	while (i < text.n && i < 65 && is_name_char(text.p[i], i == 2))
		i++;
	if (i == 2 || i >= 65 || i == text.n || text.p[i] != '}')
		return 0;
	memcpy(name, text.p + 2, i - 2);
	name[i - 2] = '\0';
	return i + 1;
}

/* The form is checked to the end whatever is set, so that an error never depends on it. */
static enum expand_code expand_into(struct buf *b, struct span text, policy_env *env, void *ctx,
                                    char name[64])
{
	enum expand_code code = EXPAND_OK;
	char other[64];

	for (size_t i = 0, step; i < text.n; i += step) {
		struct span rest = {text.p + i, text.n - i};
		const char *value;

		step = 1;
		if (!span_starts(rest, "${")) {
			buf_add_char(b, text.p[i]);
			continue;
		}
		step = take_variable(rest, code == EXPAND_OK ? name : other);
		if (!step)
			return EXPAND_BAD;
		value = env && code == EXPAND_OK ? env(ctx, name) : NULL;
		if (!value || !*value)
			code = EXPAND_UNSET;
		else
			buf_add_text(b, value);
	}
	return code;
}

enum expand_code value_expand(struct span text, policy_env *env, void *ctx, char **out,
                              char name[64])
{
	struct buf b = {0};
	enum expand_code code = expand_into(&b, text, env, ctx, name);

	*out = NULL;
	if (code == EXPAND_OK && b.failed)
		code = EXPAND_NOMEM;
	if (code == EXPAND_OK && b.n > 0)
		*out = b.data;
	else
		buf_free(&b);
	if (code == EXPAND_OK && !*out)
		code = EXPAND_UNSET;
	return code;
}
