/* Dates of HTTP headers, both ways. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <locale.h>
#include <string.h>

#include "base/httpdate.h"

static void test_both_ways(void **state)
{
	static const struct {
		int64_t s;
		const char *text;
	} rows[] = {{784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
	            {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
	            {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
	            {INT64_C(253402300799), "Fri, 31 Dec 9999 23:59:59 GMT"}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[HTTPDATE_ROOM];
		int64_t us = -1;

		httpdate_write(text, rows[i].s * 1000000 + 999999);
		assert_string_equal(text, rows[i].text);
		assert_true(httpdate_read(span_of(text), &us));
		assert_int_equal(us, rows[i].s * 1000000);
	}
}

static void test_clamped(void **state)
{
	char text[HTTPDATE_ROOM];

	(void)state;
	httpdate_write(text, -5);
	assert_string_equal(text, "Thu, 01 Jan 1970 00:00:00 GMT");
	httpdate_write(text, INT64_MAX);
	assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"",
	                                    "Sunday, 06-Nov-94 08:49:37 GMT",
	                                    "Sun Nov  6 08:49:37 1994",
	                                    "Sun, 06 Nov 1994 08:49:37 UTC",
	                                    "Sun, 31 Feb 1994 08:49:37 GMT",
	                                    "Sun, 06 Nob 1994 08:49:37 GMT",
	                                    "Sun, 06 Nov 1994 24:49:37 GMT",
	                                    "Sun, 06 Nov 1994 08:60:37 GMT",
	                                    "Sun, 06 Nov 1994 08:49:61 GMT",
	                                    "Sun, 00 Nov 1994 08:49:37 GMT",
	                                    "Sun, x6 Nov 1994 08:49:37 GMT",
	                                    "Sun, 06 Nov 1969 08:49:37 GMT",
	                                    "Sun, 06 Nov 1994 08:49:37 GMT "};
	int64_t us;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		if (httpdate_read(span_of(texts[i]), &us))
			fail_msg("%s", texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_both_ways),
	        cmocka_unit_test(test_clamped),
	        cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
