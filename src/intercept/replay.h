/* Mode replay: listed writes come from the ledger, and nothing else that writes leaves. */
#ifndef SENDONCE_INTERCEPT_REPLAY_H
#define SENDONCE_INTERCEPT_REPLAY_H

#include "intercept/process.h"
#include "intercept/shadow.h"

/* True: this request, which no rule names (its target may not even be HTTP), must not be made;
 * *code is what the program gets. Always false in other modes. */
bool replay_stops(struct shadow *s, const struct process *process, CURLcode *code);
/* Is it one that replay_stops would stop? For a program's multi, which cannot be given an answer.
 */
bool replay_would_stop(const struct shadow *s, const struct process *process);

#endif
