/* An answer given to another request than the one it was made for: what the policy names
 * (JSON-RPC's /id) is copied from the request into it, byte for byte, and nothing else is changed.
 * Of server-sent events each one that is an answer gets it. */
#include "identity/parts.h"

/* The value as it stands in the text. Only one that is no object and no array has an end that a
 * node knows; p null otherwise. */
static struct span value_of(const struct json_doc *doc, struct span pointer)
{
	uint32_t at = json_find(doc, pointer);
	const struct json_node *n = &doc->node[at];

	if (!at || n->kind <= JSON_ARRAY)
		return (struct span){0};
	if (n->kind == JSON_STRING)
		return (struct span){n->text.p - 1, n->text.n + 2};
	return n->text;
}

/* One message. False: it has nothing in that place, and is not changed. */
static bool echo_message(struct span message, struct span pointer, struct span value,
                         struct buf *out)
{
	struct json_doc doc = {0};
	struct span old = {0};
	size_t before, behind;

	if (json_parse(&doc, message) == 0)
		old = value_of(&doc, pointer);
	json_free(&doc);
	if (!old.p) {
		buf_add_span(out, message);
		return false;
	}
	before = (size_t)(old.p - message.p);
	behind = before + old.n;
	buf_add(out, message.p, before);
	buf_add_span(out, value);
	buf_add(out, message.p + behind, message.n - behind);
	return true;
}

static bool echo_stream(struct span stream, struct span pointer, struct span value, struct buf *out)
{
	struct span rest = stream, data;
	const char *from = stream.p;
	bool changed = false;

	while (sse_next(&rest, &data)) {
		if (!sse_is_answer(data))
			continue;
		buf_add(out, from, (size_t)(data.p - from));
		changed |= echo_message(data, pointer, value, out);
		from = data.p + data.n;
	}
	buf_add(out, from, (size_t)(stream.p + stream.n - from));
	return changed;
}

static bool echo_one(const struct json_doc *request, struct span pointer, struct span type,
                     struct buf *answer)
{
	struct span value = value_of(request, pointer);
	struct buf out = {0};
	bool changed;

	if (!value.p)
		return false;
	if (sse_is(type))
		changed = echo_stream(span_buf(answer), pointer, value, &out);
	else
		changed = echo_message(span_buf(answer), pointer, value, &out);
	buf_free(answer);
	*answer = out;
	return changed;
}

bool echo_answer(const struct text_list *pointers, struct span request, struct span type,
                 struct span answer, struct buf *out)
{
	struct json_doc doc = {0};
	bool changed = false;

	buf_add_span(out, answer);
	if (json_parse(&doc, request) == 0) {
		for (size_t i = 0; i < pointers->count; i++)
			changed |= echo_one(&doc, span_of(pointers->item[i]), type, out);
	}
	json_free(&doc);
	return changed && !out->failed;
}
