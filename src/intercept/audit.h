/* Audit: what a program writes is written down, and nothing else is done.
 *
 * Not one byte on the wire is another, nothing is refused, no ledger is opened. The request is
 * performed on the program's own handle with a few callbacks chained (chain.h), and one event says
 * what was seen: what would have been decided is worked out later, from the event log. */
#ifndef SENDONCE_INTERCEPT_AUDIT_H
#define SENDONCE_INTERCEPT_AUDIT_H

#include "intercept/process.h"
#include "intercept/shadow.h"

struct audit;
struct writing;

/* Watch the handle until audit_end. `rule` null: a write that no rule names. Null: no memory, or it
 * cannot be watched: it goes as it is. */
struct audit *audit_begin(struct shadow *s, const struct process *process, const struct rule *rule);
/* libcurl has performed it, with `code`: written down. Not null: a redirect led it to a listed
 * target, and this is the refusal. Frees. */
struct writing *audit_end(struct audit *a, CURLcode code);
/* The program gave the handle up in the middle. */
void audit_abandon(struct audit *a);

#endif
