/* The leaves an audit event names: which, of what sort, and that nothing of the content shows. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "identity_here.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* The object without its hashes: {"/amount":"n"} */
static char *leaves(const struct sample *s)
{
	struct buf out = {0};
	char *from, *to;

	assert_int_equal(identity_leaves(&s->in, &out), IDENTITY_OK);
	for (from = to = out.data; *from; from++) {
		*to++ = *from;
		if (from[0] == ':' && from[1] == '"') {
			*to++ = '"';
			*to++ = from[2];
			assert_int_equal(strspn(from + 3, "0123456789abcdef"), 8);
			from += 10;
		}
	}
	*to = '\0';
	return out.data;
}

static void check(const char *type, const char *body, const char *wanted)
{
	struct sample s;
	char *got;

	sample_init(&s);
	s.in.content_type = span_of(type);
	s.in.body = span_of(body);
	got = leaves(&s);
	assert_string_equal(got, wanted);
	free(got);
}

static void json(void **state)
{
	static const struct {
		const char *body, *wanted;
	} row[] = {
	        {"{}", "{\"/\":\"b\"}"},
	        {"[]", "{\"/\":\"b\"}"},
	        {"7", "{\"/\":\"n\"}"},
	        {"{\"b\":1,\"a\":\"x\"}", "{\"/a\":\"s\",\"/b\":\"n\"}"},
	        {"{\"a\":{\"b\":[1,{\"c\":null}]}}", "{\"/a/b/0\":\"n\",\"/a/b/1/c\":\"b\"}"},
	        {"{\"a\":true,\"e\":{}}", "{\"/a\":\"b\",\"/e\":\"b\"}"},
	        {"{\"note\":\"x\",\"name\":\"Max M\"}", "{\"/name\":\"s\",\"/note\":\"t\"}"},
	        {"{\"x\":\"one two three four\"}", "{\"/x\":\"t\"}"},
	        {"{\"x\":\"one two three\"}", "{\"/x\":\"s\"}"},
	        {"{\"x\":\"a\\nb\"}", "{\"/x\":\"t\"}"},
	        {"{\"ts\":1,\"created_at\":5,\"t\":\"a\"}",
	         "{\"/created_at\":\"v\",\"/t\":\"v\",\"/ts\":\"v\"}"},
	        {"{\"x\":\"2026-11-30T14:05:00Z\"}", "{\"/x\":\"v\"}"},
	        {"{\"x\":\"2026-11-30\"}", "{\"/x\":\"s\"}"},
	        {"{\"request_id\":\"abc\",\"nonce\":1}",
	         "{\"/nonce\":\"v\",\"/request_id\":\"v\"}"},
	        {"{\"a@b.c\":1,\"\":2,\"4111111111111111\":3}",
	         "{\"/{other}\":\"n\",\"/{id}\":\"n\",\"/{other}\":\"n\"}"},
	        {"{\"a\":1,\"a\":2}", "{\"body\":\"t\"}"}, /* no canonical form */
	        {"{broken", "{\"body\":\"t\"}"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		check("application/json", row[i].body, row[i].wanted);
}

static void other_bodies(void **state)
{
	static const char multipart[] =
	        "--B\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n5\r\n"
	        "--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nx\r\n--B--\r\n";

	(void)state;
	check("application/x-www-form-urlencoded", "b=2&a=x&amount[0]=3&note=hi",
	      "{\"a\":\"s\",\"amount[0]\":\"n\",\"b\":\"n\",\"note\":\"t\"}");
	check("application/x-www-form-urlencoded", "just words", "{\"{other}\":\"t\"}");
	check("multipart/form-data; boundary=B", multipart, "{\"amount\":\"n\",\"note\":\"t\"}");
	check("multipart/form-data; boundary=C", multipart, "{\"body\":\"t\"}");
	check("text/plain", "x", "{\"body\":\"t\"}");
	check("text/plain", "", "{}");
}

static void query(void **state)
{
	struct sample s;
	char *got;

	(void)state;
	sample_init(&s);
	s.in.query = span_of("secret-name=1&b=2");
	s.in.body = span_of("{\"a\":1}");
	got = leaves(&s);
	assert_string_equal(got, "{\"query\":\"s\",\"/a\":\"n\"}");
	free(got);
}

static struct buf whole(const char *body, const char *secret)
{
	struct sample s;
	struct buf out = {0};

	sample_init(&s);
	s.in.secret = span_of(secret);
	s.in.body = span_of(body);
	assert_int_equal(identity_leaves(&s.in, &out), IDENTITY_OK);
	return out;
}

static void hashes(void **state)
{
	static const struct {
		const char *a, *b, *secret;
		bool same;
	} row[] = {
	        {"{\"a\":1}", "{ \"a\" : 1.0 }", "one", true}, /* of the canonical form */
	        {"{\"a\":\"\\u0041\"}", "{\"a\":\"A\"}", "one", true},
	        {"{\"a\":1}", "{\"a\":2}", "one", false},
	        {"{\"a\":1}", "{\"a\":1}", "two", false}, /* keyed by the secret */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf x = whole(row[i].a, "one"), y = whole(row[i].b, row[i].secret);

		assert_int_equal(span_equal(span_buf(&x), span_buf(&y)), row[i].same);
		buf_free(&x);
		buf_free(&y);
	}
}

static void what_is_ignored_is_left_out(void **state)
{
	static char pointer[] = "/ts", *items[] = {pointer};
	struct sample s;
	char *got;

	(void)state;
	sample_init(&s);
	s.rule.ignore = (struct text_list){items, 1};
	s.in.body = span_of("{\"a\":1,\"ts\":2}");
	got = leaves(&s);
	assert_string_equal(got, "{\"/a\":\"n\"}");
	free(got);
}

/* 64 leaves and one for the rest, which still tells two requests apart. */
static void many(void **state)
{
	struct buf x = {0}, y = {0};
	struct buf a, b;
	size_t colons = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		buf_printf(&x, "%c\"f%03d\":%d", i ? ',' : '{', i, i);
		buf_printf(&y, "%c\"f%03d\":%d", i ? ',' : '{', i, i == 150 ? -1 : i);
	}
	buf_add_char(&x, '}');
	buf_add_char(&y, '}');
	a = whole(x.data, "one");
	b = whole(y.data, "one");
	for (size_t i = 0; i < a.n; i++)
		colons += a.data[i] == ':';
	assert_int_equal(colons, 65);
	assert_non_null(strstr(a.data, "\"...\":\"t"));
	assert_false(span_equal(span_buf(&a), span_buf(&b)));
	assert_true(a.n < 4096);
	buf_free(&x);
	buf_free(&y);
	buf_free(&a);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(json),
	        cmocka_unit_test(other_bodies),
	        cmocka_unit_test(query),
	        cmocka_unit_test(hashes),
	        cmocka_unit_test(what_is_ignored_is_left_out),
	        cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
