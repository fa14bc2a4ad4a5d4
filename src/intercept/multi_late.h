/* Options that a program sets on a handle it has added to its multi already, before the loop has
 * come by for the first time: natively they count, so what the handle is to us may be another thing
 * than when it was added. */
#ifndef SENDONCE_INTERCEPT_MULTI_LATE_H
#define SENDONCE_INTERCEPT_MULTI_LATE_H

#include "base/curlapi.h"

struct multi;
struct shadow;

/* Each handle's place in its multi's list, and the list's head. All zero: in none, empty. */
struct late {
	struct late *next, *prev;
};

/* It was just added: from now on late_note looks. */
void late_watch(struct shadow *s, const struct multi *m);
/* An option was set. */
void late_note(struct shadow *s);
/* It leaves its multi, or is gone. */
void late_forget(struct shadow *s);
/* The loop comes by, before anything else is done: what was noted is decided once more. A handle
 * that cannot be put in again as what it is now has a message of that, as if its transfer had
 * ended, and is in no multi. */
void late_settle(struct multi *m);
/* The multi is gone. */
void late_free(struct multi *m);

#endif
