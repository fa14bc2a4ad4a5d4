/* See describe.h. The encoding is tag, eight bytes of length, value (identity/encode.c); which tags
 * stand where is identity/content.c's and account.c's. A tag that is not known here is shown by its
 * letter, so that a part that counts is never left out.
 *
 * What may be a secret is hidden behind an HMAC under the ledger's secret, by the name of its
 * field, because nothing else tells, and in a path by the look of its segment; bodies that are
 * neither JSON nor a form are hidden whole. */
#include "cli/describe.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fold.h"
#include "identity/parts.h"

enum { HEAD = 9, SHOWN = 8, DEPTH_MAX = 64 };

struct part {
	char tag;
	struct span value;
};

/* The next part, taken off `rest`; false at the end, or where the bytes make no sense. */
static bool take(struct span *rest, struct part *out)
{
	uint64_t n;

	if (rest->n < HEAD)
		return false;
	memcpy(&n, rest->p + 1, sizeof(n));
	n = be64toh(n);
	if (n > rest->n - HEAD)
		return false;
	*out = (struct part){*rest->p, {rest->p + HEAD, (size_t)n}};
	rest->p += HEAD + n;
	rest->n -= HEAD + (size_t)n;
	return true;
}

/* --- collecting --- */

struct collector {
	struct description *to;
	struct span secret;
};

static bool names_a_secret(struct span name)
{
	static const char *const words[] = {"password",   "passwd",    "secret",  "token",
	                                    "api_key",    "apikey",    "api-key", "authorization",
	                                    "credential", "private",   "cvc",     "cvv",
	                                    "number",     "signature", "iban",    "cookie"};

	static const char *const whole[] = {"sig", "key", "pwd",  "pass", "pin",
	                                    "otp", "jwt", "auth", "card"};
	const char *slash = name.n ? memrchr(name.p, '/', name.n) : NULL;
	struct span last = name;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (span_has_nocase(name, words[i]))
			return true;
	if (slash)
		last = (struct span){slash + 1, (size_t)(name.p + name.n - slash) - 1};
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (span_is_nocase(last, whole[i]))
			return true;
	return false;
}

static void add(struct collector *c, struct span name, struct span value, bool hidden)
{
	struct description *d = c->to;
	struct described *more;

	if (d->count == d->room) {
		more = realloc(d->list, (d->room * 2 + 16) * sizeof(*more));
		if (!more) {
			d->failed = true;
			return;
		}
		d->list = more;
		d->room = d->room * 2 + 16;
	}
	d->list[d->count] = (struct described){span_dup(name), span_dup(value), hidden};
	d->failed = d->failed || !d->list[d->count].name || !d->list[d->count].value;
	d->count++;
}

static void write_hmac(struct span secret, struct span value, struct buf *out)
{
	uint8_t hash[HASH_SIZE];
	char hex[2 * SHOWN + 1];

	hash_hmac(secret, value.p, value.n, hash);
	hex_encode(hex, hash, SHOWN);
	buf_printf(out, "hmac:%s", hex);
}

static void add_hidden(struct collector *c, struct span name, struct span value, bool sized)
{
	struct buf text = {0};

	if (sized)
		buf_printf(&text, "%zu bytes, ", value.n);
	write_hmac(c->secret, value, &text);
	add(c, name, span_buf(&text), true);
	c->to->failed = c->to->failed || text.failed;
	buf_free(&text);
}

/* What a terminal, or who reads the JSON, could take for something else is shown as an HMAC. */
static bool is_text(struct span value)
{
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
			return false;
	return true;
}

/* `head` and `tail` make the name. */
static void add_named(struct collector *c, const char *head, struct span tail, struct span value)
{
	struct buf name = {0};

	buf_add_text(&name, head);
	buf_add_span(&name, tail);
	if (names_a_secret(tail) || !is_text(value))
		add_hidden(c, span_buf(&name), value, !is_text(value));
	else
		add(c, span_buf(&name), value, false);
	c->to->failed = c->to->failed || name.failed;
	buf_free(&name);
}

/* --- JSON --- */

static void add_json_node(struct collector *c, const struct json_doc *doc, uint32_t at,
                          struct buf *name, int depth);

static void add_children(struct collector *c, const struct json_doc *doc, uint32_t at,
                         struct buf *name, int depth)
{
	size_t n = name->n, number = 0;

	for (uint32_t below = doc->node[at].first; below; below = doc->node[below].next) {
		buf_add_char(name, '/');
		if (doc->node[below].name.p)
			buf_add_span(name, doc->node[below].name);
		else
			buf_add_number(name, (int64_t)number++);
		add_json_node(c, doc, below, name, depth + 1);
		if (!name->failed) {
			name->n = n;
			name->data[n] = '\0';
		}
	}
}

static void add_json_node(struct collector *c, const struct json_doc *doc, uint32_t at,
                          struct buf *name, int depth)
{
	const struct json_node *node = &doc->node[at];
	struct buf value = {0};

	if (node->kind <= JSON_ARRAY && node->first && depth < DEPTH_MAX) {
		add_children(c, doc, at, name, depth);
		return;
	}
	json_emit(doc, at, &value);
	if (names_a_secret(span_buf(name)))
		add_hidden(c, span_buf(name), span_buf(&value), false);
	else
		add(c, span_buf(name), span_buf(&value), false);
	c->to->failed = c->to->failed || value.failed || name->failed;
	buf_free(&value);
}

/* The canonical text that is hashed, leaf by leaf. */
static void add_json(struct collector *c, const char *head, struct span pointer, struct span text)
{
	struct json_doc doc = {0};
	struct buf name = {0};

	buf_add_text(&name, head);
	buf_add_span(&name, pointer);
	if (json_parse(&doc, text) == 0)
		add_json_node(c, &doc, doc.node[JSON_NONE].first, &name, 0);
	else
		add_hidden(c, span_buf(&name), text, true); /* an ignored element stands in it */
	c->to->failed = c->to->failed || name.failed;
	json_free(&doc);
	buf_free(&name);
}

static void add_json_fields(struct collector *c, struct span rest)
{
	struct part pointer, value;

	while (take(&rest, &pointer) && take(&rest, &value)) {
		if (value.tag == 'v')
			add_json(c, "body", pointer.value, value.value);
		else
			add_named(c, "body", pointer.value, span_of("(absent)"));
	}
}

/* --- lists of names and values --- */

/* n or p is a name, v a value, e none, - absent; one name may have several values. */
static void add_pairs(struct collector *c, const char *head, struct span rest)
{
	struct span name = {0};
	struct part part;

	while (take(&rest, &part)) {
		if (part.tag == 'n' || part.tag == 'p')
			name = part.value;
		else if (part.tag == 'v')
			add_named(c, head, name, part.value);
		else if (part.tag == 'r')
			add_hidden(c, span_of(head), part.value, true);
		else
			add_named(c, head, name,
			          span_of(part.tag == '-' ? "(absent)" : "(no value)"));
	}
}

static void add_type(struct collector *c, struct span rest)
{
	struct buf text = {0};
	struct part part;

	while (take(&rest, &part)) {
		buf_add_text(&text, part.tag == 't' ? "" : part.tag == 'n' ? "; " : "=");
		buf_add_span(&text, part.value);
	}
	add(c, span_of("content-type"), span_buf(&text), false);
	c->to->failed = c->to->failed || text.failed;
	buf_free(&text);
}

static unsigned number_of(struct span four)
{
	unsigned v = 0;

	for (size_t i = 0; i < four.n && i < 4; i++)
		v = v << 8 | (unsigned char)four.p[i];
	return v;
}

static void add_target(struct collector *c, struct span rest)
{
	char port[16];
	struct part part;

	while (take(&rest, &part)) {
		const char *name = part.tag == 'n'   ? "target"
		                   : part.tag == 's' ? "target.scheme"
		                   : part.tag == 'h' ? "target.host"
		                   : part.tag == 'u' ? "target.socket"
		                                     : "header.host";

		if (part.tag == 'p') {
			snprintf(port, sizeof(port), "%u", number_of(part.value));
			add(c, span_of("target.port"), span_of(port), false);
		} else if (part.tag != 'u' || part.value.n) {
			add(c, span_of(name), part.value, false);
		}
	}
}

static void add_multipart(struct collector *c, struct span rest)
{
	struct part part;

	while (take(&rest, &part)) {
		if (part.tag == 'h')
			continue;
		if (part.tag == 'm')
			add_multipart(c, part.value);
		else
			add_hidden(c, span_of("form part"), part.value, true);
	}
}

static void add_body(struct collector *c, const struct part *part)
{
	char name[] = "part ?";

	switch (part->tag) {
	case 'j':
		add_json(c, "body", (struct span){0}, part->value);
		return;
	case 'J':
		add_json_fields(c, part->value);
		return;
	case 'f':
	case 'F':
		add_pairs(c, "form.", part->value);
		return;
	case 'm':
		add_multipart(c, part->value);
		return;
	case 'r':
		add_hidden(c, span_of("body"), part->value, true);
		return;
	case 'b':
		add(c, span_of("body"), span_of("(none)"), false);
		return;
	default:
		name[5] = part->tag;
		add_hidden(c, span_of(name), part->value, true);
	}
}

void describe_path(struct span path, struct span secret, struct buf *out)
{
	struct span rest = path;

	while (rest.p) {
		struct span segment = span_cut(rest, '/', &rest);
		const char *fold = fold_word(segment);

		if (!fold || strcmp(fold, "{secret}") != 0)
			buf_add_span(out, segment);
		else if (secret.n)
			write_hmac(secret, segment, out);
		else
			buf_add_text(out, fold);
		if (rest.p)
			buf_add_char(out, '/');
	}
}

static void add_path(struct collector *c, struct span path)
{
	struct buf text = {0};

	describe_path(path, c->secret, &text);
	add(c, span_of("path"), span_buf(&text), false);
	c->to->failed = c->to->failed || text.failed;
	buf_free(&text);
}

static void add_part(struct collector *c, const struct part *part)
{
	switch (part->tag) {
	case 'M':
		add(c, span_of("method"), part->value, false);
		return;
	case 'P':
		add_path(c, part->value);
		return;
	case 'T':
		add_target(c, part->value);
		return;
	case 'Q':
		add_pairs(c, "query.", part->value);
		return;
	case 'c':
		add_type(c, part->value);
		return;
	case 'H':
		add_pairs(c, "header.", part->value);
		return;
	default:
		add_body(c, part);
	}
}

typedef int parts_of(const struct identity_in *in, struct buf *out);

static int describe(const struct identity_in *in, parts_of *parts, struct description *out)
{
	struct collector c = {out, in->secret};
	struct buf bytes = {0};
	struct part part;
	int rc = parts(in, &bytes);

	for (struct span rest = span_buf(&bytes); rc == IDENTITY_OK && take(&rest, &part);)
		add_part(&c, &part);
	buf_free(&bytes);
	return rc == IDENTITY_OK && out->failed ? IDENTITY_NOMEM : rc;
}

int describe_content(const struct identity_in *in, struct description *out)
{
	return describe(in, content_parts, out);
}

int describe_must_match(const struct identity_in *in, struct description *out)
{
	return describe(in, content_must_match, out);
}

/* --- the account --- */

static const char *account_name(char tag)
{
	static const struct {
		char tag;
		const char *name;
	} names[] = {{'B', "user and password"},  {'D', "Digest user"},
	             {'A', "AWS access key id"},  {'O', "OAuth 1 consumer and token"},
	             {'J', "claims of a JWT"},    {'W', "a credential, whole"},
	             {'C', "client certificate"}, {'K', "Cookie"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].tag == tag)
			return names[i].name;
	return "a credential";
}

/* A header or a variable is shown by its name; of its value, whether it is there. */
static void add_named_account(struct collector *c, const struct part *whole)
{
	struct span rest = whole->value;
	struct part name, value;
	struct buf text = {0};

	buf_add_text(&text, whole->tag == 'E' ? "variable " : "header ");
	if (take(&rest, &name))
		buf_add_span(&text, name.value);
	if (take(&rest, &value) && value.tag == 'v')
		add_hidden(c, span_buf(&text), whole->value, false);
	else
		add(c, span_buf(&text), span_of("(absent)"), false);
	c->to->failed = c->to->failed || text.failed;
	buf_free(&text);
}

int describe_account(const struct identity_in *in, struct description *out, bool *opaque)
{
	struct collector c = {out, in->secret};
	struct buf bytes = {0};
	struct part part;
	int rc = account_parts(in, &bytes, opaque);

	for (struct span rest = span_buf(&bytes); rc == IDENTITY_OK && take(&rest, &part);) {
		if (part.tag == 'H' || part.tag == 'E')
			add_named_account(&c, &part);
		else
			add_hidden(&c, span_of(account_name(part.tag)), part.value, false);
	}
	if (bytes.data)
		explicit_bzero(bytes.data, bytes.room);
	buf_free(&bytes);
	return rc == IDENTITY_OK && out->failed ? IDENTITY_NOMEM : rc;
}

void describe_free(struct description *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->list[i].name);
		free(d->list[i].value);
	}
	free(d->list);
	*d = (struct description){0};
}

/* --- comparing --- */

/* The value of the nth part of that name; null: there is none. */
static const char *nth(const struct description *d, const char *name, size_t n)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->list[i].name, name) == 0 && n-- == 0)
			return d->list[i].value;
	return NULL;
}

static size_t number_before(const struct description *d, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < at; i++)
		n += strcmp(d->list[i].name, d->list[at].name) == 0;
	return n;
}

size_t describe_compare(const struct description *a, const struct description *b,
                        describe_each *each, void *ctx)
{
	size_t found = 0;

	for (size_t i = 0; i < a->count; i++) {
		const char *other = nth(b, a->list[i].name, number_before(a, i));

		if (other && strcmp(other, a->list[i].value) == 0)
			continue;
		each(ctx, a->list[i].name, a->list[i].value, other);
		found++;
	}
	for (size_t i = 0; i < b->count; i++) {
		if (nth(a, b->list[i].name, number_before(b, i)))
			continue;
		each(ctx, b->list[i].name, NULL, b->list[i].value);
		found++;
	}
	return found;
}
