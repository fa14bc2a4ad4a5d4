/* The key in a JSON body or a query: found, taken out, put in, and nothing else changed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "identity_here.h"

#include "identity/parts.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct json_row {
	const char *pointer, *body;
	enum carry_found found;
	const char *key;     /* CARRY_FOUND */
	const char *without; /* null: there is none to take out */
	const char *with;    /* the key K"\ put in; null: no place */
} rows[] = {
        {"/k", "{\"a\":1}", CARRY_ABSENT, NULL, NULL, "{\"k\":\"K\\\"\\\\\",\"a\":1}"},
        {"/k", "{}", CARRY_ABSENT, NULL, NULL, "{\"k\":\"K\\\"\\\\\"}"},
        {"/k", " { } ", CARRY_ABSENT, NULL, NULL, " {\"k\":\"K\\\"\\\\\" } "},
        {"/k", "{\n  \"a\" : [1, 2]\n}\n", CARRY_ABSENT, NULL, NULL,
         "{\"k\":\"K\\\"\\\\\",\n  \"a\" : [1, 2]\n}\n"},
        {"/k", "{\"k\":\"x\"}", CARRY_FOUND, "x", "{}", "{\"k\":\"K\\\"\\\\\"}"},
        {"/k", "{\"a\":1, \"k\" : \"x\" , \"b\":2}", CARRY_FOUND, "x", "{\"a\":1 , \"b\":2}",
         "{\"a\":1, \"k\" : \"K\\\"\\\\\" , \"b\":2}"},
        {"/k", "{ \"k\":\"x\", \"b\":2}", CARRY_FOUND, "x", "{  \"b\":2}",
         "{ \"k\":\"K\\\"\\\\\", \"b\":2}"},
        {"/k", "{\"b\":2,\"k\":\"x\\u0041\\\"y\"}", CARRY_FOUND, "xA\"y", "{\"b\":2}",
         "{\"b\":2,\"k\":\"K\\\"\\\\\"}"},
        {"/k", "{\"k\":null}", CARRY_ABSENT, NULL, "{}", "{\"k\":\"K\\\"\\\\\"}"},
        {"/k", "{\"k\":\"\"}", CARRY_ABSENT, NULL, "{}", "{\"k\":\"K\\\"\\\\\"}"},
        {"/k", "{\"k\":12}", CARRY_NO_TEXT, NULL, "{}", "{\"k\":\"K\\\"\\\\\"}"},
        {"/k", "{\"k\":{}}", CARRY_NO_TEXT, NULL, "{}", NULL},
        {"/k", "[1]", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/k", "\"text\"", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/k", "{\"a\":1,\"a\":2}", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/k", "{\"a\":", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/k", "", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/h/k", "{\"a\":1}", CARRY_ABSENT, NULL, NULL, "{\"h\":{\"k\":\"K\\\"\\\\\"},\"a\":1}"},
        {"/h/k", "{\"h\":{},\"a\":1}", CARRY_ABSENT, NULL, NULL,
         "{\"h\":{\"k\":\"K\\\"\\\\\"},\"a\":1}"},
        {"/h/k", "{\"h\":{\"b\":2}}", CARRY_ABSENT, NULL, NULL,
         "{\"h\":{\"k\":\"K\\\"\\\\\",\"b\":2}}"},
        {"/h/k", "{\"h\":{\"k\":\"x\"},\"a\":1}", CARRY_FOUND, "x", "{\"a\":1}",
         "{\"h\":{\"k\":\"K\\\"\\\\\"},\"a\":1}"},
        {"/h/k", "{\"a\":1,\"h\": { \"k\":\"}]\" } }", CARRY_FOUND, "}]", "{\"a\":1 }",
         "{\"a\":1,\"h\": { \"k\":\"K\\\"\\\\\" } }"},
        {"/h/k", "{\"h\":{\"k\":\"x\",\"b\":2}}", CARRY_FOUND, "x", "{\"h\":{\"b\":2}}",
         "{\"h\":{\"k\":\"K\\\"\\\\\",\"b\":2}}"},
        {"/h/k", "{\"h\":7}", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/h/k", "{\"h\":[7]}", CARRY_NO_PLACE, NULL, NULL, NULL},
        {"/a~1b/~0", "{}", CARRY_ABSENT, NULL, NULL, "{\"a/b\":{\"~\":\"K\\\"\\\\\"}}"},
        {"/0/k", "[{\"a\":1}]", CARRY_ABSENT, NULL, NULL, "[{\"k\":\"K\\\"\\\\\",\"a\":1}]"},
        {"/0/k", "[{\"k\":\"x\"},2]", CARRY_FOUND, "x", "[{},2]", "[{\"k\":\"K\\\"\\\\\"},2]"},
};

static void check(size_t i, const char *what, int rc, const struct buf *got, const char *wanted)
{
	if ((rc == 0) != (wanted != NULL) || (wanted && !span_is(span_buf(got), wanted)))
		fail_msg("row %zu, %s: `%s`, not `%s`", i, what, got->data ? got->data : "",
		         wanted ? wanted : "none");
}

static void test_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct json_row *r = &rows[i];
		struct span body = span_of(r->body), pointer = span_of(r->pointer);
		struct buf out = {0};
		enum carry_found found = carry_json_find(body, pointer, &out);

		if (found != r->found)
			fail_msg("row %zu: found %d", i, (int)found);
		check(i, "find", found == CARRY_FOUND ? 0 : -1, &out, r->key);
		buf_reset(&out);
		check(i, "without", carry_json_without(body, pointer, &out), &out, r->without);
		buf_reset(&out);
		check(i, "with", carry_json_with(body, pointer, span_of("K\"\\"), &out), &out,
		      r->with);
		buf_free(&out);
	}
}

/* What was put in is found, and taken out again leaves what was there. */
static void test_json_there_and_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct span pointer = span_of(rows[i].pointer);
		struct buf with = {0}, key = {0}, canonical = {0}, back = {0}, again = {0};
		struct span body = span_of(rows[i].body);

		if (!rows[i].with || rows[i].found != CARRY_ABSENT || rows[i].without ||
		    strstr(rows[i].body, "\"h\":{}"))
			continue;
		assert_int_equal(carry_json_with(body, pointer, span_of("a-b"), &with), 0);
		assert_int_equal(carry_json_find(span_buf(&with), pointer, &key), CARRY_FOUND);
		assert_true(span_is(span_buf(&key), "a-b"));
		assert_int_equal(carry_json_without(span_buf(&with), pointer, &back), 0);
		assert_int_equal(json_canonical(body, &canonical), 0);
		assert_int_equal(json_canonical(span_buf(&back), &again), 0);
		assert_true(span_equal(span_buf(&canonical), span_buf(&again)));
		buf_free(&with);
		buf_free(&key);
		buf_free(&canonical);
		buf_free(&back);
		buf_free(&again);
	}
}

static const struct url_row {
	const char *url, *with;
} urls[] = {
        {"https://h/p", "https://h/p?req%20id=a%3Ab"},
        {"https://h/p?", "https://h/p?req%20id=a%3Ab"},
        {"https://h/p?x=1", "https://h/p?x=1&req%20id=a%3Ab"},
        {"https://h/p?x=1&&y#f?g", "https://h/p?x=1&&y&req%20id=a%3Ab#f?g"},
        {"https://h/p?req+id=old&x=1", "https://h/p?x=1&req%20id=a%3Ab"},
        {"https://h/p?x=1&req%20id=old", "https://h/p?x=1&req%20id=a%3Ab"},
        {"h/p#?", "h/p?req%20id=a%3Ab#?"},
        {"/p?req%20ids=2", "/p?req%20ids=2&req%20id=a%3Ab"},
};

static void test_url(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(urls); i++) {
		struct buf out = {0};

		carry_url_with(span_of(urls[i].url), span_of("req id"), span_of("a:b"), &out);
		check(i, "url", 0, &out, urls[i].with);
		buf_free(&out);
	}
}

/* --- the key is no part of what makes two requests the same --- */

static void assert_same(const struct identity *a, const struct identity *b)
{
	assert_memory_equal(a->content, b->content, HASH_SIZE);
	assert_memory_equal(a->fingerprint, b->fingerprint, HASH_SIZE);
	assert_memory_equal(a->wire_body, b->wire_body, HASH_SIZE);
}

static void test_identity_without_json_key(void **state)
{
	static char pointer[] = "/meta/key";
	struct identity plain, one, two;
	struct sample s;

	(void)state;
	sample_init(&s);
	s.rule.carrier = CARRIER_JSON;
	s.rule.carrier_name = pointer;
	s.in.body = span_of("{\"a\":1}");
	plain = sample_make(&s);
	assert_false(plain.has_own_key);
	s.in.body = span_of("{\"a\":1,\"meta\":{\"key\":\"k1\"}}");
	one = sample_make(&s);
	assert_string_equal(one.own_key_text, "k1");
	s.in.body = span_of("{\"a\":1,\"meta\":{\"key\":\"k2\"}}");
	two = sample_make(&s);
	assert_same(&one, &two);
	assert_same(&one, &plain);
	assert_memory_not_equal(one.own_key, two.own_key, HASH_SIZE);
	s.in.body = span_of("{\"a\":2,\"meta\":{\"key\":\"k1\"}}");
	two = sample_make(&s);
	assert_memory_not_equal(one.content, two.content, HASH_SIZE);
	s.in.content_type = span_of("text/plain"); /* still read as JSON: the key is in it */
	s.in.body = span_of("{\"a\":1,\"meta\":{\"key\":\"k3\"}}");
	one = sample_make(&s);
	assert_string_equal(one.own_key_text, "k3");
}

static void test_identity_without_query_key(void **state)
{
	static char name[] = "requestId";
	struct identity plain, one, two;
	struct sample s;

	(void)state;
	sample_init(&s);
	s.rule.carrier = CARRIER_QUERY;
	s.rule.carrier_name = name;
	s.in.query = span_of("x=1");
	plain = sample_make(&s);
	s.in.query = span_of("requestId=k%31&x=1");
	one = sample_make(&s);
	assert_string_equal(one.own_key_text, "k1");
	s.in.query = span_of("x=1&requestId=k2");
	two = sample_make(&s);
	assert_same(&one, &two);
	assert_same(&one, &plain);
	s.in.query = span_of("x=2&requestId=k2");
	two = sample_make(&s);
	assert_memory_not_equal(one.content, two.content, HASH_SIZE);
	s.in.query = span_of("requestId=k2");
	one = sample_make(&s);
	s.in.query = span_of("");
	two = sample_make(&s);
	assert_same(&one, &two);
}

static void test_identity_refusals(void **state)
{
	static char pointer[] = "/k", name[] = "k";
	struct identity id;
	struct sample s;

	(void)state;
	sample_init(&s);
	s.rule.carrier = CARRIER_JSON;
	s.rule.carrier_name = pointer;
	s.in.body = span_of("not json");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_NO_PLACE);
	s.in.body = span_of("[]");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_NO_PLACE);
	s.in.body = span_of("{\"k\":1}");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_BAD_KEY);
	s.in.body = span_of("{\"k\":\"a\\nb\"}");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_BAD_KEY);
	s.rule.carrier = CARRIER_QUERY;
	s.rule.carrier_name = name;
	s.in.query = span_of("k=a&k=b");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_BAD_KEY);
	s.rule.carrier = CARRIER_NONE;
	s.rule.carrier_name = NULL;
	sample_header(&s, "Idempotency-Key: own");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_OK);
	assert_false(id.has_own_key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_json),
	        cmocka_unit_test(test_json_there_and_back),
	        cmocka_unit_test(test_url),
	        cmocka_unit_test(test_identity_without_json_key),
	        cmocka_unit_test(test_identity_without_query_key),
	        cmocka_unit_test(test_identity_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
