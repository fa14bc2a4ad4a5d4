/* The inside of exit: detach, for life.c. */
#ifndef SENDONCE_COURIER_DETACH_H
#define SENDONCE_COURIER_DETACH_H

#include "courier/inside.h"

/* Gives what may go on without this process to a child, and returns when the child is the owner, or
 * when that cannot be done (the attempts are then still here). */
void courier_detach(void);

/* In the fork handlers, with the locks held: is this courier handed over by this fork? */
bool detach_takes(const struct courier *c);
void detach_leave(struct courier *c); /* in the parent */
void detach_keep(struct courier *c);  /* in the child */

#endif
