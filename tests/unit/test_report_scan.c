/* Reading the lines of an event log. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <string.h>

#include "report/scan.c"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int write_down(void *ctx, const struct scan_member *m)
{
	static const char kinds[] = {[SCAN_TEXT] = 't', [SCAN_WORD] = 'w', [SCAN_OBJECT] = 'o'};
	struct buf *out = ctx;

	buf_add_char(out, kinds[m->kind]);
	buf_add_span(out, m->name);
	buf_add_char(out, '=');
	buf_add_span(out, m->value);
	buf_add_char(out, ';');
	return 0;
}

static void lines(void **state)
{
	static const struct {
		const char *line, *wanted; /* null: no such object */
	} row[] = {
	        {"{}", ""},
	        {" { } \n", ""},
	        {"{\"a\":\"b\"}", "ta=b;"},
	        {"{\"a\":1,\"b\":-2.5e3,\"c\":true}", "wa=1;wb=-2.5e3;wc=true;"},
	        {"{ \"a\" : \"b\" , \"c\" : null }\n", "ta=b;wc=null;"},
	        {"{\"a\":\"x\\\"y\"}", "ta=x\\\"y;"},
	        {"{\"a\":{\"b\":\"}\"},\"c\":1}", "oa={\"b\":\"}\"};wc=1;"},
	        {"{\"a\":{}}", "oa={};"},
	        {"", NULL},
	        {"{", NULL},
	        {"{\"a\"", NULL},
	        {"{\"a\":", NULL},
	        {"{\"a\":1", NULL},
	        {"{\"a\":1,", NULL},
	        {"{\"a\":1,}", NULL},
	        {"{\"a\":1}x", NULL},
	        {"{\"a\":1}{\"b\":2}", NULL},
	        {"{\"a\":\"b}", NULL},
	        {"{\"a\":\"b\\", NULL},
	        {"{\"a\":[1]}", NULL},
	        {"{\"a\":{\"b\":{}}}", NULL},
	        {"{\"a\":{\"b\":1}", NULL},
	        {"{a:1}", NULL},
	        {"{\"a\":\"\x01\"}", NULL},
	        {"[1]", NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf out = {0};
		int rc = scan_object(span_of(row[i].line), write_down, &out);

		if (row[i].wanted) {
			assert_int_equal(rc, 0);
			assert_string_equal(out.data ? out.data : "", row[i].wanted);
		} else {
			assert_int_equal(rc, -1);
		}
		buf_free(&out);
	}
}

/* Cut anywhere, a line is never read as a whole one. */
static void torn(void **state)
{
	static const char line[] = "{\"time\":\"x\",\"pid\":12,\"parts\":{\"/a\":\"n\\u0041\"}}";
	struct buf out = {0};

	(void)state;
	for (size_t n = 0; n < sizeof(line) - 1; n++)
		assert_int_equal(scan_object((struct span){line, n}, write_down, &out), -1);
	assert_int_equal(scan_object(span_of(line), write_down, &out), 0);
	buf_free(&out);
}

static int stop(void *ctx, const struct scan_member *m)
{
	(void)ctx;
	return span_is(m->name, "b") ? 7 : 0;
}

/* A full disk cuts a line short, and the next event lands behind it. */
static void behind_a_torn_line(void **state)
{
	static const char whole[] = "{\"time\":\"2\",\"a\":\"{\\\"time\\\":\\\"3\"}";
	char text[200];

	(void)state;
	assert_int_equal(scan_untorn(span_of(whole)).n, 0);
	assert_int_equal(scan_untorn(span_of("")).n, 0);
	assert_int_equal(scan_untorn(span_of("{\"time\":\"1")).n, 0);
	for (size_t cut = 1; cut < strlen(whole); cut++) {
		struct buf out = {0};

		snprintf(text, sizeof text, "%.*s%.*s%s", (int)cut, whole, (int)cut, whole, whole);
		assert_int_equal(scan_object(span_of(text), write_down, &out), -1);
		assert_string_equal(scan_untorn(span_of(text)).p, whole);
		buf_free(&out);
	}
}

static void a_visitor_ends_it(void **state)
{
	(void)state;
	assert_int_equal(scan_object(span_of("{\"a\":1,\"b\":2,"), stop, NULL), 7);
}

static void escapes(void **state)
{
	static const struct {
		const char *text, *wanted;
	} row[] = {
	        {"plain", "plain"},
	        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
	        {"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
	        {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
	        {"\\ud83dx", "\xef\xbf\xbdx"},
	        {"\\ude00", "\xef\xbf\xbd"},
	        {"\\u12", "\xef\xbf\xbd"
	                  "12"},
	        {"\\q", "\xef\xbf\xbd"},
	        {"\\", "\xef\xbf\xbd"},
	};
	char out[64], small[4];

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		scan_unescape(span_of(row[i].text), out, sizeof(out));
		assert_string_equal(out, row[i].wanted);
	}
	assert_int_equal(scan_unescape(span_of("abcdef"), small, sizeof(small)), 3);
	assert_string_equal(small, "abc");
	assert_int_equal(scan_unescape(span_of("ab\\u00e9"), small, sizeof(small)), 2);
	assert_string_equal(small, "ab");
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		long long wanted;
	} row[] = {
	        {"0", 0},    {"-12", -12}, {"123456789012345678", 123456789012345678},
	        {"", -1},    {"-", -1},    {"1.5", -1},
	        {"12x", -1}, {"null", -1}, {"1234567890123456789", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		assert_int_equal(scan_number(span_of(row[i].text), -1), row[i].wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(lines),
	        cmocka_unit_test(torn),
	        cmocka_unit_test(behind_a_torn_line),
	        cmocka_unit_test(escapes),
	        cmocka_unit_test(a_visitor_ends_it),
	        cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
