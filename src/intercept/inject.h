/* Mode inject: every listed write is sent, with a key. Nothing is joined, replayed or refused.
 *
 * The ledger only says which key: a retry gets the key of the try before, a write that enforce
 * would call a new one gets a new one. Its records lie in a domain of their own, where enforce does
 * not find them; the keys themselves are those that enforce would have made. */
#ifndef SENDONCE_INTERCEPT_INJECT_H
#define SENDONCE_INTERCEPT_INJECT_H

#include "intercept/writing.h"

/* The identity is made: look for the key and send. */
enum step inject_send(struct writing *w);
/* It could not be made (`failed`, and in words `why`, which may be null): the request goes as it
 * came, and that is said. */
enum step inject_failed(struct writing *w, enum verdict_reason failed, const char *why);

#endif
