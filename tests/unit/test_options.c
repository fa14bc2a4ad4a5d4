/* What a program sets on a handle, followed call by call. The method rules are a table of call
 * sequences with what libcurl 7.88.1 would send (lib/setopt.c, Curl_http_method). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/options.h"

struct call {
	CURLoption id;
	uintptr_t word;
};

struct method_case {
	struct call calls[4];
	enum http_kind kind;
	bool no_body, upload;
};

static const struct method_case methods[] = {
        {{{CURLOPT_POST, 1}}, HTTP_POST, false, false},
        {{{CURLOPT_POST, 1}, {CURLOPT_POST, 0}}, HTTP_GET, false, false},
        {{{CURLOPT_POST, 1}, {CURLOPT_NOBODY, 1}}, HTTP_HEAD, true, false},
        {{{CURLOPT_POST, 1}, {CURLOPT_NOBODY, 1}, {CURLOPT_NOBODY, 0}}, HTTP_GET, false, false},
        {{{CURLOPT_NOBODY, 1}, {CURLOPT_POST, 1}}, HTTP_POST, false, false},
        {{{CURLOPT_NOBODY, 1}, {CURLOPT_POSTFIELDS, (uintptr_t) "x"}}, HTTP_POST, true, false},
        {{{CURLOPT_UPLOAD, 1}}, HTTP_PUT, false, true},
        {{{CURLOPT_UPLOAD, 1}, {CURLOPT_POSTFIELDS, (uintptr_t) "x"}}, HTTP_POST, false, true},
        {{{CURLOPT_UPLOAD, 1}, {CURLOPT_POST, 1}}, HTTP_POST, false, false},
        {{{CURLOPT_UPLOAD, 1}, {CURLOPT_HTTPGET, 1}}, HTTP_GET, false, false},
        {{{CURLOPT_UPLOAD, 1}, {CURLOPT_UPLOAD, 0}}, HTTP_GET, false, false},
        {{{CURLOPT_POST, 1}, {CURLOPT_HTTPGET, 0}}, HTTP_POST, false, false},
        {{{CURLOPT_POST, 1}, {CURLOPT_HTTPGET, 1}}, HTTP_GET, false, false},
        {{{CURLOPT_NOBODY, 1}, {CURLOPT_MIMEPOST, 8}}, HTTP_MIME, false, false},
        {{{CURLOPT_HTTPPOST, 8}}, HTTP_FORM, false, false},
        {{{CURLOPT_POSTFIELDS, 0}}, HTTP_POST, false, false},
};

static void method_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		struct options o;
		options_init(&o);
		for (size_t k = 0; k < 4 && methods[i].calls[k].id; k++)
			assert_int_equal(
			        options_set(&o, methods[i].calls[k].id, methods[i].calls[k].word),
			        0);
		assert_int_equal(o.kind, methods[i].kind);
		assert_int_equal(o.no_body, methods[i].no_body);
		assert_int_equal(o.upload, methods[i].upload);
		options_free(&o);
	}
}

static void copied_post_is_a_copy(void **state)
{
	char body[] = "amount=5";
	struct options o;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_COPYPOSTFIELDS, (uintptr_t)body);
	body[7] = '9';
	assert_string_equal(o.post, "amount=5");
	options_set(&o, CURLOPT_POSTFIELDS, (uintptr_t)body);
	assert_ptr_equal(o.post, body);
	assert_null(o.post_copy);
	options_free(&o);
}

static void copied_post_keeps_nul_bytes(void **state)
{
	struct options o;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_POSTFIELDSIZE, 5);
	options_set(&o, CURLOPT_COPYPOSTFIELDS, (uintptr_t) "a\0b\0c");
	assert_memory_equal(o.post, "a\0b\0c", 5);
	options_free(&o);
}

static void larger_size_drops_the_copy(void **state)
{
	struct options o;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_COPYPOSTFIELDS, (uintptr_t) "abc");
	options_set(&o, CURLOPT_POSTFIELDSIZE_LARGE, 2);
	assert_null(o.post);
	options_set(&o, CURLOPT_COPYPOSTFIELDS, (uintptr_t) "abc");
	options_set(&o, CURLOPT_POSTFIELDSIZE_LARGE, 1);
	assert_non_null(o.post);
	options_free(&o);
}

static void setting_again_moves_to_the_end(void **state)
{
	struct options o;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_TIMEOUT, 1);
	options_set(&o, CURLOPT_TIMEOUT_MS, 2);
	options_set(&o, CURLOPT_TIMEOUT, 3);
	assert_int_equal(o.count, 2);
	assert_int_equal(o.list[1].id, CURLOPT_TIMEOUT);
	assert_int_equal(options_long(&o, CURLOPT_TIMEOUT, 0), 3);
	options_free(&o);
}

static void only_target_options_count_as_change(void **state)
{
	struct options o;
	unsigned before;
	(void)state;

	options_init(&o);
	before = o.change;
	options_set(&o, CURLOPT_TIMEOUT, 1);
	assert_int_equal(o.change, before);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://a/");
	options_set(&o, CURLOPT_PORT, 81);
	assert_int_equal(o.change, before + 2);
	options_free(&o);
}

static void the_same_url_again_is_no_change(void **state)
{
	struct options o;
	unsigned before;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://a/");
	before = o.change;
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://a/");
	options_set(&o, CURLOPT_URL, (uintptr_t)options_text(&o, CURLOPT_URL));
	assert_int_equal(o.change, before);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://a/b");
	assert_int_equal(o.change, before + 1);
	options_set(&o, CURLOPT_URL, 0);
	assert_int_equal(o.change, before + 2);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://a/b");
	assert_int_equal(o.change, before + 3);
	options_free(&o);
}

static void strings_are_copied_and_unset(void **state)
{
	char url[] = "http://a/";
	struct options o, copy;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_URL, (uintptr_t)url);
	url[0] = 'X';
	assert_string_equal(options_text(&o, CURLOPT_URL), "http://a/");
	assert_int_equal(options_copy(&copy, &o), 0);
	options_set(&o, CURLOPT_URL, 0);
	assert_null(options_text(&o, CURLOPT_URL));
	options_free(&o);
	assert_string_equal(options_text(&copy, CURLOPT_URL), "http://a/");
	options_free(&copy);
}

static void copies_keep_body_and_method(void **state)
{
	struct options o, copy;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_POSTFIELDSIZE, 3);
	options_set(&o, CURLOPT_COPYPOSTFIELDS, (uintptr_t) "x\0y");
	options_copy(&copy, &o);
	options_free(&o);
	assert_int_equal(copy.kind, HTTP_POST);
	assert_memory_equal(copy.post, "x\0y", 3);
	options_free(&copy);
}

static void blobs_are_copied(void **state)
{
	char bytes[] = "pem";
	struct curl_blob blob = {bytes, 3, CURL_BLOB_NOCOPY};
	struct options o;
	(void)state;

	options_init(&o);
	options_set(&o, CURLOPT_SSLCERT_BLOB, (uintptr_t)&blob);
	bytes[0] = 'X';
	assert_memory_equal(options_get(&o, CURLOPT_SSLCERT_BLOB)->v.ptr, "pem", 3);
	assert_int_equal(options_get(&o, CURLOPT_SSLCERT_BLOB)->size, 3);
	options_free(&o);
}

/* curl_easy_option_by_id of the libcurl on this machine says the same as our own table. */
static void table_agrees_with_libcurl(void **state)
{
	const struct curl_easyoption *known = NULL;
	size_t seen = 0;
	(void)state;

	while ((known = curl_easy_option_next(known))) {
		enum option_kind kind = option_kind_of(known->id);
		if (known->flags & CURLOT_FLAG_ALIAS)
			continue;
		seen++;
		assert_int_not_equal(kind, OPTION_UNKNOWN);
		assert_string_equal(option_name_of(known->id), known->name);
		if (known->type == CURLOT_STRING && known->id != CURLOPT_COPYPOSTFIELDS)
			assert_int_equal(kind, OPTION_STRING);
		if (known->type == CURLOT_SLIST)
			assert_int_equal(kind, OPTION_SLIST);
		if (known->type == CURLOT_FUNCTION)
			assert_int_equal(kind, OPTION_FUNCTION);
		if (known->type == CURLOT_OFF_T)
			assert_int_equal(kind, OPTION_OFF_T);
	}
	assert_true(seen > 250);
	assert_int_equal(option_kind_of((CURLoption)19999), OPTION_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(method_rules),
	        cmocka_unit_test(copied_post_is_a_copy),
	        cmocka_unit_test(copied_post_keeps_nul_bytes),
	        cmocka_unit_test(larger_size_drops_the_copy),
	        cmocka_unit_test(setting_again_moves_to_the_end),
	        cmocka_unit_test(only_target_options_count_as_change),
	        cmocka_unit_test(the_same_url_again_is_no_change),
	        cmocka_unit_test(strings_are_copied_and_unset),
	        cmocka_unit_test(copies_keep_body_and_method),
	        cmocka_unit_test(blobs_are_copied),
	        cmocka_unit_test(table_agrees_with_libcurl),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
