/* Mode inject: every listed write is sent, with a key. Nothing is joined, replayed or refused.
 *
 * The ledger only says which key: a retry gets the key of the try before, a write that enforce
 * would call a new one gets a new one. Its records lie in a domain of their own, where enforce does
 * not find them; the keys themselves are those that enforce would have made. */
#ifndef SENDONCE_INTERCEPT_INJECT_H
#define SENDONCE_INTERCEPT_INJECT_H

#include "intercept/writing.h"

/* After the identity was made, or could not be (`failed`, and in words `why`, which may be null):
 * then the request goes as it came, and that is said. Sets w->code. */
void inject_perform(struct writing *w, enum verdict_reason failed, const char *why);

#endif
