/* Does a rule name this request?
 *
 * Matching walks the target beside the compiled pattern and allocates nothing, since it is done for
 * every HTTP request of the program. Targets come as libcurl sends them, so dot segments are
 * resolved unless the program asked for PATH_AS_IS; they are not resolved again here. */
#include "policy/matcher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "policy/index.h"

struct span matcher_take_until(struct span *rest, char c)
{
	const char *end = rest->n ? memchr(rest->p, c, rest->n) : NULL;
	struct span part = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
	size_t used = part.n + (end ? 1 : 0);

	rest->p += used;
	rest->n -= used;
	return part;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char matcher_take_byte(struct span *text)
{
	size_t used = 1;
	char c = *text->p;

	if (c == '%' && text->n >= 3) {
		int high = hex_digit(text->p[1]), low = hex_digit(text->p[2]);

		if (high >= 0 && low >= 0) {
			c = (char)(high * 16 + low);
			used = 3;
		}
	}
	text->p += used;
	text->n -= used;
	return c;
}

struct span matcher_bare_host(struct span host)
{
	if (host.n > 1 && host.p[host.n - 1] == '.')
		host.n--;
	return host;
}

bool matcher_ipv6(struct span text, unsigned char out[16])
{
	char copy[INET6_ADDRSTRLEN + 1];
	const char *zone = text.n ? memchr(text.p, '%', text.n) : NULL;
	int saved = errno;
	bool ok;

	if (zone)
		text.n = (size_t)(zone - text.p);
	if (text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	ok = inet_pton(AF_INET6, copy, out) == 1;
	errno = saved;
	return ok;
}

enum matcher_scheme matcher_scheme(struct span text)
{
	if (span_is_nocase(text, "https"))
		return SCHEME_HTTPS;
	return span_is_nocase(text, "http") ? SCHEME_HTTP : SCHEME_OTHER;
}

static bool has_method(const struct matcher *m, struct span method)
{
	for (size_t i = 0; i < m->method_count && !m->any_method; i++) {
		if (span_equal(m->method[i], method))
			return true;
	}
	return m->any_method;
}

static unsigned default_port(enum matcher_scheme scheme)
{
	if (scheme == SCHEME_HTTPS)
		return 443;
	return scheme == SCHEME_HTTP ? 80 : 0;
}

static bool port_matches(int port, enum matcher_scheme scheme, unsigned target)
{
	if (port == PORT_ANY)
		return true;
	return target == (port == PORT_DEFAULT ? default_port(scheme) : (unsigned)port);
}

static char folded(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool label_matches(struct span pattern, struct span label)
{
	if (label.n == 0)
		return false;
	if (span_is(pattern, "*"))
		return true;
	if (pattern.n != label.n)
		return false;
	for (size_t i = 0; i < label.n; i++) {
		if (folded(pattern.p[i]) != folded(label.p[i]))
			return false;
	}
	return true;
}

/* `host` may itself be a pattern: only * matches a *. */
static bool labels_match(struct span pattern, struct span host)
{
	while (pattern.n && host.n) {
		if (!label_matches(matcher_take_until(&pattern, '.'),
		                   matcher_take_until(&host, '.')))
			return false;
	}
	return pattern.n == 0 && host.n == 0;
}

/* With or without brackets, in any spelling. */
static bool address_matches(const unsigned char ipv6[16], struct span host)
{
	unsigned char other[16];

	if (span_starts(host, "[") && host.p[host.n - 1] == ']')
		host = (struct span){host.p + 1, host.n - 2};
	return matcher_ipv6(host, other) && memcmp(ipv6, other, sizeof(other)) == 0;
}

static bool host_matches(const struct matcher *m, struct span host)
{
	switch (m->host_kind) {
	case HOST_ANY:
		return true;
	case HOST_IPV6:
		return address_matches(m->ipv6, host);
	default:
		return labels_match(m->host, matcher_bare_host(host));
	}
}

static bool text_matches(struct span decoded, struct span encoded)
{
	size_t i = 0;

	while (i < decoded.n && encoded.n) {
		if (decoded.p[i++] != matcher_take_byte(&encoded))
			return false;
	}
	return i == decoded.n && encoded.n == 0;
}

static bool path_matches(const struct matcher *m, struct span path)
{
	bool more = true;

	if (m->segment[0].kind == SEGMENT_REST)
		return true;
	if (path.n && *path.p != '/')
		return false;
	if (path.n)
		path = (struct span){path.p + 1, path.n - 1};
	for (size_t i = 0; i < m->segment_count; i++) {
		const struct segment *s = &m->segment[i];
		struct span part;

		if (s->kind == SEGMENT_REST)
			return true;
		if (!more)
			return false;
		more = path.n && memchr(path.p, '/', path.n);
		part = matcher_take_until(&path, '/');
		if (s->kind == SEGMENT_ONE ? part.n == 0 : !text_matches(s->text, part))
			return false;
	}
	return !more;
}

bool matcher_matches(const struct matcher *m, const struct policy_target *target)
{
	enum matcher_scheme scheme = matcher_scheme(target->scheme);
	unsigned port = target->port ? target->port : default_port(scheme);

	return has_method(m, target->method) && (m->scheme == SCHEME_ANY || m->scheme == scheme) &&
	       port_matches(m->port, scheme, port) && host_matches(m, target->host) &&
	       path_matches(m, target->path);
}

unsigned matcher_differs(const struct matcher *m, const struct policy_target *target)
{
	enum matcher_scheme scheme = matcher_scheme(target->scheme);
	unsigned port = target->port ? target->port : default_port(scheme);
	unsigned parts = 0;

	if (!has_method(m, target->method))
		parts |= MATCH_METHOD;
	if (m->scheme != SCHEME_ANY && m->scheme != scheme)
		parts |= MATCH_SCHEME;
	if (!host_matches(m, target->host))
		parts |= MATCH_HOST;
	if (!port_matches(m->port, scheme, port))
		parts |= MATCH_PORT;
	if (!path_matches(m, target->path))
		parts |= MATCH_PATH;
	return parts;
}

const struct rule *policy_match(const struct policy *policy, const struct policy_target *target)
{
	return index_match(policy, target, 0);
}

const struct rule *policy_match_after(const struct policy *policy,
                                      const struct policy_target *target, const struct rule *rule)
{
	return index_match(policy, target, (size_t)(rule - policy->rules) + 1);
}

/* --- does one pattern cover another? --- */

static bool covers_port(const struct matcher *a, const struct matcher *b)
{
	if (a->port == PORT_ANY || a->port == b->port)
		return true;
	if (b->port == PORT_ANY || b->scheme == SCHEME_ANY)
		return false;
	return port_matches(a->port, b->scheme,
	                    b->port == PORT_DEFAULT ? default_port(b->scheme) : (unsigned)b->port);
}

static bool covers_host(const struct matcher *a, const struct matcher *b)
{
	if (a->host_kind == HOST_ANY)
		return true;
	if (a->host_kind != b->host_kind)
		return false;
	if (a->host_kind == HOST_IPV6)
		return memcmp(a->ipv6, b->ipv6, sizeof(a->ipv6)) == 0;
	return labels_match(a->host, b->host);
}

static bool covers_segment(const struct segment *a, const struct segment *b)
{
	if (a->kind == SEGMENT_ONE)
		return b->kind == SEGMENT_ONE || (b->kind == SEGMENT_TEXT && b->text.n > 0);
	return b->kind == SEGMENT_TEXT && span_equal(a->text, b->text);
}

static bool covers_path(const struct matcher *a, const struct matcher *b)
{
	for (size_t i = 0; i < a->segment_count; i++) {
		if (a->segment[i].kind == SEGMENT_REST)
			return true;
		if (i == b->segment_count || !covers_segment(&a->segment[i], &b->segment[i]))
			return false;
	}
	return a->segment_count == b->segment_count;
}

bool matcher_covers(const struct matcher *a, const struct matcher *b)
{
	if (b->any_method && !a->any_method)
		return false;
	for (size_t i = 0; i < b->method_count; i++) {
		if (!has_method(a, b->method[i]))
			return false;
	}
	return (a->scheme == SCHEME_ANY || a->scheme == b->scheme) && covers_port(a, b) &&
	       covers_host(a, b) && covers_path(a, b);
}
