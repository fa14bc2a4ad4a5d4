/* What wakes a program's loop: a descriptor that becomes readable when something it waits for has
 * happened in another thread. A pair of sockets and not an eventfd, because the descriptors of
 * eventfds cannot be told apart once the program has closed and reused the number. */
#ifndef SENDONCE_COURIER_BELL_H
#define SENDONCE_COURIER_BELL_H

#include <stdatomic.h>
#include <stdbool.h>

struct bell; /* counted references */

/* For whom it was rung. The loop's memory; all zero is one that was not. */
struct bell_note {
	struct bell_note *next;
	atomic_bool left; /* it is with the bell */
};

struct bell *bell_new(void); /* null: no descriptor, or no memory */
struct bell *bell_ref(struct bell *b);
void bell_unref(struct bell *b); /* null is fine */

/* What the loop has to look at; -1: the program has closed it. */
int bell_fd(const struct bell *b);
/* By any thread. What happened before is seen by whoever looks after bell_clear. */
void bell_ring(struct bell *b);
/* The same, and leaves a note. */
void bell_tell(struct bell *b, struct bell_note *note);
/* By the loop: each note that was left since it last asked, in no order. What happened before a
 * note was left is seen here; one that is left again comes again. */
void bell_take(struct bell *b, void (*each)(void *ctx, struct bell_note *note), void *ctx);
bool bell_has_notes(const struct bell *b);
/* By the loop, before it looks at what may have happened. */
void bell_clear(struct bell *b);
/* In a child of fork(2): the pair is the parent's, and rings there. */
void bell_forked(struct bell *b);

#endif
