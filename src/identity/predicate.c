/* See predicate.h. JSON is read once for all predicates of all lists that one
 * request is asked about, as late as the first of them looks at it. A pointer may hold * for every
 * member or element: a value or `present` then has to fit one of the places it leads to, `absent`
 * and `empty` every one. Strings are compared as text, numbers as exact decimals (as they are
 * written where the value holds a *), true, false and null by their names. */
#include "identity/predicate.h"

#include <stdlib.h>
#include <string.h>

#include "identity/parts.h"

/* --- values --- */

/* `pattern` with * for any text, also none. Greedy with one way back, so never exponential. */
static bool glob(struct span pattern, struct span text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, mark = 0;

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			mark = t;
		} else if (p < pattern.n && pattern.p[p] == text.p[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

/* What is there fits: for all tests but `absent`. */
static bool text_fits(const struct predicate *p, struct span text)
{
	switch (p->test) {
	case TEST_PRESENT:
		return true;
	case TEST_ABSENT:
		return false;
	case TEST_EMPTY:
		return text.n == 0;
	case TEST_GRAPHQL:
		return graphql_has(text, span_of(p->values.item[0]));
	case TEST_IS:
		break;
	}
	for (size_t i = 0; i < p->values.count; i++) {
		if (glob(span_of(p->values.item[i]), text))
			return true;
	}
	return false;
}

/* --- JSON --- */

static bool same_number(struct span text, const char *value)
{
	struct span other = span_of(value);
	struct buf a = {0}, b = {0};
	const char *p = other.p;
	bool same = false;

	if (json_scan_number(&p, other.p + other.n) == 0 && p == other.p + other.n) {
		json_emit_number(text, &a);
		json_emit_number(other, &b);
		same = !a.failed && !b.failed && span_equal(span_buf(&a), span_buf(&b));
	}
	buf_free(&a);
	buf_free(&b);
	return same;
}

static bool number_fits(const struct predicate *p, struct span text)
{
	for (size_t i = 0; p->test == TEST_IS && i < p->values.count; i++) {
		const char *value = p->values.item[i];

		if (strchr(value, '*') ? glob(span_of(value), text) : same_number(text, value))
			return true;
	}
	return p->test == TEST_PRESENT;
}

static bool node_fits(const struct predicate *p, const struct json_node *node)
{
	struct buf text = {0};
	bool fits;

	switch (node->kind) {
	case JSON_NUMBER:
		return number_fits(p, node->text);
	case JSON_WORD:
		if (p->test == TEST_EMPTY)
			return span_is(node->text, "null");
		return text_fits(p, node->text);
	case JSON_OBJECT:
	case JSON_ARRAY:
		return p->test == TEST_PRESENT || (p->test == TEST_EMPTY && !node->first);
	case JSON_STRING:
		break;
	}
	json_decode_string(node->text, &text);
	fits = !text.failed && text_fits(p, span_buf(&text));
	buf_free(&text);
	return fits;
}

/* What a pointer leads to, counted. */
struct places {
	size_t there, fitting;
};

/* The recursion is as deep as the policy's pointer has stars. */
static void visit(const struct json_doc *doc, uint32_t at, struct span rest,
                  const struct predicate *p, struct places *found)
{
	while (at && rest.p) {
		struct span token = span_cut(rest, '/', &rest);

		if (!span_is(token, "*")) {
			at = json_child(doc, at, token);
			continue;
		}
		if (doc->node[at].kind > JSON_ARRAY)
			return;
		for (at = doc->node[at].first; at; at = doc->node[at].next)
			visit(doc, at, rest, p, found);
	}
	if (!at)
		return;
	found->there++;
	found->fitting += node_fits(p, &doc->node[at]);
}

static void read_json(struct predicate_asking *a)
{
	a->doc = calloc(1, sizeof(*a->doc));
	a->readable = a->doc && json_parse(a->doc, a->view.body) == 0;
}

static bool holds_json(struct predicate_asking *a, const struct predicate *p)
{
	struct places found = {0};
	struct span rest;

	if (!a->doc)
		read_json(a);
	if (a->view.body.n == 0 && a->view.unreadable_holds)
		return p->test == TEST_ABSENT || p->test == TEST_EMPTY;
	if (!a->readable)
		return a->view.unreadable_holds;
	span_cut(span_of(p->name), '/', &rest);
	visit(a->doc, JSON_ROOT, rest, p, &found);
	if (p->test == TEST_ABSENT)
		return found.there == 0;
	return p->test == TEST_EMPTY ? found.fitting == found.there : found.fitting > 0;
}

/* --- pairs and headers --- */

static bool holds_pair(struct span text, const struct predicate *p)
{
	struct buf value = {0};
	bool there = form_value(text, span_of(p->name), &value), holds;

	holds = there ? !value.failed && text_fits(p, span_buf(&value))
	              : p->test == TEST_ABSENT || p->test == TEST_EMPTY;
	buf_free(&value);
	return holds;
}

/* A multipart form has such pairs too, and often is made later by libcurl: it cannot be told. */
static bool holds_form(const struct predicate_view *view, const struct predicate *p)
{
	struct span rest, type = span_trim(span_cut(view->content_type, ';', &rest)), none = {0};
	bool form = type.n == 0 || span_is_nocase(type, "application/x-www-form-urlencoded");

	if (span_is_nocase(type, "multipart/form-data"))
		return view->unreadable_holds;
	return holds_pair(form ? view->body : none, p);
}

static bool holds_header(const struct predicate_view *view, const struct predicate *p)
{
	for (size_t i = 0; i < view->header_count; i++) {
		if (span_is_nocase(view->headers[i].name, p->name))
			return text_fits(p, span_trim(view->headers[i].value));
	}
	return p->test == TEST_ABSENT || p->test == TEST_EMPTY;
}

static bool holds(struct predicate_asking *a, const struct predicate *p)
{
	switch (p->part) {
	case PART_JSON:
		return holds_json(a, p);
	case PART_FORM:
		return holds_form(&a->view, p);
	case PART_QUERY:
		return holds_pair(a->view.query, p);
	case PART_HEADER:
		break;
	}
	return holds_header(&a->view, p);
}

bool predicates_fit(struct predicate_asking *asking, const struct predicate_list *list)
{
	bool all = true;

	for (size_t i = 0; i < list->count && all; i++)
		all = holds(asking, &list->item[i]);
	return all;
}

void predicates_asked(struct predicate_asking *asking)
{
	if (asking->doc)
		json_free(asking->doc);
	free(asking->doc);
	*asking = (struct predicate_asking){0};
}

bool predicates_hold(const struct predicate_list *list, const struct predicate_view *view)
{
	struct predicate_asking a = {.view = *view};
	bool all = predicates_fit(&a, list);

	predicates_asked(&a);
	return all;
}

struct predicate_asking predicates_ask(const struct identity_in *in)
{
	return (struct predicate_asking){.view = {
	                                         .query = in->query,
	                                         .content_type = in->content_type,
	                                         .body = in->body,
	                                         .headers = in->headers,
	                                         .header_count = in->header_count,
	                                         .unreadable_holds = true,
	                                 }};
}

bool predicates_hold_request(const struct predicate_list *list, const struct identity_in *in)
{
	struct predicate_asking a = predicates_ask(in);
	bool all = predicates_fit(&a, list);

	predicates_asked(&a);
	return all;
}

bool predicates_hold_answer(const struct predicate_list *list, const struct predicate_view *view)
{
	struct predicate_view last = *view;

	if (sse_is(view->content_type))
		last.body = sse_answer(view->body);
	return predicates_hold(list, &last);
}

bool predicates_read_body(const struct predicate_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->item[i].part == PART_JSON || list->item[i].part == PART_FORM)
			return true;
	}
	return false;
}
