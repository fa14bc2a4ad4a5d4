/* Tapes into blobs and back.
 *
 * A blob is a fixed head of five little-endian numbers (magic, status, and the sizes of the three
 * parts), then the getinfo values, the header block and the body. The sizes must add up to the
 * blob's own, so nothing behind a damaged number is ever read.
 *
 * Kept is the final header block of the origin. A program that followed redirects saw the blocks
 * before it too; a replay shows the last one alone, without interim answers (1xx) and trailers. The
 * body is kept as libcurl delivered it, so Content-Encoding goes where libcurl has decoded, which
 * its own count of received bytes gives away.
 *
 * Not promised: the order of fields that are replaced, nor the times of the first exchange. */
#include "courier/answer.h"

#include <stdlib.h>
#include <string.h>

#include "courier/fields.h"

enum { BLOB_HEAD = 24, BLOB_MAGIC = 0x31414f53 /* "SOA1" */, JOIN_ROOM = 640 };

static char *put(char *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*at++ = (char)(value >> (8 * i) & 0xff);
	return at;
}

static uint64_t get(const char *p, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)(unsigned char)p[i] << (8 * i);
	return value;
}

/* --- tape to blob --- */

static bool has_magic(struct span body, const char *magic)
{
	return span_starts(body, magic);
}

/* Does the body begin as one does that is still encoded? For the rare case that a body has the same
 * size encoded and decoded. */
static bool looks_encoded(struct span body, struct span encoding)
{
	if (span_ends_nocase(encoding, "gzip"))
		return has_magic(body, "\x1f\x8b");
	if (span_ends_nocase(encoding, "zstd"))
		return has_magic(body, "\x28\xb5\x2f\xfd");
	return true;
}

/* SIZE_DOWNLOAD counts what came, before decoding and after chunks were put together. */
static bool is_decoded(struct span head, struct span body, const struct info *info)
{
	curl_off_t came = 0;
	struct span encoding = fields_find(head, "Content-Encoding");
	if (!encoding.p || body.n == 0 || span_is_nocase(encoding, "identity"))
		return false;
	if (info_get(info, CURLINFO_SIZE_DOWNLOAD_T, &came) != CURLE_OK)
		return false;
	return came != (curl_off_t)body.n || !looks_encoded(body, encoding);
}

static bool has_no_body(long status)
{
	return status == 204 || status == 304;
}

static bool is_head(const struct info *info)
{
	const char *method = info_text(info, CURLINFO_EFFECTIVE_METHOD);
	return method && strcmp(method, "HEAD") == 0;
}

static void add_head(struct span head, struct span body, const struct info *info, struct buf *out)
{
	struct body_shape shape = {.decoded = is_decoded(head, body, info),
	                           .no_length = has_no_body(fields_status(head)),
	                           .as_sent = is_head(info),
	                           .size = body.n};
	fields_keep(head, &shape, out);
	buf_add_text(out, "\r\n");
}

static void put_head(struct buf *blob, long status, size_t values, size_t head, size_t body)
{
	char *at = buf_grow(blob, BLOB_HEAD);
	if (!at)
		return;
	at = put(at, BLOB_MAGIC, 4);
	at = put(at, (uint64_t)status, 4);
	at = put(at, values, 4);
	at = put(at, head, 4);
	put(at, body, 8);
}

static int join(struct span head, struct span body, const struct info *info, size_t max,
                struct buf *blob)
{
	char room[2][JOIN_ROOM];
	struct buf values = buf_in(room[0], JOIN_ROOM), kept = buf_in(room[1], JOIN_ROOM);
	int result = -1;
	info_store(info, &values);
	add_head(head, body, info, &kept);
	if (values.failed || kept.failed)
		goto cleanup;
	if (body.n > max || values.n + kept.n + BLOB_HEAD > max - body.n)
		goto cleanup;
	buf_reset(blob);
	put_head(blob, fields_status(head), values.n, kept.n, body.n);
	buf_add_span(blob, span_buf(&values));
	buf_add_span(blob, span_buf(&kept));
	buf_add_span(blob, body);
	result = blob->failed ? -1 : 0;
cleanup:
	buf_free(&values);
	buf_free(&kept);
	return result;
}

static int store(struct tape *t, size_t body_max, size_t max, struct buf *blob)
{
	struct buf body = {0};
	struct span block = tape_head(t);
	struct tape_end end;
	int result = -1;

	tape_ended(t, &end);
	if (end.ended && !end.complete)
		return -1;
	struct info *info = tape_info_ref(t);
	if (!info || !fields_whole(block) || fields_status(block) < 200)
		goto cleanup;
	struct span whole;
	if (tape_body(t, body_max, &body, &whole))
		goto cleanup;
	result = join(block, whole, info, max, blob);
cleanup:
	info_free(info);
	buf_free(&body);
	return result;
}

int answer_store(struct tape *t, size_t max, struct buf *blob)
{
	return store(t, max, max, blob);
}

int answer_keep(struct tape *t, size_t max_response, struct buf *blob)
{
	return store(t, max_response, max_response + ANSWER_BESIDE_BODY, blob);
}

/* --- parts to tape --- */

static void set_info(struct info *info, struct span head, struct span body)
{
	info_set_long(info, CURLINFO_RESPONSE_CODE, fields_status(head));
	info_set_long(info, CURLINFO_HEADER_SIZE, (long)head.n);
	info_set_off(info, CURLINFO_SIZE_DOWNLOAD_T, (curl_off_t)body.n);
	if (!is_head(info))
		info_set_off(info, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, (curl_off_t)body.n);
}

/* Takes `info` over. */
static struct tape *make_tape(struct span head, struct span body, struct info *info)
{
	struct tape_end end = {.ended = true, .complete = true, .status = fields_status(head)};
	struct tape *t = tape_new(body.n);
	if (!t) {
		info_free(info);
		return NULL;
	}
	set_info(info, head, body);
	tape_info(t, info);
	if (tape_fill(t, head, body)) {
		tape_unref(t);
		return NULL;
	}
	tape_finish(t, &end);
	return t;
}

/* --- blob to tape --- */

struct parts {
	struct span info, head, body;
};

static int split(struct span blob, struct parts *parts)
{
	if (blob.n < BLOB_HEAD || get(blob.p, 4) != BLOB_MAGIC)
		return -1;
	uint64_t info = get(blob.p + 8, 4), head = get(blob.p + 12, 4), body = get(blob.p + 16, 8);
	uint64_t room = blob.n - BLOB_HEAD;
	if (info > room || head > room - info || body != room - info - head)
		return -1;
	const char *p = blob.p + BLOB_HEAD;
	parts->info = (struct span){p, (size_t)info};
	parts->head = (struct span){p + info, (size_t)head};
	parts->body = (struct span){p + info + head, (size_t)body};
	uint64_t status = get(blob.p + 4, 4);
	if (status < 200 || !fields_whole(parts->head) ||
	    fields_status(parts->head) != (long)status)
		return -1;
	return 0;
}

/* The marks go in before the blank line. */
static void add_marks(struct span head, const struct answer_marks *marks, struct buf *out)
{
	size_t blank = span_ends_nocase(head, "\r\n") ? 2 : 1;
	buf_add(out, head.p, head.n - blank);
	if (marks && marks->replayed && !fields_find(head, "Idempotent-Replayed").p)
		buf_add_text(out, "Idempotent-Replayed: true\r\n");
	if (marks && marks->verdict) {
		buf_add_text(out, "Sendonce-Verdict: ");
		buf_add_text(out, marks->verdict);
		buf_add_text(out, "\r\n");
	}
	buf_add_text(out, "\r\n");
}

static bool is_empty(const char *text)
{
	return !text || !*text;
}

/* The body a program gets, and the head that goes with it. */
static void edit(struct parts *parts, const struct answer_marks *marks, struct buf *head,
                 struct buf *body)
{
	struct body_shape shape = {0};

	if (!marks || !marks->edit || !marks->edit(marks->ctx, parts->head, parts->body, body))
		return;
	parts->body = span_buf(body);
	shape.size = body->n;
	fields_keep(parts->head, &shape, head);
	buf_add_text(head, "\r\n");
	parts->head = span_buf(head);
}

struct tape *answer_load(const struct buf *blob, const struct answer_marks *marks)
{
	struct parts parts;
	struct buf head = {0}, edited = {0}, body = {0};
	struct tape *t = NULL;

	if (split(span_buf(blob), &parts))
		return NULL;
	struct info *info = info_new();
	if (!info || info_load(info, parts.info.p, parts.info.n))
		goto cleanup;
	edit(&parts, marks, &edited, &body);
	add_marks(parts.head, marks, &head);
	if (head.failed || edited.failed)
		goto cleanup;
	if (marks && marks->url && is_empty(info_text(info, CURLINFO_EFFECTIVE_URL)))
		info_set_text(info, CURLINFO_EFFECTIVE_URL, marks->url);
	t = make_tape(span_buf(&head), parts.body, info);
	info = NULL;
cleanup:
	info_free(info);
	buf_free(&head);
	buf_free(&edited);
	buf_free(&body);
	return t;
}

/* --- answers that were never sent by anybody --- */

static void set_text(struct info *info, CURLINFO id, struct span value)
{
	char *text = value.p ? span_dup(value) : NULL;
	if (text)
		info_set_text(info, id, text);
	free(text);
}

/* The curl tool prints header lines only where the protocol is one that has them. */
static void set_url(struct info *info, const char *url)
{
	bool secure = span_starts(span_of(url), "https:");

	info_set_text(info, CURLINFO_EFFECTIVE_URL, url);
	info_set_text(info, CURLINFO_SCHEME, secure ? "HTTPS" : "HTTP");
	info_set_long(info, CURLINFO_PROTOCOL, secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP);
}

struct tape *answer_made(struct span head, struct span body, const char *effective_url)
{
	struct info *info = fields_whole(head) ? info_new() : NULL;
	if (!info)
		return NULL;
	if (effective_url)
		set_url(info, effective_url);
	set_text(info, CURLINFO_CONTENT_TYPE, fields_find(head, "Content-Type"));
	struct span wait = fields_find(head, "Retry-After");
	char *seconds = wait.p ? span_dup(wait) : NULL;
	if (seconds)
		info_set_off(info, CURLINFO_RETRY_AFTER, strtoll(seconds, NULL, 10));
	free(seconds);
	info_set_long(info, CURLINFO_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	return make_tape(head, body, info);
}
