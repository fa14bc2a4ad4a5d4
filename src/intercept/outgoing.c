/* See outgoing.h. HTTP/1.1 shows chunks with their framing, HTTP/2 shows none. Not promised: a head
 * so large that the socket takes it in several pieces. */
#include "intercept/outgoing.h"

#include <string.h>
#include <strings.h>

static bool is_connect(const char *data, size_t n)
{
	return n > 8 && memcmp(data, "CONNECT ", 8) == 0;
}

void outgoing_head(struct outgoing *o, const char *data, size_t n)
{
	if (is_connect(data, n))
		return;
	buf_reset(&o->head);
	buf_reset(&o->body);
	o->too_large = false;
	buf_add(&o->head, data, n);
}

void outgoing_data(struct outgoing *o, const char *data, size_t n)
{
	if (n > o->limit - o->body.n)
		o->too_large = true;
	else
		buf_add(&o->body, data, n);
}

/* The next line without its end; false when there is none. */
static bool take_line(struct span *rest, struct span *line)
{
	const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
	size_t n;

	if (!end)
		return false;
	n = (size_t)(end - rest->p);
	*line = (struct span){rest->p, n && end[-1] == '\r' ? n - 1 : n};
	rest->p += n + 1;
	rest->n -= n + 1;
	return true;
}

struct span outgoing_header(const struct outgoing *o, const char *name)
{
	struct span rest = span_buf(&o->head), line;
	size_t n = strlen(name);

	while (take_line(&rest, &line)) {
		if (line.n > n && line.p[n] == ':' && strncasecmp(line.p, name, n) == 0)
			return span_trim((struct span){line.p + n + 1, line.n - n - 1});
	}
	return (struct span){0};
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: no size can be read. */
static bool chunk_size(struct span line, size_t *size)
{
	size_t i = 0;

	*size = 0;
	for (; i < line.n && hex_value(line.p[i]) >= 0; i++) {
		if (*size > SIZE_MAX >> 5)
			return false;
		*size = *size * 16 + (size_t)hex_value(line.p[i]);
	}
	return i > 0 && (i == line.n || line.p[i] == ';' || line.p[i] == ' ');
}

/* Data only ever moves to the front, so it is done where it lies. */
static int unchunk(struct buf *b)
{
	struct span rest = span_buf(b), line;
	size_t size, kept = 0;

	while (take_line(&rest, &line) && chunk_size(line, &size)) {
		if (size == 0) {
			b->n = kept;
			return 0;
		}
		if (rest.n < size + 2)
			return -1;
		memmove(b->data + kept, rest.p, size);
		kept += size;
		rest.p += size + 2;
		rest.n -= size + 2;
	}
	return -1;
}

int outgoing_body(struct outgoing *o, struct span *body)
{
	struct span coding = outgoing_header(o, "Transfer-Encoding");
	struct span rest = span_buf(&o->head), first = {0};
	bool framed = take_line(&rest, &first) && span_ends_nocase(first, "HTTP/1.1");

	if (o->too_large || o->head.failed || o->body.failed)
		return -1;
	if (framed && span_ends_nocase(coding, "chunked") && unchunk(&o->body) != 0)
		return -1;
	*body = span_buf(&o->body);
	return 0;
}

void outgoing_free(struct outgoing *o)
{
	buf_free(&o->head);
	buf_free(&o->body);
}
