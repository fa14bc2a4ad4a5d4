/* Tables of keys, and readers for the common kinds of values.
 *
 * Each error names the place of the key or value it is about, says what is wrong and what would be
 * right; the first one ends the reading. Values are shown cut and with unprintable bytes replaced,
 * because the message goes to terminals and event logs. */
#include "policy/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/values.h"

enum { SHOWN_MAX = 60, TEXT_MAX = 4096 };

static const char *key_of(const struct field *f)
{
	const char *dot = strrchr(f->name, '.');

	return dot ? dot + 1 : f->name;
}

/* --- errors --- */

int reader_fail(struct reader *r, const struct node *at, const char *format, ...)
{
	char text[900];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tree_error(r->error, r->path, at->line, at->column, "%s", text);
	return POLICY_INVALID;
}

int reader_nomem(struct reader *r)
{
	tree_error(r->error, r->path, 0, 0, "out of memory");
	return POLICY_NOMEM;
}

static void show(struct span text, char out[SHOWN_MAX + 4])
{
	size_t n = text.n < SHOWN_MAX ? text.n : SHOWN_MAX;

	/* Not in the middle of a UTF-8 sequence. */
	while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		out[i] = c < ' ' || c == 0x7f ? '?' : text.p[i];
	}
	memcpy(out + n, "...", 4);
	if (n == text.n)
		out[n] = '\0';
}

int reader_fail_value(struct reader *r, const struct field *f, const struct node *value,
                      const char *text)
{
	char shown[SHOWN_MAX + 4] = "";

	if (value->kind == NODE_SCALAR)
		show(value->written.p ? value->written : value->text, shown);
	return reader_fail(r, value, "`%s: %s` %s", f->name, shown, text);
}

int reader_fail_unsupported(struct reader *r, const struct field *f, const struct node *value,
                            const char *shown)
{
	char text[SHOWN_MAX + 4] = "";

	if (!shown && value->kind == NODE_SCALAR)
		show(value->text, text);
	return reader_fail(r, value, "%s: %s is not supported in this version: leave it out",
	                   f->name, shown ? shown : text);
}

/* --- sections --- */

static const struct field *find_field(const struct section *section, struct span key)
{
	for (const struct field *f = section->fields; f->name; f++) {
		if (span_is(key, key_of(f)))
			return f;
	}
	return NULL;
}

static const struct field *nearest_field(const struct section *section, struct span key)
{
	const struct field *best = NULL;
	size_t least = key.n < 5 ? 2 : 3;

	for (const struct field *f = section->fields; f->name; f++) {
		size_t distance = value_distance(key, span_of(key_of(f)), least);

		if (distance < least) {
			least = distance;
			best = f;
		}
	}
	return best;
}

static int fail_unknown(struct reader *r, const struct section *section, const struct node *key)
{
	const struct field *near = nearest_field(section, key->text);
	char shown[SHOWN_MAX + 4];

	show(key->text, shown);
	if (near)
		return reader_fail(r, key, "unknown key `%s` (did you mean `%s`?)", shown,
		                   key_of(near));
	for (size_t i = 0; r->sections[i]; i++) {
		if (find_field(r->sections[i], key->text))
			return reader_fail(r, key,
			                   "unknown key `%s` in %s (did you mean the one in %s?)",
			                   shown, section->title, r->sections[i]->title);
	}
	return reader_fail(r, key, "unknown key `%s` in %s: see docs/policy.md for the keys there",
	                   shown, section->title);
}

int reader_fields(struct reader *r, const struct node *map, const struct section *section,
                  void *base)
{
	if (map->kind != NODE_MAP)
		return reader_fail(r, map, "%s must be keys with values, as in `key: value`",
		                   section->title);
	for (const struct node *n = map->first; n; n = n->next) {
		const struct field *f = find_field(section, n->key->text);
		int rc = f ? f->read(r, f, n, (char *)base + f->offset)
		           : fail_unknown(r, section, n->key);

		if (rc)
			return rc;
	}
	return 0;
}

int reader_section(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	return reader_fields(r, value, f->arg, at);
}

/* --- scalars --- */

static bool is_null(const struct node *value)
{
	return value->plain && (value->text.n == 0 || span_is(value->text, "~") ||
	                        span_is_nocase(value->text, "null"));
}

static bool has_control(struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return true;
	}
	return false;
}

static int check_scalar(struct reader *r, const struct field *f, const struct node *value)
{
	if (value->kind != NODE_SCALAR)
		return reader_fail(r, value, "`%s` must be one value, not %s", f->name,
		                   value->kind == NODE_LIST ? "a list" : "keys with values");
	if (is_null(value))
		return reader_fail(r, value, "`%s` has no value: give one, or leave the key out",
		                   f->name);
	if (has_control(value->text))
		return reader_fail_value(r, f, value, "holds a control character or a line break");
	if (value->text.n > TEXT_MAX)
		return reader_fail_value(r, f, value, "is longer than 4096 bytes");
	return 0;
}

int reader_scalar(struct reader *r, const struct field *f, const struct node *value,
                  struct span *out)
{
	*out = value->text;
	return check_scalar(r, f, value);
}

int reader_copy(struct reader *r, struct span text, char **out)
{
	free(*out);
	*out = span_dup(text);
	return *out ? 0 : reader_nomem(r);
}

int reader_text(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	if (!rc && text.n == 0)
		rc = reader_fail(r, value, "`%s` is empty: give a value, or leave the key out",
		                 f->name);
	return rc ? rc : reader_copy(r, text, at);
}

/* "write a, b or c", of those that are supported. */
static int fail_choice(struct reader *r, const struct field *f, const struct node *value)
{
	const struct choice *c = f->arg;
	char list[200] = "is none of the words known here: write ";
	size_t n = strlen(list);
	bool first = true;

	for (; c->text; c++) {
		int more;

		if (c->state == CHOICE_OFF)
			continue;
		more = snprintf(list + n, sizeof(list) - n, "%s%s", first ? "" : " or ", c->text);
		if (more < 0 || (size_t)more >= sizeof(list) - n)
			break;
		n += (size_t)more;
		first = false;
	}
	return reader_fail_value(r, f, value, list);
}

int reader_choice(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	for (const struct choice *c = f->arg; c->text; c++) {
		if (!span_is(text, c->text))
			continue;
		if (c->state == CHOICE_OFF)
			return reader_fail_unsupported(r, f, value, NULL);
		memcpy(at, &c->value, sizeof(c->value));
		return 0;
	}
	return fail_choice(r, f, value);
}

int reader_bool(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	if (!span_is(text, "true") && !span_is(text, "false"))
		return reader_fail_value(r, f, value, "is neither true nor false");
	*(bool *)at = span_is(text, "true");
	return 0;
}

typedef const char *number_fn(struct span text, int64_t *out);

static int read_number(struct reader *r, const struct field *f, const struct node *value,
                       number_fn *number, int64_t *at)
{
	const struct number_limits *limits = f->arg;
	const char *problem;
	struct span text;
	int rc = reader_scalar(r, f, value, &text);

	if (rc)
		return rc;
	if (limits && limits->word && span_is(text, limits->word)) {
		*at = limits->word_value;
		return 0;
	}
	problem = number(text, at);
	if (problem)
		return reader_fail_value(r, f, value, problem);
	if (limits && *at < limits->least)
		return reader_fail_value(r, f, value, "is too small");
	return 0;
}

int reader_duration(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	return read_number(r, f, value, value_duration, at);
}

int reader_size(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	return read_number(r, f, value, value_size, at);
}

/* --- lists --- */

int reader_list(struct reader *r, const struct field *f, const struct node *value, item_fn *item,
                void *at)
{
	int rc = 0;

	if (value->kind == NODE_SCALAR)
		return item(r, f, value, at);
	if (value->kind == NODE_MAP)
		return reader_fail(r, value, "`%s` must be a list, as in [a, b]", f->name);
	for (const struct node *n = value->first; n && !rc; n = n->next)
		rc = item(r, f, n, at);
	return rc;
}

int reader_append(struct reader *r, struct span text, struct text_list *list)
{
	char **grown = realloc(list->item, (list->count + 1) * sizeof(*grown));

	if (!grown)
		return reader_nomem(r);
	list->item = grown;
	grown[list->count] = span_dup(text);
	if (!grown[list->count])
		return reader_nomem(r);
	list->count++;
	return 0;
}

void reader_free_list(struct text_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->item[i]);
	free(list->item);
	*list = (struct text_list){0};
}

static int read_status(struct reader *r, const struct field *f, const struct node *item, void *at)
{
	const char *problem;
	struct span text;
	int rc = reader_scalar(r, f, item, &text);

	if (rc)
		return rc;
	problem = value_status(text, at);
	return problem ? reader_fail_value(r, f, item, problem) : 0;
}

int reader_statuses(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	*(struct status_set *)at = (struct status_set){0};
	return reader_list(r, f, value, read_status, at);
}

static int read_selector(struct reader *r, const struct field *f, const struct node *item, void *at)
{
	const char *problem;
	struct span text;
	int rc = reader_scalar(r, f, item, &text);

	if (rc)
		return rc;
	problem = value_selector(text);
	return problem ? reader_fail_value(r, f, item, problem) : reader_append(r, text, at);
}

int reader_selectors(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	reader_free_list(at);
	return reader_list(r, f, value, read_selector, at);
}

/* --- texts with ${NAME} --- */

static int expand(struct reader *r, const struct field *f, const struct node *value, char **out,
                  char name[64])
{
	enum expand_code code;

	free(*out);
	*out = NULL;
	*name = '\0';
	code = value_expand(value->text, r->env, r->ctx, out, name);
	if (code == EXPAND_NOMEM)
		return reader_nomem(r);
	if (code == EXPAND_BAD)
		return reader_fail_value(r, f, value,
		                         "has a ${ without a variable's name and a }: write "
		                         "${NAME}; other forms are not supported");
	return 0;
}

/* {from: header:NAME, strip: true} */
static int read_from(struct reader *r, const struct field *f, const struct node *map,
                     struct policy_source *to)
{
	const struct node *from = tree_get(map, "from"), *strip = tree_get(map, "strip");
	struct field part = {f->name, NULL, 0, NULL};
	struct span text, name;
	bool header;
	int rc;

	if (!from || map->count != (strip ? 2U : 1U))
		return reader_fail(r, map, "`%s` must be text, or {from: header:NAME, strip: true}",
		                   f->name);
	rc = reader_scalar(r, &part, from, &text);
	if (!rc && strip)
		rc = reader_bool(r, &part, strip, &to->strip);
	if (rc)
		return rc;
	name = value_after(text, "header:", &header);
	if (!header || !value_is_token(name))
		return reader_fail_value(r, f, from, "does not name a header: write header:NAME");
	return reader_copy(r, name, &to->header);
}

/* Names are compared and hashed whole by others, who keep them in buffers of that size: one that
 * was cut would be the name of somebody else. */
int reader_check_name(struct reader *r, const struct field *f, const struct node *value,
                      const char *text)
{
	if (!text || strlen(text) <= POLICY_NAME_MAX)
		return 0;
	return reader_fail(r, value, "`%s` is longer than %d bytes, its variables filled in",
	                   f->name, POLICY_NAME_MAX);
}

int reader_expanded(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	char name[64];
	int rc;

	if (value->kind == NODE_MAP && f->arg)
		return read_from(r, f, value,
		                 (struct policy_source *)(void *)((char *)at - f->offset +
		                                                  *(const size_t *)f->arg));
	rc = check_scalar(r, f, value);
	if (!rc)
		rc = expand(r, f, value, at, name);
	return rc ? rc : reader_check_name(r, f, value, *(char **)at);
}

int reader_path(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	char **path = at;
	char name[64];
	int rc = check_scalar(r, f, value);

	if (!rc)
		rc = expand(r, f, value, path, name);
	if (rc)
		return rc;
	if (!*path && *name)
		return reader_fail(r, value, "`%s` needs the variable %s, which is not set",
		                   f->name, name);
	if (*path && **path == '/')
		return 0;
	return reader_fail_value(r, f, value,
	                         "is a relative path: give an absolute one, as in "
	                         "${HOME}/sendonce/ledger");
}
