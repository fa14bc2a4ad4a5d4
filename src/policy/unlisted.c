/* Policies that no file holds. The rule for writes that no rule names is the schema's defaults, and
 * nothing else: audit and the report need one to call two of them the same. The empty one is what
 * audit runs by where there is none yet. */
#include <string.h>

#include "policy/policy.h"

static int parse(const char *text, policy_env *env, void *ctx, struct policy **out)
{
	struct policy_error error;

	return policy_parse("defaults", text, strlen(text), env, ctx, out, &error);
}

int policy_empty(policy_env *env, void *ctx, struct policy **out)
{
	return parse("version: 1\nmode: audit\n", env, ctx, out);
}

int policy_defaults(struct policy **out)
{
	static const char text[] = "version: 1\n"
	                           "writes:\n"
	                           "  - operation: unlisted\n"
	                           "    match: '* *://**'\n";

	return parse(text, NULL, NULL, out);
}
