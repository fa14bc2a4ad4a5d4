/* The canonical form of application/x-www-form-urlencoded text and of queries.
 *
 * Pairs are cut at '&', decoded ('+' is a space; a '%' without two hex digits is itself) and sorted
 * by name; pairs of one name keep their order, since servers read a list from them. `a` and `a=`
 * differ. Any bytes have a canonical form, except for more than PAIRS_MAX pairs. */
#include "identity/parts.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 1 << 20 };

struct pair {
	struct span name, value; /* decoded; value.p is null without '=' */
	size_t order;
};

struct pairs {
	struct pair *pair;
	size_t count;
	char *text; /* what the spans lie in */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next decoded byte of a text that is not empty. */
static char take_char(struct span *raw)
{
	char c = *raw->p == '+' ? ' ' : *raw->p;
	size_t used = 1;

	if (c == '%' && raw->n > 2 && hex_digit(raw->p[1]) >= 0 && hex_digit(raw->p[2]) >= 0) {
		c = (char)(hex_digit(raw->p[1]) * 16 + hex_digit(raw->p[2]));
		used = 3;
	}
	*raw = (struct span){raw->p + used, raw->n - used};
	return c;
}

/* Decodes into `to`, which has room; returns what was written. */
static struct span decode(struct span raw, char *to)
{
	size_t n = 0;

	while (raw.n)
		to[n++] = take_char(&raw);
	return (struct span){to, n};
}

/* Decoded, the raw name equals `name`. */
bool form_name_is(struct span raw, struct span name)
{
	size_t i = 0;

	while (raw.n && i < name.n) {
		if (take_char(&raw) != name.p[i++])
			return false;
	}
	return raw.n == 0 && i == name.n;
}

bool form_value(struct span text, struct span name, struct buf *out)
{
	while (text.n) {
		struct span value, raw = span_cut(text, '&', &text),
		                   key = span_cut(raw, '=', &value);

		if (raw.n == 0 || !form_name_is(key, name))
			continue;
		while (value.n)
			buf_add_char(out, take_char(&value));
		return true;
	}
	return false;
}

static int compare(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;
	size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
	int d = n ? memcmp(a->name.p, b->name.p, n) : 0;

	if (d)
		return d;
	if (a->name.n != b->name.n)
		return a->name.n < b->name.n ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static size_t count_pairs(struct span text)
{
	size_t n = 1;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '&';
	return n;
}

static void read_pairs(struct pairs *set, struct span text)
{
	char *to = set->text;

	while (text.p) {
		struct span value, raw = span_cut(text, '&', &text),
		                   name = span_cut(raw, '=', &value);
		struct pair *p = &set->pair[set->count];

		if (raw.n == 0)
			continue;
		p->name = decode(name, to);
		to += p->name.n;
		p->value = value.p ? decode(value, to) : (struct span){0};
		to += p->value.n;
		p->order = set->count++;
	}
}

static void emit_value(const struct pair *p, struct buf *out)
{
	part_add(out, p->value.p ? 'v' : 'e', p->value);
}

static bool emit_named(const struct pairs *set, struct span name, struct buf *out)
{
	bool found = false;

	part_add(out, 'p', name);
	for (size_t i = 0; i < set->count; i++) {
		if (span_equal(set->pair[i].name, name)) {
			emit_value(&set->pair[i], out);
			found = true;
		}
	}
	if (!found)
		part_add(out, '-', (struct span){0});
	return found;
}

static void emit_all(const struct pairs *set, struct buf *out)
{
	for (size_t i = 0; i < set->count; i++) {
		part_add(out, 'n', set->pair[i].name);
		emit_value(&set->pair[i], out);
	}
}

static void drop_ignored(struct pairs *set, enum selector_kind kind, const struct text_list *ignore)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (!selector_names(ignore, kind, set->pair[i].name))
			set->pair[kept++] = set->pair[i];
	}
	set->count = kept;
}

static size_t emit(const struct pairs *set, enum selector_kind kind, const struct text_list *fields,
                   struct buf *out)
{
	size_t found = 0;

	if (!fields || fields->count == 0) {
		emit_all(set, out);
		return 0;
	}
	for (size_t i = 0; i < fields->count; i++) {
		struct selector s = selector_of(fields->item[i]);

		if (s.kind == kind)
			found += emit_named(set, s.name, out);
	}
	return found;
}

int form_parts(struct span text, enum selector_kind kind, const struct text_list *fields,
               const struct text_list *ignore, struct buf *out, size_t *found)
{
	size_t room = count_pairs(text), n = 0;
	struct pairs set = {0};

	if (room > PAIRS_MAX)
		return -1;
	set.pair = malloc(room * sizeof *set.pair);
	set.text = malloc(text.n + 1);
	if (set.pair && set.text) {
		read_pairs(&set, text);
		qsort(set.pair, set.count, sizeof *set.pair, compare);
		drop_ignored(&set, kind, ignore);
		n = emit(&set, kind, fields, out);
	} else {
		out->failed = true;
	}
	free(set.pair);
	free(set.text);
	if (found)
		*found = n;
	return out->failed ? -1 : 0;
}

int form_canonical(struct span text, const struct text_list *fields, const struct text_list *ignore,
                   struct buf *out)
{
	return form_parts(text, SELECT_FORM, fields, ignore, out, NULL);
}
