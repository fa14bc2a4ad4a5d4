/* Selectors: how a policy names one part of a request. `fields`, `ignore` and `must_match` are all
 * read by this one file, so that a name means the same thing in each of them. */
#include "identity/parts.h"

#include <string.h>

struct selector selector_of(const char *item)
{
	struct span text = span_of(item);

	if (text.n == 0 || *text.p == '/')
		return (struct selector){SELECT_JSON, text};
	if (span_starts(text, "query:"))
		return (struct selector){SELECT_QUERY, {text.p + 6, text.n - 6}};
	if (span_starts(text, "header:"))
		return (struct selector){SELECT_HEADER, {text.p + 7, text.n - 7}};
	return (struct selector){SELECT_FORM, text};
}

static bool same_name(const struct selector *s, struct span name)
{
	if (s->kind == SELECT_HEADER)
		return span_is_nocase(name, s->name.p); /* the item's end: terminated */
	return span_equal(s->name, name);
}

bool selector_names(const struct text_list *list, enum selector_kind kind, struct span name)
{
	for (size_t i = 0; list && i < list->count; i++) {
		struct selector s = selector_of(list->item[i]);

		if (s.kind == kind && same_name(&s, name))
			return true;
	}
	return false;
}

bool selector_has_kind(const struct text_list *list, enum selector_kind kind)
{
	for (size_t i = 0; list && i < list->count; i++) {
		if (selector_of(list->item[i]).kind == kind)
			return true;
	}
	return false;
}
