/* The way of one write: from a perform that a rule names to what the program is told. */
#ifndef SENDONCE_INTERCEPT_WRITE_H
#define SENDONCE_INTERCEPT_WRITE_H

#include "intercept/process.h"
#include "intercept/shadow.h"
#include "verdict/verdict.h"

/* Perform the write on the program's thread; the CURLcode is what curl_easy_perform returns. */
/* `in_place`: why its handle must do it itself; null: the courier does it. */
CURLcode write_perform(struct shadow *s, const struct process *process, const struct rule *rule,
                       const char *in_place);

/* Refuse a request because the policy cannot be used: process->error says why. */
CURLcode write_refuse_policy(struct shadow *s, const struct process *process);

/* Refuse a write that no rule names, where the policy wants that. */
bool write_refuses_unlisted(const struct shadow *s, const struct process *process);
/* `rule` may be null. */
CURLcode write_refuse(struct shadow *s, const struct process *process, const struct rule *rule,
                      enum verdict_reason reason);

/* Refuse what a redirect led to: `method` and `target` are where. */
CURLcode write_refuse_redirected(struct shadow *s, const struct process *process,
                                 const struct rule *rule, const char *method,
                                 const struct request_target *target);

/* A write a rule names that passes unprotected: an event and a counter, never silent. */
void write_unprotected(const struct shadow *s, const struct process *process,
                       const struct rule *rule, const char *why);

#endif
