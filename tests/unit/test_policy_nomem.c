/* A policy read while memory runs out: every allocation of ours fails once, each time the error is
 * POLICY_NOMEM with a text, and all that was taken is given back.
 *
 * The sources are compiled in here, with the allocator's names redefined; libyaml keeps its own. */
#include "policy_test.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

static long allocated, until_failure;

static bool fails_now(void)
{
	return until_failure > 0 && --until_failure == 0;
}

static void *test_calloc_(size_t n, size_t size)
{
	void *p = fails_now() ? NULL : calloc(n, size);

	allocated += p != NULL;
	return p;
}

static void *test_malloc_(size_t n)
{
	return test_calloc_(1, n);
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
#undef calloc
#undef realloc
#undef free
#define malloc  test_malloc_
#define calloc  test_calloc_
#define realloc test_realloc_
#define free    test_free_
#include "../../src/base/bytes.c"
#include "../../src/policy/values.c"
#include "../../src/policy/tree.c"
#include "../../src/policy/pattern.c"
#include "../../src/policy/match.c"
#include "../../src/policy/reader.c"
#include "../../src/policy/predicate.c"
#include "../../src/policy/rule_key.c"
#undef AT
#include "../../src/policy/rule.c"
#undef AT
#include "../../src/policy/index.c"
#include "../../src/policy/file.c"
#include "../../src/policy/expand.c"
#include "../../src/policy/writes.c"
#include "../../src/policy/policy.c"

static const char whole[] =
        "version: 1\nscope: \"${A}-b\"\nrun: r\nstep: s\n"
        "ledger: {path: \"${A}/l\"}\nevents: /e\n"
        "writes:\n"
        "  - operation: a.b\n"
        "    match: POST,PUT https://h:*/p/{x}/%41/**\n"
        "    when: {json: {/a: [b, c]}, query: {d: graphql:query}}\n"
        "    provider: {dedups: true, key_ttl: 1h, stores: [2xx]}\n"
        "    key: {carrier: 'header:X-Key', id: c}\n"
        "    identity: {target: t, fields: [/a, b], ignore: [/c], must_match: [/d],\n"
        "               account: [header:X, env:Y]}\n"
        "  - {operation: d, match: 'PUT http://[::1]/', identity: {target: auto}}\n";

static const char *env(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return "/value";
}

static void test_parse(void **state)
{
	struct policy_error error;
	struct policy *policy;
	long at = 0;
	int rc;

	(void)state;
	do {
		until_failure = ++at;
		rc = policy_parse("p", whole, sizeof(whole) - 1, env, NULL, &policy, &error);
		if (rc == POLICY_OK)
			break;
		assert_int_equal(rc, POLICY_NOMEM);
		assert_null(policy);
		assert_string_equal(error.text, "p: out of memory");
		assert_int_equal(error.line, 0);
		assert_int_equal(allocated, 0);
	} while (at < 10000);
	assert_true(at > 80 && until_failure > 0);
	assert_int_equal(policy->rule_count, 2);
	policy_free(policy);
	assert_int_equal(allocated, 0);
}

static void test_load(void **state)
{
	char path[] = "/tmp/sendonce-policy-XXXXXX";
	int fd = mkstemp(path);
	struct policy_error error;
	struct policy *policy;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, whole, sizeof(whole) - 1), sizeof(whole) - 1);
	close(fd);
	until_failure = 1; /* the buffer the file is read into */
	assert_int_equal(policy_load(path, env, NULL, &policy, &error), POLICY_NOMEM);
	assert_null(policy);
	assert_non_null(strstr(error.text, "out of memory"));
	assert_int_equal(allocated, 0);
	unlink(path);
}

/* Every malformed value gives back what was read before it. */
static void test_errors_leak_nothing(void **state)
{
	struct policy_error error;
	struct policy *policy;

	(void)state;
	until_failure = 0;
	for (size_t cut = 0; cut < sizeof(whole) - 1; cut++) {
		if (policy_parse("p", whole, cut, env, NULL, &policy, &error) == POLICY_OK)
			policy_free(policy);
		if (allocated)
			fail_msg("%ld blocks kept after %zu bytes: %s", allocated, cut, error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_parse),
	        cmocka_unit_test(test_load),
	        cmocka_unit_test(test_errors_leak_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
