/* What of a header block is worth telling twice.
 *
 * A replay must say what the first answer said about the result (Location, ETag, Content-Type, the
 * provider's own fields), and must not say again what was true of that one exchange: a session
 * cookie, the date, a request id somebody would look up, a quota that has changed since. The lists
 * are names and simple patterns, compared without case.
 *
 * Not promised: that an unknown field is harmless to repeat. The lists name what is known. */
#include "courier/fields.h"

#include <string.h>

static const char *const never[] = {
        "set-cookie", "set-cookie2",
        /* of this one exchange */
        "date", "age", "connection", "keep-alive", "proxy-connection", "transfer-encoding",
        "trailer", "upgrade", "via", "alt-svc", "proxy-authenticate", "x-runtime", "x-timer",
        "x-served-by", "x-cache", "x-cache-hits", "cf-cache-status", "nel", "report-to",
        /* request ids: somebody would look up a request that was never made */
        "x-request-id", "request-id", "x-correlation-id", "correlation-id", "cf-ray", "x-amzn-*id",
        "x-amz-request-id", "x-amz-id-2", "x-amz-cf-*", "x-ms-request-id", "x-ms-*-request-id",
        "ms-cv", "x-github-request-id", "x-goog-request-id", "x-vercel-id", "fly-request-id",
        "x-trace-id", "x-twilio-request-id", "twilio-request-id", "paypal-debug-id",
        "x-shopify-request-id", "x-slack-req-id", "x-slack-unique-id",
        /* quotas */
        "*ratelimit*", "*rate-limit*", "x-quota-*",
        /* tracing */
        "server-timing", "traceparent", "tracestate", "baggage", "x-b3-*", "b3",
        "x-cloud-trace-context", "x-datadog-*",
        /* ours: a replay has its own */
        "sendonce-verdict"};

static int fold(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

/* `pattern` is lower case; * stands for any run. Names are short, so going back is cheap. */
static bool matches(struct span name, const char *pattern)
{
	size_t i = 0, j = 0, star = SIZE_MAX, from = 0;
	size_t n = strlen(pattern);
	while (i < name.n) {
		if (j < n && pattern[j] == '*') {
			star = j++;
			from = i;
		} else if (j < n && fold(name.p[i]) == pattern[j]) {
			i++;
			j++;
		} else if (star != SIZE_MAX) {
			j = star + 1;
			i = ++from;
		} else {
			return false;
		}
	}
	while (j < n && pattern[j] == '*')
		j++;
	return j == n;
}

bool field_is_kept(struct span name)
{
	int first = name.n ? fold(name.p[0]) : 0;

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		if (never[i][0] != '*' && never[i][0] != first)
			continue;
		if (matches(name, never[i]))
			return false;
	}
	return true;
}

static struct span line_of(struct span rest)
{
	const char *end = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;
	return (struct span){rest.p, end ? (size_t)(end - rest.p) + 1 : rest.n};
}

static bool is_folded(struct span line)
{
	return line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t');
}

static bool is_blank(struct span line)
{
	return span_is(line, "\r\n") || span_is(line, "\n");
}

struct span fields_next(struct span *rest)
{
	struct span field = line_of(*rest);
	size_t n = field.n;
	*rest = (struct span){rest->p + n, rest->n - n};
	for (struct span more = line_of(*rest); is_folded(more); more = line_of(*rest)) {
		field.n += more.n;
		*rest = (struct span){rest->p + more.n, rest->n - more.n};
	}
	return field;
}

struct span field_name(struct span line)
{
	const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
	struct span name = {line.p, colon ? (size_t)(colon - line.p) : 0};
	if (span_starts(line, "HTTP/"))
		name.n = 0;
	while (name.n > 0 && (name.p[name.n - 1] == ' ' || name.p[name.n - 1] == '\t'))
		name.n--;
	return name;
}

static struct span value_of(struct span line)
{
	const char *colon = memchr(line.p, ':', line.n);
	struct span value = {colon + 1, line.n - (size_t)(colon + 1 - line.p)};
	while (value.n > 0 && (value.p[value.n - 1] == '\n' || value.p[value.n - 1] == '\r'))
		value.n--;
	return span_trim(value);
}

struct span fields_find(struct span block, const char *name)
{
	for (struct span line = fields_next(&block); line.n > 0; line = fields_next(&block)) {
		if (span_is_nocase(field_name(line), name))
			return value_of(line);
	}
	return (struct span){NULL, 0};
}

static void add_length(struct span name, size_t size, struct buf *out)
{
	buf_add_span(out, name);
	buf_add_text(out, ": ");
	buf_add_number(out, (int64_t)size);
	buf_add_text(out, "\r\n");
}

static void keep_field(struct span line, const struct body_shape *shape, bool *has_length,
                       struct buf *out)
{
	struct span name = field_name(line);
	if (span_is_nocase(name, "content-length")) {
		if (*has_length || shape->no_length)
			return;
		*has_length = true;
		if (shape->as_sent)
			buf_add_span(out, line);
		else
			add_length(name, shape->size, out);
		return;
	}
	if (shape->decoded && span_is_nocase(name, "content-encoding"))
		return;
	if (field_is_kept(name))
		buf_add_span(out, line);
}

void fields_keep(struct span block, const struct body_shape *shape, struct buf *out)
{
	bool has_length = false;
	for (struct span line = fields_next(&block); line.n > 0; line = fields_next(&block)) {
		if (!is_blank(line))
			keep_field(line, shape, &has_length, out);
	}
	if (!has_length && !shape->no_length && !shape->as_sent)
		buf_printf(out, "Content-Length: %zu\r\n", shape->size);
}

bool fields_whole(struct span block)
{
	bool blank = false, first = true;
	if (block.n == 0 || memchr(block.p, 0, block.n))
		return false;
	while (block.n > 0) {
		struct span line = line_of(block);
		if (blank || line.p[line.n - 1] != '\n')
			return false;
		if (span_starts(line, "HTTP/") != first)
			return false;
		first = false;
		blank = is_blank(line);
		block = (struct span){block.p + line.n, block.n - line.n};
	}
	return blank;
}

long fields_status(struct span block)
{
	struct span line = line_of(block);
	size_t i = 0;
	long status = 0;
	while (i < line.n && line.p[i] != ' ')
		i++;
	while (i < line.n && line.p[i] == ' ')
		i++;
	if (line.n - i < 3)
		return 0;
	for (size_t end = i + 3; i < end; i++) {
		if (line.p[i] < '0' || line.p[i] > '9')
			return 0;
		status = status * 10 + (line.p[i] - '0');
	}
	return status;
}
