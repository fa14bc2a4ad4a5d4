/* The way of one write: from a perform that a rule names to what the program is told. The steps it
 * consists of are in writing.h. */
#ifndef SENDONCE_INTERCEPT_WRITE_H
#define SENDONCE_INTERCEPT_WRITE_H

#include "intercept/process.h"
#include "intercept/shadow.h"
#include "verdict/verdict.h"

struct writing;

/* Begin a write; nothing of the program's runs yet. `in_place`: why its handle must do it itself;
 * null: the courier does it. All three give null when there is no memory. */
struct writing *write_begin(struct shadow *s, const struct process *process,
                            const struct rule *rule, const char *in_place);
/* Begin to refuse a request because the policy cannot be used: process->error says why. */
struct writing *write_begin_policy(struct shadow *s, const struct process *process);
/* Begin to refuse what a redirect led to: `method` and `target` are where. */
struct writing *write_begin_redirected(struct shadow *s, const struct process *process,
                                       const struct rule *rule, const char *method,
                                       const struct request_target *target);

/* Begin to refuse a write that no rule names, where the policy wants that. */
bool write_refuses_unlisted(const struct shadow *s, const struct process *process);
/* `rule` may be null. */
struct writing *write_begin_refusal(struct shadow *s, const struct process *process,
                                    const struct rule *rule, enum verdict_reason reason);

/* Go through with it on this thread, and free it. What curl_easy_perform returns; `w` may be null.
 */
CURLcode write_through(struct writing *w);

/* A write a rule names that passes unprotected: an event and a counter, never silent. */
void write_unprotected(const struct shadow *s, const struct process *process,
                       const struct rule *rule, const char *why);

#endif
