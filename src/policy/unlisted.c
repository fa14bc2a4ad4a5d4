/* The rule for writes that no rule names: the schema's defaults, and nothing else. Audit and the
 * report need one to call two of them the same. */
#include <string.h>

#include "policy/policy.h"

int policy_defaults(struct policy **out)
{
	static const char text[] = "version: 1\n"
	                           "writes:\n"
	                           "  - operation: unlisted\n"
	                           "    match: '* *://**'\n";
	struct policy_error error;

	return policy_parse("defaults", text, strlen(text), NULL, NULL, out, &error);
}
