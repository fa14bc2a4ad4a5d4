/* In place: a write on the program's own handle, because it has something that only the program's
 * own transfer can run (SSL_CTX_FUNCTION, OPENSOCKETFUNCTION, ...).
 *
 * Key, gate and tee are chained for the one perform. Everything the program's side ends (its
 * timeout, its abort) ends the sending too, and leaves the record unknown once its gate has opened:
 * there is nobody to go on. */
#ifndef SENDONCE_INTERCEPT_INPLACE_H
#define SENDONCE_INTERCEPT_INPLACE_H

#include "intercept/carry.h"
#include "intercept/send.h"
#include "intercept/writing.h"

/* Have the program's handle perform what `send` holds, with the key as `carried` says
 * (STEP_NATIVE), and go on with what comes of it. Takes both over. */
enum step inplace_send(struct writing *w, struct send *send, struct carried *carried);
/* The program gave the handle up in the middle of it; libcurl does not touch it any more. */
void inplace_abandon(struct writing *w);

/* A handle the courier cannot carry: can it be served in place? Its body must be known. */
bool inplace_can(const struct shadow *s);
/* Count one that is; `reason` as gather_obstacle gave it. */
void inplace_count(struct ledger *ledger, const char *reason);

#endif
