/* UPLOAD and another kind of request after it: what libcurl makes of it is asked of libcurl, once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/resource.h>

#include "request/request.h"
#include "wire_here.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static unsigned handles;

static CURL *counted_init(void)
{
	handles++;
	return CURL_FN(flavour_here(), easy_init)();
}

/* One to which UPLOAD is a switch: it takes no notice of what comes after it. */
static CURLcode deaf_setopt(CURL *easy, CURLoption id, ...)
{
	va_list list;
	void *word;

	va_start(list, id);
	word = va_arg(list, void *);
	va_end(list);
	if (id == CURLOPT_POSTFIELDS)
		return CURLE_OK;
	return CURL_FN(flavour_here(), easy_setopt)(easy, id, word);
}

/* A flavour of its own, so that nothing is known of it. */
static const struct flavour *counted(bool old)
{
	static struct flavour made[8];
	static size_t count;
	struct flavour *fl = &made[count++];

	assert_true(count <= COUNT(made));
	*fl = *flavour_here();
	fl->fn[FN_easy_init] = (void (*)(void))counted_init;
	if (old)
		fl->fn[FN_easy_setopt] = (void (*)(void))deaf_setopt;
	handles = 0;
	return fl;
}

static void half(struct options *o)
{
	options_init(o);
	options_set(o, CURLOPT_UPLOAD, 1);
	options_set(o, CURLOPT_POSTFIELDS, (uintptr_t) "abc");
}

static void libcurl_is_asked_once(void **state)
{
	const struct flavour *fl = counted(false);
	struct options o;

	(void)state;
	for (int i = 0; i < 3; i++) {
		half(&o);
		request_settle(&o, fl);
		options_free(&o);
	}
	assert_int_equal(handles, 1);
}

static void nothing_is_asked_where_nothing_is_mixed(void **state)
{
	static const struct set none[][2] = {{SET(UPLOAD, 1)},
	                                     {SET(POSTFIELDS, "abc")},
	                                     {SET(POSTFIELDS, "abc"), SET(UPLOAD, 1)},
	                                     {SET(UPLOAD, 1), SET(UPLOAD, 0)},
	                                     {SET(UPLOAD, 1), SET(HTTPGET, 1)},
	                                     {SET(UPLOAD, 1), SET(POST, 1)}};
	const struct flavour *fl = counted(false);

	(void)state;
	for (size_t i = 0; i < COUNT(none); i++) {
		struct options o;
		bool upload;

		options_init(&o);
		for (size_t k = 0; k < 2; k++)
			if (none[i][k].id)
				options_set(&o, none[i][k].id, none[i][k].word);
		upload = o.upload;
		request_settle(&o, fl);
		assert_int_equal(o.upload, upload);
		assert_false(o.puts);
		options_free(&o);
	}
	assert_int_equal(handles, 0);
}

/* Method and bytes as they leave the libcurl that is here. */
static void what_is_said_is_what_leaves(void **state)
{
	static const struct {
		struct set set[SETS_MAX];
		const char *body;
	} rows[] = {
	        {{SET(UPLOAD, 1), SET(POSTFIELDS, "abc")}, "abc"},
	        {{SET(UPLOAD, 1), SET(COPYPOSTFIELDS, "abc"), SET(CUSTOMREQUEST, "PATCH")}, "abc"},
	        {{SET(UPLOAD, 1), SET(INFILESIZE, 7), SET(POSTFIELDS, "abc"),
	          SET(POSTFIELDSIZE, 2)},
	         "ab"},
	        {{SET(UPLOAD, 1), SET(POSTFIELDS, "abc"), SET(NOBODY, 1)}, ""},
	        {{SET(UPLOAD, 1), SET(NOBODY, 1)}, ""},
	        {{SET(UPLOAD, 1), SET(NOBODY, 1), SET(CUSTOMREQUEST, "PATCH")}, ""},
	        {{SET(UPLOAD, 1), SET(NOBODY, 1), SET(NOBODY, 0)}, ""},
	        {{SET(UPLOAD, 1), SET(NOBODY, 1), SET(NOBODY, 0), SET(CUSTOMREQUEST, "POST")}, ""},
	};
	struct wire wire;
	char url[64];

	(void)state;
	wire_open(&wire);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/p", wire.port);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct set set[SETS_MAX + 1] = {SET(URL, url)};
		struct options o;
		struct span method;

		memcpy(set + 1, rows[i].set, sizeof rows[i].set);
		wire_send(&wire, set, COUNT(set), &o);
		request_settle(&o, flavour_here());
		method = wire_word(&wire, 0);
		if (!span_is(method, request_method(&o)))
			fail_msg("row %zu: sent %.*s, said %s", i, (int)method.n, method.p,
			         request_method(&o));
		if (!o.upload) { /* of one that is, nothing is said */
			struct span said = request_body_bytes(&o);

			assert_true(span_equal(wire_body(&wire), said));
			assert_true(span_is(said, rows[i].body));
		}
		options_free(&o);
	}
	close(wire.listener);
}

static void one_to_which_it_is_a_switch_puts(void **state)
{
	const struct flavour *fl = counted(true);
	struct options o, copy;

	(void)state;
	for (int i = 0; i < 2; i++) {
		half(&o);
		request_settle(&o, fl);
		assert_int_equal(request_body_kind(&o), REQUEST_UPLOAD);
		assert_string_equal(request_method(&o), "PUT");
		options_copy(&copy, &o);
		assert_string_equal(request_method(&copy), "PUT");
		options_free(&copy);
		options_set(&o, CURLOPT_NOBODY, 1);
		assert_string_equal(request_method(&o), "HEAD");
		options_set(&o, CURLOPT_CUSTOMREQUEST, (uintptr_t) "PATCH");
		assert_string_equal(request_method(&o), "PATCH");
		options_free(&o);
	}
	assert_int_equal(handles, 1);
	half(&o);
	request_settle(&o, fl);
	options_set(&o, CURLOPT_POST, 1); /* switches it off */
	assert_string_equal(request_method(&o), "POST");
	options_free(&o);
}

/* Then nothing is believed, and libcurl is asked the next time. */
static void without_a_descriptor_nothing_is_known(void **state)
{
	const struct flavour *fl = counted(false);
	struct rlimit was, none;
	struct options o;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	half(&o);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	request_settle(&o, fl);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(request_body_kind(&o), REQUEST_UPLOAD);
	assert_false(o.puts);
	request_settle(&o, fl);
	assert_int_equal(handles, 2);
	request_settle(&o, fl);
	assert_int_equal(handles, 2);
	options_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(libcurl_is_asked_once),
	        cmocka_unit_test(nothing_is_asked_where_nothing_is_mixed),
	        cmocka_unit_test(what_is_said_is_what_leaves),
	        cmocka_unit_test(one_to_which_it_is_a_switch_puts),
	        cmocka_unit_test(without_a_descriptor_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
