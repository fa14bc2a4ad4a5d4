/* See moment.h. The rules are libcurl 7.88's, measured: the status counts from its line on, the
 * size of the headers after each line was given, a Content-Type from its line to the next one also
 * across requests, a length from the empty line on, and chunks of body only once they were given.
 *
 * Not promised: the count of encoded bytes while a decoded body is being given. */
#include "intercept/moment.h"

#include <string.h>

static bool value_of(struct span line, const char *name, struct span *value)
{
	size_t n = strlen(name);

	if (line.n <= n || line.p[n] != ':' || !span_is_nocase((struct span){line.p, n}, name))
		return false;
	*value = (struct span){line.p + n + 1, line.n - n - 1};
	while (value->n && strchr("\r\n", value->p[value->n - 1]))
		value->n--;
	*value = span_trim(*value);
	return true;
}

static bool is_status_line(const struct tape_piece *piece)
{
	return span_starts((struct span){piece->data, piece->n}, "HTTP/");
}

static void set(struct buf *b, struct span value)
{
	buf_reset(b);
	buf_add_span(b, value);
}

static void set_type(struct moment *m, struct span value)
{
	if (!m->type.data)
		m->type = buf_in(m->type_room, sizeof(m->type_room));
	set(&m->type, value);
}

static void begin_header(struct moment *m, const struct tape_piece *piece)
{
	struct span line = {piece->data, piece->n}, value;

	if (piece->connect)
		return;
	if (is_status_line(piece))
		m->encoded = false;
	else if (value_of(line, "Content-Type", &value))
		set_type(m, value);
	else if (value_of(line, "Content-Encoding", &value))
		m->encoded = true;
}

/* "METHOD URL" of the request that is answered from here on. */
static void begin_request(struct moment *m, const struct tape_piece *piece)
{
	const char *space = memchr(piece->data, ' ', piece->n);
	size_t n = space ? (size_t)(space - piece->data) : 0;

	if (!space)
		return;
	set(&m->method, (struct span){piece->data, n});
	set(&m->url, (struct span){space + 1, piece->n - n - 1});
}

void moment_begin(struct moment *m, const struct player *p, const struct tape_piece *piece)
{
	m->before_piece = p->body_seen;
	switch (piece->kind) {
	case TAPE_HEADER:
		m->request = piece->request;
		begin_header(m, piece);
		break;
	case TAPE_REQUEST:
		begin_request(m, piece);
		break;
	case TAPE_BODY:
	case TAPE_DEBUG:
		break;
	}
}

/* A trailer is no part of the size. */
void moment_end(struct moment *m, const struct player *p, const struct tape_piece *piece)
{
	bool ends_head = piece->n && strchr("\r\n", piece->data[0]);

	if (piece->kind == TAPE_HEADER && (!p->in_body || ends_head || piece->connect))
		m->header_size += (long)piece->n;
}

static void show_text(struct info *info, CURLINFO id, const struct buf *b)
{
	if (b->n && !b->failed)
		info_set_text(info, id, b->data);
}

void moment_show(const struct moment *m, const struct player *p, struct info *info)
{
	info_set_long(info, CURLINFO_RESPONSE_CODE, p->status);
	info_set_long(info, CURLINFO_HEADER_SIZE, m->header_size);
	info_set_long(info, CURLINFO_REDIRECT_COUNT, (long)m->request);
	info_set_text(info, CURLINFO_CONTENT_TYPE, m->type.n ? m->type.data : NULL);
	info_set_off(info, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, p->in_body ? p->body_total : -1);
	if (!m->encoded || !p->body_seen)
		info_set_off(info, CURLINFO_SIZE_DOWNLOAD_T,
		             p->chunked ? m->before_piece : p->body_seen);
	show_text(info, CURLINFO_EFFECTIVE_URL, &m->url);
	show_text(info, CURLINFO_EFFECTIVE_METHOD, &m->method);
}

void moment_free(struct moment *m)
{
	buf_free(&m->type);
	buf_free(&m->method);
	buf_free(&m->url);
}
