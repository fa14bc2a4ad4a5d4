/* Stored answers: what comes back, which header fields are dropped, that lengths and codings fit
 * the bytes, and that a damaged blob is no answer at all. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "courier/answer.h"
#include "unit/threads_here.h"

enum { ROOM = 1 << 20 };

static const struct answer_marks replayed = {.verdict = "replay; first=T; attempts=2",
                                             .replayed = true};

/* --- a tape as a courier would write it --- */

static void add(struct tape *t, enum tape_kind kind, const char *data, size_t n)
{
	struct tape_piece piece = {.kind = kind, .data = data, .n = n};
	assert_int_equal(tape_add(t, &piece), 0);
}

static void add_lines(struct tape *t, const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n") + 1;
		add(t, TAPE_HEADER, lines, n);
		lines += n;
	}
}

static struct tape *tape_of(const char *lines, const char *body, size_t n, long came,
                            const char *method)
{
	struct tape *t = tape_new(ROOM);
	struct info *info = info_new();
	struct tape_end end = {.ended = true, .complete = true, .status = 200};
	info_set_off(info, CURLINFO_SIZE_DOWNLOAD_T, came);
	info_set_text(info, CURLINFO_EFFECTIVE_METHOD, method);
	info_set_text(info, CURLINFO_CONTENT_TYPE, "text/x");
	info_set_long(info, CURLINFO_HTTP_VERSION, CURL_HTTP_VERSION_2_0);
	tape_info(t, info);
	add_lines(t, lines);
	if (n)
		add(t, TAPE_BODY, body, n);
	tape_finish(t, &end);
	return t;
}

/* --- reading one back --- */

struct heard {
	struct buf head, body;
};

static struct heard hear(struct tape *t)
{
	struct heard h = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece piece;
	assert_true(tape_attach(t));
	while (tape_read(t, &cursor, &piece) == 1) {
		if (piece.kind == TAPE_HEADER)
			assert_int_equal(piece.data[piece.n - 1], '\n');
		buf_add(piece.kind == TAPE_HEADER ? &h.head : &h.body, piece.data, piece.n);
	}
	tape_detach(t);
	return h;
}

static void drop(struct heard *h)
{
	buf_free(&h->head);
	buf_free(&h->body);
}

static struct tape *around(struct tape *from, const struct answer_marks *marks)
{
	struct buf blob = {0};
	assert_int_equal(answer_store(from, ROOM, &blob), 0);
	struct tape *t = answer_load(&blob, marks);
	buf_free(&blob);
	tape_unref(from);
	assert_non_null(t);
	return t;
}

static void check(struct tape *t, const char *head, const char *body, size_t n)
{
	struct heard h = hear(t);
	assert_string_equal(h.head.data, head);
	assert_int_equal(h.body.n, n);
	if (n)
		assert_memory_equal(h.body.data, body, n);
	drop(&h);
	tape_unref(t);
}

static void round_trip(void **state)
{
	(void)state;
	struct tape_end end;
	struct tape *t = around(tape_of("HTTP/2 201 \r\nLocation: /orders/1\r\nETag: \"x\"\r\n"
	                                "content-length: 3\r\n\r\n",
	                                "a\0b", 3, 3, "POST"),
	                        &replayed);
	tape_ended(t, &end);
	assert_true(end.ended && end.complete && !end.stopped);
	assert_int_equal(end.code, CURLE_OK);
	assert_int_equal(end.status, 201);
	struct info *info = tape_info_copy(t);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 201);
	assert_int_equal(info_long(info, CURLINFO_SIZE_DOWNLOAD_T), 3);
	assert_int_equal(info_long(info, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T), 3);
	assert_int_equal(info_long(info, CURLINFO_HTTP_VERSION), CURL_HTTP_VERSION_2_0);
	assert_string_equal(info_text(info, CURLINFO_CONTENT_TYPE), "text/x");
	struct heard h = hear(t);
	assert_int_equal(info_long(info, CURLINFO_HEADER_SIZE), h.head.n);
	drop(&h);
	info_free(info);
	check(t,
	      "HTTP/2 201 \r\nLocation: /orders/1\r\nETag: \"x\"\r\ncontent-length: 3\r\n"
	      "Idempotent-Replayed: true\r\nSendonce-Verdict: replay; first=T; attempts=2\r\n\r\n",
	      "a\0b", 3);
}

static void marks(void **state)
{
	(void)state;
	static const char own[] = "HTTP/1.1 200 OK\r\nidempotent-replayed: yes\r\n"
	                          "sendonce-VERDICT: forged\r\nContent-Length: 0\r\n\r\n";
	check(around(tape_of(own, "", 0, 0, "POST"), &replayed),
	      "HTTP/1.1 200 OK\r\nidempotent-replayed: yes\r\nContent-Length: 0\r\n"
	      "Sendonce-Verdict: replay; first=T; attempts=2\r\n\r\n",
	      "", 0);
	check(around(tape_of(own, "", 0, 0, "POST"), NULL),
	      "HTTP/1.1 200 OK\r\nidempotent-replayed: yes\r\nContent-Length: 0\r\n\r\n", "", 0);
	check(around(tape_of("HTTP/1.1 200 OK\r\n\r\n", "", 0, 0, "POST"),
	             &(struct answer_marks){.verdict = "join"}),
	      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSendonce-Verdict: join\r\n\r\n", "", 0);
}

/* A redirect's address is part of the answer; else it is the program's own. */
static void effective_url(void **state)
{
	(void)state;
	static const struct answer_marks own = {.url = "http://u:p@own/"};
	for (int redirects = 0; redirects < 2; redirects++) {
		struct tape *from = tape_of("HTTP/1.1 200 OK\r\n\r\n", "", 0, 0, "POST");
		struct info *info = tape_info_copy(from);
		info_set_long(info, CURLINFO_REDIRECT_COUNT, redirects);
		info_set_text(info, CURLINFO_EFFECTIVE_URL, "http://u:p@led/");
		tape_info(from, info);
		struct tape *t = around(from, &own);
		info = tape_info_copy(t);
		assert_string_equal(info_text(info, CURLINFO_EFFECTIVE_URL),
		                    redirects ? "http://led/" : "http://u:p@own/");
		info_free(info);
		tape_unref(t);
	}
}

static void lines_and_lengths(void **state)
{
	(void)state;
	static const struct {
		const char *lines, *body, *method, *head;
	} rows[] = {
	        /* cookies go with their folded lines; names may be followed by space */
	        {"HTTP/1.1 200 OK\r\nSet-Cookie : a=b;\r\n\tpath=/\r\n  secret\r\nX: y\r\n\r\n", "",
	         "POST", "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 0\r\n\r\n"},
	        {"HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n", "", "POST",
	         "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\nContent-Length: 0\r\n\r\n"},
	        /* interim and earlier blocks are not part of it, nor are trailers */
	        {"HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n"
	         "X-Trailer: t\r\n",
	         "xy", "POST", "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\n"},
	        {"HTTP/1.1 307 Moved\r\nLocation: /b\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", "xy",
	         "POST", "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n"},
	        /* chunked, and a length that is wrong */
	        {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "xy", "POST",
	         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 9\r\n\r\n", "xy", "POST",
	         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"},
	        /* 204 has none, and HEAD's tells of a body that is not there */
	        {"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", "", "POST",
	         "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"},
	        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "", "HEAD",
	         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"},
	        /* bare line feeds, as libcurl lets them through */
	        {"HTTP/1.1 200 OK\nX: y\n\n", "", "POST",
	         "HTTP/1.1 200 OK\nX: y\nContent-Length: 0\r\n\r\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].body);
		check(around(tape_of(rows[i].lines, rows[i].body, n, (long)n, rows[i].method),
		             NULL),
		      rows[i].head, rows[i].body, n);
	}
}

/* --- content codings, with libcurl itself as the courier --- */

/* "hello " ten times, gzip */
static const unsigned char zipped[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                       0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x20, 0x8b, 0x04,
                                       0x00, 0xe4, 0x4d, 0xd0, 0x59, 0x3c, 0x00, 0x00, 0x00};

struct server {
	int fd;
	bool chunked;
};

static void *serve(void *arg)
{
	const struct server *s = arg;
	char data[2048];
	int fd = accept(s->fd, NULL, NULL);
	if (fd >= 0 && recv(fd, data, sizeof(data), 0) > 0) {
		int n = snprintf(data, sizeof(data),
		                 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n%s%zu\r\n\r\n",
		                 s->chunked ? "Transfer-Encoding: chunked\r\nX-N: "
		                            : "Content-Length: ",
		                 sizeof(zipped));
		if (s->chunked)
			n += snprintf(data + n, sizeof(data) - (size_t)n, "%zx\r\n",
			              sizeof(zipped));
		memcpy(data + n, zipped, sizeof(zipped));
		n += (int)sizeof(zipped);
		if (s->chunked)
			n += snprintf(data + n, sizeof(data) - (size_t)n, "\r\n0\r\n\r\n");
		(void)send(fd, data, (size_t)n, MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	add(arg, TAPE_HEADER, data, size * n);
	return n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	add(arg, TAPE_BODY, data, size * n);
	return n;
}

static void capture(struct tape *t, CURL *easy)
{
	static struct flavour fl;
	struct tape_end end = {.ended = true, .complete = true, .status = 200};
	struct info *info = info_new();
	fl.fn[FN_easy_getinfo] = (void (*)(void))curl_easy_getinfo;
	info_capture(info, &fl, easy);
	tape_info(t, info);
	tape_finish(t, &end);
}

static struct tape *fetch(bool chunked, bool decode)
{
	struct server s = {.fd = socket(AF_INET, SOCK_STREAM, 0), .chunked = chunked};
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof(in);
	pthread_t thread;
	char url[64];
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(s.fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(s.fd, 8), 0);
	assert_int_equal(getsockname(s.fd, (struct sockaddr *)&in, &size), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(in.sin_port));
	struct tape *t = tape_new(ROOM);
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, decode ? "gzip" : NULL);
	assert_int_equal(curl_easy_perform(easy), CURLE_OK);
	capture(t, easy);
	pthread_join(thread, NULL);
	curl_easy_cleanup(easy);
	close(s.fd);
	return t;
}

static void coding_goes_only_when_libcurl_has_decoded(void **state)
{
	(void)state;
	char plain[61] = "", encoded[128];
	for (int i = 0; i < 10; i++)
		strcat(plain, "hello ");
	snprintf(encoded, sizeof(encoded),
	         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
	         sizeof(zipped));
	check(around(fetch(false, true), NULL), "HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n",
	      plain, 60);
	check(around(fetch(false, false), NULL), encoded, (const char *)zipped, sizeof(zipped));
	snprintf(encoded, sizeof(encoded),
	         "HTTP/1.1 200 OK\r\nX-N: %zu\r\nContent-Length: 60\r\n\r\n", sizeof(zipped));
	check(around(fetch(true, true), NULL), encoded, plain, 60);
	snprintf(encoded, sizeof(encoded),
	         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-N: %zu\r\nContent-Length: "
	         "%zu\r\n\r\n",
	         sizeof(zipped), sizeof(zipped));
	check(around(fetch(true, false), NULL), encoded, (const char *)zipped, sizeof(zipped));
}

static void same_size_encoded_and_decoded(void **state)
{
	(void)state;
	static const struct {
		const char *coding, *body;
		bool stays;
	} rows[] = {
	        {"gzip", "abcdef", false},
	        {"x-gzip",
	         "\x1f\x8b"
	         "cdef",
	         true},
	        {"zstd", "abcdef", false},
	        {"zstd",
	         "\x28\xb5\x2f\xfd"
	         "ef",
	         true},
	        {"identity", "abcd", true},
	        {"br", "abcdef", true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char lines[128], head[128];
		size_t n = strlen(rows[i].body);
		snprintf(lines, sizeof(lines), "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n",
		         rows[i].coding);
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n%s%s%sContent-Length: %zu\r\n\r\n",
		         rows[i].stays ? "Content-Encoding: " : "",
		         rows[i].stays ? rows[i].coding : "", rows[i].stays ? "\r\n" : "", n);
		check(around(tape_of(lines, rows[i].body, n, (long)n, "POST"), NULL), head,
		      rows[i].body, n);
	}
}

/* --- what is not kept --- */

static void refuses_to_store(struct tape *t, size_t max)
{
	struct buf blob = {0};
	assert_int_equal(answer_store(t, max, &blob), -1);
	buf_free(&blob);
	tape_unref(t);
}

static void not_whole_or_too_large(void **state)
{
	(void)state;
	static const char lines[] = "HTTP/1.1 200 OK\r\n\r\n";
	struct tape *t = tape_new(ROOM); /* cut */
	tape_info(t, info_new());
	add_lines(t, lines);
	tape_finish(t, &(struct tape_end){.ended = true, .code = CURLE_PARTIAL_FILE});
	refuses_to_store(t, ROOM);

	t = tape_new(ROOM); /* no values */
	add_lines(t, lines);
	tape_finish(t, &(struct tape_end){.ended = true, .complete = true});
	refuses_to_store(t, ROOM);

	refuses_to_store(tape_of("", "x", 1, 1, "POST"), ROOM);
	refuses_to_store(tape_of("HTTP/1.1 100 Continue\r\n\r\n", "", 0, 0, "POST"), ROOM);
	refuses_to_store(tape_of("HTTP/1.1 200 OK\r\nA: b\r\n", "", 0, 0, "POST"), ROOM);
	refuses_to_store(tape_of(lines, "0123456789", 10, 10, "POST"), 9);
	refuses_to_store(tape_of(lines, "0123456789", 10, 10, "POST"), 50);

	t = tape_new(4); /* more body than the tape keeps */
	tape_info(t, info_new());
	add_lines(t, lines);
	add(t, TAPE_BODY, "0123456789", 10);
	tape_finish(t, &(struct tape_end){.ended = true, .complete = true});
	refuses_to_store(t, ROOM);
}

/* A copy of exactly n bytes, so that a read behind it is caught when sanitized. */
static struct tape *load(const char *data, size_t n)
{
	char *exact = malloc(n ? n : 1);
	if (n)
		memcpy(exact, data, n);
	struct tape *t = answer_load(&(struct buf){.data = exact, .n = n}, &replayed);
	free(exact);
	return t;
}

static void hostile_blobs(void **state)
{
	(void)state;
	struct buf blob = {0};
	struct tape *from = tape_of("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "body", 4, 4, "POST");
	assert_int_equal(answer_store(from, ROOM, &blob), 0);
	tape_unref(from);
	for (size_t n = 0; n < blob.n; n++)
		assert_null(load(blob.data, n));
	size_t taken = 0;
	for (size_t i = 0; i < blob.n; i++) {
		for (int bit = 0; bit < 8; bit++) {
			blob.data[i] = (char)(blob.data[i] ^ 1 << bit);
			struct tape *t = load(blob.data, blob.n);
			if (i < 24)
				assert_null(t);
			taken += t != NULL;
			tape_unref(t);
			blob.data[i] = (char)(blob.data[i] ^ 1 << bit);
		}
	}
	assert_true(taken > 0); /* of the body any bit may be another */
	buf_add_char(&blob, 'x');
	assert_null(load(blob.data, blob.n));
	assert_null(answer_load(&(struct buf){0}, NULL));
	buf_free(&blob);
}

static void made_up_answers(void **state)
{
	(void)state;
	struct tape_end end;
	static const char head[] =
	        "HTTP/1.1 424 Failed Dependency\r\nContent-Type: application/x\r\n"
	        "Retry-After: 3\r\nContent-Length: 2\r\n\r\n";
	struct tape *t = answer_made(span_of(head), span_of("{}"), "http://h/");
	tape_ended(t, &end);
	assert_true(end.ended && end.complete);
	assert_int_equal(end.status, 424);
	struct info *info = tape_info_copy(t);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 424);
	assert_int_equal(info_long(info, CURLINFO_RETRY_AFTER), 3);
	assert_string_equal(info_text(info, CURLINFO_CONTENT_TYPE), "application/x");
	assert_string_equal(info_text(info, CURLINFO_EFFECTIVE_URL), "http://h/");
	info_free(info);
	check(t, head, "{}", 2);
	check(answer_made(span_of(head), span_of(""), NULL), head, "", 0);
	assert_null(answer_made(span_of("HTTP/1.1 200 OK\r\n"), span_of(""), NULL));
	assert_null(answer_made(span_of(NULL), span_of(NULL), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(round_trip),
	        cmocka_unit_test(marks),
	        cmocka_unit_test(effective_url),
	        cmocka_unit_test(lines_and_lengths),
	        cmocka_unit_test(coding_goes_only_when_libcurl_has_decoded),
	        cmocka_unit_test(same_size_encoded_and_decoded),
	        cmocka_unit_test(not_whole_or_too_large),
	        cmocka_unit_test(hostile_blobs),
	        cmocka_unit_test(made_up_answers),
	};
	curl_global_init(CURL_GLOBAL_ALL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
