/* Forms, queries and multipart bodies. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "identity/parts.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct text_list list_of(char *const *item)
{
	struct text_list list = {(char **)(uintptr_t)item, 0};

	while (item[list.count])
		list.count++;
	return list;
}

static bool same(const char *a, const char *b, char *const *fields, char *const *ignore)
{
	struct text_list f = list_of(fields), i = list_of(ignore);
	struct buf x = {0}, y = {0};
	bool equal;

	assert_int_equal(form_canonical(span_of(a), &f, &i, &x), 0);
	assert_int_equal(form_canonical(span_of(b), &f, &i, &y), 0);
	equal = span_equal(span_buf(&x), span_buf(&y));
	buf_free(&x);
	buf_free(&y);
	return equal;
}

static char *const none[] = {NULL};

static void pairs(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} row[] = {
	        {"a=1&b=2", "b=2&a=1", true},
	        {"a=x+y", "a=x%20y", true},
	        {"a+b=1", "a%20b=1", true},
	        {"a=%41", "a=A", true},
	        {"a=%c3%a9", "a=\xc3\xa9", true},
	        {"a=%C3%A9", "a=%c3%a9", true},
	        {"%61=1", "a=1", true},
	        {"a=1&&b=2", "a=1&b=2&", true},
	        {"&a=1", "a=1", true},
	        {"", "&", true},
	        {"a=%zz", "a=%25zz", true},
	        {"a=1%", "a=1%25", true},
	        {"a=1%4", "a=1%254", true},
	        {"c=3&a=1&b=2&a=0", "a=1&a=0&b=2&c=3", true},
	        {"a=1&a=2", "a=2&a=1", false},
	        {"a=1", "a=2", false},
	        {"a=1", "A=1", false},
	        {"a=1", "b=1", false},
	        {"a=1", "a=1&b=", false},
	        {"a=1", "a=01", false},
	        {"a=1", "a=1.0", false},
	        {"a", "a=", false},
	        {"", "a", false},
	        {"a=", "", false},
	        {"=x", "x", false},
	        {"a=b=c", "a=b&c", false},
	        {"a=b%3dc", "a=b=c", true},
	        {"a=1%26b=2", "a=1&b=2", false},
	        {"a=1;b=2", "a=1&b=2", false},
	        {"a=%00", "a=", false},
	        {"a=%00b", "a=%00c", false},
	        {"a=x%2by", "a=x+y", false},
	        {"a=\xff", "a=%ff", true},
	        {"a=12&b=", "a=1&b=2", false},
	        {"ab=c", "a=bc", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		if (same(row[i].a, row[i].b, none, none) != row[i].same)
			fail_msg("%s | %s", row[i].a, row[i].b);
	}
}

static void chosen(void **state)
{
	static const struct {
		const char *a, *b;
		char *fields[3], *ignore[3];
		bool same;
	} row[] = {
	        {"a=1&t=5", "t=6&a=1", {NULL}, {"t"}, true},
	        {"a=1&t=5", "a=1", {NULL}, {"t"}, true},
	        {"a=1&t=5&t=6", "a=1", {NULL}, {"t"}, true},
	        {"a=1&t%20=5", "a=1", {NULL}, {"t "}, true},
	        {"a=1&t=5", "a=2&t=5", {NULL}, {"t"}, false},
	        {"a=1&t=5", "a=1&t=6", {NULL}, {"/t"}, false},
	        {"a=1&t=5", "a=1&t=6", {NULL}, {"query:t"}, false},
	        {"a=1&t=5", "a=1&t=6", {"a"}, {NULL}, true},
	        {"a=1", "a=2", {"a"}, {NULL}, false},
	        {"a=1&a=2", "a=2&a=1", {"a"}, {NULL}, false},
	        {"a=1&a=2", "a=1", {"a"}, {NULL}, false},
	        {"a=", "t=1", {"a"}, {NULL}, false},
	        {"a", "a=", {"a"}, {NULL}, false},
	        {"a=1&b=2", "a=2&b=1", {"a", "b"}, {NULL}, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		if (same(row[i].a, row[i].b, row[i].fields, row[i].ignore) != row[i].same)
			fail_msg("row %zu: %s | %s", i, row[i].a, row[i].b);
	}
}

static void query_selectors(void **state)
{
	static char *item[] = {"query:_", "x"};
	struct text_list ignore = {item, 2};
	struct buf a = {0}, b = {0};

	(void)state;
	assert_int_equal(form_parts(span_of("_=1&x=1"), SELECT_QUERY, NULL, &ignore, &a, NULL), 0);
	assert_int_equal(form_parts(span_of("x=1&_=2"), SELECT_QUERY, NULL, &ignore, &b, NULL), 0);
	assert_true(span_equal(span_buf(&a), span_buf(&b)));
	buf_reset(&b);
	assert_int_equal(form_parts(span_of("x=2"), SELECT_QUERY, NULL, &ignore, &b, NULL), 0);
	assert_false(span_equal(span_buf(&a), span_buf(&b)));
	buf_free(&a);
	buf_free(&b);
}

static void too_many(void **state)
{
	enum { N = (1 << 20) + 1 };
	char *text = malloc(N);
	struct buf out = {0};

	(void)state;
	assert_non_null(text);
	memset(text, '&', N);
	assert_int_equal(form_canonical((struct span){text, N}, NULL, NULL, &out), -1);
	assert_false(out.failed);
	free(text);
	buf_free(&out);
}

static int multipart(const char *body, const char *boundary, struct buf *out)
{
	buf_reset(out);
	return multipart_canonical(span_of(body), span_of(boundary), out);
}

#define INNER(name, line, text)                                                                    \
	"--x\r\nContent-Disposition: form-data\r\ncontent-type: multipart/mixed; boundary=" name   \
	"\r\n\r\n" line "\r\n\r\n" text "\r\n" line "--\r\n\r\n--x--"

/* Deeper than anybody nests: the rest is compared as it stands. */
static void multipart_deep(void **state)
{
	struct buf body = {0}, out = {0};

	(void)state;
	for (int i = 0; i < 500; i++)
		buf_printf(&body, "--b%d\r\nContent-Type: multipart/mixed; boundary=b%d\r\n\r\n", i,
		           i + 1);
	for (int i = 500; i-- > 0;)
		buf_printf(&body, "\r\n--b%d--", i);
	assert_int_equal(multipart_canonical(span_buf(&body), span_of("b0"), &out), 0);
	assert_true(out.n > body.n / 2);
	buf_free(&body);
	buf_free(&out);
}

static void multipart_bodies(void **state)
{
	static const struct {
		const char *a, *a_boundary, *b, *b_boundary;
		bool same;
	} row[] = {
	        {"--x\r\n\r\none\r\n--x--\r\n", "x", "--yy\r\n\r\none\r\n--yy--\r\n", "yy", true},
	        {"--x\r\n\r\none\r\n--x--", "x", "--yy\r\n\r\none\r\n--yy--\r\n", "yy", true},
	        {"--x\r\n\r\none\r\n--x--", "x", "--x\r\n\r\ntwo\r\n--x--", "x", false},
	        {"--x\r\n\r\na\r\n--x\r\n\r\nb\r\n--x--", "x",
	         "--x\r\n\r\nb\r\n--x\r\n\r\na\r\n--x--", "x", false},
	        /* the boundary's text inside a part is content */
	        {"--x\r\n\r\nx\r\n--x--", "x", "--y\r\n\r\ny\r\n--y--", "y", false},
	        {"--x\r\n\r\na--x\r\n--x--", "x", "--y\r\n\r\na--x\r\n--y--", "y", true},
	        {"--x\r\n\r\na\r\n--xy\r\n--x--", "x", "--z\r\n\r\na\r\n--xy\r\n--z--", "z", true},
	        {"--x\r\nA: 1\r\n\r\n\r\n--x--", "x", "--x\r\nA: 2\r\n\r\n\r\n--x--", "x", false},
	        /* parts within a part */
	        {INNER("y", "--y", "one"), "x", INNER("zz", "--zz", "one"), "x", true},
	        {INNER("y", "--y", "one"), "x", INNER("y", "--y", "two"), "x", false},
	        {INNER("y", "--z", "one"), "x", INNER("z", "--y", "one"), "x", false},
	        {INNER("y; a=1", "--y", "one"), "x", INNER("y; a=2", "--y", "one"), "x", false},
	};
	struct buf a = {0}, b = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		assert_int_equal(multipart(row[i].a, row[i].a_boundary, &a), 0);
		assert_int_equal(multipart(row[i].b, row[i].b_boundary, &b), 0);
		assert_int_equal(span_equal(span_buf(&a), span_buf(&b)), row[i].same);
	}
	buf_free(&a);
	buf_free(&b);
}

static void multipart_invalid(void **state)
{
	static const char *const body[] = {
	        "",
	        "--",
	        "--x",
	        "--x\r\n",
	        "--x\r\n\r\none",
	        "--x\r\n\r\none\r\n--x",
	        "--x\r\n\r\none\r\n--x\r\n",
	        "--x\r\n\r\none\r\n--x--trailing",
	        "preamble\r\n--x\r\n\r\none\r\n--x--",
	        "--y\r\n\r\none\r\n--y--",
	        "--x\n\none\n--x--\n",
	};
	char boundary[72];
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(body); i++) {
		if (multipart(body[i], "x", &out) == 0)
			fail_msg("accepted: %s", body[i]);
		assert_int_equal(out.n, 0);
	}
	assert_int_equal(multipart("----", "", &out), -1);
	memset(boundary, 'b', sizeof boundary);
	boundary[71] = '\0';
	assert_int_equal(multipart("--x\r\n\r\none\r\n--x--", boundary, &out), -1);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pairs),
	        cmocka_unit_test(chosen),
	        cmocka_unit_test(query_selectors),
	        cmocka_unit_test(too_many),
	        cmocka_unit_test(multipart_bodies),
	        cmocka_unit_test(multipart_deep),
	        cmocka_unit_test(multipart_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
