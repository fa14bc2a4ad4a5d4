/* Reading one entry of `writes`. */
#ifndef SENDONCE_POLICY_RULE_H
#define SENDONCE_POLICY_RULE_H

#include "policy/reader.h"

extern const struct section rule_section, rule_provider_section, rule_key_section,
        rule_identity_section, rule_answers_section;

/* Defaults first, then the file's values, then what must fit together. `rule` is all zero before,
 * and to be given to rule_free whatever is returned. */
int rule_read(struct reader *r, const struct node *map, struct rule *rule);
void rule_free(struct rule *rule);

#endif
