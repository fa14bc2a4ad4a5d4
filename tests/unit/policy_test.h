/* What the tests of the policy share: a table for an environment, and a policy from text. */
#ifndef SENDONCE_TESTS_POLICY_TEST_H
#define SENDONCE_TESTS_POLICY_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "policy/policy.h"

#define WITH_RULE "version: 1\nwrites:\n  - operation: a.b\n    match: POST https://h/p\n"

/* `ctx` is NAME, VALUE, NAME, VALUE, ..., null; or null for an empty environment. */
static inline const char *table_env(void *ctx, const char *name)
{
	const char **pair = ctx;

	for (; pair && *pair; pair += 2) {
		if (strcmp(*pair, name) == 0)
			return pair[1];
	}
	return NULL;
}

static inline struct policy *parse_env(const char *text, const char **env)
{
	struct policy_error error;
	struct policy *policy = NULL;
	int rc = policy_parse("p.yaml", text, strlen(text), table_env, env, &policy, &error);

	if (rc)
		fail_msg("%s", error.text);
	assert_int_equal(error.line, 0);
	assert_string_equal(error.text, "");
	return policy;
}

static inline struct policy *parse(const char *text)
{
	return parse_env(text, NULL);
}

/* A policy that must be refused; gives the error. */
static inline struct policy_error refuse(const char *text, size_t n)
{
	struct policy_error error;
	struct policy *policy = (struct policy *)&error;
	int rc = policy_parse("p.yaml", text, n, table_env, NULL, &policy, &error);

	assert_int_equal(rc, POLICY_INVALID);
	assert_null(policy);
	return error;
}

#endif
