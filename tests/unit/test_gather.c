/* What a handle says of its request, where it is more than the room that is there for it, and how
 * it is handed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "intercept/ambient.h"
#include "intercept/carry.h"
#include "intercept/gather.h"

enum { MANY = 60 };

/* One line more each time: in the room, at its end, past it, and past twice of it. */
static void any_number_of_headers(void **state)
{
	struct shadow s = {0};
	struct curl_slist *lines = NULL;
	char line[64];

	(void)state;
	options_init(&s.options);
	for (int n = 1; n <= MANY; n++) {
		struct gathered own = {0};
		struct identity_in in = {0};
		int seen = 0;

		snprintf(line, sizeof(line), "X-%d: value %d", n, n);
		lines = curl_slist_append(lines, line);
		options_set(&s.options, CURLOPT_HTTPHEADER, (uintptr_t)lines);
		for (int twice = 0; twice < 2; twice++)
			assert_int_equal(gather_identity(&s, &own, &in), 0);
		assert_ptr_equal(in.headers, own.headers);
		for (size_t i = 0; i < in.header_count; i++) {
			if (!span_starts(in.headers[i].name, "X-"))
				continue;
			snprintf(line, sizeof(line), "value %d", ++seen);
			assert_true(span_is(span_trim(in.headers[i].value), line));
		}
		assert_int_equal(seen, n);
		gather_free(&own);
		assert_null(own.headers);
		gather_free(&own);
	}
	options_free(&s.options);
	curl_slist_free_all(lines);
}

static const char *extra_of(const struct ambient *a, CURLoption id)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->extra[i].id == id)
			return a->extra[i].v.text;
	return NULL;
}

static void surroundings_of_any_length(void **state)
{
	struct options o;
	struct request_target target = {.scheme = (char *)"http", .host = (char *)"h"};
	struct ambient a = {0};
	char proxy[300], none[300];

	(void)state;
	options_init(&o);
	for (size_t n = 1; n < 200; n += 7) {
		snprintf(proxy, sizeof(proxy), "http://proxy.%0*d", (int)n, 1);
		snprintf(none, sizeof(none), "none.%0*d", (int)(200 - n), 1);
		setenv("http_proxy", proxy, 1);
		setenv("no_proxy", none, 1);
		assert_int_equal(ambient_login(&a, &o, &target), 0);
		assert_int_equal(ambient_proxies(&a, &o, &target), 0);
		setenv("http_proxy", "changed", 1);
		setenv("no_proxy", "changed", 1);
		assert_string_equal(extra_of(&a, CURLOPT_PROXY), proxy);
		assert_string_equal(extra_of(&a, CURLOPT_NOPROXY), none);
	}
	ambient_free(&a);
	assert_int_equal(a.count, 0);
	ambient_free(&a);
	options_free(&o);
}

/* A short key line lies in what is moved, a long one does not. */
static void a_carried_key_is_moved(void **state)
{
	static const size_t lengths[] = {1, 100, 150, 151, 200, 255};
	char key[KEY_TEXT_MAX + 1], line[KEY_TEXT_MAX + 64];
	struct policy policy = {0};
	struct process process = {.policy = &policy};
	struct rule rule = {.carrier = CARRIER_HEADER, .carrier_name = (char *)"Key"};
	struct writing w = {.rule = &rule, .process = &process};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct carried *from = malloc(sizeof(*from)), to;

		memset(key, 'k', lengths[i]);
		key[lengths[i]] = '\0';
		snprintf(line, sizeof(line), "Key: %s", key);
		assert_int_equal(carry_key(&w, key, 0, from), 0);
		assert_string_equal(from->edit.add[0], line);
		carried_move(&to, from);
		assert_null(from->edit.add[0]);
		carried_free(from);
		memset(from, 'x', sizeof(*from));
		assert_string_equal(to.edit.add[0], line);
		free(from);
		carried_free(&to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(any_number_of_headers),
	        cmocka_unit_test(surroundings_of_any_length),
	        cmocka_unit_test(a_carried_key_is_moved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
