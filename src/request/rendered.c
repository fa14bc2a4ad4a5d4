/* See rendered.h. Only what libcurl itself writes has to be understood: a head, then bytes by
 * Content-Length or in chunks without extensions and trailers. Each chunk is one piece of the
 * payload, so that it can be sent as it would have been. */
#include "request/rendered.h"

#include <stdlib.h>
#include <string.h>

enum { IN_HEAD, IN_BODY, IN_SIZE, IN_CHUNK, AFTER_CHUNK, AFTER_ALL, DONE, HEAD_MAX = 1 << 20 };

static struct span find_line(struct span head, const char *name)
{
	while (head.n) {
		const char *end = memmem(head.p, head.n, "\r\n", 2);
		size_t n = end ? (size_t)(end - head.p) : head.n;
		struct span line = {head.p, n}, key;
		const char *colon = n ? memchr(head.p, ':', n) : NULL;

		key = (struct span){line.p, colon ? (size_t)(colon - line.p) : 0};
		if (colon && span_is_nocase(key, name))
			return span_trim(
			        (struct span){colon + 1, n - (size_t)(colon + 1 - line.p)});
		head.p += end ? n + 2 : n;
		head.n -= end ? n + 2 : n;
	}
	return (struct span){0};
}

static int64_t number_of(struct span text)
{
	int64_t value = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9' || value > INT64_MAX / 10 - 9)
			return -1;
		value = value * 10 + (text.p[i] - '0');
	}
	return value;
}

static int read_head(struct rendered *r)
{
	struct span head = span_buf(&r->head), type = find_line(head, "Content-Type");
	bool chunked = span_is_nocase(find_line(head, "Transfer-Encoding"), "chunked");

	if (type.p) {
		r->type = span_dup(type);
		if (!r->type)
			return RENDERED_NO_MEMORY;
	}
	r->length = chunked ? -1 : number_of(find_line(head, "Content-Length"));
	r->left = r->length;
	if (chunked)
		r->state = IN_SIZE;
	else
		r->state = r->length ? IN_BODY : DONE;
	return !chunked && r->length < 0 ? RENDERED_BAD : RENDERED_MORE;
}

static int take_head(struct rendered *r, struct span *in)
{
	char c = *in->p;

	in->p++;
	in->n--;
	buf_add_char(&r->head, c);
	if (r->head.failed)
		return RENDERED_NO_MEMORY;
	if (r->head.n > HEAD_MAX)
		return RENDERED_BAD;
	if (c == '\n' && r->head.n >= 4 && memcmp(r->head.data + r->head.n - 4, "\r\n\r\n", 4) == 0)
		return read_head(r);
	return RENDERED_MORE;
}

static int take_bytes(struct rendered *r, struct span *in, int next)
{
	size_t n = (int64_t)in->n < r->left ? in->n : (size_t)r->left;
	int rc = r->started ? payload_extend(r->body, in->p, n) : payload_add(r->body, in->p, n);

	if (rc != 0)
		return RENDERED_NO_MEMORY;
	r->started = true;
	r->left -= (int64_t)n;
	in->p += n;
	in->n -= n;
	if (r->left == 0)
		r->state = next;
	return RENDERED_MORE;
}

static int end_size(struct rendered *r)
{
	char *end;

	r->size[r->digits] = '\0';
	r->left = (int64_t)strtoull(r->size, &end, 16);
	if (!r->digits || *end)
		return RENDERED_BAD;
	r->digits = 0;
	r->started = false;
	r->state = r->left ? IN_CHUNK : AFTER_ALL;
	return RENDERED_MORE;
}

static int take_size(struct rendered *r, struct span *in)
{
	char c = *in->p;

	in->p++;
	in->n--;
	if (c == '\n')
		return end_size(r);
	if (c == '\r')
		return RENDERED_MORE;
	if (r->digits + 1 >= sizeof(r->size))
		return RENDERED_BAD;
	r->size[r->digits++] = c;
	return RENDERED_MORE;
}

/* The CRLF behind a chunk, or behind the last one. */
static int take_end(struct rendered *r, struct span *in)
{
	char c = *in->p;

	in->p++;
	in->n--;
	if (c == '\n')
		r->state = r->state == AFTER_ALL ? DONE : IN_SIZE;
	return c == '\n' || c == '\r' ? RENDERED_MORE : RENDERED_BAD;
}

static int take(struct rendered *r, struct span *in)
{
	switch (r->state) {
	case IN_HEAD:
		return take_head(r, in);
	case IN_BODY:
		return take_bytes(r, in, DONE);
	case IN_SIZE:
		return take_size(r, in);
	case IN_CHUNK:
		return take_bytes(r, in, AFTER_CHUNK);
	case AFTER_CHUNK:
	case AFTER_ALL:
		return take_end(r, in);
	default:
		return RENDERED_BAD;
	}
}

int rendered_feed(struct rendered *r, const char *data, size_t n)
{
	struct span in = {data, n};
	int rc = RENDERED_MORE;

	while (in.n && rc == RENDERED_MORE)
		rc = take(r, &in);
	return rc == RENDERED_MORE && r->state == DONE ? RENDERED_WHOLE : rc;
}

bool rendered_has_head(const struct rendered *r)
{
	return r->state != IN_HEAD;
}

bool rendered_is_short(const struct rendered *r)
{
	return r->state == IN_BODY && r->left > 0;
}

void rendered_free(struct rendered *r)
{
	buf_free(&r->head);
	free(r->type);
	r->type = NULL;
}
