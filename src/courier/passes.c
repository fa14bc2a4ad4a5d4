/* See passes.h.
 *
 * Whether a further send follows an answer is read from the header lines, never from getinfo, which
 * still reports the previous status. A header block is CONNECT's, not the origin's, when a tunnel
 * is being set up: the courier knows from its socket callback, a handle in place from the request
 * head that left. An answer of the origin can only come after a pass. */
#include "courier/passes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *scheme_of(const char *url, char *out, size_t room)
{
	const char *mark = strstr(url, "://");
	size_t n = mark ? (size_t)(mark - url) : 0;

	if (!mark || n >= room || memchr(url, '/', n) || memchr(url, '?', n)) {
		memcpy(out, "http", 5); /* libcurl's guess for a URL without a scheme */
		return url;
	}
	memcpy(out, url, n);
	out[n] = '\0';
	return mark + 3;
}

bool passes_authority(const char *url, struct authority *out)
{
	const char *p = scheme_of(url, out->scheme, sizeof out->scheme);
	const char *end = p + strcspn(p, "/?#"), *host = p, *port;
	size_t n;

	for (const char *c = p; c < end; c++)
		host = *c == '@' ? c + 1 : host;
	port = host < end && *host == '[' ? memchr(host, ']', (size_t)(end - host)) : host;
	port = port ? memchr(port, ':', (size_t)(end - port)) : NULL;
	n = (size_t)((port ? port : end) - host);
	if (!n || n >= sizeof out->host)
		return false;
	memcpy(out->host, host, n);
	out->host[n] = '\0';
	out->port = port ? strtol(port + 1, NULL, 10) : 0;
	if (!out->port)
		out->port = strcasecmp(out->scheme, "https") ? 80 : 443;
	return true;
}

static bool same_authority(const struct passes *p, const char *url)
{
	struct authority now;

	if (p->count == 1 || !url || !p->first_url)
		return true;
	if (strcmp(url, p->first_url) == 0)
		return true;
	if (!passes_authority(url, &now))
		return false;
	return !strcasecmp(now.scheme, p->first.scheme) && !strcasecmp(now.host, p->first.host) &&
	       now.port == p->first.port;
}

/* A URL's own port counts only where CURLOPT_PORT does not replace it, and that holds for the first
 * request alone. */
static void note_first(struct passes *p, const char *url)
{
	long port = p->first.port;

	if (p->count != 1 || !url)
		return;
	p->first_url =
	        strlen(url) < sizeof(p->first_room) ? strcpy(p->first_room, url) : strdup(url);
	if (!passes_authority(url, &p->first))
		p->first.host[0] = '\0';
	if (port)
		p->first.port = port;
}

void passes_begin(struct passes *p, const char *url, struct gate_pass *out)
{
	p->count++;
	note_first(p, url);
	out->number = p->count;
	out->after_answer = p->answered;
	out->effective_url = url;
	out->same_authority = same_authority(p, url);
	p->answered = p->opening = p->in_block = p->block_done = false;
}

long passes_status(const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n);
	long status = 0;

	for (const char *c = space ? space + 1 : line + n; c < line + n && *c >= '0' && *c <= '9';
	     c++)
		if (status < 1000)
			status = status * 10 + (*c - '0');
	return status;
}

static void block_end(struct passes *p)
{
	long s = p->block_status;

	p->in_block = false;
	if (p->opening || s < 200)
		return;
	p->block_done = true;
	if (!p->seen_at && (p->status == 302 || p->status == 303))
		p->seen_at = p->status;
	p->status = s;
	if (s / 100 == 3 || s == 401 || s == 407 || s == 417)
		p->answered = true;
}

bool passes_header(struct passes *p, const char *line, size_t n)
{
	bool http = n >= 5 && memcmp(line, "HTTP/", 5) == 0;

	if (http || (!p->in_block && !p->block_done)) {
		/* A status line after a final answer is the next request's. */
		if (p->by_lines && p->block_done && !p->in_block) {
			p->request++;
			p->block_done = false;
		}
		p->in_block = true;
		p->block_status = http ? passes_status(line, n) : 200;
	} else if (p->in_block && (line[0] == '\r' || line[0] == '\n')) {
		block_end(p);
		return true;
	}
	return false;
}

void passes_request(struct passes *p, const char *head, size_t n)
{
	p->opening = n > 8 && memcmp(head, "CONNECT ", 8) == 0;
}

unsigned passes_answering(const struct passes *p)
{
	if (p->by_lines)
		return p->request;
	return p->count ? p->count - 1 : 0;
}

long passes_seen_at(const struct passes *p, bool failed)
{
	bool left = failed && (p->status == 302 || p->status == 303);

	return p->seen_at || !left ? p->seen_at : p->status;
}

bool passes_drops_body(const struct passes *p, long keep_post)
{
	switch (p->status) {
	case 301:
		return !(keep_post & CURL_REDIR_POST_301);
	case 302:
		return !(keep_post & CURL_REDIR_POST_302);
	case 303:
		return !(keep_post & CURL_REDIR_POST_303);
	default:
		return false;
	}
}

void passes_free(struct passes *p)
{
	if (p->first_url != p->first_room)
		free(p->first_url);
	p->first_url = NULL;
}
