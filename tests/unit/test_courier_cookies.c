/* Which options start a cookie engine, in which order: libcurl 7.88's answer for each row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "courier/courier.h"

struct set {
	CURLoption id;
	const char *text;
};

static const struct row {
	const char *what;
	struct set sets[3];
	bool engine;
} rows[] = {
        {"nothing", {{0}}, false},
        {"a text of the program's own", {{CURLOPT_COOKIE, "a=b"}}, false},
        {"COOKIEFILE", {{CURLOPT_COOKIEFILE, ""}}, true},
        {"COOKIEFILE and none", {{CURLOPT_COOKIEFILE, "f"}, {CURLOPT_COOKIEFILE, NULL}}, false},
        {"COOKIEJAR", {{CURLOPT_COOKIEJAR, "j"}}, true},
        {"COOKIEJAR, then no file", {{CURLOPT_COOKIEJAR, "j"}, {CURLOPT_COOKIEFILE, NULL}}, false},
        {"no file, then COOKIEJAR", {{CURLOPT_COOKIEFILE, NULL}, {CURLOPT_COOKIEJAR, "j"}}, true},
        {"COOKIELIST", {{CURLOPT_COOKIELIST, "Set-Cookie: a=b"}}, true},
        {"a share", {{CURLOPT_SHARE, "share"}}, false},
        {"a share, then COOKIELIST",
         {{CURLOPT_SHARE, "share"}, {CURLOPT_COOKIELIST, "Set-Cookie: a=b"}},
         false},
        {"COOKIELIST, then a share",
         {{CURLOPT_COOKIELIST, "Set-Cookie: a=b"}, {CURLOPT_SHARE, "share"}},
         true},
        {"a share and COOKIEFILE", {{CURLOPT_SHARE, "share"}, {CURLOPT_COOKIEFILE, ""}}, true},
};

static void engines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o;

		options_init(&o);
		for (size_t j = 0; j < 3 && rows[i].sets[j].id; j++)
			assert_int_equal(options_set(&o, rows[i].sets[j].id,
			                             (uintptr_t)rows[i].sets[j].text),
			                 0);
		print_message("%s\n", rows[i].what);
		assert_int_equal(courier_has_cookies(&o), rows[i].engine);
		options_free(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(engines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
