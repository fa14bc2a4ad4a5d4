/* Audit: what a program writes is written down, and nothing else is done.
 *
 * Not one byte on the wire is another, nothing is refused, no ledger is opened. The request is
 * performed on the program's own handle with a few callbacks chained (chain.h), and one event says
 * what was seen: what would have been decided is worked out later, from the event log. */
#ifndef SENDONCE_INTERCEPT_AUDIT_H
#define SENDONCE_INTERCEPT_AUDIT_H

#include "intercept/process.h"
#include "intercept/shadow.h"

/* curl_easy_perform, watched. `rule` null: a write that no rule names. */
CURLcode audit_perform(struct shadow *s, const struct process *process, const struct rule *rule);

#endif
