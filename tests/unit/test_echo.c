/* What an answer repeats of its request. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "identity/parts.h"

#define JSON "application/json"
#define SSE  "text/event-stream; charset=utf-8"

static const struct row {
	const char *type, *request, *answer, *wanted; /* null: not changed */
} rows[] = {
        {JSON, "{\"id\":8}", "{\"id\":7,\"result\":{}}", "{\"id\":8,\"result\":{}}"},
        {JSON, "{\"id\":\"b\\u0041\"}", "{ \"result\":{},\n \"id\" : \"a\" }",
         "{ \"result\":{},\n \"id\" : \"b\\u0041\" }"},
        {JSON, "{\"id\":null}", "{\"id\":7}", "{\"id\":null}"},
        {JSON, "{\"id\":123456789012345678901}", "{\"id\":true}", "{\"id\":123456789012345678901}"},
        {JSON, "{}", "{\"id\":7}", NULL},
        {JSON, "{\"id\":{}}", "{\"id\":7}", NULL},
        {JSON, "{\"id\":8}", "{\"error\":1}", NULL},
        {JSON, "{\"id\":8}", "{\"id\":[7]}", NULL},
        {JSON, "{\"id\":8}", "<html>", NULL},
        {JSON, "not json", "{\"id\":7}", NULL},
        {JSON, "{\"id\":8}", "", NULL},
        {SSE, "{\"id\":8}", "event: m\ndata: {\"id\":7}\n\n", "event: m\ndata: {\"id\":8}\n\n"},
        {SSE, "{\"id\":8}", ": x\r\ndata:{\"method\":\"ask\",\"id\":7}\r\n\r\ndata:{\"id\":7}\r\n",
         ": x\r\ndata:{\"method\":\"ask\",\"id\":7}\r\n\r\ndata:{\"id\":8}\r\n"},
        {SSE, "{\"id\":8}", "data: no\n", NULL},
};

static void test_rows(void **state)
{
	static char *pointers[] = {"/id"};
	struct text_list list = {pointers, 1};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct buf out = {0};
		bool changed = echo_answer(&list, span_of(r->request), span_of(r->type),
		                           span_of(r->answer), &out);

		if (changed != (r->wanted != NULL) ||
		    (changed && !span_is(span_buf(&out), r->wanted)))
			fail_msg("row %zu: %s", i, out.data ? out.data : "");
		buf_free(&out);
	}
}

static void test_several(void **state)
{
	static char *pointers[] = {"/id", "/meta/trace"};
	struct text_list list = {pointers, 2};
	struct buf out = {0};

	(void)state;
	assert_true(echo_answer(&list, span_of("{\"id\":1,\"meta\":{\"trace\":\"t1\"}}"),
	                        span_of(JSON), span_of("{\"meta\":{\"trace\":\"t0\"},\"id\":0}"),
	                        &out));
	assert_string_equal(out.data, "{\"meta\":{\"trace\":\"t1\"},\"id\":1}");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rows),
	        cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
