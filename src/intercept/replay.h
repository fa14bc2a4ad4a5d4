/* Mode replay: listed writes come from the ledger, and nothing else that writes leaves. */
#ifndef SENDONCE_INTERCEPT_REPLAY_H
#define SENDONCE_INTERCEPT_REPLAY_H

#include "intercept/process.h"
#include "intercept/shadow.h"
#include "verdict/verdict.h"

/* True: this request, which no rule names (its target may not even be HTTP), must not be made;
 * *code is what the program gets. Always false in other modes. */
bool replay_stops(struct shadow *s, const struct process *process, CURLcode *code);
/* Whether this request, which no rule names, must not leave. */
bool replay_would_stop(const struct shadow *s, const struct process *process);
/* How it is stopped: what is not HTTP with a CURLcode, the rest with a refusal for that reason. */
bool replay_is_raw(const struct shadow *s);
enum verdict_reason replay_reason(const struct shadow *s);
/* Says it, and is what the program gets. */
CURLcode replay_stop_raw(struct shadow *s, const struct process *process);

#endif
