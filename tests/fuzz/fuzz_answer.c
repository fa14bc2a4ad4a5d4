/* Any bytes as a stored answer, as stored getinfo values, as a header block and as header lines
 * that are played. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "courier/answer.h"
#include "courier/fields.h"
#include "player/headers.h"
#include "player/player.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct tape *store_and_load(struct tape *t, struct buf *blob)
{
	if (answer_store(t, SIZE_MAX, blob))
		abort();
	struct tape *loaded = answer_load(blob, NULL);
	if (!loaded)
		abort();
	return loaded;
}

/* What was taken can be stored and loaded. Once its fields and its sizes are made right, storing it
 * again changes nothing. */
static void check_stable(struct tape *t)
{
	struct buf first = {0}, second = {0}, third = {0};
	struct tape *a = store_and_load(t, &first);
	struct tape *b = store_and_load(a, &second);
	struct tape *c = store_and_load(b, &third);
	if (!span_equal(span_buf(&second), span_buf(&third)))
		abort();
	tape_unref(a);
	tape_unref(b);
	tape_unref(c);
	buf_free(&first);
	buf_free(&second);
	buf_free(&third);
}

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

static void play(struct span block)
{
	struct player p;
	struct headers *h = headers_new();
	struct player_sink sink = {.write = take,
	                           .header = take,
	                           .header_in_body = true,
	                           .fail_on_error = true,
	                           .max_filesize = 1000,
	                           .no_progress = true};
	player_start(&p, &sink, 1);
	while (h && block.n > 0) {
		struct span line = fields_next(&block);
		headers_add(h, line.p, line.n, 0, 0);
		player_header(&p, line.p, line.n);
	}
	struct curl_header *at = NULL;
	while (h && (at = headers_next(h, CURLH_HEADER | CURLH_1XX, -1, at)))
		if (strlen(at->name) == SIZE_MAX || strlen(at->value) == SIZE_MAX)
			abort();
	player_body(&p, "x", 1);
	player_end(&p, CURLE_OK, NULL);
	player_stop(&p);
	headers_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span text = {(const char *)data, n};
	struct buf blob = {.data = (char *)data, .n = n};
	struct tape *t = answer_load(&blob, NULL);
	if (t)
		check_stable(t);
	tape_unref(t);
	struct info *info = info_new();
	if (info)
		info_load(info, text.p, text.n);
	info_free(info);
	t = answer_made(text, span_of("body"), "http://h/");
	if (t && fields_status(text) >= 200)
		check_stable(t);
	tape_unref(t);
	play(text);
	return 0;
}
