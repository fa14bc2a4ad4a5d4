/* The body of a request, put together from what the debug callback shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "intercept/outgoing.h"

#define HEAD(version, more) "POST /orders " version "\r\nHost: h\r\n" more "\r\n"

static void head(struct outgoing *o, const char *text)
{
	outgoing_head(o, text, strlen(text));
}

static void data(struct outgoing *o, const char *text)
{
	outgoing_data(o, text, strlen(text));
}

/* What the chunks of a request come to; null: it was not seen whole. */
static const char *unchunked(struct outgoing *o, const char *text)
{
	struct span body;

	head(o, HEAD("HTTP/1.1", "transfer-encoding: chunked\r\n"));
	for (size_t i = 0; text[i]; i++) /* whatever pieces it comes in */
		outgoing_data(o, text + i, 1);
	if (outgoing_body(o, &body) != 0)
		return NULL;
	return span_dup(body);
}

static void chunks_are_put_together(void **state)
{
	static const struct {
		const char *sent, *body;
	} table[] = {
	        {"0\r\n\r\n", ""},
	        {"3\r\nabc\r\n0\r\n\r\n", "abc"},
	        {"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", "abc0123456789"},
	        {"000b\r\nhello world\r\n0\r\n\r\n", "hello world"},
	        {"3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n", "abc"},
	        {"5\r\n1\r\n2\n\r\n0\r\n\r\n", "1\r\n2\n"},
	        /* cut, or no chunks at all */
	        {"", NULL},
	        {"3\r\nabc\r\n", NULL},
	        {"3\r\nab", NULL},
	        {"3", NULL},
	        {"x\r\nabc\r\n0\r\n\r\n", NULL},
	        {"\r\n", NULL},
	        {"-3\r\nabc\r\n0\r\n\r\n", NULL},
	        {"ffffffffffffffff\r\nabc\r\n0\r\n\r\n", NULL},
	        {"fffffffffffffffff\r\nabc\r\n0\r\n\r\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct outgoing o = {.limit = 1000};
		char *body = (char *)unchunked(&o, table[i].sent);

		if (table[i].body)
			assert_string_equal(body, table[i].body);
		else
			assert_null(body);
		free(body);
		outgoing_free(&o);
	}
}

static void only_http_1_has_framing(void **state)
{
	struct outgoing o = {.limit = 1000};
	struct span body;

	(void)state;
	head(&o, HEAD("HTTP/2", "transfer-encoding: chunked\r\n"));
	data(&o, "3\r\nabc");
	assert_int_equal(outgoing_body(&o, &body), 0);
	assert_true(span_is(body, "3\r\nabc"));
	head(&o, HEAD("HTTP/1.1", "Content-Length: 6\r\n"));
	data(&o, "3\r\n");
	data(&o, "abc");
	assert_int_equal(outgoing_body(&o, &body), 0);
	assert_true(span_is(body, "3\r\nabc"));
	outgoing_free(&o);
}

static void the_last_request_counts(void **state)
{
	struct outgoing o = {.limit = 10};
	struct span body;

	(void)state;
	head(&o, HEAD("HTTP/1.1", "A: 1\r\n"));
	data(&o, "much more than the limit");
	assert_int_equal(outgoing_body(&o, &body), -1);
	head(&o, HEAD("HTTP/1.1", "A: 2\r\n"));
	data(&o, "0123456789");
	assert_int_equal(outgoing_body(&o, &body), 0);
	assert_true(span_is(body, "0123456789"));
	head(&o, "CONNECT h:443 HTTP/1.1\r\n\r\n");
	assert_true(span_is(outgoing_header(&o, "a"), "2"));
	data(&o, "x");
	assert_int_equal(outgoing_body(&o, &body), -1);
	outgoing_free(&o);
}

static void headers_are_found_by_whole_names(void **state)
{
	struct outgoing o = {.limit = 10};

	(void)state;
	assert_null(outgoing_header(&o, "Host").p);
	head(&o, HEAD("HTTP/1.1",
	              "X-Content-Type: no\r\nContent-Type-X: no\r\nCONTENT-TYPE:  a/b \r\n"));
	assert_true(span_is(outgoing_header(&o, "Content-Type"), "a/b"));
	assert_null(outgoing_header(&o, "Content").p);
	outgoing_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(chunks_are_put_together),
	        cmocka_unit_test(only_http_1_has_framing),
	        cmocka_unit_test(the_last_request_counts),
	        cmocka_unit_test(headers_are_found_by_whole_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
