/* The header API: libcurl's own answers are the expected ones. The same blocks are served to a
 * native handle and added to our list, and every question is asked of both. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "player/headers.h"
#include "unit/threads_here.h"

static const char first_answer[] = "HTTP/1.1 307 Moved\r\n"
                                   "Location: /next\r\n"
                                   "X-One: old\r\n"
                                   "Content-Length: 0\r\n\r\n";
static const char second_answer[] = "HTTP/1.1 103 Early\r\n"
                                    "Link: <a>\r\n"
                                    "X-One: early\r\n\r\n"
                                    "HTTP/1.1 200 OK\r\n"
                                    "X-One: a\r\n"
                                    "x-ONE:   b  \r\n"
                                    "X-Empty:\r\n"
                                    "X-Folded: one\r\n"
                                    "   two\r\n"
                                    "\t three\r\n"
                                    "X-One: c\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n"
                                    "1\r\na\r\n0\r\nX-One: late\r\nX-Trail: t\r\n\r\n";

struct server {
	int fd, port;
	pthread_t thread;
};

static void answer_requests(int fd)
{
	const char *answers[] = {first_answer, second_answer};
	for (size_t i = 0; i < 2; i++) {
		char data[2048];
		size_t n = 0;
		do {
			ssize_t got = recv(fd, data + n, sizeof(data) - n - 1, 0);
			if (got <= 0)
				return;
			n += (size_t)got;
			data[n] = 0;
		} while (!strstr(data, "\r\n\r\n"));
		(void)send(fd, answers[i], strlen(answers[i]), MSG_NOSIGNAL);
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd = accept(s->fd, NULL, NULL);
	if (fd >= 0) {
		answer_requests(fd);
		close(fd);
	}
	return NULL;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct headers *h = arg;
	static int request;
	if (span_starts((struct span){data, n}, "HTTP/1.1 103"))
		request = 1;
	assert_int_equal(headers_add(h, data, n, 0, request), 0);
	return size * n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

static CURL *perform(struct headers *h)
{
	struct server s = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof(in);
	char url[64];
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(s.fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(s.fd, 8), 0);
	assert_int_equal(getsockname(s.fd, (struct sockaddr *)&in, &size), 0);
	assert_int_equal(pthread_create(&s.thread, NULL, serve, &s), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(in.sin_port));
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, h);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	assert_int_equal(curl_easy_perform(easy), CURLE_OK);
	pthread_join(s.thread, NULL);
	close(s.fd);
	return easy;
}

static void same(const struct curl_header *a, const struct curl_header *b)
{
	assert_int_equal(strcasecmp(a->name, b->name), 0);
	assert_string_equal(a->name, b->name);
	/* libcurl 7.88 leaves the CR in an empty value, later ones do not: nor do we */
	const char *value = strcmp(b->value, "\r") == 0 ? "" : b->value;
	assert_string_equal(a->value, value);
	assert_int_equal(a->amount, b->amount);
	assert_int_equal(a->index, b->index);
	assert_int_equal(a->origin, b->origin);
}

static void ask_all(CURL *easy, struct headers *h)
{
	static const char *names[] = {"x-one",   "Location", "X-Folded", "x-empty", "Link",
	                              "X-Trail", "HTTP/1.1", ":status",  "none",    ""};
	int found = 0;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		for (unsigned origin = 0; origin <= 33; origin++)
			for (int request = -2; request <= 2; request++)
				for (size_t index = 0; index < 4; index++) {
					struct curl_header *a = NULL, *b = NULL;
					CURLHcode native = curl_easy_header(easy, names[n], index,
					                                    origin, request, &a);
					assert_int_equal(headers_get(h, names[n], index, origin,
					                             request, &b),
					                 native);
					if (native == CURLHE_OK) {
						same(b, a);
						found++;
					}
				}
	assert_true(found > 100);
}

static int walk_all(CURL *easy, struct headers *h, unsigned origin, int request)
{
	struct curl_header *a = NULL, *b = NULL;
	for (int count = 0;; count++) {
		a = curl_easy_nextheader(easy, origin, request, a);
		b = headers_next(h, origin, request, b);
		assert_int_equal(a == NULL, b == NULL);
		if (!a)
			return count;
		same(b, a);
	}
}

static void answers_as_libcurl(void **state)
{
	(void)state;
	int walked = 0;
	struct headers *h = headers_new();
	CURL *easy = perform(h);
	ask_all(easy, h);
	for (unsigned origin = 1; origin < 32; origin++)
		for (int request = -1; request <= 2; request++)
			walked += walk_all(easy, h, origin, request);
	assert_true(walked > 100);
	curl_easy_cleanup(easy);
	headers_free(h);
}

static void add(struct headers *h, const char *line, unsigned origin, int expect)
{
	assert_int_equal(headers_add(h, line, strlen(line), origin, 0), expect);
}

static void nothing_yet(void **state)
{
	(void)state;
	struct curl_header *out;
	struct headers *h = headers_new();
	assert_int_equal(headers_get(h, "A", 0, CURLH_HEADER, -1, &out), CURLHE_NOHEADERS);
	assert_null(headers_next(h, CURLH_HEADER, -1, NULL));
	assert_int_equal(headers_get(NULL, "A", 0, CURLH_HEADER, -1, &out), CURLHE_BAD_ARGUMENT);
	assert_int_equal(headers_get(h, "A", 0, CURLH_HEADER, -1, NULL), CURLHE_BAD_ARGUMENT);
	assert_int_equal(headers_get(h, NULL, 0, CURLH_HEADER, -1, &out), CURLHE_BAD_ARGUMENT);
	headers_free(h);
}

static void connect_and_pseudo(void **state)
{
	(void)state;
	struct curl_header *out;
	struct headers *h = headers_new();
	add(h, "HTTP/1.1 200 Connected\r\n", CURLH_CONNECT, 0);
	add(h, "Via: p\r\n", CURLH_CONNECT, 0);
	add(h, "\r\n", CURLH_CONNECT, 0);
	add(h, "HTTP/2 201 \r\n", 0, 0);
	add(h, "a: b\r\n", 0, 0);
	add(h, "\r\n", 0, 0);
	assert_int_equal(headers_get(h, "via", 0, CURLH_HEADER, -1, &out), CURLHE_MISSING);
	assert_int_equal(headers_get(h, "via", 0, CURLH_CONNECT, -1, &out), CURLHE_OK);
	assert_int_equal(headers_get(h, ":status", 0, CURLH_HEADER, -1, &out), CURLHE_MISSING);
	assert_int_equal(headers_get(h, ":status", 0, CURLH_PSEUDO, -1, &out), CURLHE_OK);
	assert_string_equal(out->value, "201");
	assert_int_equal(headers_get(h, "a", 0, CURLH_HEADER, -1, &out), CURLHE_OK);
	headers_free(h);
}

static void hostile_lines_and_anchors(void **state)
{
	(void)state;
	struct curl_header *out, fake = {0};
	struct headers *h = headers_new();
	add(h, " folded before anything\r\n", 0, -1);
	add(h, "HTTP/1.1 200 OK\r\n", 0, 0);
	add(h, "no colon\r\n", 0, -1);
	assert_int_equal(headers_add(h, "A: b\0c\r\n", 8, 0, 0), -1);
	assert_int_equal(headers_add(h, "B:", 2, 0, 0), 0); /* no line end at all */
	for (int i = 0; i < 100; i++)
		add(h, "C: d\r\n", 0, 0);
	assert_int_equal(headers_get(h, "b", 0, CURLH_HEADER, 0, &out), CURLHE_OK);
	assert_string_equal(out->value, "");
	assert_int_equal(headers_get(h, "c", 99, CURLH_HEADER, 0, &out), CURLHE_OK);
	assert_int_equal(out->amount, 100);
	assert_null(headers_next(h, CURLH_HEADER, 0, &fake)); /* no anchor */
	fake.anchor = (void *)(uintptr_t)-1;
	assert_null(headers_next(h, CURLH_HEADER, 0, &fake)); /* far beyond the end */
	headers_free(h);
	headers_free(NULL);
}

/* More lines and longer texts than the list's own room takes: all stay what they were, a folded one
 * too, wherever it lies. */
static void past_its_room(void **state)
{
	(void)state;
	struct headers *h = headers_new();
	struct curl_header *out;
	char line[128], name[16], value[128];
	for (int i = 0; i < 60; i++) {
		snprintf(line, sizeof(line), "N%d: %0*d\r\n", i, 1 + i, i);
		add(h, line, 0, 0);
		if (i % 3 == 0)
			add(h, "  more\r\n", 0, 0);
		if (i % 6 == 0)
			add(h, "\tand more\r\n", 0, 0);
	}
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		snprintf(value, sizeof(value), "%0*d%s%s", 1 + i, i, i % 3 ? "" : " more",
		         i % 6 ? "" : "\tand more");
		assert_int_equal(headers_get(h, name, 0, CURLH_HEADER, 0, &out), CURLHE_OK);
		assert_string_equal(out->value, value);
		assert_int_equal(out->amount, 1);
	}
	headers_free(h);
}

/* One that has no room of its own left, and one that fills it to the last byte. */
static void fills_its_room(void **state)
{
	(void)state;
	struct curl_header *out;
	char value[700];
	for (size_t n = 250; n < sizeof(value) - 8; n++) {
		struct headers *h = headers_new();
		memcpy(value, "A: ", 3);
		memset(value + 3, 'v', n);
		strcpy(value + 3 + n, "\r\n");
		add(h, value, 0, 0);
		add(h, "B: b\r\n", 0, 0);
		assert_int_equal(headers_get(h, "a", 0, CURLH_HEADER, 0, &out), CURLHE_OK);
		assert_int_equal(strlen(out->value), n);
		assert_int_equal(headers_get(h, "b", 0, CURLH_HEADER, 0, &out), CURLHE_OK);
		assert_string_equal(out->value, "b");
		headers_free(h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(answers_as_libcurl), cmocka_unit_test(nothing_yet),
	        cmocka_unit_test(connect_and_pseudo), cmocka_unit_test(hostile_lines_and_anchors),
	        cmocka_unit_test(past_its_room),      cmocka_unit_test(fills_its_room),
	};
	curl_global_init(CURL_GLOBAL_ALL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
