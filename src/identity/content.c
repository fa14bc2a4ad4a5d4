/* The parts of a request that make it this write and no other: method, target, query, headers
 * and body.
 *
 * `fields` chooses from the body, and may name query pairs and headers too. The query stays in
 * whole (unless ignored) until a field names one of its pairs; then only the named pairs count.
 * Where fields name parts of the body and not one of them is there, the whole body counts instead,
 * and the whole query likewise: a renamed member must not turn all writes into one. A body that
 * has no canonical form counts as its raw bytes, whatever the policy selects. Forms of different
 * kinds carry different tags, so that they never equal each other: b none, j/J JSON whole/selected,
 * f/F form, m multipart, r raw. */
#include "identity/parts.h"

#include <stdlib.h>
#include <string.h>

bool header_is_carrier(const struct rule *rule, struct span name)
{
	return rule->carrier == CARRIER_HEADER && rule->carrier_name &&
	       span_is_nocase(name, rule->carrier_name);
}

static struct span unquoted(struct span v)
{
	if (v.n >= 2 && *v.p == '"' && v.p[v.n - 1] == '"')
		return (struct span){v.p + 1, v.n - 2};
	return v;
}

/* The next `; name=value`; false at the end. */
static bool next_param(struct span *rest, struct span *name, struct span *value)
{
	struct span one;

	if (!rest->p)
		return false;
	one = span_cut(*rest, ';', rest);
	*name = span_trim(span_cut(one, '=', value));
	*value = unquoted(span_trim(*value));
	return true;
}

static bool is_multipart(struct span content_type)
{
	return content_type.n > 10 &&
	       span_is_nocase((struct span){content_type.p, 10}, "multipart/");
}

static struct span boundary_in(struct span content_type)
{
	struct span rest, name, value;

	span_cut(content_type, ';', &rest);
	while (next_param(&rest, &name, &value)) {
		if (span_is_nocase(name, "boundary"))
			return value;
	}
	return (struct span){0};
}

struct span content_type_boundary(struct span content_type)
{
	content_type = span_trim(content_type);
	return is_multipart(content_type) ? boundary_in(content_type) : (struct span){0};
}

/* libcurl puts the boundary of a form behind whatever Content-Type the program has set. */
struct span content_boundary(const struct identity_in *in)
{
	struct span boundary = boundary_in(in->content_type);

	if (is_multipart(span_trim(in->content_type)))
		return boundary;
	if (boundary.n == 0 || in->body.n < boundary.n + 2 || !span_starts(in->body, "--") ||
	    memcmp(in->body.p + 2, boundary.p, boundary.n) != 0)
		return (struct span){0};
	return boundary;
}

/* Type and parameters without case, quotes and spaces; the order of parameters is kept. */
static void add_type(const struct identity_in *in, struct buf *out)
{
	struct span rest, type = span_cut(in->content_type, ';', &rest), name, value;
	bool multipart = content_body_kind(in) == BODY_MULTIPART;
	size_t open = part_open(out, 'c');

	part_add_lower(out, 't', span_trim(type));
	while (next_param(&rest, &name, &value)) {
		if (name.n == 0 || (multipart && span_is_nocase(name, "boundary")))
			continue;
		part_add_lower(out, 'n', name);
		if (span_is_nocase(name, "charset"))
			part_add_lower(out, 'v', value);
		else
			part_add(out, 'v', value);
	}
	part_close(out, open);
}

static void add_number(struct buf *out, char tag, unsigned v)
{
	char b[4] = {(char)(v >> 24 & 255), (char)(v >> 16 & 255), (char)(v >> 8 & 255),
	             (char)(v & 255)};

	part_add(out, tag, (struct span){b, sizeof b});
}

void content_target(const struct identity_in *in, bool named, struct buf *out)
{
	size_t open = part_open(out, 'T');

	if (named && in->rule->target) {
		part_add(out, 'n', span_of(in->rule->target));
	} else {
		part_add_lower(out, 's', in->scheme);
		part_add_lower(out, 'h', in->host);
		add_number(out, 'p', in->port);
		part_add(out, 'u', in->unix_socket);
		for (size_t i = 0; i < in->header_count; i++) {
			if (span_is_nocase(in->headers[i].name, "Host"))
				part_add_lower(out, 'H', span_trim(in->headers[i].value));
		}
	}
	part_close(out, open);
}

/* Headers that say whose books a write belongs to, and which part of a thing is meant, whatever the
 * policy names. */
static bool is_default_header(struct span name)
{
	return span_is_nocase(name, "Range") || span_is_nocase(name, "Content-Range") ||
	       span_ends_nocase(name, "-account") || span_has_nocase(name, "-tenant") ||
	       span_has_nocase(name, "-organization");
}

struct chosen {
	struct span name, value;
	size_t order;
};

static int compare_chosen(const void *left, const void *right)
{
	const struct chosen *a = left, *b = right;
	size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;

	for (size_t i = 0; i < n; i++) {
		int x = a->name.p[i] | 0x20, y = b->name.p[i] | 0x20;

		if (x != y)
			return x < y ? -1 : 1;
	}
	if (a->name.n != b->name.n)
		return a->name.n < b->name.n ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static void emit_chosen(struct chosen *list, size_t n, struct buf *out)
{
	if (n > 1)
		qsort(list, n, sizeof *list, compare_chosen);
	for (size_t i = 0; i < n; i++) {
		part_add_lower(out, 'n', list[i].name);
		part_add(out, 'v', list[i].value);
	}
}

enum { FEW_HEADERS = 16 };

/* By name; several of one name in the order they are sent. Returns how many `named` ones. */
static size_t add_headers(const struct identity_in *in, const struct text_list *named,
                          const struct text_list *ignore, bool defaults, struct buf *out)
{
	struct chosen few[FEW_HEADERS], *list = few;
	size_t n = 0, found = 0;

	if (in->header_count > FEW_HEADERS)
		list = malloc(in->header_count * sizeof *list);
	if (!list) {
		out->failed = true;
		return 0;
	}
	for (size_t i = 0; i < in->header_count; i++) {
		struct span name = in->headers[i].name;
		bool wanted = selector_names(named, SELECT_HEADER, name);

		if (header_is_carrier(in->rule, name) ||
		    selector_names(ignore, SELECT_HEADER, name) ||
		    !(wanted || (defaults && is_default_header(name))))
			continue;
		found += wanted;
		list[n] = (struct chosen){name, span_trim(in->headers[i].value), n};
		n++;
	}
	emit_chosen(list, n, out);
	if (list != few)
		free(list);
	return found;
}

static size_t emit_pairs(struct span query, const struct text_list *fields,
                         const struct text_list *ignore, struct buf *out)
{
	size_t found = 0, start = out->n;

	if (form_parts(query, SELECT_QUERY, fields, ignore, out, &found) < 0 && !out->failed) {
		out->n = start;
		part_add(out, 'r', query);
	}
	return found;
}

static size_t emit_query(const struct identity_in *in, const struct text_list *fields,
                         const struct text_list *ignore, struct buf *out)
{
	struct buf query = {0};
	size_t found;

	if (in->rule->carrier != CARRIER_QUERY)
		return emit_pairs(in->query, fields, ignore, out);
	carry_query_without(in->query, span_of(in->rule->carrier_name), &query);
	found = emit_pairs(span_buf(&query), fields, ignore, out);
	out->failed = out->failed || query.failed;
	buf_free(&query);
	return found;
}

/* Returns how many of the named pairs are there. */
static size_t add_query(const struct identity_in *in, const struct text_list *fields,
                        const struct text_list *ignore, struct buf *out)
{
	size_t found = 0, open = part_open(out, 'Q');
	bool named = selector_has_kind(fields, SELECT_QUERY);

	if (named)
		found = emit_query(in, fields, ignore, out);
	if (in->query.n && found == 0)
		emit_query(in, NULL, ignore, out);
	part_close(out, open);
	return found;
}

/* Programs post JSON under libcurl's default type, so a form that looks like an object or array
 * is tried as JSON first. */
static bool looks_like_json(struct span body)
{
	size_t i = 0;

	while (i < body.n && strchr(" \t\r\n", body.p[i]) && body.p[i])
		i++;
	return i < body.n && (body.p[i] == '{' || body.p[i] == '[');
}

enum body_kind content_body_kind(const struct identity_in *in)
{
	struct span rest, type = span_trim(span_cut(in->content_type, ';', &rest));
	bool form = span_is_nocase(type, "application/x-www-form-urlencoded");

	if (is_multipart(type) || content_boundary(in).p)
		return BODY_MULTIPART;
	if (span_is_nocase(type, "application/json") || span_is_nocase(type, "text/json") ||
	    span_ends_nocase(type, "+json"))
		return BODY_JSON;
	if ((form || type.n == 0 || in->rule->carrier == CARRIER_JSON) && looks_like_json(in->body))
		return BODY_JSON;
	return form ? BODY_FORM : BODY_RAW;
}

bool body_holds_key(const struct identity_in *in)
{
	return in->rule->carrier == CARRIER_JSON && content_body_kind(in) == BODY_JSON;
}

static void ignore_key(const struct rule *rule, struct json_doc *doc)
{
	uint32_t at = JSON_NONE;

	if (rule->carrier == CARRIER_JSON)
		at = carry_node(doc, span_of(rule->carrier_name));
	if (at)
		doc->node[at].ignored = true;
}

/* 0: a canonical form was written; -1: there is none. */
static int add_json(const struct identity_in *in, const struct text_list *fields,
                    const struct text_list *ignore, struct buf *out, size_t *found)
{
	struct json_doc doc = {0};
	int rc = json_parse(&doc, in->body);
	size_t open;

	if (rc == 0) {
		ignore_key(in->rule, &doc);
		open = part_open(out, fields ? 'J' : 'j');
		*found = json_emit_parts(&doc, fields, ignore, out);
		part_close(out, open);
	}
	if (rc == JSON_NOMEM)
		out->failed = true;
	json_free(&doc);
	return rc == 0 ? 0 : -1;
}

static int add_form(const struct identity_in *in, const struct text_list *fields,
                    const struct text_list *ignore, struct buf *out, size_t *found)
{
	size_t start = out->n, open = part_open(out, fields ? 'F' : 'f');
	int rc = form_parts(in->body, SELECT_FORM, fields, ignore, out, found);

	part_close(out, open);
	if (rc < 0 && !out->failed)
		out->n = start;
	return rc;
}

static int add_multipart(const struct identity_in *in, struct buf *out)
{
	size_t start = out->n, open = part_open(out, 'm');
	int rc = multipart_canonical(in->body, content_boundary(in), out);

	part_close(out, open);
	if (rc < 0 && !out->failed)
		out->n = start;
	return rc;
}

/* Returns how many fields are there. Without a canonical form the raw bytes count as one. */
static size_t add_body(const struct identity_in *in, const struct text_list *fields,
                       const struct text_list *ignore, struct buf *out)
{
	enum body_kind kind = content_body_kind(in);
	size_t found = 0;
	int rc = -1;

	if (fields && fields->count == 0)
		fields = NULL;
	if (!in->body.p) {
		part_add(out, 'b', (struct span){0});
		return 0;
	}
	if (kind == BODY_JSON)
		rc = add_json(in, fields, ignore, out, &found);
	else if (kind == BODY_FORM)
		rc = add_form(in, fields, ignore, out, &found);
	else if (kind == BODY_MULTIPART)
		rc = add_multipart(in, out);
	if (rc == 0 && kind != BODY_MULTIPART)
		return found;
	if (rc < 0)
		part_add(out, 'r', in->body);
	return 1;
}

static bool names_body(const struct text_list *list)
{
	return selector_has_kind(list, SELECT_JSON) || selector_has_kind(list, SELECT_FORM);
}

int content_parts(const struct identity_in *in, struct buf *out)
{
	const struct rule *rule = in->rule;
	const struct text_list *fields = rule->fields.count ? &rule->fields : NULL;
	size_t found, in_body, open;

	part_add(out, 'M', in->method);
	content_target(in, true, out);
	part_add(out, 'P', in->path);
	found = add_query(in, fields, &rule->ignore, out);
	if (in->content_type.n &&
	    !selector_names(&rule->ignore, SELECT_HEADER, span_of("content-type")))
		add_type(in, out);
	open = part_open(out, 'H');
	found += add_headers(in, fields, &rule->ignore, true, out);
	part_close(out, open);
	in_body = add_body(in, fields, &rule->ignore, out);
	if (fields && in_body == 0 && (found == 0 || names_body(fields)))
		add_body(in, NULL, &rule->ignore, out);
	return out->failed ? IDENTITY_NOMEM : IDENTITY_OK;
}

/* The same selectors, but `ignore` does not apply: "not part of the identity, yet must not differ"
 * is what the two lists are for together. */
int content_must_match(const struct identity_in *in, struct buf *out)
{
	const struct text_list *list = &in->rule->must_match;
	size_t open;

	if (list->count == 0)
		return IDENTITY_OK;
	if (selector_has_kind(list, SELECT_QUERY))
		add_query(in, list, NULL, out);
	open = part_open(out, 'H');
	add_headers(in, list, NULL, false, out);
	part_close(out, open);
	if (names_body(list))
		add_body(in, list, NULL, out);
	return out->failed ? IDENTITY_NOMEM : IDENTITY_OK;
}
