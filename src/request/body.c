/* See body.h. The rules are those of libcurl's Curl_fillreadbuffer and readwrite_upload. Where a
 * callback gives more than was announced, libcurl would send it all and break the connection; here
 * the rest is left out. */
#include "request/body.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "request/request.h"

enum {
	BUFFER_USUAL = 65536,
	BUFFER_MIN = 16384,
	BUFFER_MAX = 2 * 1024 * 1024,
	CHUNK_FRAME = 12,
	EXPECTED_FROM = 1024 * 1024
};

/* What stands behind the name of the program's own header; null: it has none. */
static const char *find_own(const struct options *o, const char *name)
{
	const struct curl_slist *l = options_pointer(o, CURLOPT_HTTPHEADER);
	size_t n = strlen(name);

	for (; l; l = l->next) {
		if (strncasecmp(l->data, name, n) == 0 && (l->data[n] == ':' || l->data[n] == ';'))
			return l->data + n;
	}
	return NULL;
}

bool body_is_chunked(const struct options *options, curl_off_t size)
{
	const char *own = find_own(options, "Transfer-Encoding");

	return own ? strcasestr(own, "chunked") != NULL : size < 0;
}

bool body_is_expected(const struct options *options, curl_off_t size, bool by_size)
{
	const char *own = find_own(options, "Expect");
	long version = options_long(options, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_NONE);

	if (version == CURL_HTTP_VERSION_1_0 || version == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE)
		return false;
	if (own)
		return strcasestr(own, "100-continue") != NULL;
	if (request_body_kind(options) == REQUEST_UPLOAD && !by_size)
		return size != 0;
	return size < 0 || size > EXPECTED_FROM;
}

/* INFILESIZE and INFILESIZE_LARGE share one place: the last one set counts. */
static curl_off_t file_size(const struct options *o)
{
	curl_off_t size = -1;

	for (size_t i = 0; i < o->count; i++) {
		if (o->list[i].id == CURLOPT_INFILESIZE)
			size = o->list[i].v.num;
		else if (o->list[i].id == CURLOPT_INFILESIZE_LARGE)
			size = o->list[i].v.off;
	}
	return size;
}

curl_off_t body_announced(const struct options *options)
{
	if (request_body_kind(options) == REQUEST_UPLOAD)
		return file_size(options);
	return options->post_size;
}

static size_t buffer_size(const struct options *o)
{
	long size = options_long(o, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_USUAL);

	if (size < BUFFER_MIN)
		return BUFFER_MIN;
	return size > BUFFER_MAX ? BUFFER_MAX : (size_t)size;
}

struct body_source body_source_of(const struct options *options)
{
	curl_read_callback read =
	        (curl_read_callback)options_function(options, CURLOPT_READFUNCTION);
	void *data = options_pointer_or(options, CURLOPT_READDATA, stdin);
	curl_off_t size = body_announced(options);
	bool chunked = body_is_chunked(options, size);

	return (struct body_source){
	        .read = read ? read : (curl_read_callback)fread,
	        .data = data || read ? data : stdin,
	        .size = size,
	        .room = buffer_size(options) - (chunked ? CHUNK_FRAME : 0),
	        .to_the_end = chunked || size < 0,
	};
}

/* True: all the announced bytes are there. */
static bool is_full(const struct body_source *s, const struct payload *into)
{
	return !s->to_the_end && (curl_off_t)payload_size(into) >= s->size;
}

static enum body_drained keep(const struct body_source *s, struct payload *into, const char *data,
                              size_t n, size_t limit)
{
	curl_off_t left = s->size - (curl_off_t)payload_size(into);

	if (!s->to_the_end && (curl_off_t)n > left)
		n = (size_t)left;
	if (payload_add(into, data, n) != 0)
		return BODY_NO_MEMORY;
	return payload_size(into) > limit ? BODY_OVERSIZE : BODY_MORE;
}

static enum body_drained read_into(const struct body_source *s, size_t limit, struct payload *into,
                                   char *buffer)
{
	size_t n = s->read(buffer, 1, s->room, s->data);

	if (n == CURL_READFUNC_ABORT)
		return BODY_ABORTED;
	if (n == CURL_READFUNC_PAUSE)
		return BODY_PAUSED;
	if (n > s->room)
		return BODY_FUNNY;
	return n ? keep(s, into, buffer, n, limit) : BODY_DRAINED;
}

enum body_drained body_read(const struct body_source *source, size_t limit, struct payload *into)
{
	enum body_drained result = BODY_DRAINED;
	char *buffer;

	if (!is_full(source, into)) {
		buffer = malloc(source->room);
		if (!buffer)
			return BODY_NO_MEMORY;
		result = read_into(source, limit, into, buffer);
		free(buffer);
	}
	if (result == BODY_DRAINED && payload_seal(into) != 0)
		return BODY_NO_MEMORY;
	return result;
}

bool body_has_stream(const struct options *options)
{
	const struct curl_httppost *post = options_pointer(options, CURLOPT_HTTPPOST);

	for (; options->kind == HTTP_FORM && post; post = post->next) {
		if (post->flags & CURL_HTTPPOST_CALLBACK)
			return true;
	}
	return false;
}
