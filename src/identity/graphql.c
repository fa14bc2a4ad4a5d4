/* Which kinds of operation a GraphQL document holds.
 *
 * Only what stands outside of all braces is read: `query`, `mutation`, `subscription`, `fragment`
 * and the short form that begins with a brace. Strings, block strings and comments are skipped, so
 * that a word inside them is never taken for an operation. The document is not checked: a server
 * refuses what is wrong with it. */
#include "identity/parts.h"

#include <string.h>

/* Behind the string at `p`, which is a quote. */
static const char *skip_string(const char *p, const char *end)
{
	bool block = end - p >= 3 && memcmp(p, "\"\"\"", 3) == 0;

	p += block ? 3 : 1;
	while (p < end) {
		if (block && end - p >= 4 && memcmp(p, "\\\"\"\"", 4) == 0)
			p += 4;
		else if (block && end - p >= 3 && memcmp(p, "\"\"\"", 3) == 0)
			return p + 3;
		else if (!block && *p == '\\' && end - p >= 2)
			p += 2;
		else if (!block && (*p == '"' || *p == '\n'))
			return p + 1;
		else
			p++;
	}
	return end;
}

static const char *skip_comment(const char *p, const char *end)
{
	while (p < end && *p != '\n' && *p != '\r')
		p++;
	return p;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* A definition begins: its first word, or the brace of a query without a name. */
static bool begins(struct span word, struct span kind)
{
	return span_equal(word, kind) || (span_is(word, "{") && span_is(kind, "query"));
}

bool graphql_has(struct span text, struct span kind)
{
	const char *p = text.p, *end = text.n ? text.p + text.n : text.p;
	size_t depth = 0;
	bool inside = false; /* a definition has begun, and its selection has not ended */

	while (p < end) {
		struct span word = {p, 1};

		if (*p == '"' || *p == '#') {
			p = *p == '"' ? skip_string(p, end) : skip_comment(p, end);
			continue;
		}
		while (is_name(*p) && p + word.n < end && is_name(p[word.n]))
			word.n++;
		if (depth == 0 && !inside && (is_name(*p) || *p == '{')) {
			if (begins(word, kind))
				return true;
			inside = true;
		}
		depth += *p == '{' || *p == '(';
		depth -= depth > 0 && (*p == '}' || *p == ')');
		inside = inside && !(*p == '}' && depth == 0);
		p += word.n;
	}
	return false;
}
