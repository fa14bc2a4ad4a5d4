/* The key in a query or in a JSON body: found, taken out, put in.
 *
 * A body is changed where the key stands and nowhere else: the rest keeps its bytes, since a server
 * may sign or compare them. A member that is missing is put first into the object it belongs to,
 * and objects on the way to it are made. An object that holds nothing but the key goes out with it,
 * so that a request is the same write with and without one. */
#include "identity/parts.h"

#include <string.h>

/* --- JSON --- */

/* The last node that the pointer leads to, and what is left of it from there. */
struct reach {
	uint32_t at;
	struct span rest; /* p null: the pointer's own node was reached */
};

static struct reach reach(const struct json_doc *doc, struct span pointer)
{
	struct reach r = {JSON_ROOT, {0}};

	span_cut(pointer, '/', &r.rest);
	while (r.rest.p) {
		struct span left = r.rest, token = span_cut(r.rest, '/', &r.rest);
		uint32_t next = json_child(doc, r.at, token);

		if (!next) {
			r.rest = left;
			break;
		}
		r.at = next;
	}
	return r;
}

uint32_t carry_node(const struct json_doc *doc, struct span pointer)
{
	uint32_t at = json_find(doc, pointer);

	while (at && doc->node[at].parent > JSON_ROOT) {
		const struct json_node *parent = &doc->node[doc->node[at].parent];

		bool alone = parent->first == at && !doc->node[at].next;

		if (parent->kind != JSON_OBJECT || !alone || !parent->name.p)
			break;
		at = doc->node[at].parent;
	}
	return at;
}

enum carry_found carry_json_find(struct span body, struct span pointer, struct buf *key)
{
	struct json_doc doc = {0};
	enum carry_found found = CARRY_NO_PLACE;
	struct reach r = {0};

	if (json_parse(&doc, body) == 0)
		r = reach(&doc, pointer);
	if (r.at && r.rest.p)
		found = doc.node[r.at].kind == JSON_OBJECT ? CARRY_ABSENT : CARRY_NO_PLACE;
	else if (r.at && doc.node[r.at].kind == JSON_WORD && span_is(doc.node[r.at].text, "null"))
		found = CARRY_ABSENT;
	else if (r.at)
		found = doc.node[r.at].kind == JSON_STRING ? CARRY_FOUND : CARRY_NO_TEXT;
	if (found == CARRY_FOUND)
		json_decode_string(doc.node[r.at].text, key);
	if (found == CARRY_FOUND && key->n == 0)
		found = CARRY_ABSENT;
	json_free(&doc);
	return found;
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
		p++;
	return p;
}

/* Behind the node's text. Of a container: behind its closing bracket, with one member at most. */
static const char *node_end(const struct json_doc *doc, uint32_t at, const char *end)
{
	const struct json_node *n = &doc->node[at];
	size_t open = 0;

	while (n->kind <= JSON_ARRAY && n->first) { /* downwards; the brackets are closed below */
		open++;
		n = &doc->node[n->first];
	}
	end = n->kind <= JSON_ARRAY ? skip_space(n->text.p + 1, end) + 1
	                            : n->text.p + n->text.n + (n->kind == JSON_STRING);
	while (open--) {
		while (*end != '}' && *end != ']')
			end++;
		end++;
	}
	return end;
}

/* The comma that goes with a member: the one before it, else the one behind. */
static void take_comma(struct span body, const char **from, const char **to)
{
	const char *end = body.p + body.n, *before = *from, *behind = skip_space(*to, end);

	while (before > body.p && strchr(" \t\r\n", before[-1]) && before[-1])
		before--;
	if (before > body.p && before[-1] == ',')
		*from = before - 1;
	else if (behind < end && *behind == ',')
		*to = behind + 1;
}

int carry_json_without(struct span body, struct span pointer, struct buf *out)
{
	struct json_doc doc = {0};
	uint32_t at = json_parse(&doc, body) == 0 ? carry_node(&doc, pointer) : JSON_NONE;
	const char *from, *to;
	bool there = at && doc.node[at].name.p;

	if (there) {
		from = doc.node[at].name.p - 1;
		to = node_end(&doc, at, body.p + body.n);
		take_comma(body, &from, &to);
		buf_add(out, body.p, (size_t)(from - body.p));
		buf_add(out, to, (size_t)(body.p + body.n - to));
	}
	json_free(&doc);
	return there ? 0 : -1;
}

/* Between quotes. `pointer`: ~0 and ~1 are resolved. */
static void add_text(struct buf *out, struct span text, bool pointer)
{
	buf_add_char(out, '"');
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (pointer && c == '~' && i + 1 < text.n)
			c = text.p[++i] == '1' ? '/' : '~';
		if (c == '"' || c == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, c);
	}
	buf_add_char(out, '"');
}

/* "a":{"b":"key"} for the rest of a pointer. */
static void add_member(struct buf *out, struct span rest, struct span key)
{
	size_t open = 0;

	while (rest.p) {
		add_text(out, span_cut(rest, '/', &rest), true);
		buf_add_char(out, ':');
		open += rest.p != NULL;
		if (rest.p)
			buf_add_char(out, '{');
	}
	add_text(out, key, false);
	while (open--)
		buf_add_char(out, '}');
}

static void put_in(const struct json_doc *doc, const struct reach *r, struct span body,
                   struct span key, struct buf *out)
{
	const struct json_node *n = &doc->node[r->at];
	const char *end = body.p + body.n, *from = n->text.p, *to;

	if (r->rest.p) {
		from = to = n->text.p + 1;
		buf_add(out, body.p, (size_t)(from - body.p));
		add_member(out, r->rest, key);
		if (n->first)
			buf_add_char(out, ',');
	} else {
		from -= n->kind == JSON_STRING;
		to = node_end(doc, r->at, end);
		buf_add(out, body.p, (size_t)(from - body.p));
		add_text(out, key, false);
	}
	buf_add(out, to, (size_t)(end - to));
}

int carry_json_with(struct span body, struct span pointer, struct span key, struct buf *out)
{
	struct json_doc doc = {0};
	struct reach r = {0};
	bool place;

	if (json_parse(&doc, body) == 0)
		r = reach(&doc, pointer);
	place = r.at &&
	        (r.rest.p ? doc.node[r.at].kind == JSON_OBJECT : doc.node[r.at].kind > JSON_ARRAY);
	if (place)
		put_in(&doc, &r, body, key, out);
	json_free(&doc);
	return place ? 0 : -1;
}

/* --- queries --- */

void carry_query_without(struct span query, struct span name, struct buf *out)
{
	bool first = true;

	while (query.p) {
		struct span value, pair = span_cut(query, '&', &query),
		                   key = span_cut(pair, '=', &value);

		if (form_name_is(key, name))
			continue;
		if (!first)
			buf_add_char(out, '&');
		buf_add_span(out, pair);
		first = false;
	}
}

static void add_escaped(struct buf *out, struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		             (c >= 'A' && c <= 'Z') || (c && strchr("-._~", c));

		if (plain)
			buf_add_char(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
}

void carry_url_with(struct span url, struct span name, struct span key, struct buf *out)
{
	struct span fragment, query, base;
	size_t before;

	base = span_cut(span_cut(url, '#', &fragment), '?', &query);
	buf_add_span(out, base);
	buf_add_char(out, '?');
	before = out->n;
	carry_query_without(query, name, out);
	if (out->n > before)
		buf_add_char(out, '&');
	add_escaped(out, name);
	buf_add_char(out, '=');
	add_escaped(out, key);
	if (!fragment.p)
		return;
	buf_add_char(out, '#');
	buf_add_span(out, fragment);
}
