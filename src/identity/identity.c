/* From a request to the hashes it is found again by.
 *
 * The parts are collected in two buffers (the account's, which holds secrets and is wiped, and the
 * content's), each is hashed once, and every identity is an HMAC, under the ledger's secret, over a
 * label and those digests. Labels and lengths keep the identities of different kinds apart. */
#include "identity/parts.h"

#include <string.h>

struct digests {
	uint8_t account[HASH_SIZE];
	uint8_t content[HASH_SIZE]; /* the identity parts */
	uint8_t target[HASH_SIZE];  /* the rule's target */
	uint8_t place[HASH_SIZE];   /* authority and path, whatever the rule's settings are */
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

/* The program's own key. Several of them, or one no header should hold, is nobody's intent. */
static int find_own_key(const struct identity_in *in, struct identity *out)
{
	for (size_t i = 0; i < in->header_count; i++) {
		struct span value = span_trim(in->headers[i].value);

		if (!header_is_carrier(in->rule, in->headers[i].name))
			continue;
		if (out->has_own_key || value.n > KEY_TEXT_MAX || !is_printable(value))
			return IDENTITY_BAD_KEY;
		if (value.n == 0)
			continue;
		memcpy(out->own_key_text, value.p, value.n);
		out->own_key_text[value.n] = '\0';
		out->has_own_key = true;
	}
	return IDENTITY_OK;
}

/* As buf_reset, but a failure is not forgotten. */
static void restart(struct buf *b)
{
	if (!b->failed)
		buf_reset(b);
}

static int digest_account(const struct identity_in *in, struct digests *d, struct identity *out)
{
	struct buf parts = {0};
	int rc = account_parts(in, &parts, &out->account_opaque);

	hash_hmac(in->secret, parts.data, parts.n, d->account);
	if (parts.data)
		explicit_bzero(parts.data, parts.room);
	buf_free(&parts);
	return rc;
}

static int digest_content(const struct identity_in *in, struct digests *d, struct identity *out)
{
	struct buf parts = {0};
	int rc = content_parts(in, &parts);

	if (rc == IDENTITY_OK) {
		hash_sha256(parts.data, parts.n, d->content);
		restart(&parts);
		part_add(&parts, 'L', span_of("fingerprint"));
		part_add(&parts, 'I', digest(d->content));
		rc = content_must_match(in, &parts);
		hash_hmac(in->secret, parts.data, parts.n, out->fingerprint);
	}
	buf_free(&parts);
	return rc;
}

static int digest_targets(const struct identity_in *in, struct digests *d)
{
	struct buf parts = {0};
	int rc;

	content_target(in, true, &parts);
	hash_sha256(parts.data, parts.n, d->target);
	restart(&parts);
	content_target(in, false, &parts);
	part_add(&parts, 'P', in->path);
	hash_sha256(parts.data, parts.n, d->place);
	rc = parts.failed ? IDENTITY_NOMEM : IDENTITY_OK;
	buf_free(&parts);
	return rc;
}

static void begin(struct buf *b, const char *label, const struct identity_in *in)
{
	restart(b);
	part_add(b, 'L', span_of(label));
	part_add(b, 'S', in->scope);
}

static void finish(const struct buf *b, const struct identity_in *in, uint8_t out[HASH_SIZE])
{
	if (!b->failed)
		hash_hmac(in->secret, b->data, b->n, out);
}

static void add_content(struct buf *b, const struct identity_in *in, const struct digests *d)
{
	part_add(b, 'O', span_of(in->rule->key_id));
	part_add(b, 's', in->step);
	part_add(b, 'I', digest(d->content));
}

/* Providers keep keys by account, and so does `own_key`: a program's key `order-42` of two accounts
 * is two keys. Only an opaque account stays out, since the same caller may come back with another
 * token. `place` must be found again under changed settings; hence the real target. */
static int make_hashes(const struct identity_in *in, const struct digests *d, struct identity *out)
{
	struct buf b = {0};
	int rc;

	begin(&b, "content", in);
	part_add(&b, 'A', digest(d->account));
	add_content(&b, in, d);
	finish(&b, in, out->content);
	begin(&b, "any-account", in);
	add_content(&b, in, d);
	finish(&b, in, out->any_account);
	begin(&b, "place", in);
	part_add(&b, 'A', digest(d->account));
	part_add(&b, 'T', digest(d->place));
	finish(&b, in, out->place);
	if (out->has_own_key) {
		begin(&b, "own-key", in);
		if (!out->account_opaque)
			part_add(&b, 'A', digest(d->account));
		part_add(&b, 'O', span_of(in->rule->key_id));
		part_add(&b, 'T', digest(d->target));
		part_add(&b, 'K', span_of(out->own_key_text));
		finish(&b, in, out->own_key);
	}
	rc = b.failed ? IDENTITY_NOMEM : IDENTITY_OK;
	buf_free(&b);
	return rc;
}

static void add_list(struct buf *b, char tag, const struct text_list *list)
{
	size_t open = part_open(b, tag);

	for (size_t i = 0; i < list->count; i++)
		part_add(b, 'i', span_of(list->item[i]));
	part_close(b, open);
}

/* Everything in the rule that shapes the hashes: two requests of different settings can't be
 * compared. The operation's name is not in it (it may be renamed under a fixed key.id). */
static int hash_settings(const struct rule *rule, struct identity *out)
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
	memcpy(&out->settings, hash, sizeof out->settings);
	rc = b.failed ? IDENTITY_NOMEM : IDENTITY_OK;
	buf_free(&b);
	return rc;
}

/* Of a multipart body the parts count, so that a new boundary is not another body. */
static int hash_wire_body(const struct identity_in *in, struct identity *out)
{
	struct span boundary = content_type_boundary(in->content_type);
	struct buf parts = {0};
	int rc;

	if (boundary.p && multipart_canonical(in->body, boundary, &parts) == 0)
		hash_sha256(parts.data, parts.n, out->wire_body);
	else
		hash_sha256(in->body.p, in->body.n, out->wire_body);
	rc = parts.failed ? IDENTITY_NOMEM : IDENTITY_OK;
	buf_free(&parts);
	return rc;
}

int identity_make(const struct identity_in *in, struct identity *out)
{
	struct digests d;
	int rc;

	memset(out, 0, sizeof *out);
	rc = find_own_key(in, out);
	if (rc == IDENTITY_OK)
		rc = digest_account(in, &d, out);
	if (rc == IDENTITY_OK)
		rc = digest_content(in, &d, out);
	if (rc == IDENTITY_OK)
		rc = digest_targets(in, &d);
	if (rc == IDENTITY_OK)
		rc = make_hashes(in, &d, out);
	if (rc == IDENTITY_OK)
		rc = hash_settings(in->rule, out);
	if (rc == IDENTITY_OK)
		rc = hash_wire_body(in, out);
	return rc;
}
