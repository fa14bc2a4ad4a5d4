/* Options that a program sets on a handle it has added to its multi already, before the loop has
 * come by for the first time: natively they count, so what the handle is to us may be another thing
 * than when it was added. */
#ifndef SENDONCE_INTERCEPT_MULTI_LATE_H
#define SENDONCE_INTERCEPT_MULTI_LATE_H

#include "intercept/multi.h"
#include "intercept/shadow.h"

/* It was just added: from now on late_note looks. */
void late_watch(struct shadow *s, const struct multi *m);
/* An option was set. CURLE_OUT_OF_MEMORY, or CURLE_OK. */
CURLcode late_note(const struct shadow *s);
/* The loop comes by, before anything else is done: what was noted is decided once more. */
void late_settle(struct multi *m);
/* The multi is gone. */
void late_free(struct multi *m);

#endif
