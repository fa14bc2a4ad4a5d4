/* Answers that come as server-sent events, as JSON-RPC over HTTP may send them.
 *
 * Each `data:` line is taken for a message of its own; one that is spread over several lines is
 * read by nobody here and counts as not there. */
#include "identity/parts.h"

#include <string.h>

bool sse_is(struct span content_type)
{
	struct span rest;

	return span_is_nocase(span_trim(span_cut(content_type, ';', &rest)), "text/event-stream");
}

bool sse_next(struct span *rest, struct span *data)
{
	while (rest->n) {
		size_t n = 0;
		struct span line;

		while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
			n++;
		line = (struct span){rest->p, n};
		n += n < rest->n;
		*rest = (struct span){rest->p + n, rest->n - n};
		if (!span_starts(line, "data:"))
			continue;
		*data = span_trim((struct span){line.p + 5, line.n - 5});
		return true;
	}
	return false;
}

bool sse_is_answer(struct span text)
{
	struct json_doc doc = {0};
	bool answer = json_parse(&doc, text) == 0 && doc.node[JSON_ROOT].kind == JSON_OBJECT &&
	              !json_child(&doc, JSON_ROOT, span_of("method"));

	json_free(&doc);
	return answer;
}

struct span sse_answer(struct span body)
{
	struct span data, last = {0};

	while (sse_next(&body, &data)) {
		if (sse_is_answer(data))
			last = data;
	}
	return last;
}
