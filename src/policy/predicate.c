/* Reading `when` and `answers.body`.
 *
 * A map of parts (json, form, query, header), each a map of names and what is asked of them: one
 * value, a list of values of which one must fit, or one of the words absent, present, empty and
 * graphql:KIND. A word in quotes is a value like any other, so that a text "absent" can be asked
 * for. Whether a condition holds is found out elsewhere; this only says what it is. */
#include "policy/predicate.h"

#include <stdlib.h>
#include <string.h>

#include "policy/values.h"

/* In the order of enum predicate_part. */
static const char *const part_names[] = {"json", "form", "query", "header", NULL};

static const struct word {
	const char *text, *value;
	enum predicate_test test;
} words[] = {{"absent", NULL, TEST_ABSENT},
             {"present", NULL, TEST_PRESENT},
             {"empty", NULL, TEST_EMPTY},
             {"graphql:mutation", "mutation", TEST_GRAPHQL},
             {"graphql:query", "query", TEST_GRAPHQL},
             {"graphql:subscription", "subscription", TEST_GRAPHQL},
             {NULL, NULL, TEST_IS}};

void predicate_free(struct predicate_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->item[i].name);
		reader_free_list(&list->item[i].values);
	}
	free(list->item);
	*list = (struct predicate_list){0};
}

static struct predicate *add(struct predicate_list *list, enum predicate_part part,
                             struct span name)
{
	struct predicate *grown = realloc(list->item, (list->count + 1) * sizeof(*grown));
	struct predicate *p;

	if (!grown)
		return NULL;
	list->item = grown;
	p = &grown[list->count];
	*p = (struct predicate){.part = part, .name = span_dup(name)};
	if (!p->name)
		return NULL;
	list->count++;
	return p;
}

static int check_name(struct reader *r, const struct field *f, const struct node *key,
                      enum predicate_part part)
{
	if (part == PART_JSON && value_pointer(key->text))
		return reader_fail_value(r, f, key, value_pointer(key->text));
	if (part == PART_HEADER && !value_is_token(key->text))
		return reader_fail_value(r, f, key, "is not the name of a header");
	if (key->text.n == 0)
		return reader_fail_value(r, f, key, "is empty: name what is looked at");
	return 0;
}

static int read_value(struct reader *r, const struct field *f, const struct node *item, void *at)
{
	struct span text;
	int rc = reader_scalar(r, f, item, &text);

	return rc ? rc : reader_append(r, text, at);
}

static const struct word *find_word(const struct node *value)
{
	const struct word *w = words;

	if (value->kind != NODE_SCALAR || !value->plain)
		return NULL;
	while (w->text && !span_is(value->text, w->text))
		w++;
	return w->text ? w : NULL;
}

static int read_test(struct reader *r, const struct field *f, const struct node *value,
                     struct predicate *p)
{
	const struct word *word = find_word(value);

	if (value->kind == NODE_LIST && value->count == 0)
		return reader_fail(r, value, "`%s` asks for one of no values: name one, or absent",
		                   f->name);
	if (!word && value->kind == NODE_SCALAR && value->plain &&
	    span_starts(value->text, "graphql:"))
		return reader_fail_value(r, f, value,
		                         "is no kind of operation: write graphql:mutation, "
		                         "graphql:query or graphql:subscription");
	if (!word)
		return reader_list(r, f, value, read_value, &p->values);
	p->test = word->test;
	if (p->test == TEST_GRAPHQL && p->part != PART_JSON && p->part != PART_QUERY)
		return reader_fail_value(r, f, value, "stands in json and query only");
	return word->value ? reader_append(r, span_of(word->value), &p->values) : 0;
}

static int read_part(struct reader *r, const struct field *f, const struct node *map,
                     enum predicate_part part, struct predicate_list *list)
{
	int rc = 0;

	if (map->kind != NODE_MAP)
		return reader_fail(r, map, "`%s` compares parts: {json: {/method: VALUE}}",
		                   f->name);
	for (const struct node *n = map->first; n && !rc; n = n->next) {
		struct predicate *p;

		rc = check_name(r, f, n->key, part);
		if (rc)
			break;
		p = add(list, part, n->key->text);
		rc = p ? read_test(r, f, n, p) : reader_nomem(r);
	}
	return rc;
}

/* The part of that name, if it can be looked at here; -1. */
static int find_part(const char *const *known, struct span name)
{
	for (; *known; known++) {
		if (!span_is(name, *known))
			continue;
		for (int i = 0; part_names[i]; i++) {
			if (strcmp(part_names[i], *known) == 0)
				return i;
		}
	}
	return -1;
}

int predicate_read(struct reader *r, const struct field *f, const struct node *value, void *at)
{
	int rc = 0;

	predicate_free(at);
	if (value->kind != NODE_MAP)
		return reader_fail(r, value, "`%s` compares parts: {json: {/method: VALUE}}",
		                   f->name);
	for (const struct node *n = value->first; n && !rc; n = n->next) {
		int part = find_part(f->arg, n->key->text);

		rc = part < 0 ? reader_fail_value(r, f, n->key, "cannot be looked at: write json")
		              : read_part(r, f, n, (enum predicate_part)part, at);
	}
	return rc;
}
