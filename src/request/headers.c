/* The header lines libcurl would send, by the rules of its Curl_add_custom_headers.
 *
 * "Name: value" is sent; "Name:" is not, and takes away libcurl's own of that name; "Name;" is sent
 * with an empty value. Of several Host lines the first is used, also with nothing behind its colon
 * but a space. Lines that are no header ("text", ": x", "Name; x") are not sent. An entry with line
 * ends in it is sent as it stands, and the server reads several headers. Left out are
 * headers that say nothing about the write (Accept, Content-Length, Expect, TE) and those that
 * are made of credentials (Authorization from USERPWD or XOAUTH2_BEARER, cookies of the jar). */
#include "request/request.h"

#include <stdio.h>
#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span trim(struct span s)
{
	while (s.n && is_space(*s.p)) {
		s.p++;
		s.n--;
	}
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

/* False when the line isn't sent. The value is not trimmed yet. */
static bool read_line(const char *line, struct request_header *h)
{
	const char *at = strchr(line, ':');
	bool empty = false;

	if (!at) {
		at = strchr(line, ';');
		empty = at && at[1] == '\0';
		if (!empty)
			return false;
	}
	h->name = trim((struct span){line, (size_t)(at - line)});
	h->value = span_of(at + 1);
	return at != line && (trim(h->value).n || empty);
}

static const struct curl_slist *lines_of(const struct options *o)
{
	return options_pointer(o, CURLOPT_HTTPHEADER);
}

/* The line that sets or removes a header, as Curl_checkheaders finds it. */
static const char *find_line(const struct options *o, const char *name)
{
	size_t n = strlen(name);

	for (const struct curl_slist *l = lines_of(o); l; l = l->next) {
		if (strlen(l->data) > n && (l->data[n] == ':' || l->data[n] == ';') &&
		    span_is_nocase((struct span){l->data, n}, name))
			return l->data;
	}
	return NULL;
}

static void give_host(const struct options *o, request_each *each, void *ctx)
{
	const char *line = find_line(o, "Host");
	struct request_header h = {span_of("Host"), {0}};

	if (!line || strcmp(line, "Host:") == 0)
		return;
	h.value = trim(span_of(line + strlen("Host:")));
	each(ctx, &h);
}

/* libcurl writes the Content-Type of MIMEPOST and HTTPPOST itself, boundary and all. */
static bool writes_type(const struct options *o)
{
	enum request_body kind = request_body_kind(o);

	return kind == REQUEST_MIME || kind == REQUEST_FORMPOST;
}

/* What the server makes of an entry's further lines. */
static void give_further(struct span rest, request_each *each, void *ctx)
{
	while (rest.n) {
		const char *end = memchr(rest.p, '\n', rest.n), *colon;
		struct span line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
		struct request_header h;

		rest = (struct span){rest.p + line.n + (end != NULL),
		                     rest.n - line.n - (end != NULL)};
		colon = line.n ? memchr(line.p, ':', line.n) : NULL;
		if (!colon || colon == line.p)
			continue;
		h.name = trim((struct span){line.p, (size_t)(colon - line.p)});
		h.value = trim((struct span){colon + 1, line.n - (size_t)(colon + 1 - line.p)});
		each(ctx, &h);
	}
}

static void give(struct request_header *h, request_each *each, void *ctx)
{
	const char *end = h->value.n ? memchr(h->value.p, '\n', h->value.n) : NULL;
	struct span rest = {0};

	if (end) {
		rest = (struct span){end + 1, h->value.n - (size_t)(end + 1 - h->value.p)};
		h->value.n = (size_t)(end - h->value.p);
	}
	h->value = trim(h->value);
	each(ctx, h);
	give_further(rest, each, ctx);
}

static void give_lines(const struct options *o, request_each *each, void *ctx)
{
	bool no_type = writes_type(o);
	struct request_header h;

	for (const struct curl_slist *l = lines_of(o); l; l = l->next) {
		if (!l->data || !read_line(l->data, &h) || span_is_nocase(h.name, "Host"))
			continue;
		if (!(no_type && span_is_nocase(h.name, "Content-Type")))
			give(&h, each, ctx);
	}
}

static void give_own(const struct options *o, const char *name, const char *value,
                     request_each *each, void *ctx)
{
	struct request_header h = {span_of(name), span_of(value)};

	if (value && *value && !find_line(o, name))
		each(ctx, &h);
}

long long request_resumed_from(const struct options *o)
{
	const struct option *small = options_get(o, CURLOPT_RESUME_FROM);
	const struct option *large = options_get(o, CURLOPT_RESUME_FROM_LARGE);

	if (small && (!large || small > large)) /* the list is in the order of the calls */
		return small->v.num;
	return large ? (long long)large->v.off : 0;
}

/* Which part is asked for or sent. What libcurl adds to a Content-Range, the end and the size, is
 * not told. */
static void give_range(const struct options *o, char text[REQUEST_RANGE], request_each *each,
                       void *ctx)
{
	bool asks = request_body_kind(o) == REQUEST_NO_BODY;
	const char *range = options_text(o, CURLOPT_RANGE);
	long long from = request_resumed_from(o);
	char own[24];

	snprintf(own, sizeof(own), "%lld-", from);
	range = from ? own : range;
	if (!range)
		return;
	snprintf(text, REQUEST_RANGE, "bytes%c%s", asks ? '=' : ' ', range);
	give_own(o, asks ? "Range" : "Content-Range", text, each, ctx);
}

void request_headers(const struct options *options, char range[REQUEST_RANGE], request_each *each,
                     void *ctx)
{
	static const struct {
		const char *name;
		CURLoption id;
	} own[] = {
	        {"User-Agent", CURLOPT_USERAGENT},
	        {"Referer", CURLOPT_REFERER},
	        {"Accept-Encoding", CURLOPT_ACCEPT_ENCODING},
	        {"Cookie", CURLOPT_COOKIE},
	};
	enum request_body kind = request_body_kind(options);

	give_host(options, each, ctx);
	give_lines(options, each, ctx);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		give_own(options, own[i].name, options_text(options, own[i].id), each, ctx);
	give_range(options, range, each, ctx);
	if (kind == REQUEST_FIELDS || kind == REQUEST_READ)
		give_own(options, "Content-Type", "application/x-www-form-urlencoded", each, ctx);
}
