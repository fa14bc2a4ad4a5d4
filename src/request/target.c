/* Where a request goes, as the host's own libcurl parses it.
 *
 * This follows libcurl's parseurlandfillconn: CURLOPT_CURLU goes before CURLOPT_URL, a URL without
 * scheme is guessed by its host name or takes DEFAULT_PROTOCOL, CURLOPT_PORT replaces the URL's
 * port, REQUEST_TARGET its path and query. The result is kept until an option changes that shapes
 * it; behind a CURLU the program can change the URL without telling anybody, so there it is parsed
 * each time. Not followed: HSTS and alt-svc, which may lead the same request elsewhere, and the
 * absolute form of the path that a plain proxy is given. A libcurl without the URL API (before
 * 7.62) has no valid targets. */
#include "request/memo.h"

#include <stdlib.h>
#include <string.h>

enum { SCHEME_MAX = 40 };

static void clear(struct request_target *t)
{
	parts_unref(t->parts);
	free(t->own_path);
	free(t->own_query);
	*t = (struct request_target){0};
}

void request_target_free(struct request_target *t)
{
	clear(t);
}

static bool is_scheme_char(char c)
{
	char folded = (char)(c | 0x20);

	return (folded >= 'a' && folded <= 'z') || (c && strchr("0123456789+-.", c));
}

/* "name:/" at the beginning; what stands before another colon is a host and a port. */
static bool has_scheme(const char *url)
{
	size_t n = 0;

	while (n < SCHEME_MAX && is_scheme_char(url[n]))
		n++;
	return n && url[n] == ':' && url[n + 1] == '/';
}

static unsigned set_flags(const struct options *o)
{
	unsigned flags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME;

	if (options_long(o, CURLOPT_PATH_AS_IS, 0))
		flags |= CURLU_PATH_AS_IS;
	if (options_long(o, CURLOPT_DISALLOW_USERNAME_IN_URL, 0))
		flags |= CURLU_DISALLOW_USER;
	return flags;
}

/* The URL with DEFAULT_PROTOCOL's scheme before it where it has none. */
static int url_text(const struct options *o, struct buf *out)
{
	const char *url = options_text(o, CURLOPT_URL);
	const char *protocol = options_text(o, CURLOPT_DEFAULT_PROTOCOL);

	if (!url)
		return 0;
	if (protocol && !has_scheme(url)) {
		buf_add_text(out, protocol);
		buf_add_text(out, "://");
	}
	buf_add_text(out, url);
	return out->failed ? -1 : 0;
}

/* A copy of one part in our own memory; *out stays null when the URL has none. */
static int take_part(const struct flavour *fl, CURLU *u, CURLUPart part, unsigned flags, char **out)
{
	char *text = NULL;
	CURLUcode code = CURL_FN(fl, url_get)(u, part, &text, flags);

	if (code == CURLUE_OUT_OF_MEMORY)
		return -1;
	if (code != CURLUE_OK || !text)
		return 0;
	*out = span_dup(span_of(text));
	CURL_FN(fl, free)(text);
	return *out ? 0 : -1;
}

static void fold(char *text)
{
	for (; text && *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text - 'A' + 'a');
	}
}

/* User and password are decoded; with a control character in them, which libcurl's decoder does
 * not give, they stay as written. */
static int take_user(const struct flavour *fl, CURLU *u, CURLUPart part, char **out)
{
	int rc = take_part(fl, u, part, CURLU_URLDECODE, out);

	return rc == 0 && !*out ? take_part(fl, u, part, 0, out) : rc;
}

static int take_port(const struct flavour *fl, CURLU *u, unsigned *port)
{
	char *text = NULL;
	int rc = take_part(fl, u, CURLUPART_PORT, CURLU_DEFAULT_PORT, &text);

	if (text)
		*port = (unsigned)strtoul(text, NULL, 10);
	free(text);
	return rc;
}

static int take_all(const struct flavour *fl, CURLU *u, struct url_parts *t)
{
	if (take_part(fl, u, CURLUPART_SCHEME, 0, &t->scheme) ||
	    take_part(fl, u, CURLUPART_HOST, 0, &t->host) ||
	    take_part(fl, u, CURLUPART_PATH, CURLU_URLENCODE, &t->path) ||
	    take_part(fl, u, CURLUPART_QUERY, 0, &t->query) ||
	    take_user(fl, u, CURLUPART_USER, &t->user) ||
	    take_user(fl, u, CURLUPART_PASSWORD, &t->password) || take_port(fl, u, &t->port))
		return -1;
	fold(t->scheme);
	fold(t->host);
	return 0;
}

static int take_parts(const struct flavour *fl, CURLU *u, struct url_parts **out)
{
	struct url_parts *parts = calloc(1, sizeof(*parts));

	if (!parts)
		return -1;
	if (take_all(fl, u, parts) != 0) {
		parts_unref(parts);
		return -1;
	}
	*out = parts;
	return 0;
}

/* Of a CURLU of the program's; nothing of it is kept, for it may change. */
static int take_given(const struct flavour *fl, CURLU *given, struct url_parts **out)
{
	CURLU *u = CURL_FN(fl, url_dup)(given);
	int rc = u ? take_parts(fl, u, out) : -1;

	if (u)
		CURL_FN(fl, url_cleanup)(u);
	return rc;
}

static int take_parsed(const struct memo_key *key, struct url_parts **out)
{
	const struct flavour *fl = key->fl;
	CURLU *u = CURL_FN(fl, url)();
	CURLUcode code;
	int rc = -1;

	if (!u)
		return -1;
	code = CURL_FN(fl, url_set)(u, CURLUPART_URL, key->text.p, key->flags);
	if (code == CURLUE_OK)
		rc = take_parts(fl, u, out);
	else if (code != CURLUE_OUT_OF_MEMORY)
		rc = 0;
	if (code == CURLUE_OK && rc == 0)
		memo_put(key, *out);
	CURL_FN(fl, url_cleanup)(u);
	return rc;
}

static int take_text(const struct flavour *fl, const struct options *o, struct url_parts **out)
{
	struct buf text = {0};
	int rc = url_text(o, &text);

	if (rc == 0 && text.n) {
		struct memo_key key = {fl, span_buf(&text), set_flags(o)};

		*out = memo_get(&key);
		rc = *out ? 0 : take_parsed(&key, out);
	}
	buf_free(&text);
	return rc;
}

static void show_parts(struct request_target *t, struct url_parts *parts)
{
	t->parts = parts;
	t->scheme = parts->scheme;
	t->host = parts->host;
	t->path = parts->path;
	t->query = parts->query;
	t->user = parts->user;
	t->password = parts->password;
	t->port = parts->port;
}

/* REQUEST_TARGET is sent as it is; it is cut at its '?' so that rules see path and query. */
static int replace_path(const struct options *o, struct request_target *t)
{
	const char *text = options_text(o, CURLOPT_REQUEST_TARGET), *mark;

	if (!text)
		return 0;
	mark = strchr(text, '?');
	t->own_path = span_dup((struct span){text, mark ? (size_t)(mark - text) : strlen(text)});
	if (mark)
		t->own_query = span_dup(span_of(mark + 1));
	t->path = t->own_path;
	t->query = t->own_query;
	return t->path && (!mark || t->query) ? 0 : -1;
}

static bool is_http(const struct request_target *t)
{
	return t->scheme && t->host && t->path &&
	       (strcmp(t->scheme, "http") == 0 || strcmp(t->scheme, "https") == 0);
}

static bool can_parse(const struct flavour *fl)
{
	return CURL_HAS(fl, url) && CURL_HAS(fl, url_dup) && CURL_HAS(fl, url_set) &&
	       CURL_HAS(fl, url_get) && CURL_HAS(fl, url_cleanup) && CURL_HAS(fl, free);
}

static int make(const struct flavour *fl, const struct options *o, struct request_target *t)
{
	long port = options_long(o, CURLOPT_PORT, 0);
	CURLU *given = options_pointer(o, CURLOPT_CURLU);
	struct url_parts *parts = NULL;
	int rc;

	if (!can_parse(fl))
		return 0;
	rc = given ? take_given(fl, given, &parts) : take_text(fl, o, &parts);
	if (!parts) /* libcurl would not take the URL */
		return rc;
	show_parts(t, parts);
	rc = replace_path(o, t);
	if (port > 0)
		t->port = (unsigned)port;
	t->valid = rc == 0 && is_http(t);
	return rc;
}

int request_target_update(struct request_target *t, const struct flavour *fl,
                          const struct options *options)
{
	unsigned made;

	if (t->change == options->change + 1 && !t->from_curlu)
		return 0;
	made = t->made + 1;
	clear(t);
	t->made = made;
	if (make(fl, options, t) != 0) {
		clear(t);
		t->made = made;
		return -1;
	}
	t->change = options->change + 1;
	t->from_curlu = options_pointer(options, CURLOPT_CURLU) != NULL;
	return 0;
}
