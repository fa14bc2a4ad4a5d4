/* From a request to the hashes it is found again by.
 *
 * The parts are collected in two buffers (the account's, which holds secrets and is wiped, and the
 * content's), each is hashed once, and every identity is an HMAC, under the ledger's secret, over a
 * label and those digests. Labels and lengths keep the identities of different kinds apart. */
#include "identity/parts.h"

#include <string.h>

enum { PARTS_ROOM = 512 }; /* of most requests without their body */

/* What one call works with. */
struct making {
	const struct identity_in *in;
	struct identity *out;
	struct hash_key key;
	struct buf parts;
};

static struct span digest(const uint8_t *hash)
{
	return (struct span){(const char *)hash, HASH_SIZE};
}

static bool is_printable(struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c < 0x20 || c == 0x7f)
			return false;
	}
	return true;
}

static int keep_own_key(struct identity *out, struct span value)
{
	if (out->has_own_key || value.n > KEY_TEXT_MAX || !is_printable(value))
		return IDENTITY_BAD_KEY;
	if (value.n == 0)
		return IDENTITY_OK;
	memcpy(out->own_key_text, value.p, value.n);
	out->own_key_text[value.n] = '\0';
	out->has_own_key = true;
	return IDENTITY_OK;
}

/* Several of them, or one no header should hold, are nobody's intent. */
static int find_in_headers(const struct identity_in *in, struct identity *out)
{
	int rc = IDENTITY_OK;

	for (size_t i = 0; i < in->header_count && rc == IDENTITY_OK; i++) {
		if (header_is_carrier(in->rule, in->headers[i].name))
			rc = keep_own_key(out, span_trim(in->headers[i].value));
	}
	return rc;
}

static int find_in_query(const struct identity_in *in, struct identity *out)
{
	struct span name = span_of(in->rule->carrier_name), rest = in->query;
	int rc = IDENTITY_OK;

	while (rest.n && rc == IDENTITY_OK) {
		struct span pair = span_cut(rest, '&', &rest);
		struct buf key = {0};

		if (form_value(pair, name, &key))
			rc = keep_own_key(out, span_buf(&key));
		if (key.failed)
			rc = IDENTITY_NOMEM;
		buf_free(&key);
	}
	return rc;
}

static int find_in_json(const struct identity_in *in, struct identity *out)
{
	enum carry_found found = CARRY_NO_PLACE;
	struct buf key = {0};
	int rc = IDENTITY_OK;

	if (body_holds_key(in))
		found = carry_json_find(in->body, span_of(in->rule->carrier_name), &key);
	if (key.failed)
		rc = IDENTITY_NOMEM;
	else if (found == CARRY_FOUND)
		rc = keep_own_key(out, span_buf(&key));
	else if (found != CARRY_ABSENT)
		rc = found == CARRY_NO_TEXT ? IDENTITY_BAD_KEY : IDENTITY_NO_PLACE;
	buf_free(&key);
	return rc;
}

/* The program's own key. */
static int find_own_key(const struct identity_in *in, struct identity *out)
{
	switch (in->rule->carrier) {
	case CARRIER_HEADER:
		return find_in_headers(in, out);
	case CARRIER_QUERY:
		return find_in_query(in, out);
	case CARRIER_JSON:
		return find_in_json(in, out);
	case CARRIER_NONE:
		break;
	}
	return IDENTITY_OK;
}

/* As buf_reset, but a failure is not forgotten. */
static void restart(struct buf *b)
{
	if (!b->failed)
		buf_reset(b);
}

static int digest_account(struct making *m)
{
	struct buf parts = {0};
	int rc = account_parts(m->in, &parts, &m->out->account_opaque);

	hash_keyed(&m->key, parts.data, parts.n, m->out->account);
	if (parts.data)
		explicit_bzero(parts.data, parts.room);
	buf_free(&parts);
	return rc;
}

static int digest_content(struct making *m)
{
	struct buf *parts = &m->parts;
	int rc;

	restart(parts);
	rc = content_parts(m->in, parts);
	if (rc != IDENTITY_OK)
		return rc;
	hash_sha256(parts->data, parts->n, m->out->content_parts);
	restart(parts);
	part_add(parts, 'L', span_of("fingerprint"));
	part_add(parts, 'I', digest(m->out->content_parts));
	rc = content_must_match(m->in, parts);
	hash_keyed(&m->key, parts->data, parts->n, m->out->fingerprint);
	return rc;
}

static void begin(struct making *m, const char *label)
{
	restart(&m->parts);
	part_add(&m->parts, 'L', span_of(label));
	part_add(&m->parts, 'S', m->in->scope);
}

static void finish(struct making *m, uint8_t out[HASH_SIZE])
{
	if (!m->parts.failed)
		hash_keyed(&m->key, m->parts.data, m->parts.n, out);
}

static void add_content(struct making *m)
{
	part_add(&m->parts, 'O', span_of(m->in->rule->key_id));
	part_add(&m->parts, 's', m->in->step);
	part_add(&m->parts, 'I', digest(m->out->content_parts));
}

/* Providers keep keys by account, and so does `own_key`: a program's key `order-42` of two accounts
 * is two keys. Only an opaque account stays out, since the same caller may come back with another
 * token. */
static void make_own_key(struct making *m)
{
	uint8_t target[HASH_SIZE];

	restart(&m->parts);
	content_target(m->in, true, &m->parts);
	hash_sha256(m->parts.data, m->parts.n, target);
	begin(m, "own-key");
	if (!m->out->account_opaque)
		part_add(&m->parts, 'A', digest(m->out->account));
	part_add(&m->parts, 'O', span_of(m->in->rule->key_id));
	part_add(&m->parts, 'T', digest(target));
	part_add(&m->parts, 'K', span_of(m->out->own_key_text));
	finish(m, m->out->own_key);
}

static void make_content(struct making *m)
{
	begin(m, "content");
	part_add(&m->parts, 'A', digest(m->out->account));
	add_content(m);
	finish(m, m->out->content);
}

static void make_any_account(struct making *m)
{
	begin(m, "any-account");
	add_content(m);
	finish(m, m->out->any_account);
}

/* It must be found again under changed settings; hence the real target. */
static void make_place(struct making *m)
{
	uint8_t target[HASH_SIZE];

	restart(&m->parts);
	content_target(m->in, false, &m->parts);
	part_add(&m->parts, 'P', m->in->path);
	hash_sha256(m->parts.data, m->parts.n, target);
	begin(m, "place");
	part_add(&m->parts, 'A', digest(m->out->account));
	part_add(&m->parts, 'T', digest(target));
	finish(m, m->out->place);
}

static void add_list(struct buf *b, char tag, const struct text_list *list)
{
	size_t open = part_open(b, tag);

	for (size_t i = 0; i < list->count; i++)
		part_add(b, 'i', span_of(list->item[i]));
	part_close(b, open);
}

int identity_settings(const struct rule *rule, uint64_t *settings)
{
	struct buf b = {0};
	uint8_t hash[HASH_SIZE];
	const char kinds[] = {(char)rule->carrier, (char)rule->account};
	int rc;

	part_add(&b, 'e', (struct span){kinds, sizeof kinds});
	part_add(&b, rule->target ? 'T' : 't', span_of(rule->target));
	part_add(&b, 'n', span_of(rule->carrier_name));
	part_add(&b, 'k', span_of(rule->key_id));
	add_list(&b, 'f', &rule->fields);
	add_list(&b, 'i', &rule->ignore);
	add_list(&b, 'm', &rule->must_match);
	add_list(&b, 'a', &rule->account_from);
	hash_sha256(b.data, b.n, hash);
	memcpy(settings, hash, sizeof *settings);
	rc = b.failed ? IDENTITY_NOMEM : IDENTITY_OK;
	buf_free(&b);
	return rc;
}

static int find_settings(struct making *m)
{
	m->out->settings = m->in->rule->settings;
	return m->out->settings ? IDENTITY_OK : identity_settings(m->in->rule, &m->out->settings);
}

/* Of a multipart body the parts count, so that a new boundary is not another body; and never the
 * key. */
static int hash_wire_body(struct making *m)
{
	const struct identity_in *in = m->in;
	struct span boundary = content_boundary(in);

	restart(&m->parts);
	if ((boundary.p && multipart_canonical(in->body, boundary, &m->parts) == 0) ||
	    (body_holds_key(in) &&
	     carry_json_without(in->body, span_of(in->rule->carrier_name), &m->parts) == 0))
		hash_sha256(m->parts.data, m->parts.n, m->out->wire_body);
	else
		hash_sha256(in->body.p, in->body.n, m->out->wire_body);
	return m->parts.failed ? IDENTITY_NOMEM : IDENTITY_OK;
}

static int end(struct making *m, int rc)
{
	if (rc == IDENTITY_OK && m->parts.failed)
		rc = IDENTITY_NOMEM;
	hash_key_wipe(&m->key);
	buf_free(&m->parts);
	return rc;
}

int identity_begin(const struct identity_in *in, struct identity *out)
{
	char room[PARTS_ROOM];
	struct making m = {.in = in, .out = out, .parts = buf_in(room, sizeof room)};
	int rc;

	memset(out, 0, sizeof *out);
	rc = find_own_key(in, out);
	if (rc != IDENTITY_OK)
		return rc;
	hash_key_make(&m.key, in->secret);
	rc = digest_account(&m);
	if (rc == IDENTITY_OK)
		rc = digest_content(&m);
	if (rc == IDENTITY_OK)
		rc = find_settings(&m);
	if (rc != IDENTITY_OK)
		return end(&m, rc);
	make_content(&m);
	if (out->has_own_key)
		make_own_key(&m);
	return end(&m, rc);
}

int identity_complete(const struct identity_in *in, struct identity *out)
{
	char room[PARTS_ROOM];
	struct making m = {.in = in, .out = out, .parts = buf_in(room, sizeof room)};
	int rc;

	if (out->complete)
		return IDENTITY_OK;
	hash_key_make(&m.key, in->secret);
	make_any_account(&m);
	make_place(&m);
	rc = end(&m, hash_wire_body(&m));
	out->complete = rc == IDENTITY_OK;
	return rc;
}

int identity_make(const struct identity_in *in, struct identity *out)
{
	int rc = identity_begin(in, out);

	return rc == IDENTITY_OK ? identity_complete(in, out) : rc;
}
