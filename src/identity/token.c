/* Reading credentials: base64, `name="value"` lists, and the claims of a JSON Web Token.
 *
 * A signature is never checked: claims are only used to recognise the same account again, and a
 * forged one would be refused by the server. */
#include "identity/parts.h"

#include <string.h>

static int digit64(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

int token_base64(struct span text, struct buf *out)
{
	unsigned bits = 0;
	int held = 0;

	for (int i = 0; i < 2 && text.n && text.p[text.n - 1] == '='; i++)
		text.n--;
	if (text.n == 0 || text.n % 4 == 1)
		return -1;
	for (size_t i = 0; i < text.n; i++) {
		int d = digit64(text.p[i]);

		if (d < 0)
			return -1;
		bits = (bits << 6 | (unsigned)d) & 0xffff;
		held += 6;
		if (held >= 8) {
			held -= 8;
			buf_add_char(out, (char)(bits >> held & 0xff));
		}
	}
	return 0;
}

static struct span unquoted(struct span v)
{
	if (v.n >= 2 && *v.p == '"' && v.p[v.n - 1] == '"')
		return (struct span){v.p + 1, v.n - 2};
	return v;
}

/* The length of one `name="value"`: up to a comma that is not quoted. */
static size_t param_length(struct span list)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < list.n && (quoted || list.p[i] != ','); i++) {
		if (quoted && list.p[i] == '\\' && i + 1 < list.n)
			i++;
		else if (list.p[i] == '"')
			quoted = !quoted;
	}
	return i;
}

struct span token_param(struct span list, const char *name)
{
	while (list.n) {
		size_t n = param_length(list);
		struct span value, key = span_cut((struct span){list.p, n}, '=', &value);

		if (value.p && span_is_nocase(span_trim(key), name))
			return unquoted(span_trim(value));
		list.p += n;
		list.n -= n;
		if (list.n) {
			list.p++;
			list.n--;
		}
	}
	return (struct span){0};
}

static bool emit_claims(const struct json_doc *doc, struct buf *out)
{
	static const char *const claim[] = {"/iss", "/sub", "/azp", "/org_id", "/tid"};
	bool any = false;

	for (size_t i = 0; i < sizeof claim / sizeof *claim; i++) {
		uint32_t at = json_find(doc, span_of(claim[i]));
		size_t open = part_open(out, at ? 'v' : '-');

		if (at)
			json_emit(doc, at, out);
		part_close(out, open);
		any = any || at;
	}
	return any;
}

/* The middle of header.payload.signature; p null when it has not three parts. */
static struct span payload_of(struct span token)
{
	struct span rest, signature, more, payload;

	span_cut(token, '.', &rest);
	payload = span_cut(rest, '.', &signature);
	span_cut(signature, '.', &more);
	return signature.p && !more.p ? payload : (struct span){0};
}

bool token_claims(struct span token, struct buf *out)
{
	struct span payload = payload_of(token);
	struct json_doc doc = {0};
	struct buf text = {0};
	size_t start = out->n;
	bool any = false;
	int rc = JSON_INVALID;

	if (payload.n && token_base64(payload, &text) == 0)
		rc = text.failed ? JSON_NOMEM : json_parse(&doc, span_buf(&text));
	if (rc == 0 && doc.node[JSON_ROOT].kind == JSON_OBJECT)
		any = emit_claims(&doc, out);
	if (rc == JSON_NOMEM)
		out->failed = true;
	if (!any && !out->failed)
		out->n = start;
	json_free(&doc);
	buf_free(&text);
	return any;
}
