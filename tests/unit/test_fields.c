/* Header fields of stored answers: which are kept, and what is a whole block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "courier/fields.h"

static void which_fields_are_kept(void **state)
{
	(void)state;
	static const char *const dropped[] = {"Set-Cookie",
	                                      "set-cookie2",
	                                      "SET-COOKIE",
	                                      "Date",
	                                      "AGE",
	                                      "Connection",
	                                      "Keep-Alive",
	                                      "Transfer-Encoding",
	                                      "X-Request-Id",
	                                      "x-request-id",
	                                      "Request-Id",
	                                      "CF-Ray",
	                                      "X-Amzn-Trace-Id",
	                                      "x-amzn-RequestId",
	                                      "x-amzn-Request-Id",
	                                      "x-amz-request-id",
	                                      "X-RateLimit-Remaining",
	                                      "RateLimit",
	                                      "RateLimit-Policy",
	                                      "X-Rate-Limit-Limit",
	                                      "anthropic-ratelimit-tokens-remaining",
	                                      "Server-Timing",
	                                      "traceparent",
	                                      "X-B3-TraceId",
	                                      "Sendonce-Verdict"};
	static const char *const kept[] = {"Location",
	                                   "ETag",
	                                   "Content-Type",
	                                   "Last-Modified",
	                                   "Link",
	                                   "Retry-After",
	                                   "Cache-Control",
	                                   "Idempotency-Key",
	                                   "Idempotent-Replayed",
	                                   "X-Order-Id",
	                                   "Stripe-Version",
	                                   "WWW-Authenticate",
	                                   "Content-Language",
	                                   "Updated",
	                                   "Dates",
	                                   "X-Request-Ids",
	                                   "Set-Cookies"};
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		assert_false(field_is_kept(span_of(dropped[i])));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_true(field_is_kept(span_of(kept[i])));
}

static void block_shapes(void **state)
{
	(void)state;
#define ROW(text, whole, status)                                                                   \
	{                                                                                          \
		text, sizeof(text) - 1, whole, status                                              \
	}
	static const struct {
		const char *text;
		size_t n;
		bool whole;
		long status;
	} rows[] = {
	        ROW("HTTP/1.1 200 OK\r\n\r\n", true, 200),
	        ROW("HTTP/2 404\r\n\r\n", true, 404),
	        ROW("HTTP/1.1 20\r\n\r\n", true, 0),
	        ROW("HTTP/1.1 2x4 OK\r\n\r\n", true, 0),
	        ROW("HTTP/1.1\r\n\r\n", true, 0),
	        ROW("HTTP/1.1 200 OK\r\n", false, 200),
	        ROW("HTTP/1.1 200 OK\r\n\r\nA: b\r\n\r\n", false, 200),
	        ROW("HTTP/1.1 200 OK\r\n\r\n\r\n", false, 200),
	        ROW("HTTP/1.1 200 OK\r\nA: b", false, 200),
	        ROW("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", false, 200),
	        ROW("HTTP/1.1 200 OK\r\nHTTP/1.1 500 No\r\n\r\n", false, 200),
	        ROW("ICY 200 OK\r\n\r\n", false, 200),
	        ROW("\r\n", false, 0),
	        ROW("", false, 0),
	};
#undef ROW
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct span block = {rows[i].text, rows[i].n};
		assert_int_equal(fields_whole(block), rows[i].whole);
		assert_int_equal(fields_status(block), rows[i].status);
	}
}

static void finding(void **state)
{
	(void)state;
	struct span block =
	        span_of("HTTP/1.1 200 A: b\r\nX-Y : 1\r\n  2\r\nx-y: 3\r\nEmpty:\r\n\r\n");
	assert_true(
	        span_is(fields_find(block, "x-y"), "1\r\n  2")); /* the first one, with its fold */
	assert_true(span_is(fields_find(block, "EMPTY"), ""));
	assert_non_null(fields_find(block, "EMPTY").p);
	assert_null(fields_find(block, "HTTP/1.1 200 A").p); /* no field */
	assert_null(fields_find(block, "none").p);
	assert_null(fields_find(span_of(NULL), "none").p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(which_fields_are_kept),
	        cmocka_unit_test(block_shapes),
	        cmocka_unit_test(finding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
