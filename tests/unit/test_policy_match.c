/* Which requests a pattern names, as a table; and which rule comes first. */
#include "policy_test.h"

#include <time.h>

#include <stdio.h>

#include "policy/index.h"
#include "policy/matcher.h"

struct row {
	const char *pattern;
	const char *method, *scheme, *host;
	unsigned port;
	const char *path;
	bool matches;
};

static const struct row rows[] = {
        /* methods */
        {"POST https://h/p", "POST", "https", "h", 443, "/p", true},
        {"POST https://h/p", "GET", "https", "h", 443, "/p", false},
        {"POST https://h/p", "post", "https", "h", 443, "/p", false},
        {"POST https://h/p", "POSTS", "https", "h", 443, "/p", false},
        {"POST https://h/p", "POS", "https", "h", 443, "/p", false},
        {"POST,PUT,DELETE https://h/p", "DELETE", "https", "h", 443, "/p", true},
        {"POST,PUT,DELETE https://h/p", "PATCH", "https", "h", 443, "/p", false},
        {"GET https://h/p", "GET", "https", "h", 443, "/p", true},
        {"POST   https://h/p", "POST", "https", "h", 443, "/p", true},
        /* schemes */
        {"POST https://h/p", "POST", "HTTPS", "h", 443, "/p", true},
        {"POST HTTPS://h/p", "POST", "https", "h", 443, "/p", true},
        {"POST https://h/p", "POST", "http", "h", 80, "/p", false},
        {"POST https://h/p", "POST", "http", "h", 443, "/p", false},
        {"POST *://h/p", "POST", "http", "h", 80, "/p", true},
        {"POST *://h/p", "POST", "https", "h", 443, "/p", true},
        {"POST *://h/p", "POST", "https", "h", 80, "/p", false},
        /* ports */
        {"POST https://h:443/p", "POST", "https", "h", 443, "/p", true},
        {"POST http://h/p", "POST", "http", "h", 80, "/p", true},
        {"POST http://h:80/p", "POST", "http", "h", 80, "/p", true},
        {"POST http://h/p", "POST", "http", "h", 8080, "/p", false},
        {"POST https://h/p", "POST", "https", "h", 80, "/p", false},
        {"POST http://h:8080/p", "POST", "http", "h", 8080, "/p", true},
        {"POST http://h:8080/p", "POST", "http", "h", 80, "/p", false},
        {"POST http://h:*/p", "POST", "http", "h", 80, "/p", true},
        {"POST http://h:*/p", "POST", "http", "h", 65535, "/p", true},
        {"POST http://h/p", "POST", "http", "h", 0, "/p", true},
        /* hosts */
        {"POST https://api.Example.com/p", "POST", "https", "API.example.COM", 443, "/p", true},
        {"POST https://api.example.com/p", "POST", "https", "api.example.com.", 443, "/p", true},
        {"POST https://api.example.com./p", "POST", "https", "api.example.com", 443, "/p", true},
        {"POST https://api.example.com/p", "POST", "https", "example.com", 443, "/p", false},
        {"POST https://example.com/p", "POST", "https", "api.example.com", 443, "/p", false},
        {"POST https://example.com/p", "POST", "https", "example.com.evil", 443, "/p", false},
        {"POST https://example.com/p", "POST", "https", "examplexcom", 443, "/p", false},
        {"POST https://*.example.com/p", "POST", "https", "a.example.com", 443, "/p", true},
        {"POST https://*.example.com/p", "POST", "https", "a.b.example.com", 443, "/p", false},
        {"POST https://*.example.com/p", "POST", "https", "example.com", 443, "/p", false},
        {"POST https://*.example.com/p", "POST", "https", ".example.com", 443, "/p", false},
        {"POST https://a.*.com/p", "POST", "https", "a.b.com", 443, "/p", true},
        {"POST https://*/p", "POST", "https", "localhost", 443, "/p", true},
        {"POST https://*/p", "POST", "https", "a.b", 443, "/p", false},
        {"POST http://127.0.0.1:*/p", "POST", "http", "127.0.0.1", 5000, "/p", true},
        {"POST http://127.0.0.1:*/p", "POST", "http", "127.0.0.2", 5000, "/p", false},
        {"POST https://h/p", "POST", "https", "", 443, "/p", false},
        {"POST http://[::1]/p", "POST", "http", "[::1]", 80, "/p", true},
        {"POST http://[::1]/p", "POST", "http", "::1", 80, "/p", true},
        {"POST http://[::1]:8080/p", "POST", "http", "[0:0:0:0:0:0:0:1]", 8080, "/p", true},
        {"POST http://[::1]:*/p", "POST", "http", "[::1]", 9, "/p", true},
        {"POST http://[fe80::A]/p", "POST", "http", "[FE80:0::a%25eth0]", 80, "/p", true},
        {"POST http://[::1]/p", "POST", "http", "[::2]", 80, "/p", false},
        {"POST http://[::1]/p", "POST", "http", "localhost", 80, "/p", false},
        {"POST http://[::1]/p", "POST", "http", "[", 80, "/p", false},
        {"POST http://h/p", "POST", "http", "[::1]", 80, "/p", false},
        /* paths: whole segments */
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1/orders", true},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1/Orders", false},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1/orders/", false},
        {"POST https://h/v1/orders/", "POST", "https", "h", 443, "/v1/orders/", true},
        {"POST https://h/v1/orders/", "POST", "https", "h", 443, "/v1/orders", false},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1/order", false},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1/orders2", false},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1//orders", false},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1", false},
        {"POST https://h/v1/orders", "POST", "https", "h", 443, "/v1/orders/5", false},
        {"POST https://h", "POST", "https", "h", 443, "/", true},
        {"POST https://h", "POST", "https", "h", 443, "", true},
        {"POST https://h/", "POST", "https", "h", 443, "", true},
        {"POST https://h/", "POST", "https", "h", 443, "/a", false},
        {"POST https://h/p", "POST", "https", "h", 443, "", false},
        {"POST https://h/p", "POST", "https", "h", 443, "p", false},
        {"OPTIONS https://h/p", "OPTIONS", "https", "h", 443, "*", false},
        /* paths: one segment */
        {"POST https://h/o/{id}", "POST", "https", "h", 443, "/o/5", true},
        {"POST https://h/o/{id}", "POST", "https", "h", 443, "/o/", false},
        {"POST https://h/o/{id}", "POST", "https", "h", 443, "/o", false},
        {"POST https://h/o/{id}", "POST", "https", "h", 443, "/o/5/x", false},
        {"POST https://h/o/{id}", "POST", "https", "h", 443, "/o/a%2Fb", true},
        {"POST https://h/o/*/refund", "POST", "https", "h", 443, "/o/5/refund", true},
        {"POST https://h/o/*/refund", "POST", "https", "h", 443, "/o//refund", false},
        {"POST https://h/o/*/refund", "POST", "https", "h", 443, "/o/5/6/refund", false},
        /* paths: the rest */
        {"POST https://h/o/**", "POST", "https", "h", 443, "/o", true},
        {"POST https://h/o/**", "POST", "https", "h", 443, "/o/", true},
        {"POST https://h/o/**", "POST", "https", "h", 443, "/o/a/b/c/", true},
        {"POST https://h/o/**", "POST", "https", "h", 443, "/other", false},
        {"POST https://h/o/**", "POST", "https", "h", 443, "/", false},
        {"POST https://h/o/{id}/**", "POST", "https", "h", 443, "/o/5", true},
        {"POST https://h/o/{id}/**", "POST", "https", "h", 443, "/o/5/x/y", true},
        {"POST https://h/o/{id}/**", "POST", "https", "h", 443, "/o", false},
        {"POST https://h/o/{id}/**", "POST", "https", "h", 443, "/o/", false},
        {"POST https://h/**", "POST", "https", "h", 443, "/", true},
        {"POST https://h/**", "POST", "https", "h", 443, "", true},
        {"POST https://h/**", "POST", "https", "h", 443, "/a/b", true},
        {"POST https://h/**", "POST", "https", "i", 443, "/a/b", false},
        /* every method, also one that nobody has heard of */
        {"* https://h/queue/pop", "GET", "https", "h", 443, "/queue/pop", true},
        {"* https://h/p", "HEAD", "https", "h", 443, "/p", true},
        {"* https://h/p", "POST", "https", "h", 443, "/p", true},
        {"* https://h/p", "ZAP", "https", "h", 443, "/p", true},
        {"* https://h/p", "get", "https", "h", 443, "/p", true},
        {"* https://h/p", "GET", "https", "h", 443, "/q", false},
        {"* https://h/p", "GET", "http", "h", 443, "/p", false},
        {"* *://**", "OPTIONS", "http", "h", 80, "*", true},
        /* every URL */
        {"POST *://**", "POST", "https", "a.b.c", 1234, "/x", true},
        {"POST *://**", "POST", "http", "[::1]", 80, "", true},
        {"POST *://**", "PUT", "http", "h", 80, "/", false},
        {"OPTIONS *://**", "OPTIONS", "http", "h", 80, "*", true},
        {"POST https://**", "POST", "https", "any.where", 8443, "/x/y", true},
        {"POST https://**", "POST", "http", "any.where", 80, "/x/y", false},
        /* percent-encoding */
        {"POST https://h/caf%C3%A9", "POST", "https", "h", 443, "/caf%c3%a9", true},
        {"POST https://h/caf\xc3\xa9", "POST", "https", "h", 443, "/caf%C3%A9", true},
        {"POST https://h/caf%C3%A9", "POST", "https", "h", 443, "/caf\xc3\xa9", true},
        {"POST https://h/orders", "POST", "https", "h", 443, "/%6Frders", true},
        {"POST https://h/%6frders", "POST", "https", "h", 443, "/orders", true},
        {"POST https://h/a/b", "POST", "https", "h", 443, "/a%2Fb", false},
        {"POST https://h/a%2Fb", "POST", "https", "h", 443, "/a%2fb", true},
        {"POST https://h/a%2Fb", "POST", "https", "h", 443, "/a/b", false},
        {"POST https://h/100%", "POST", "https", "h", 443, "/100%", true},
        {"POST https://h/100%25", "POST", "https", "h", 443, "/100%", true},
        {"POST https://h/%zz", "POST", "https", "h", 443, "/%zz", true},
        {"POST https://h/a%00b", "POST", "https", "h", 443, "/a", false},
        {"POST https://h/a", "POST", "https", "h", 443, "/a%00b", false},
        {"POST https://h/a+b", "POST", "https", "h", 443, "/a%20b", false},
};

static struct policy_target target_of(const struct row *row)
{
	return (struct policy_target){span_of(row->method), span_of(row->scheme),
	                              span_of(row->host), row->port, span_of(row->path)};
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_target target = target_of(&rows[i]);
		const char *problem = "";
		struct matcher *m;

		if (matcher_parse(span_of(rows[i].pattern), &m, &problem))
			fail_msg("row %zu: %s %s", i, rows[i].pattern, problem);
		assert_int_equal(matcher_differs(m, &target) == 0, rows[i].matches);
		if (matcher_matches(m, &target) != rows[i].matches)
			fail_msg("row %zu: %s, %s %s %s %u %s: not %d", i, rows[i].pattern,
			         rows[i].method, rows[i].scheme, rows[i].host, rows[i].port,
			         rows[i].path, rows[i].matches);
		matcher_free(m);
	}
}

/* Spans end where they say, whatever stands behind them. */
static void test_spans_are_not_texts(void **state)
{
	struct policy *p = parse(WITH_RULE);
	struct policy_target t = {{"POSTAL", 4}, {"https://", 5}, {"hx", 1}, 443, {"/p?q", 2}};

	(void)state;
	assert_non_null(policy_match(p, &t));
	t.path.n = 3;
	assert_null(policy_match(p, &t));
	policy_free(p);
}

static void test_first_match_wins(void **state)
{
	struct policy *p = parse("version: 1\n"
	                         "writes:\n"
	                         "  - {operation: one, match: \"POST https://h/o/{id}/refund\"}\n"
	                         "  - {operation: two, match: \"POST https://h/o/**\"}\n"
	                         "  - {operation: two, match: \"PUT https://h/o/**\"}\n"
	                         "  - {operation: all, match: \"POST,PUT *://**\"}\n");
	static const struct row asked[] = {
	        {"one", "POST", "https", "h", 443, "/o/5/refund", true},
	        {"two", "POST", "https", "h", 443, "/o/5/refunds", true},
	        {"two", "PUT", "https", "h", 443, "/o", true},
	        {"all", "PUT", "https", "h", 444, "/o", true},
	        {NULL, "DELETE", "https", "h", 443, "/o", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		struct policy_target target = target_of(&asked[i]);
		const struct rule *rule = policy_match(p, &target);

		assert_int_equal(rule != NULL, asked[i].pattern != NULL);
		if (rule)
			assert_string_equal(rule->operation, asked[i].pattern);
	}
	assert_string_equal(p->rules[0].path_text, "/o/{id}/refund");
	assert_string_equal(p->rules[3].path_text, "/**");
	policy_free(p);
}

static void test_no_rules(void **state)
{
	struct policy *p = parse("version: 1\n");
	struct policy_target target = {span_of("POST"), span_of("https"), span_of("h"), 443,
	                               span_of("/")};

	(void)state;
	assert_null(policy_match(p, &target));
	policy_free(p);
}

struct cover {
	const char *a, *b;
	bool covers;
};

static const struct cover covers[] = {
        {"POST https://h/p", "POST https://h/p", true},
        {"POST https://h/p", "POST https://H:443/%70", true},
        {"POST,PUT https://h/p", "PUT https://h/p", true},
        {"PUT https://h/p", "POST,PUT https://h/p", false},
        {"* https://h/p", "POST,PUT https://h/p", true},
        {"* https://h/p", "* https://h/p", true},
        {"* https://h/p", "GET https://h/q", false},
        {"GET,HEAD,POST,PUT,PATCH,DELETE https://h/p", "* https://h/p", false},
        {"POST *://h/p", "POST https://h/p", true},
        {"POST https://h/p", "POST *://h/p", false},
        {"POST *://h/p", "POST http://h:80/p", true},
        {"POST *://h/p", "POST http://h:443/p", false},
        {"POST *://h:443/p", "POST *://h/p", false},
        {"POST https://h:*/p", "POST https://h:1/p", true},
        {"POST https://h:1/p", "POST https://h:*/p", false},
        {"POST https://*.c/p", "POST https://b.c/p", true},
        {"POST https://b.c/p", "POST https://*.c/p", false},
        {"POST https://*.c/p", "POST https://*.c/p", true},
        {"POST https://*/p", "POST https://b.c/p", false},
        {"POST https://**", "POST https://b.c:1/p", true},
        {"POST https://b.c/**", "POST https://**", false},
        {"POST http://[::1]/p", "POST http://[0::1]/p", true},
        {"POST http://[::1]/p", "POST http://[::2]/p", false},
        {"POST http://*/p", "POST http://[::2]/p", false},
        {"POST *://**", "POST http://[::2]/p", true},
        {"POST https://h/**", "POST https://h/a/{b}/c", true},
        {"POST https://h/a/**", "POST https://h/a", true},
        {"POST https://h/a/**", "POST https://h/**", false},
        {"POST https://h/a/{x}/**", "POST https://h/a/**", false},
        {"POST https://h/a/**", "POST https://h/a/{x}/**", true},
        {"POST https://h/{x}", "POST https://h/a", true},
        {"POST https://h/{x}", "POST https://h/*", true},
        {"POST https://h/a", "POST https://h/{x}", false},
        {"POST https://h/{x}", "POST https://h/", false},
        {"POST https://h/{x}", "POST https://h/**", false},
        {"POST https://h/a", "POST https://h/a/", false},
        {"POST https://h/a/b", "POST https://h/a", false},
};

static void test_covers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(covers) / sizeof(*covers); i++) {
		struct matcher *a, *b;
		const char *problem;

		assert_int_equal(matcher_parse(span_of(covers[i].a), &a, &problem), 0);
		assert_int_equal(matcher_parse(span_of(covers[i].b), &b, &problem), 0);
		if (matcher_covers(a, b) != covers[i].covers)
			fail_msg("%s over %s: not %d", covers[i].a, covers[i].b, covers[i].covers);
		matcher_free(a);
		matcher_free(b);
	}
}

/* What covers a pattern matches whatever the pattern matches: held against the table of targets. */
static void test_covers_agrees_with_matches(void **state)
{
	enum { COUNT = sizeof(rows) / sizeof(*rows) };
	static struct matcher *m[COUNT];
	const char *problem;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(matcher_parse(span_of(rows[i].pattern), &m[i], &problem), 0);
	for (size_t a = 0; a < COUNT; a++) {
		for (size_t b = 0; b < COUNT; b++) {
			if (!matcher_covers(m[a], m[b]))
				continue;
			for (size_t t = 0; t < COUNT; t++) {
				struct policy_target target = target_of(&rows[t]);

				if (matcher_matches(m[b], &target))
					assert_true(matcher_matches(m[a], &target));
			}
		}
	}
	for (size_t i = 0; i < COUNT; i++)
		matcher_free(m[i]);
}

/* --- the index finds what a search through all rules finds --- */

static unsigned long seed = 1;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (unsigned)(seed >> 33) % n;
}

static const char *const methods[] = {"POST", "PUT", "POST,PUT", "*", "DELETE"};
static const char *const hosts[] = {
        "a.example.com",     "*.example.com", "A.EXAMPLE.com.",    "b.example.com", "[::1]",
        "[0:0:0:0:0:0:0:1]", "*:*",           "a.example.com:8080"};
static const char *const patterns[] = {"/",
                                       "",
                                       "/v1/orders",
                                       "/v1/%6frders",
                                       "/v1/{x}",
                                       "/**",
                                       "/v1/**",
                                       "/v1/orders/{id}/items",
                                       "/{x}/orders",
                                       "/a/b/c/d/e/f/g/h/i/j",
                                       "/a/b/c/d/e/f/g/h/i/*"};
static const char *const asked_methods[] = {"POST", "PUT", "DELETE", "GET"};
static const char *const asked_hosts[] = {
        "a.example.com", "A.Example.COM", "b.example.com.", "c.example.com",
        "[::1]",         "::1",           "other",          ""};
static const char *const asked_paths[] = {"/",
                                          "",
                                          "/v1/orders",
                                          "/%76%31/orders",
                                          "/v1/x",
                                          "/v1/orders/",
                                          "/v1",
                                          "/v1/orders/7/items",
                                          "/x/orders",
                                          "*",
                                          "/a/b/c/d/e/f/g/h/i/j",
                                          "/a/b/c/d/e/f/g/h/i/k"};
#define ANY(list) list[pick(sizeof(list) / sizeof(*(list)))]

static struct policy *random_policy(void)
{
	static char text[40000];
	size_t n = (size_t)sprintf(text, "version: 1\nwrites:\n");
	unsigned rules = 1 + pick(60);

	for (unsigned i = 0; i < rules; i++)
		n += (size_t)sprintf(text + n, "  - {operation: r%u, match: '%s %s://%s%s'%s}\n", i,
		                     ANY(methods), pick(3) ? "https" : "*", ANY(hosts),
		                     ANY(patterns), pick(4) ? "" : ", when: {query: {a: b}}");
	return parse(text);
}

static const struct rule *search(const struct policy *p, const struct policy_target *target,
                                 size_t from)
{
	for (size_t i = from; i < p->rule_count; i++) {
		if (matcher_matches(p->rules[i].matcher, target))
			return &p->rules[i];
	}
	return NULL;
}

static const struct rule *search_covering(const struct policy *p, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (!p->rules[i].when.count &&
		    matcher_covers(p->rules[i].matcher, p->rules[at].matcher))
			return &p->rules[i];
	}
	return NULL;
}

static void test_index(void **state)
{
	unsigned found = 0, covered = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct policy *p = random_policy();

		for (int i = 0; i < 60; i++) {
			struct policy_target target = {
			        span_of(ANY(asked_methods)), span_of(pick(2) ? "https" : "http"),
			        span_of(ANY(asked_hosts)), pick(3) ? 0 : 8080,
			        span_of(ANY(asked_paths))};
			const struct rule *rule = policy_match(p, &target),
			                  *other = search(p, &target, 0);

			while (rule && rule == other) {
				found++;
				other = search(p, &target, (size_t)(rule - p->rules) + 1);
				rule = policy_match_after(p, &target, rule);
			}
			assert_ptr_equal(rule, other);
		}
		for (size_t i = 0; i < p->rule_count; i++) {
			assert_ptr_equal(index_covering(p, i), search_covering(p, i));
			covered += index_covering(p, i) != NULL;
		}
		policy_free(p);
	}
	assert_true(found > 1000 && covered > 500);
}

/* The best of some tries, in nanoseconds, of going through `count` rules of one URL. */
static int64_t time_of_walking(unsigned count)
{
	struct policy_target target = {span_of("POST"), span_of("https"), span_of("h"), 0,
	                               span_of("/p")};
	int64_t best = INT64_MAX;
	struct buf text = {0};
	struct policy *p;

	buf_add_text(&text, "version: 1\nwrites:\n");
	for (unsigned i = 0; i < count; i++)
		buf_add_text(&text, "  - {operation: a, match: POST https://h/p}\n");
	p = parse(text.data);
	for (int i = 0; i < 9; i++) {
		struct timespec from, to;
		unsigned seen = 0;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
		for (const struct rule *rule = policy_match(p, &target); rule;
		     rule = policy_match_after(p, &target, rule))
			seen++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
		assert_int_equal(seen, count);
		if (best > (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec)
			best = (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
	}
	policy_free(p);
	buf_free(&text);
	return best;
}

/* Ten times as many rules cost ten times as much, not a hundred times. */
static void test_going_on_is_not_beginning_again(void **state)
{
	(void)state;
	assert_true(time_of_walking(3000) < 35 * time_of_walking(300));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_table),
	        cmocka_unit_test(test_spans_are_not_texts),
	        cmocka_unit_test(test_first_match_wins),
	        cmocka_unit_test(test_no_rules),
	        cmocka_unit_test(test_covers),
	        cmocka_unit_test(test_covers_agrees_with_matches),
	        cmocka_unit_test(test_index),
	        cmocka_unit_test(test_going_on_is_not_beginning_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
