/* The leaves of a request, for the audit log: where each is, what sort of value, and a hash of it.
 *
 * Two requests whose identities differ can then be compared leaf by leaf without anything readable
 * having been written down; the names of members are (a JSON pointer, a form's name), unless they
 * look like data themselves. The sort tells business fields from words: `n` a number, `b` true,
 * false or null, `s` a short text, `t` free text, `v` what is new in every request (a time, a
 * request id). It is a guess from form and name, for a report; no identity depends on it. What
 * `ignore` names is left out, as it is from the identity. A request of many leaves keeps LEAVES_MAX
 * of them and one hash of the rest. */
#include <string.h>

#include "base/fold.h"
#include "identity/parts.h"
#include "ledger/events.h"

enum {
	LEAVES_MAX = 64,
	LEAF_NAME_MAX = 128,
	LEAF_BYTES = 4,
	NAME_SHOWN_MAX = 64,
	SHORT_TEXT_MAX = 80,
	WORDS_MAX = 3
};

struct leaves {
	struct hash_key key;
	struct buf *out;
	struct buf name, pair, value, rest;
	size_t count;
};

/* --- sorts --- */

static struct span last_token(struct span name)
{
	for (size_t i = name.n; i > 0; i--)
		if (name.p[i - 1] == '/' || name.p[i - 1] == ':')
			return (struct span){name.p + i, name.n - i};
	return name;
}

static bool is_one_of(struct span name, const char *const *words, bool whole)
{
	for (; *words; words++)
		if (whole ? span_is_nocase(name, *words) : span_has_nocase(name, *words))
			return true;
	return false;
}

/* Names of what programs make anew for every request. */
static bool is_volatile_name(struct span name)
{
	static const char *const whole[] = {"ts", "t", "time", "date", "now", "uuid", NULL};
	static const char *const part[] = {"nonce",      "timestamp", "request_id",  "requestid",
	                                   "request-id", "idempot",   "correlation", "trace",
	                                   "message_id", "messageid", "random",      NULL};

	return is_one_of(name, whole, true) || is_one_of(name, part, false) ||
	       span_ends_nocase(name, "_at") || span_ends_nocase(name, "_time") ||
	       span_ends_nocase(name, "_ts");
}

static bool is_text_name(struct span name)
{
	static const char *const part[] = {"message", "text",    "body",    "descr",   "memo",
	                                   "note",    "comment", "subject", "content", "prompt",
	                                   "reason",  "title",   "summary", NULL};

	return is_one_of(name, part, false);
}

/* 2026-11-30T14:05 or with a space: a moment. */
static bool is_moment(struct span v)
{
	static const char form[] = "dddd-dd-dd dd:dd";

	if (v.n < sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		bool digit = v.p[i] >= '0' && v.p[i] <= '9';

		if (form[i] == 'd' ? !digit
		                   : v.p[i] != form[i] && !(form[i] == ' ' && v.p[i] == 'T'))
			return false;
	}
	return true;
}

static bool is_prose(struct span v)
{
	size_t spaces = 0;

	for (size_t i = 0; i < v.n; i++) {
		spaces += v.p[i] == ' ';
		if (v.p[i] == '\n' || (v.p[i] == '\\' && i + 1 < v.n && v.p[i + 1] == 'n'))
			return true;
	}
	return spaces >= WORDS_MAX || v.n > SHORT_TEXT_MAX;
}

static bool is_number(struct span v)
{
	const char *p = v.p;

	return v.n && json_scan_number(&p, v.p + v.n) == 0 && p == v.p + v.n;
}

static char sort_of_text(struct span name, struct span v)
{
	struct span token = last_token(name);

	if (is_volatile_name(token) || is_moment(v))
		return 'v';
	return is_text_name(token) || is_prose(v) ? 't' : 's';
}

static char sort_of_json(const struct json_node *n, struct span name)
{
	switch (n->kind) {
	case JSON_STRING:
		return sort_of_text(name, n->text);
	case JSON_NUMBER:
		return is_volatile_name(last_token(name)) ? 'v' : 'n';
	default:
		return 'b';
	}
}

/* --- one leaf --- */

/* Several leaves of one name differ by their order: the hash is over both. */
static void write_leaf(struct leaves *l, struct span name, char sort, struct span value)
{
	struct buf *b = &l->value;
	uint8_t hash[HASH_SIZE];
	char hex[2 * LEAF_BYTES + 1];

	buf_reset(b);
	part_add(b, 'l', name);
	part_add(b, 'v', value);
	if (b->failed)
		return;
	hash_keyed(&l->key, b->data, b->n, hash);
	hex_encode(hex, hash, LEAF_BYTES);
	if (l->count > 1)
		buf_add_char(l->out, ',');
	event_add_string(l->out, name);
	buf_add_text(l->out, ":\"");
	buf_add_char(l->out, sort);
	buf_add_text(l->out, hex);
	buf_add_char(l->out, '"');
}

static void add_leaf(struct leaves *l, struct span name, char sort, struct span value)
{
	if (name.n > LEAF_NAME_MAX)
		name.n = LEAF_NAME_MAX;
	if (l->count++ < LEAVES_MAX) {
		write_leaf(l, name, sort, value);
		return;
	}
	part_add(&l->rest, 'l', name);
	part_add(&l->rest, 'v', value);
}

/* --- JSON --- */

/* Data that stands where a name is expected (a plain text under libcurl's default type, a map keyed
 * by mail address) must not be shown. */
static const char *hidden(struct span name)
{
	if (name.n == 0 || name.n > NAME_SHOWN_MAX)
		return "{other}";
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      strchr("_-.$[]:", c)))
			return "{other}";
	}
	return fold_word(name);
}

static void add_shown(struct buf *out, struct span name)
{
	const char *instead = hidden(name);

	if (instead)
		buf_add_text(out, instead);
	else
		buf_add_span(out, name);
}

/* The node's pointer, from the root. */
static void name_node(const struct json_doc *doc, uint32_t at, struct buf *out)
{
	uint32_t chain[LEAVES_MAX], depth = 0, index;

	for (; at > JSON_ROOT && depth < LEAVES_MAX; at = doc->node[at].parent)
		chain[depth++] = at;
	buf_reset(out);
	buf_add(out, "", 0);
	while (depth > 0) {
		at = chain[--depth];
		buf_add_char(out, '/');
		if (doc->node[at].name.p) {
			add_shown(out, doc->node[at].name);
			continue;
		}
		index = 0;
		for (uint32_t i = doc->node[doc->node[at].parent].first; i && i != at;
		     i = doc->node[i].next)
			index++;
		buf_add_number(out, index);
	}
}

static void add_node(struct leaves *l, const struct json_doc *doc, uint32_t at)
{
	struct buf text = {0};
	struct span name;

	name_node(doc, at, &l->name);
	name = span_buf(&l->name);
	if (name.n == 0)
		name = span_of("/");
	json_emit(doc, at, &text);
	if (!text.failed)
		add_leaf(l, name, sort_of_json(&doc->node[at], name), span_buf(&text));
	buf_free(&text);
}

/* Depth first, in the order of the canonical form. */
static void walk(struct leaves *l, const struct json_doc *doc)
{
	const struct json_node *node = doc->node;
	uint32_t at = JSON_ROOT;

	while (at) {
		bool inner = node[at].kind == JSON_OBJECT || node[at].kind == JSON_ARRAY;

		if (!node[at].ignored && inner && node[at].first) {
			at = node[at].first;
			continue;
		}
		if (!node[at].ignored)
			add_node(l, doc, at);
		while (at > JSON_ROOT && !node[at].next)
			at = node[at].parent;
		at = at > JSON_ROOT ? node[at].next : JSON_NONE;
	}
}

static int json_leaves(struct leaves *l, const struct identity_in *in)
{
	struct json_doc doc = {0};
	int rc = json_parse(&doc, in->body);

	if (rc == 0) {
		json_mark(&doc, &in->rule->ignore);
		walk(l, &doc);
	}
	json_free(&doc);
	return rc;
}

/* --- pairs and the rest --- */

/* Reads back what part_add wrote. */
static bool next_part(struct span *left, char *tag, struct span *value)
{
	uint64_t n = 0;

	if (left->n < 9)
		return false;
	*tag = left->p[0];
	for (int i = 1; i < 9; i++)
		n = n << 8 | (unsigned char)left->p[i];
	if (n > left->n - 9)
		return false;
	*value = (struct span){left->p + 9, (size_t)n};
	*left = (struct span){left->p + 9 + n, left->n - 9 - (size_t)n};
	return true;
}

/* A pair without '=' may be anything; its name is as much content as its value. */
static void add_pair(struct leaves *l, struct span name, struct span value, bool named)
{
	char sort = is_number(value) && !is_volatile_name(last_token(name)) ? 'n'
	            : named ? sort_of_text(name, value)
	                    : 't';

	buf_reset(&l->name);
	if (named)
		add_shown(&l->name, name);
	else
		buf_add_text(&l->name, "{other}");
	buf_reset(&l->pair);
	part_add(&l->pair, 'n', name);
	part_add(&l->pair, 'v', value);
	if (!l->name.failed)
		add_leaf(l, span_buf(&l->name), sort, span_buf(&l->pair));
}

static void form_leaves(struct leaves *l, const struct identity_in *in)
{
	struct buf pairs = {0};
	struct span left, value, name = {0};
	char tag;

	if (form_parts(in->body, SELECT_FORM, NULL, &in->rule->ignore, &pairs, NULL) == 0) {
		left = span_buf(&pairs);
		while (next_part(&left, &tag, &value)) {
			if (tag == 'n')
				name = value;
			else
				add_pair(l, name, value, tag == 'v');
		}
	}
	buf_free(&pairs);
}

/* Names of a query are not shown either: one leaf for all of it. */
static void query_leaf(struct leaves *l, const struct identity_in *in)
{
	struct buf pairs = {0};

	if (in->query.n &&
	    form_parts(in->query, SELECT_QUERY, NULL, &in->rule->ignore, &pairs, NULL) == 0 &&
	    pairs.n)
		add_leaf(l, span_of("query"), 's', span_buf(&pairs));
	buf_free(&pairs);
}

static void add_form_part(struct leaves *l, struct span part)
{
	const char *blank = memmem(part.p, part.n, "\r\n\r\n", 4);
	size_t head = blank ? (size_t)(blank - part.p) : 0;
	const char *name = head ? memmem(part.p, head, " name=\"", 7) : NULL, *end = NULL;

	if (name)
		end = memchr(name + 7, '"', (size_t)(blank - name - 7));
	if (!end)
		add_leaf(l, span_of("body"), 't', part);
	else
		add_pair(l, (struct span){name + 7, (size_t)(end - name - 7)},
		         (struct span){part.p + head + 4, part.n - head - 4}, true);
}

static int multipart_leaves(struct leaves *l, const struct identity_in *in)
{
	struct buf parts = {0};
	int rc = multipart_canonical(in->body, content_boundary(in), &parts);
	struct span left = span_buf(&parts), value;
	char tag;

	while (rc == 0 && next_part(&left, &tag, &value)) {
		if (tag == 'p')
			add_form_part(l, value);
		else
			add_leaf(l, span_of("body"), 't', value);
	}
	buf_free(&parts);
	return rc;
}

static void body_leaves(struct leaves *l, const struct identity_in *in)
{
	int rc = -1;

	if (!in->body.p || in->body.n == 0)
		return;
	switch (content_body_kind(in)) {
	case BODY_JSON:
		rc = json_leaves(l, in);
		break;
	case BODY_FORM:
		form_leaves(l, in);
		rc = 0;
		break;
	case BODY_MULTIPART:
		rc = multipart_leaves(l, in);
		break;
	case BODY_RAW:
		break;
	}
	if (rc)
		add_leaf(l, span_of("body"), 't', in->body);
}

int identity_leaves(const struct identity_in *in, struct buf *out)
{
	struct leaves l = {.out = out};

	hash_key_make(&l.key, in->secret);
	buf_add_char(out, '{');
	query_leaf(&l, in);
	body_leaves(&l, in);
	if (l.rest.n)
		write_leaf(&l, span_of("..."), 't', span_buf(&l.rest));
	buf_add_char(out, '}');
	hash_key_wipe(&l.key);
	buf_free(&l.name);
	buf_free(&l.pair);
	buf_free(&l.value);
	buf_free(&l.rest);
	return out->failed ? IDENTITY_NOMEM : IDENTITY_OK;
}
