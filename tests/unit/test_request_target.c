/* The target: a table of parsed parts, and the path and Host the real libcurl sends. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "wire_here.h"
#include "request/request.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void apply(struct options *o, const struct set *set, size_t n)
{
	options_init(o);
	for (size_t i = 0; i < n && set[i].id; i++)
		assert_int_equal(options_set(o, set[i].id, set[i].word), 0);
}

static const struct row {
	struct set set[5];
	bool valid;
	const char *scheme, *host;
	unsigned port;
	const char *path, *query, *user, *password;
} row[] = {
        {{SET(URL, "https://api.example.com/v1/orders?a=1&b=2")},
         true,
         "https",
         "api.example.com",
         443,
         "/v1/orders",
         "a=1&b=2",
         NULL,
         NULL},
        {{SET(URL, "http://api.example.com")},
         true,
         "http",
         "api.example.com",
         80,
         "/",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "HTTP://API.Example.COM:8080/A")},
         true,
         "http",
         "api.example.com",
         8080,
         "/A",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "https://h:443/")}, true, "https", "h", 443, "/", NULL, NULL, NULL},
        {{SET(URL, "http://h/p"), SET(PORT, 8081)},
         true,
         "http",
         "h",
         8081,
         "/p",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "http://h:9000/p"), SET(PORT, 8081)},
         true,
         "http",
         "h",
         8081,
         "/p",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "http://h:9000/p"), SET(PORT, 8081), SET(PORT, 0)},
         true,
         "http",
         "h",
         9000,
         "/p",
         NULL,
         NULL,
         NULL},
        /* without a scheme: guessed, or the default one */
        {{SET(URL, "api.example.com/p")},
         true,
         "http",
         "api.example.com",
         80,
         "/p",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "localhost:8080/p")}, true, "http", "localhost", 8080, "/p", NULL, NULL, NULL},
        {{SET(URL, "ftp.example.com/p")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "api.example.com/p"), SET(DEFAULT_PROTOCOL, "https")},
         true,
         "https",
         "api.example.com",
         443,
         "/p",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "localhost:8080/p"), SET(DEFAULT_PROTOCOL, "https")},
         true,
         "https",
         "localhost",
         8080,
         "/p",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "http://h/p"), SET(DEFAULT_PROTOCOL, "https")},
         true,
         "http",
         "h",
         80,
         "/p",
         NULL,
         NULL,
         NULL},
        /* dots, fragment, spaces, empty query, only a query */
        {{SET(URL, "http://h/a/../b/./c")}, true, "http", "h", 80, "/b/c", NULL, NULL, NULL},
        {{SET(URL, "http://h/a/../b"), SET(PATH_AS_IS, 1)},
         true,
         "http",
         "h",
         80,
         "/a/../b",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "http://h/p#frag?x")}, true, "http", "h", 80, "/p", NULL, NULL, NULL},
        {{SET(URL, "http://h/p?a#frag")}, true, "http", "h", 80, "/p", "a", NULL, NULL},
        {{SET(URL, "http://h?a=1")}, true, "http", "h", 80, "/", "a=1", NULL, NULL},
        {{SET(URL, "http://h/%41%2f")}, true, "http", "h", 80, "/%41%2f", NULL, NULL, NULL},
        {{SET(URL, "http://[::1]:81/p")}, true, "http", "[::1]", 81, "/p", NULL, NULL, NULL},
        /* user and password */
        {{SET(URL, "http://u:p@h/")}, true, "http", "h", 80, "/", NULL, "u", "p"},
        {{SET(URL, "http://u@h/")}, true, "http", "h", 80, "/", NULL, "u", NULL},
        {{SET(URL, "http://u%40x:p%3a@h/")}, true, "http", "h", 80, "/", NULL, "u@x", "p:"},
        {{SET(URL, "http://u:%01@h/")}, true, "http", "h", 80, "/", NULL, "u", "%01"},
        {{SET(URL, "http://u:p@h/"), SET(DISALLOW_USERNAME_IN_URL, 1)},
         false,
         NULL,
         NULL,
         0,
         NULL,
         NULL,
         NULL,
         NULL},
        /* REQUEST_TARGET */
        {{SET(URL, "http://h/p?a=1"), SET(REQUEST_TARGET, "/q?b=2")},
         true,
         "http",
         "h",
         80,
         "/q",
         "b=2",
         NULL,
         NULL},
        {{SET(URL, "http://h/p?a=1"), SET(REQUEST_TARGET, "*")},
         true,
         "http",
         "h",
         80,
         "*",
         NULL,
         NULL,
         NULL},
        {{SET(URL, "http://h/p"), SET(REQUEST_TARGET, "/q"), SET(REQUEST_TARGET, NULL)},
         true,
         "http",
         "h",
         80,
         "/p",
         NULL,
         NULL,
         NULL},
        /* not HTTP, or nothing libcurl would take */
        {{SET(URL, "ftp://h/p")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "file:///etc/passwd")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "ws://h/p")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "gopherx://h/p")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "http://")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "http://h:99999/")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "http://a b/")}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{SET(URL, "http://h/"), SET(URL, NULL)}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
        {{{0}}, false, NULL, NULL, 0, NULL, NULL, NULL, NULL},
};

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check(size_t i, const struct row *want, const struct request_target *t)
{
	if (t->valid != want->valid)
		fail_msg("row %zu: valid %d", i, t->valid);
	if (!want->valid)
		return;
	if (!same(t->scheme, want->scheme) || !same(t->host, want->host) || t->port != want->port)
		fail_msg("row %zu: %s %s %u", i, t->scheme, t->host, t->port);
	if (!same(t->path, want->path) || !same(t->query, want->query))
		fail_msg("row %zu: %s ? %s", i, t->path, t->query ? t->query : "(none)");
	if (!same(t->user, want->user) || !same(t->password, want->password))
		fail_msg("row %zu: user %s", i, t->user ? t->user : "(none)");
}

static void parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct request_target t = {0};
		struct options o;

		apply(&o, row[i].set, COUNT(row[i].set));
		assert_int_equal(request_target_update(&t, flavour_here(), &o), 0);
		check(i, &row[i], &t);
		request_target_free(&t);
		options_free(&o);
	}
}

/* What was said against what is sent: the request line and the port connected to. */
static void on_the_wire(void **state)
{
	static const struct {
		const char *url; /* %u: the port */
		struct set set[3];
	} sent[] = {
	        {"http://127.0.0.1:%u/v1/orders?a=1&b=2", {{0}}},
	        {"127.0.0.1:%u", {{0}}},
	        {"http://127.0.0.1:%u?q", {{0}}},
	        {"http://127.0.0.1:%u/a/../b/./c?x=/../y", {{0}}},
	        {"http://127.0.0.1:%u/a/../b", {SET(PATH_AS_IS, 1)}},
	        {"http://127.0.0.1:%u/%%41%%2f%%zz", {{0}}},
	        {"http://127.0.0.1:%u/\xc3\xa9?\xc3\xa9", {{0}}},
	        {"http://127.0.0.1:%u/p#frag", {{0}}},
	        {"http://127.0.0.1:%u/p?a#frag", {{0}}},
	        {"http://127.0.0.1:%u/p?", {{0}}},
	        {"http://127.0.0.1:%u/p;type=a", {{0}}},
	        {"http://u:p@127.0.0.1:%u/p", {{0}}},
	        {"http://127.0.0.1:%u/p?a", {SET(REQUEST_TARGET, "/q?b=2?c")}},
	        {"http://127.0.0.1:%u/p?a", {SET(REQUEST_TARGET, "http://x/q")}},
	        {"127.0.0.1:%u/p", {SET(DEFAULT_PROTOCOL, "http")}},
	};
	struct wire wire;
	char url[128];

	(void)state;
	wire_open(&wire);
	for (size_t i = 0; i < COUNT(sent); i++) {
		struct request_target t = {0};
		struct set set[4] = {SET(URL, url)};
		struct buf said = {0};
		struct options o;

		snprintf(url, sizeof url, sent[i].url, wire.port);
		memcpy(set + 1, sent[i].set, sizeof sent[i].set);
		wire_send(&wire, set, COUNT(set), &o);
		assert_int_equal(request_target_update(&t, flavour_here(), &o), 0);
		assert_true(t.valid);
		assert_int_equal(t.port, wire.port);
		buf_add_text(&said, t.path);
		if (t.query) {
			buf_add_text(&said, "?");
			buf_add_text(&said, t.query);
		}
		if (!span_equal(wire_word(&wire, 1), span_buf(&said)))
			fail_msg("row %zu: sent %.*s, said %s", i, (int)wire_word(&wire, 1).n,
			         wire_word(&wire, 1).p, said.data);
		buf_free(&said);
		request_target_free(&t);
		options_free(&o);
	}
	close(wire.listener);
}

static struct flavour counted;
static int parses;
static CURLUcode (*real_set)(CURLU *, CURLUPart, const char *, unsigned);

static CURLUcode counting_set(CURLU *u, CURLUPart part, const char *text, unsigned flags)
{
	parses++;
	return real_set(u, part, text, flags);
}

static void kept_until_changed(void **state)
{
	struct request_target t = {0};
	struct options o;

	(void)state;
	counted = *flavour_here();
	real_set = CURL_FN(&counted, url_set);
	counted.fn[FN_url_set] = (void (*)(void))counting_set;
	options_init(&o);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://one/");
	for (int i = 0; i < 3; i++)
		assert_int_equal(request_target_update(&t, &counted, &o), 0);
	assert_int_equal(parses, 1);
	assert_int_equal(t.made, 1);
	options_set(&o, CURLOPT_POSTFIELDS, (uintptr_t) "a");
	options_set(&o, CURLOPT_TIMEOUT, 5);
	assert_int_equal(request_target_update(&t, &counted, &o), 0);
	assert_int_equal(parses, 1);
	options_set(&o, CURLOPT_PORT, 81);
	assert_int_equal(request_target_update(&t, &counted, &o), 0);
	assert_int_equal(parses, 2);
	assert_int_equal(t.port, 81);
	options_set(&o, CURLOPT_URL, (uintptr_t) "ftp://two/");
	assert_int_equal(request_target_update(&t, &counted, &o), 0);
	assert_int_equal(request_target_update(&t, &counted, &o), 0);
	assert_int_equal(parses, 3);
	assert_int_equal(t.made, 3);
	assert_false(t.valid);
	request_target_free(&t);
	options_free(&o);
}

static const struct twice {
	struct set first[3], second[3];
	int parsed; /* in all, when each is asked for three times, each time by another handle */
} twice[] = {
        {{SET(URL, "http://memo/a?b=1")}, {SET(URL, "http://memo/a?b=1")}, 2},
        {{SET(URL, "http://memo/c")}, {SET(URL, "http://memo/c"), SET(PORT, 81)}, 2},
        {{SET(URL, "http://memo/d/../e")}, {SET(URL, "http://memo/d/../e"), SET(PATH_AS_IS, 1)}, 4},
        {{SET(URL, "http://user:pw@memo/f")}, {SET(URL, "http://user:pw@memo/f")}, 6},
        {{SET(URL, "http://")}, {SET(URL, "http://")}, 6},
        {{SET(URL, "memo/g"), SET(DEFAULT_PROTOCOL, "http")}, {SET(URL, "http://memo/g")}, 2},
};

static void asked(const struct set *set, const struct flavour *fl, struct request_target *t)
{
	struct options o;

	apply(&o, set, 3);
	assert_int_equal(request_target_update(t, fl, &o), 0);
	options_free(&o);
}

static void same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

static void same_target(const struct request_target *a, const struct request_target *b)
{
	assert_int_equal(a->valid, b->valid);
	assert_int_equal(a->port, b->port);
	same_text(a->scheme, b->scheme);
	same_text(a->host, b->host);
	same_text(a->path, b->path);
	same_text(a->query, b->query);
	same_text(a->user, b->user);
	same_text(a->password, b->password);
}

/* A URL that another handle had is not parsed again, from the third time on; what comes of it is
 * what libcurl itself makes of it. */
static void other_handles_share_it(void **state)
{
	(void)state;
	counted = *flavour_here();
	real_set = CURL_FN(&counted, url_set);
	counted.fn[FN_url_set] = (void (*)(void))counting_set;
	for (size_t i = 0; i < COUNT(twice); i++) {
		const struct set *sets[] = {twice[i].first, twice[i].second};
		struct request_target fresh[2] = {{0}};

		asked(sets[0], flavour_here(), &fresh[0]);
		asked(sets[1], flavour_here(), &fresh[1]);
		parses = 0;
		for (int n = 0; n < 6; n++) {
			struct request_target t = {0};

			asked(sets[n % 2], &counted, &t);
			same_target(&t, &fresh[n % 2]);
			request_target_free(&t);
		}
		assert_int_equal(parses, twice[i].parsed);
		request_target_free(&fresh[0]);
		request_target_free(&fresh[1]);
	}
}

/* A CURLU belongs to the program, which may change it without a setopt. */
static void curlu_is_read_each_time(void **state)
{
	const struct flavour *fl = flavour_here();
	CURLU *u = CURL_FN(fl, url)();
	struct request_target t = {0};
	struct options o;

	(void)state;
	assert_non_null(u);
	options_init(&o);
	CURL_FN(fl, url_set)(u, CURLUPART_URL, "https://one/a?x=1", 0);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://ignored/");
	options_set(&o, CURLOPT_CURLU, (uintptr_t)u);
	assert_int_equal(request_target_update(&t, fl, &o), 0);
	assert_true(t.valid);
	assert_string_equal(t.host, "one");
	assert_string_equal(t.query, "x=1");
	CURL_FN(fl, url_set)(u, CURLUPART_URL, "https://two:444/b", 0);
	assert_int_equal(request_target_update(&t, fl, &o), 0);
	assert_string_equal(t.host, "two");
	assert_int_equal(t.port, 444);
	options_set(&o, CURLOPT_CURLU, 0);
	assert_int_equal(request_target_update(&t, fl, &o), 0);
	assert_string_equal(t.host, "ignored");
	CURL_FN(fl, url_cleanup)(u);
	request_target_free(&t);
	options_free(&o);
}

static void without_url_api(void **state)
{
	struct flavour old = *flavour_here();
	struct request_target t = {0};
	struct options o;

	(void)state;
	old.fn[FN_url] = NULL;
	options_init(&o);
	options_set(&o, CURLOPT_URL, (uintptr_t) "http://h/");
	assert_int_equal(request_target_update(&t, &old, &o), 0);
	assert_false(t.valid);
	request_target_free(&t);
	options_free(&o);
}

static int until_none; /* calls of libcurl's before it has no memory */

static CURLUcode poor_set(CURLU *u, CURLUPart part, const char *text, unsigned flags)
{
	if (until_none-- == 0)
		return CURLUE_OUT_OF_MEMORY;
	return CURL_FN(flavour_here(), url_set)(u, part, text, flags);
}

static CURLUcode poor_get(CURLU *u, CURLUPart part, char **text, unsigned flags)
{
	if (until_none-- == 0)
		return CURLUE_OUT_OF_MEMORY;
	return CURL_FN(flavour_here(), url_get)(u, part, text, flags);
}

/* A part that libcurl has no memory for is not one that the URL does not have: the write would go
 * by another name, or by none, and again by it later. */
static void no_memory_is_no_other_target(void **state)
{
	static struct flavour poor;
	struct request_target t = {0};
	struct options o;
	int calls = 0, rc = -1;

	(void)state;
	poor = *flavour_here();
	poor.fn[FN_url_set] = (void (*)(void))poor_set;
	poor.fn[FN_url_get] = (void (*)(void))poor_get;
	options_init(&o);
	options_set(&o, CURLOPT_URL, (uintptr_t) "https://u:p@h:81/poor?q=1");
	for (; rc != 0 && calls < 20; calls++) {
		until_none = calls;
		rc = request_target_update(&t, &poor, &o);
		assert_true(rc == 0 ? until_none >= 0 : until_none < 0);
		assert_int_equal(t.valid, rc == 0);
	}
	assert_in_range(calls, 7, 19);
	assert_string_equal(t.query, "q=1");
	assert_string_equal(t.password, "p");
	assert_int_equal(t.port, 81);
	request_target_free(&t);
	options_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(parts),
	        cmocka_unit_test(on_the_wire),
	        cmocka_unit_test(kept_until_changed),
	        cmocka_unit_test(other_handles_share_it),
	        cmocka_unit_test(curlu_is_read_each_time),
	        cmocka_unit_test(without_url_api),
	        cmocka_unit_test(no_memory_is_no_other_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
