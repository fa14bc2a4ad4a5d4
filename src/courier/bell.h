/* What wakes a program's loop: a descriptor that becomes readable when something it waits for has
 * happened in another thread. A pair of sockets and not an eventfd, because the descriptors of
 * eventfds cannot be told apart once the program has closed and reused the number. */
#ifndef SENDONCE_COURIER_BELL_H
#define SENDONCE_COURIER_BELL_H

struct bell; /* counted references */

struct bell *bell_new(void); /* null: no descriptor, or no memory */
struct bell *bell_ref(struct bell *b);
void bell_unref(struct bell *b); /* null is fine */

/* What the loop has to look at; -1: the program has closed it. */
int bell_fd(const struct bell *b);
/* By any thread. What happened before is seen by whoever looks after bell_clear. */
void bell_ring(struct bell *b);
/* By the loop, before it looks at what may have happened. */
void bell_clear(struct bell *b);
/* In a child of fork(2): the pair is the parent's, and rings there. */
void bell_forked(struct bell *b);

#endif
