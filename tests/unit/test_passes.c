/* Counting wire sends, and what an answer in between them means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "courier/passes.h"

static struct gate_pass begin(struct passes *p, const char *url)
{
	struct gate_pass pass;

	passes_begin(p, url, &pass);
	return pass;
}

static void block(struct passes *p, const char *status_line)
{
	assert_false(passes_header(p, status_line, strlen(status_line)));
	assert_false(passes_header(p, "Server: x\r\n", 11));
	assert_true(passes_header(p, "\r\n", 2));
}

static void authorities_are_read_from_urls(void **state)
{
	static const struct {
		const char *url, *scheme, *host;
		long port;
	} table[] = {
	        {"http://h/p", "http", "h", 80},           {"https://h", "https", "h", 443},
	        {"HTTPS://h:8443?x", "HTTPS", "h", 8443},  {"http://u:p@h:81/a@b", "http", "h", 81},
	        {"http://[::1]:82/", "http", "[::1]", 82}, {"http://[::1]/", "http", "[::1]", 80},
	        {"h:83/http://x", "http", "h", 83},
	};
	struct authority a;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		assert_true(passes_authority(table[i].url, &a));
		assert_string_equal(a.scheme, table[i].scheme);
		assert_string_equal(a.host, table[i].host);
		assert_int_equal(a.port, table[i].port);
	}
	assert_false(passes_authority("http:///p", &a));
	assert_false(passes_authority("", &a));
}

static void only_some_answers_ask_for_another_send(void **state)
{
	static const struct {
		const char *line;
		bool asks;
	} table[] = {
	        {"HTTP/1.1 200 OK\r\n", false},    {"HTTP/1.1 100 Continue\r\n", false},
	        {"HTTP/1.1 103 Hints\r\n", false}, {"HTTP/1.1 302 Found\r\n", true},
	        {"HTTP/1.1 307 T\r\n", true},      {"HTTP/2 308 \r\n", true},
	        {"HTTP/1.1 401 U\r\n", true},      {"HTTP/1.1 407 P\r\n", true},
	        {"HTTP/1.1 417 E\r\n", true},      {"HTTP/1.1 400 B\r\n", false},
	        {"HTTP/1.1 500 S\r\n", false},     {"HTTP/1.1 503 S\r\n", false},
	        {"HTTP/1.1 \r\n", false},          {"HTTP/1.1\r\n", false},
	        {"HTTP/1.1 3020000 x\r\n", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct passes p = {0};

		assert_false(begin(&p, "http://h/").after_answer);
		block(&p, table[i].line);
		assert_int_equal(begin(&p, "http://h/").after_answer, table[i].asks);
		assert_false(begin(&p, "http://h/").after_answer); /* nothing came since */
		assert_int_equal(p.count, 3);
		passes_free(&p);
	}
}

static void some_answers_ask_for_something_else(void **state)
{
	static const struct {
		const char *line;
		long keep;
		bool drops;
	} rows[] = {{"HTTP/1.1 301 M", 0, true},
	            {"HTTP/1.1 301 M", CURL_REDIR_POST_301, false},
	            {"HTTP/1.1 302 F", 0, true},
	            {"HTTP/1.1 302 F", CURL_REDIR_POST_302, false},
	            {"HTTP/1.1 303 S", 0, true},
	            {"HTTP/1.1 303 S", CURL_REDIR_POST_303, false},
	            {"HTTP/1.1 307 T", 0, false},
	            {"HTTP/1.1 401 U", 0, false},
	            {"HTTP/1.1 303 S", CURL_REDIR_POST_302, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct passes p = {0};
		struct gate_pass pass;

		passes_begin(&p, "http://h/", &pass);
		block(&p, rows[i].line);
		assert_int_equal(passes_drops_body(&p, rows[i].keep), rows[i].drops);
		passes_free(&p);
	}
}

static void half_a_block_is_no_answer(void **state)
{
	struct passes p = {0};

	(void)state;
	begin(&p, "http://h/");
	passes_header(&p, "HTTP/1.1 302 Found\r\n", 20);
	passes_header(&p, "Location: /x\r\n", 14);
	assert_false(begin(&p, "http://h/").after_answer);
	passes_free(&p);
}

static void a_proxys_answer_is_not_the_origins(void **state)
{
	struct passes p = {0};

	(void)state;
	begin(&p, "https://h/");
	passes_request(&p, "CONNECT h:443 HTTP/1.1\r\n", 24);
	block(&p, "HTTP/1.1 407 Proxy\r\n");
	passes_request(&p, "CONNECT h:443 HTTP/1.1\r\n", 24);
	block(&p, "HTTP/1.1 200 Established\r\n");
	assert_int_equal(p.status, 0);
	assert_false(begin(&p, "https://h/").after_answer);
	passes_request(&p, "POST / HTTP/1.1\r\n", 17);
	block(&p, "HTTP/1.1 201 Created\r\n");
	assert_int_equal(p.status, 201);
	passes_free(&p);
}

static void the_key_stays_with_its_authority(void **state)
{
	struct passes p = {0};

	(void)state;
	assert_true(begin(&p, "http://h/a").same_authority);
	assert_true(begin(&p, "http://H:80/b").same_authority);
	assert_false(begin(&p, "http://h:81/b").same_authority);
	assert_false(begin(&p, "https://h/a").same_authority);
	assert_false(begin(&p, "http://other/a").same_authority);
	assert_true(begin(&p, "http://h/a").same_authority);
	passes_free(&p);
}

static void a_port_option_counts_for_the_first_request(void **state)
{
	struct passes p = {.first = {.port = 81}};

	(void)state;
	begin(&p, "http://h/a");
	assert_true(begin(&p, "http://h:81/b").same_authority);
	assert_false(begin(&p, "http://h/b").same_authority);
	passes_free(&p);
}

static void without_a_gate_answers_count_the_requests(void **state)
{
	struct passes p = {.by_lines = true};

	(void)state;
	begin(&p, "http://h/");
	block(&p, "HTTP/1.1 100 Continue\r\n");
	block(&p, "HTTP/1.1 302 Found\r\n");
	assert_int_equal(passes_answering(&p), 0);
	block(&p, "HTTP/1.1 200 OK\r\n");
	assert_int_equal(passes_answering(&p), 1);
	assert_int_equal(p.status, 200);
	passes_free(&p);
}

/* Where the first request went is remembered whatever its length. */
static void a_first_url_of_any_length(void **state)
{
	char first[300], other[300];

	(void)state;
	for (int n = 1; n < 250; n++) {
		struct passes p = {0};

		snprintf(first, sizeof(first), "http://h/%0*d", n, 1);
		snprintf(other, sizeof(other), "http://h:81/%0*d", n, 1);
		assert_true(begin(&p, first).same_authority);
		block(&p, "HTTP/1.1 307 T\r\n");
		assert_true(begin(&p, first).same_authority);
		block(&p, "HTTP/1.1 307 T\r\n");
		assert_false(begin(&p, other).same_authority);
		assert_string_equal(p.first_url, first);
		passes_free(&p);
		assert_null(p.first_url);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(authorities_are_read_from_urls),
	        cmocka_unit_test(only_some_answers_ask_for_another_send),
	        cmocka_unit_test(some_answers_ask_for_something_else),
	        cmocka_unit_test(half_a_block_is_no_answer),
	        cmocka_unit_test(a_proxys_answer_is_not_the_origins),
	        cmocka_unit_test(the_key_stays_with_its_authority),
	        cmocka_unit_test(a_port_option_counts_for_the_first_request),
	        cmocka_unit_test(without_a_gate_answers_count_the_requests),
	        cmocka_unit_test(a_first_url_of_any_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
