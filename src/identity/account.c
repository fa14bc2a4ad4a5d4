/* Whose credentials a request carries.
 *
 * What stays the same when credentials are renewed is taken: a user, an access key id, a consumer
 * key, a token's claims. Where nothing of the kind can be read, the credential itself is the
 * account, and it is called opaque: the same person may come back with another one. The parts made
 * here hold secrets: they go into an HMAC, and identity_make wipes the buffer.
 *
 * Parts: B user and password, D Digest user, A access key id, O OAuth 1 consumer and token,
 * J claims, W a whole credential, C client certificate, H a header, E a variable, K cookies. */
#include "identity/parts.h"

#include <string.h>

static void add_basic(struct span user, struct span password, struct buf *out)
{
	size_t open = part_open(out, 'B');

	part_add(out, 'u', user);
	part_add(out, 'p', password);
	part_close(out, open);
}

/* Basic's base64 is undone, so that it is the same account as CURLOPT_USERPWD. */
static bool add_basic_header(struct span encoded, struct buf *out)
{
	struct buf text = {0};
	struct span user, password;
	bool ok = token_base64(encoded, &text) == 0;

	if (text.failed)
		out->failed = true;
	if (ok) {
		user = span_cut(span_buf(&text), ':', &password);
		add_basic(user, password, out);
	}
	if (text.data)
		explicit_bzero(text.data, text.room);
	buf_free(&text);
	return ok;
}

static bool add_token_claims(struct span token, struct buf *out)
{
	size_t start = out->n, open = part_open(out, 'J');

	if (token_claims(token, out)) {
		part_close(out, open);
		return true;
	}
	if (!out->failed)
		out->n = start;
	return false;
}

/* "AKIA1:c2lnbmF0dXJl": an id that stays and the signature of this one request. */
static bool is_id_and_signature(struct span scheme)
{
	static const char *const names[] = {"AWS", "GOOG1", "OSS", "SharedKey", "SharedKeyLite"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (span_is_nocase(scheme, names[i]))
			return true;
	}
	return false;
}

static bool add_signer(struct span rest, struct buf *out)
{
	struct span signature, id = span_trim(span_cut(rest, ':', &signature));

	if (id.n == 0 || !signature.p)
		return false;
	part_add(out, 'A', id);
	return true;
}

/* Temporary AWS keys (ASIA...) are replaced every few hours. */
static bool add_aws(struct span params, struct buf *out, bool *opaque)
{
	struct span rest, id = span_cut(token_param(params, "Credential"), '/', &rest);

	if (id.n == 0)
		return false;
	part_add(out, 'A', id);
	*opaque = *opaque || span_starts(id, "ASIA");
	return true;
}

static bool add_oauth1(struct span params, struct buf *out)
{
	struct span consumer = token_param(params, "oauth_consumer_key");
	size_t open;

	if (!consumer.p)
		return false;
	open = part_open(out, 'O');
	part_add(out, 'c', consumer);
	part_add(out, 't', token_param(params, "oauth_token"));
	part_close(out, open);
	return true;
}

static bool add_digest(struct span params, struct buf *out)
{
	struct span user = token_param(params, "username");

	if (user.p)
		part_add(out, 'D', user);
	return user.p != NULL;
}

/* Authorization's two halves; also how CURLOPT_XOAUTH2_BEARER arrives here. */
static void add_authorization(struct span scheme, struct span rest, struct buf *out, bool *opaque)
{
	bool done = false;
	size_t open;

	rest = span_trim(rest);
	if (span_is_nocase(scheme, "Basic"))
		done = add_basic_header(rest, out);
	else if (span_is_nocase(scheme, "Digest"))
		done = add_digest(rest, out);
	else if (span_is_nocase(scheme, "AWS4-HMAC-SHA256"))
		done = add_aws(rest, out, opaque);
	else if (is_id_and_signature(scheme))
		done = add_signer(rest, out);
	else if (span_is_nocase(scheme, "OAuth"))
		done = add_oauth1(rest, out);
	if (done || add_token_claims(rest, out))
		return;
	open = part_open(out, 'W');
	part_add_lower(out, 's', scheme);
	part_add(out, 'c', rest);
	part_close(out, open);
	*opaque = true;
}

static void add_authorization_header(struct span value, struct buf *out, bool *opaque)
{
	struct span rest, scheme = span_cut(span_trim(value), ' ', &rest);

	add_authorization(scheme, rest, out, opaque);
}

static void add_header(const struct header_view *h, struct buf *out, bool *opaque)
{
	size_t open = part_open(out, 'H');

	part_add_lower(out, 'n', h->name);
	if (!add_token_claims(span_trim(h->value), out)) {
		part_add(out, 'v', span_trim(h->value));
		*opaque = true;
	}
	part_close(out, open);
}

static bool is_key_header(struct span name)
{
	if (span_has_nocase(name, "csrf") || span_has_nocase(name, "xsrf"))
		return false;
	return span_has_nocase(name, "api-key") || span_ends_nocase(name, "-token");
}

static bool is_aws_signed(const struct identity_in *in)
{
	for (size_t i = 0; i < in->header_count; i++) {
		if (span_is_nocase(in->headers[i].name, "Authorization") &&
		    span_starts(span_trim(in->headers[i].value), "AWS4-HMAC-SHA256 "))
			return true;
	}
	return false;
}

static void add_headers(const struct identity_in *in, struct buf *out, bool *opaque)
{
	bool aws = is_aws_signed(in);

	for (size_t i = 0; i < in->header_count; i++) {
		const struct header_view *h = &in->headers[i];

		if (header_is_carrier(in->rule, h->name))
			continue;
		if (span_is_nocase(h->name, "Authorization"))
			add_authorization_header(h->value, out, opaque);
		/* a session's token goes with its access key id, which is there already */
		else if (is_key_header(h->name) &&
		         !(aws && span_is_nocase(h->name, "x-amz-security-token")))
			add_header(h, out, opaque);
	}
}

static void add_options(const struct credential_view *c, struct buf *out, bool *opaque)
{
	if (c->user.n && c->digest)
		part_add(out, 'D', c->user);
	else if (c->user.n || c->password.n)
		add_basic(c->user, c->password, out);
	if (c->bearer.n)
		add_authorization(span_of("bearer"), c->bearer, out, opaque);
	if (c->client_cert.n)
		part_add(out, 'C', c->client_cert);
}

static void add_cookies(const struct identity_in *in, struct buf *out, bool *opaque)
{
	for (size_t i = 0; i < in->header_count; i++) {
		if (span_is_nocase(in->headers[i].name, "Cookie")) {
			part_add(out, 'K', span_trim(in->headers[i].value));
			*opaque = true;
		}
	}
}

static void add_auto(const struct identity_in *in, struct buf *out, bool *opaque)
{
	size_t start = out->n;

	add_headers(in, out, opaque);
	add_options(&in->credentials, out, opaque);
	if (out->n == start)
		add_cookies(in, out, opaque);
}

static void add_named_header(const struct identity_in *in, const char *name, struct buf *out)
{
	size_t open = part_open(out, 'H');

	part_add_lower(out, 'n', span_of(name));
	for (size_t i = 0; i < in->header_count; i++) {
		if (span_is_nocase(in->headers[i].name, name))
			part_add(out, 'v', span_trim(in->headers[i].value));
	}
	part_close(out, open);
}

static void add_variable(const struct identity_in *in, const char *name, struct buf *out)
{
	const char *value = in->env ? in->env(in->env_ctx, name) : NULL;
	size_t open = part_open(out, 'E');

	part_add(out, 'n', span_of(name));
	part_add(out, value ? 'v' : '-', span_of(value));
	part_close(out, open);
}

/* What the operator named is taken as it is and never opaque: he says that it is stable. */
static void add_listed(const struct identity_in *in, struct buf *out)
{
	const struct text_list *from = &in->rule->account_from;

	for (size_t i = 0; i < from->count; i++) {
		struct span item = span_of(from->item[i]);

		if (span_starts(item, "header:"))
			add_named_header(in, from->item[i] + 7, out);
		else if (span_starts(item, "env:"))
			add_variable(in, from->item[i] + 4, out);
	}
}

int account_parts(const struct identity_in *in, struct buf *out, bool *opaque)
{
	*opaque = false;
	if (in->rule->account == ACCOUNT_AUTO)
		add_auto(in, out, opaque);
	else if (in->rule->account == ACCOUNT_LIST)
		add_listed(in, out);
	return out->failed ? IDENTITY_NOMEM : IDENTITY_OK;
}
