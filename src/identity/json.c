/* The canonical form of a JSON text, made from the text itself.
 *
 * A text is read once into an array of nodes (no recursion: a node knows its parent, so depth
 * costs nothing but nodes) and each object's members are sorted when it closes. Then the tree, or
 * what a policy selects of it, is written without whitespace. Nothing is interpreted on the way
 * that two parsers could read differently: duplicate members, invalid UTF-8, a byte order mark or
 * anything after the value leave the text without a canonical form. So does a text of more than
 * JSON_NODES_MAX values, which bounds the memory; a depth of 10,000 is far below that.
 *
 * The canonical form is for hashing. It is not RFC 8785: numbers are written as exact decimals. */
#include "identity/parts.h"

#include <stdlib.h>
#include <string.h>

struct reader {
	struct json_doc *doc;
	const char *p, *end;
	uint32_t at; /* the container that is open */
	struct span name;
};

void json_free(struct json_doc *doc)
{
	if (doc->node != doc->first)
		free(doc->node);
	*doc = (struct json_doc){0};
}

static bool grow(struct json_doc *doc)
{
	bool first = doc->node == doc->first;
	uint32_t room = doc->room ? doc->room * 2 : JSON_FIRST;
	struct json_node *node = doc->first;

	if (doc->room)
		node = realloc(first ? NULL : doc->node, room * sizeof *node);
	if (!node)
		return false;
	if (first)
		memcpy(node, doc->first, sizeof(doc->first));
	doc->node = node;
	doc->room = room;
	return true;
}

/* Appends a node to the open container. */
static int add(struct reader *r, enum json_kind kind, struct span text)
{
	struct json_doc *doc = r->doc;
	struct json_node *parent;
	uint32_t at = doc->count;

	if (at > JSON_NODES_MAX)
		return JSON_INVALID;
	if (at >= doc->room && !grow(doc))
		return JSON_NOMEM;
	doc->node[at] =
	        (struct json_node){.text = text, .name = r->name, .parent = r->at, .kind = kind};
	doc->count++;
	if (at == 0)
		return 0;
	parent = &doc->node[r->at];
	if (parent->last)
		doc->node[parent->last].next = at;
	else
		parent->first = at;
	parent->last = at;
	return 0;
}

static void skip_space(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

static bool take(struct reader *r, char c)
{
	if (r->p >= r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static int read_string(struct reader *r, struct span *out)
{
	const char *from = r->p;

	if (json_scan_string(&r->p, r->end) < 0)
		return JSON_INVALID;
	*out = (struct span){from, (size_t)(r->p - from)};
	r->p++;
	return 0;
}

/* `"name" :` where a member begins; elsewhere nothing. */
static int read_name(struct reader *r)
{
	r->name = (struct span){0};
	if (r->doc->node[r->at].kind != JSON_OBJECT)
		return 0;
	if (!take(r, '"') || read_string(r, &r->name) < 0)
		return JSON_INVALID;
	skip_space(r);
	if (!take(r, ':'))
		return JSON_INVALID;
	skip_space(r);
	return 0;
}

static int read_word(struct reader *r)
{
	static const char *const word[] = {"true", "false", "null"};
	struct span left = {r->p, (size_t)(r->end - r->p)};

	for (size_t i = 0; i < 3; i++) {
		if (span_starts(left, word[i])) {
			r->p += strlen(word[i]);
			left.n = strlen(word[i]);
			return add(r, JSON_WORD, left);
		}
	}
	return JSON_INVALID;
}

static int read_scalar(struct reader *r)
{
	const char *from = r->p;
	struct span text;

	if (take(r, '"'))
		return read_string(r, &text) < 0 ? JSON_INVALID : add(r, JSON_STRING, text);
	if (*from != '-' && (*from < '0' || *from > '9'))
		return read_word(r);
	if (json_scan_number(&r->p, r->end) < 0)
		return JSON_INVALID;
	return add(r, JSON_NUMBER, (struct span){from, (size_t)(r->p - from)});
}

static char closing(enum json_kind kind)
{
	return kind == JSON_OBJECT ? '}' : ']';
}

/* 1: a container was opened and is not empty; 0: a whole value was read. */
static int read_value(struct reader *r)
{
	enum json_kind kind;
	int rc;

	if (r->p >= r->end)
		return JSON_INVALID;
	if (*r->p != '{' && *r->p != '[')
		return read_scalar(r);
	kind = *r->p == '{' ? JSON_OBJECT : JSON_ARRAY;
	rc = add(r, kind, (struct span){r->p, 1});
	if (rc < 0)
		return rc;
	r->p++;
	skip_space(r);
	if (take(r, closing(kind)))
		return 0;
	r->at = r->doc->count - 1;
	return 1;
}

static bool is_sorted(const struct json_doc *doc, uint32_t at)
{
	const struct json_node *node = doc->node;

	for (; at && node[at].next; at = node[at].next) {
		if (json_compare_names(node[at].name, node[node[at].next].name) >= 0)
			return false;
	}
	return true;
}

/* Takes `n` nodes off the list at *at. */
static uint32_t split(struct json_doc *doc, uint32_t *at, uint32_t n)
{
	uint32_t head = *at, end = head;

	while (end && --n)
		end = doc->node[end].next;
	*at = end ? doc->node[end].next : JSON_NONE;
	if (end)
		doc->node[end].next = JSON_NONE;
	return head;
}

/* Appends the merge of a and b behind `tail`; returns the new tail. */
static uint32_t merge(struct json_doc *doc, uint32_t tail, uint32_t a, uint32_t b)
{
	struct json_node *node = doc->node;

	while (a || b) {
		bool left = !b || (a && json_compare_names(node[a].name, node[b].name) <= 0);
		uint32_t *from = left ? &a : &b;

		node[tail].next = *from;
		tail = *from;
		*from = node[tail].next;
	}
	node[tail].next = JSON_NONE;
	return tail;
}

/* Merge sort of the member list, bottom up. Node 0's `next` serves as the list's head. */
static int sort_members(struct json_doc *doc, uint32_t object)
{
	struct json_node *node = doc->node;

	if (is_sorted(doc, node[object].first))
		return 0;
	for (uint32_t width = 1, runs = 2; runs > 1; width *= 2) {
		uint32_t left = node[object].first, tail = 0;

		for (runs = 0; left; runs++) {
			uint32_t a = split(doc, &left, width), b = split(doc, &left, width);

			tail = merge(doc, tail, a, b);
		}
		node[object].first = node[0].next;
	}
	node[0].next = JSON_NONE;
	return is_sorted(doc, node[object].first) ? 0 : JSON_INVALID; /* equal names are left */
}

/* After a value: closes what is complete. 1: another value follows, 0: the text's value is read. */
static int read_after(struct reader *r)
{
	while (r->at) {
		const struct json_node *open = &r->doc->node[r->at];

		skip_space(r);
		if (take(r, ',')) {
			skip_space(r);
			return 1;
		}
		if (!take(r, closing(open->kind)))
			return JSON_INVALID;
		if (open->kind == JSON_OBJECT && sort_members(r->doc, r->at) < 0)
			return JSON_INVALID;
		r->at = open->parent;
	}
	return 0;
}

int json_parse(struct json_doc *doc, struct span text)
{
	struct reader r = {.doc = doc, .p = text.p, .end = text.n ? text.p + text.n : text.p};
	int rc = add(&r, JSON_ARRAY, (struct span){0});

	skip_space(&r);
	while (rc >= 0) {
		rc = read_name(&r);
		if (rc == 0)
			rc = read_value(&r);
		if (rc == 0)
			rc = read_after(&r);
		if (rc == 0)
			break;
	}
	if (rc < 0)
		return rc;
	skip_space(&r);
	return r.p == r.end ? 0 : JSON_INVALID;
}

/* -1 when it isn't an index (leading zeros aren't allowed). */
static long index_of(struct span token)
{
	long v = 0;

	if (token.n == 0 || token.n > 9 || (token.n > 1 && *token.p == '0'))
		return -1;
	for (size_t i = 0; i < token.n; i++) {
		if (token.p[i] < '0' || token.p[i] > '9')
			return -1;
		v = v * 10 + (token.p[i] - '0');
	}
	return v;
}

uint32_t json_child(const struct json_doc *doc, uint32_t at, struct span token)
{
	const struct json_node *node = doc->node;
	bool object = node[at].kind == JSON_OBJECT;
	long index = object ? 0 : index_of(token);

	if (index < 0 || (!object && node[at].kind != JSON_ARRAY))
		return JSON_NONE;
	for (at = node[at].first; at; at = node[at].next) {
		if (object ? json_name_is(node[at].name, token) : index-- == 0)
			return at;
	}
	return JSON_NONE;
}

uint32_t json_find(const struct json_doc *doc, struct span pointer)
{
	struct span rest = pointer;
	uint32_t at = JSON_ROOT;

	if (pointer.n == 0)
		return at;
	span_cut(rest, '/', &rest);
	while (at && rest.p)
		at = json_child(doc, at, span_cut(rest, '/', &rest));
	return at;
}

/* An ignored member is as if it weren't there; an ignored element keeps its place. */
static uint32_t visible(const struct json_doc *doc, uint32_t at)
{
	while (at && doc->node[at].ignored && doc->node[at].name.p)
		at = doc->node[at].next;
	return at;
}

/* Writes what stands before a node's children; returns the first of them. */
static uint32_t emit_open(const struct json_doc *doc, uint32_t at, bool named, struct buf *out)
{
	const struct json_node *n = &doc->node[at];

	if (named && n->name.p) {
		json_emit_string(n->name, out);
		buf_add_char(out, ':');
	}
	if (n->ignored)
		buf_add_char(out, '_'); /* no JSON value looks like this */
	else if (n->kind == JSON_STRING)
		json_emit_string(n->text, out);
	else if (n->kind == JSON_NUMBER)
		json_emit_number(n->text, out);
	else
		buf_add_span(out, n->text);
	if (n->ignored || n->kind > JSON_ARRAY)
		return JSON_NONE;
	if (!visible(doc, n->first))
		buf_add_char(out, closing(n->kind));
	return visible(doc, n->first);
}

void json_emit(const struct json_doc *doc, uint32_t root, struct buf *out)
{
	const struct json_node *node = doc->node;
	uint32_t at = root, below = emit_open(doc, root, false, out);

	while (!out->failed) {
		if (!below) {
			while (at != root && !visible(doc, node[at].next)) {
				at = node[at].parent;
				buf_add_char(out, closing(node[at].kind));
			}
			if (at == root)
				return;
			below = visible(doc, node[at].next);
			buf_add_char(out, ',');
		}
		at = below;
		below = emit_open(doc, at, true, out);
	}
}

void json_mark(struct json_doc *doc, const struct text_list *list)
{
	for (size_t i = 0; list && i < list->count; i++) {
		struct selector s = selector_of(list->item[i]);
		uint32_t at = s.kind == SELECT_JSON ? json_find(doc, s.name) : JSON_NONE;

		if (at)
			doc->node[at].ignored = true;
	}
}

/* Is the node itself, or what it stands in, ignored? */
static bool is_ignored(const struct json_doc *doc, uint32_t at)
{
	while (at && !doc->node[at].ignored)
		at = doc->node[at].parent;
	return at != JSON_NONE;
}

size_t json_emit_parts(struct json_doc *doc, const struct text_list *fields,
                       const struct text_list *ignore, struct buf *out)
{
	size_t found = 0;

	json_mark(doc, ignore);
	if (!fields || fields->count == 0) {
		json_emit(doc, JSON_ROOT, out);
		return 0;
	}
	for (size_t i = 0; i < fields->count; i++) {
		struct selector s = selector_of(fields->item[i]);
		uint32_t at = s.kind == SELECT_JSON ? json_find(doc, s.name) : JSON_NONE;
		size_t open;

		if (s.kind != SELECT_JSON)
			continue;
		part_add(out, 'p', s.name);
		open = part_open(out, at && !is_ignored(doc, at) ? 'v' : '-');
		if (at && !is_ignored(doc, at)) {
			json_emit(doc, at, out);
			found++;
		}
		part_close(out, open);
	}
	return found;
}

int json_canonical_parts(struct span text, const struct text_list *fields,
                         const struct text_list *ignore, struct buf *out)
{
	struct json_doc doc = {0};
	int rc = json_parse(&doc, text);

	if (rc == 0)
		json_emit_parts(&doc, fields, ignore, out);
	if (rc == JSON_NOMEM)
		out->failed = true;
	json_free(&doc);
	return rc == 0 && !out->failed ? 0 : -1;
}

int json_canonical(struct span text, struct buf *out)
{
	return json_canonical_parts(text, NULL, NULL, out);
}
