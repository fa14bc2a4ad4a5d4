/* From the text of a `match` to a matcher.
 *
 * A pattern is compiled once, into spans over one copy of its text. What a pattern cannot say (a
 * part of a segment, a query, a regular expression) is refused here: one that silently never
 * matches would leave writes unprotected. */
#include "policy/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "policy/values.h"

static int bad(const char **problem, const char *text)
{
	*problem = text;
	return MATCHER_BAD;
}

static bool has_char(struct span text, char c)
{
	return text.n && memchr(text.p, c, text.n);
}

static int parse_methods(struct matcher *m, struct span text, const char **problem)
{
	if (text.n == 0 || text.p[text.n - 1] == ',')
		return bad(problem, "has an empty method: write POST or POST,PUT without spaces");
	m->any_method = span_is(text, "*");
	if (m->any_method)
		return 0;
	while (text.n) {
		struct span method = matcher_take_until(&text, ',');

		if (span_is(method, "*"))
			return bad(problem, "lists * beside other methods: * alone is every one");
		if (!value_is_token(method))
			return bad(problem, "has no good method: write POST or POST,PUT");
		for (size_t i = 0; i < method.n; i++) {
			if (method.p[i] >= 'a' && method.p[i] <= 'z')
				return bad(problem, "has a method in lower case: methods are "
				                    "compared with case, write POST");
		}
		if (m->method_count == METHOD_MAX)
			return bad(problem, "lists more than 16 methods");
		m->method[m->method_count++] = method;
	}
	return 0;
}

static int parse_scheme(struct matcher *m, struct span *url, const char **problem)
{
	size_t n = 0;

	while (n + 3 <= url->n && memcmp(url->p + n, "://", 3) != 0)
		n++;
	if (n + 3 > url->n)
		return bad(problem,
		           "has no scheme: write METHOD http://..., https://... or *://...");
	m->scheme = span_is((struct span){url->p, n}, "*")
	                    ? SCHEME_ANY
	                    : matcher_scheme((struct span){url->p, n});
	if (m->scheme == SCHEME_OTHER)
		return bad(problem, "has another scheme than http, https or *");
	url->p += n + 3;
	url->n -= n + 3;
	return 0;
}

static int parse_port(struct matcher *m, struct span text, const char **problem)
{
	int port = 0;

	m->port = PORT_ANY;
	if (span_is(text, "*"))
		return 0;
	for (size_t i = 0; i < text.n && port <= 65535; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return bad(problem, "has no good port: write 1 to 65535, or *");
		port = port * 10 + text.p[i] - '0';
	}
	m->port = port;
	return port >= 1 && port <= 65535
	               ? 0
	               : bad(problem, "has no good port: write 1 to 65535, or *");
}

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static int check_labels(struct span host, const char **problem)
{
	if (host.n == 0)
		return bad(problem, "has no host: write METHOD https://host/path");
	while (host.n) {
		bool dot = has_char(host, '.');
		struct span label = matcher_take_until(&host, '.');

		if (label.n == 0 || (dot && host.n == 0))
			return bad(problem, "has an empty label in its host");
		if (span_is(label, "*"))
			continue;
		if (span_is(label, "**"))
			return bad(problem, "has ** in its host: * is one label, and *://** every "
			                    "URL");
		for (size_t i = 0; i < label.n; i++) {
			if (label.p[i] == '*')
				return bad(problem, "has a * inside a label of its host: * stands "
				                    "for a whole label");
			if (!is_host_char(label.p[i]))
				return bad(problem, "has a bad character in its host (other "
				                    "alphabets are written as xn--...)");
		}
	}
	return 0;
}

static int parse_bracketed(struct matcher *m, struct span authority, const char **problem)
{
	struct span rest = {authority.p + 1, authority.n - 1};

	m->host_kind = HOST_IPV6;
	if (!has_char(rest, ']') || !matcher_ipv6(matcher_take_until(&rest, ']'), m->ipv6))
		return bad(problem, "has no good IPv6 address in [ ]");
	if (rest.n == 0)
		return 0;
	if (*rest.p != ':')
		return bad(problem, "has text after the ] of its host");
	return parse_port(m, (struct span){rest.p + 1, rest.n - 1}, problem);
}

static int parse_authority(struct matcher *m, struct span authority, const char **problem)
{
	bool port = has_char(authority, ':');

	m->port = PORT_DEFAULT;
	if (has_char(authority, '@'))
		return bad(problem, "has a user before its host: leave that out, see "
		                    "identity.account");
	if (span_starts(authority, "["))
		return parse_bracketed(m, authority, problem);
	m->host_kind = HOST_LABELS;
	m->host = matcher_bare_host(matcher_take_until(&authority, ':'));
	if (has_char(authority, ':'))
		return bad(problem,
		           "has more than one : in its host (an IPv6 address stands in [ ])");
	if (check_labels(m->host, problem))
		return MATCHER_BAD;
	return port ? parse_port(m, authority, problem) : 0;
}

static struct span decode_in_place(struct span text, char *at)
{
	struct span out = {at, 0};

	while (text.n)
		at[out.n++] = matcher_take_byte(&text);
	return out;
}

static int parse_segment(struct matcher *m, struct span text, bool last, const char **problem)
{
	struct segment *s = &m->segment[m->segment_count];

	if (m->segment_count == SEGMENT_MAX)
		return bad(problem, "has more than 64 segments in its path");
	m->segment_count++;
	s->kind = span_is(text, "**") ? SEGMENT_REST : SEGMENT_ONE;
	if (s->kind == SEGMENT_REST && !last)
		return bad(problem, "has ** before the end of its path: it stands for the rest");
	if (s->kind == SEGMENT_REST || span_is(text, "*"))
		return 0;
	if (text.n > 2 && text.p[0] == '{' && text.p[text.n - 1] == '}' &&
	    value_is_token((struct span){text.p + 1, text.n - 2}) && !has_char(text, '*'))
		return 0;
	if (has_char(text, '*') || has_char(text, '{') || has_char(text, '}'))
		return bad(problem, "has * or {} inside a segment of its path: {name} and * stand "
		                    "for a whole segment, ** for the rest");
	if (span_is(text, ".") || span_is(text, ".."))
		return bad(problem, "has a . or .. segment, which never is sent: write the path "
		                    "without it");
	s->kind = SEGMENT_TEXT;
	s->text = decode_in_place(text, m->copy + (text.p - m->copy));
	return 0;
}

static int parse_path(struct matcher *m, struct span path, const char **problem)
{
	bool more = true;
	int rc = 0;

	m->path = span_dup(path.n ? path : span_of("/"));
	if (!m->path)
		return MATCHER_NOMEM;
	if (path.n) {
		path.p++;
		path.n--;
	}
	while (more && !rc) {
		more = has_char(path, '/');
		rc = parse_segment(m, matcher_take_until(&path, '/'), !more, problem);
	}
	return rc;
}

static int parse_url(struct matcher *m, struct span url, const char **problem)
{
	const char *slash;
	struct span authority;
	int rc = parse_scheme(m, &url, problem);

	if (rc)
		return rc;
	if (has_char(url, '?'))
		return bad(problem, "has a query: a rule names a path; leave out everything from "
		                    "the ? (queries are part of the identity)");
	if (has_char(url, '#'))
		return bad(problem, "has a fragment, which never is sent: leave out the #");
	if (span_is(url, "**")) {
		m->host_kind = HOST_ANY;
		m->port = PORT_ANY;
		return parse_path(m, span_of("/**"), problem);
	}
	slash = url.n ? memchr(url.p, '/', url.n) : NULL;
	authority = (struct span){url.p, slash ? (size_t)(slash - url.p) : url.n};
	rc = parse_authority(m, authority, problem);
	if (rc)
		return rc;
	return parse_path(m, (struct span){url.p + authority.n, url.n - authority.n}, problem);
}

static int parse_all(struct matcher *m, struct span text, const char **problem)
{
	struct span methods;
	int rc;

	for (size_t i = 0; i < text.n; i++) {
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return bad(problem, "holds a control character");
	}
	if (!has_char(text, ' '))
		return bad(problem, "is not a match: write METHOD URL, as in POST "
		                    "https://api.example.com/v1/orders");
	methods = matcher_take_until(&text, ' ');
	text = span_trim(text);
	if (has_char(text, ' '))
		return bad(problem, "has spaces in its URL: write METHOD[,METHOD] URL");
	rc = parse_methods(m, methods, problem);
	return rc ? rc : parse_url(m, text, problem);
}

int matcher_parse(struct span text, struct matcher **out, const char **problem)
{
	struct matcher *m = calloc(1, sizeof(*m));
	int rc;

	*out = NULL;
	if (!m)
		return MATCHER_NOMEM;
	text = span_trim(text);
	m->copy = span_dup(text);
	rc = m->copy ? parse_all(m, (struct span){m->copy, text.n}, problem) : MATCHER_NOMEM;
	if (rc)
		matcher_free(m);
	else
		*out = m;
	return rc;
}

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	free(m->copy);
	free(m->path);
	free(m);
}

const char *matcher_path(const struct matcher *m)
{
	return m->path;
}
