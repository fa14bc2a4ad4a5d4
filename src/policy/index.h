/* Which rules can match at all: found by host, method and the beginning of the path. */
#ifndef SENDONCE_POLICY_INDEX_H
#define SENDONCE_POLICY_INDEX_H

#include "policy/policy.h"

struct rule_index;

/* Of all rules of the policy, which must not change any more. 0, or -1 out of memory. */
int index_make(const struct policy *policy, struct rule_index **out);
void index_free(struct rule_index *index);

/* The first rule from number `from` on that matches, or null. */
const struct rule *index_match(const struct policy *policy, const struct policy_target *target,
                               size_t from);
/* The first rule before number `at` that matches whatever that one matches, and has no `when`. */
const struct rule *index_covering(const struct policy *policy, size_t at);

#endif
