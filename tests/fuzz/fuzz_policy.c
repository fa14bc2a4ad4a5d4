/* Fuzzing of policies: any bytes, parsed, linted and matched against.
 *
 * What is held: no crash, no leak, an error has a text and a place, a policy has neither. */
#include <stdlib.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *env(void *ctx, const char *name)
{
	(void)ctx;
	return name[0] == 'S' ? "/some/value" : NULL;
}

static void ignore(void *ctx, const struct policy_warning *warning)
{
	(void)ctx;
	(void)warning;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void match(const struct policy *policy, const uint8_t *data, size_t size)
{
	struct span end = {(const char *)data + size / 2, size - size / 2};
	struct policy_target target = {span_of("POST"), span_of("https"), end, 443, end};

	policy_match(policy, &target);
	for (size_t i = 0; i < policy->rule_count; i++) {
		target.path = span_of(policy->rules[i].path_text);
		policy_match(policy, &target);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_error error;
	struct policy *policy;
	int rc = policy_parse("fuzz", (const char *)data, size, env, NULL, &policy, &error);

	check((rc == POLICY_OK) == (policy != NULL));
	check((rc == POLICY_OK) == (error.text[0] == '\0'));
	check((rc == POLICY_INVALID) == (error.line > 0 && error.column > 0));
	if (policy) {
		policy_lint(policy, ignore, NULL);
		match(policy, data, size);
	}
	policy_free(policy);
	return 0;
}
