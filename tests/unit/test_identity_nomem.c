/* Identity while memory runs out: every allocation fails once. A failure must be told and never
 * give another identity, since that would be another write.
 *
 * The sources are compiled in here, with the allocator's names redefined and the names that two
 * files use for themselves kept apart. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>

#include "identity_here.h"

static long allocated, until_failure;

static bool fails_now(void)
{
	return until_failure > 0 && --until_failure == 0;
}

static void *test_malloc_(size_t n)
{
	void *p = fails_now() ? NULL : malloc(n);

	allocated += p != NULL;
	return p;
}

static void *test_realloc_(void *old, size_t n)
{
	void *p = fails_now() ? NULL : realloc(old, n);

	allocated += p && !old;
	return p;
}

static void test_free_(void *p)
{
	allocated -= p != NULL;
	free(p);
}

#undef malloc
#undef realloc
#undef free
#define malloc  test_malloc_
#define realloc test_realloc_
#define free    test_free_
#define lower   bytes_lower
#include "../../src/base/bytes.c"
#undef lower
#include "../../src/identity/encode.c"
#include "../../src/identity/select.c"
#include "../../src/identity/json.c"
#include "../../src/identity/json_text.c"
#define compare   form_compare
#define hex_digit form_hex_digit
#define decode    form_decode
#define emit      form_emit
#include "../../src/identity/form.c"
#undef compare
#undef hex_digit
#undef emit
#include "../../src/identity/multipart.c"
#include "../../src/identity/token.c"
#define add_headers account_headers
#include "../../src/identity/account.c"
#undef add_headers
#define unquoted content_unquoted
#include "../../src/identity/content.c"
#undef unquoted
#include "../../src/identity/identity.c"

#define JWT "eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIiwic3ViIjoicyIsImV4cCI6MX0.c2ln"

static void json_request(struct sample *s)
{
	sample_header(s, "Authorization: Bearer " JWT);
	sample_header(s, "Idempotency-Key: k");
	sample_header(s, "X-Tenant-Id: 1");
	s->in.query = span_of("b=2&a=1");
}

static void form_request(struct sample *s)
{
	static char *item[] = {"a", "/x", "header:X-Tenant-Id", "query:q"};

	s->rule.fields = (struct text_list){item, 1};
	s->rule.must_match = (struct text_list){item, 4};
	s->in.content_type = span_of("application/x-www-form-urlencoded");
	s->in.body = span_of("a=1&b=2");
	sample_header(s, "Authorization: Basic dXNlcjpwYXNz");
	sample_header(s, "X-Tenant-Id: 1");
}

static void multipart_request(struct sample *s)
{
	s->in.content_type = span_of("multipart/form-data; boundary=x");
	s->in.body = span_of("--x\r\n\r\n1\r\n--x--\r\n");
	sample_header(s, "Cookie: a=b");
}

static void each_allocation_fails(void (*prepare)(struct sample *))
{
	struct identity want, got;
	struct sample s;
	int rc = IDENTITY_NOMEM;

	sample_init(&s);
	prepare(&s);
	until_failure = 0;
	want = sample_make(&s);
	assert_int_equal(allocated, 0);
	for (long n = 1; rc != IDENTITY_OK; n++) {
		assert_true(n < 500);
		until_failure = n;
		rc = identity_make(&s.in, &got);
		assert_int_equal(allocated, 0);
		assert_true(rc == IDENTITY_OK || rc == IDENTITY_NOMEM);
		if (until_failure == 0)
			assert_int_equal(rc, IDENTITY_NOMEM);
	}
	assert_memory_equal(&want, &got, sizeof want);
}

static void json(void **state)
{
	(void)state;
	each_allocation_fails(json_request);
}

static void form(void **state)
{
	(void)state;
	each_allocation_fails(form_request);
}

static void multipart(void **state)
{
	(void)state;
	each_allocation_fails(multipart_request);
}

static void large_json(void **state)
{
	struct buf text = {0}, out = {0};
	int rc = -1;

	(void)state;
	until_failure = 0;
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "%c%d", i ? ',' : '[', i);
	buf_add_char(&text, ']');
	for (long n = 1; rc != 0; n++) {
		buf_free(&out);
		until_failure = n;
		rc = json_canonical(span_buf(&text), &out);
		assert_int_equal(rc == 0, !out.failed);
		assert_true(n < 100);
	}
	until_failure = 0;
	buf_free(&out);
	buf_free(&text);
	assert_int_equal(allocated, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(json),
	        cmocka_unit_test(form),
	        cmocka_unit_test(multipart),
	        cmocka_unit_test(large_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
