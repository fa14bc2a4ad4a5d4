/* Which rule names the request a handle is about to make. */
#ifndef SENDONCE_INTERCEPT_CHOOSE_H
#define SENDONCE_INTERCEPT_CHOOSE_H

#include "identity/identity.h"
#include "intercept/process.h"
#include "intercept/shadow.h"

/* The first rule whose `match` and `when` name it, or null. Where `when` asks for a body that a
 * read callback gives, it is the first rule that may name it: choose_is_open says so, and
 * choose_read, when the body was read, which one it is. */
const struct rule *choose_rule(struct shadow *s, const struct process *process);
bool choose_is_open(const struct shadow *s, const struct rule *rule);
const struct rule *choose_read(const struct process *process, const struct rule *rule,
                               const struct identity_in *in);

/* The rule for what a redirect of the handle's request leads to. What is open counts as named. */
const struct rule *choose_redirected(const struct shadow *s, const struct process *process,
                                     const char *method, const struct request_target *target);

#endif
