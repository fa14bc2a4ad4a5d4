/* See bell.h. `rung` keeps it to one byte in the pair, whatever has happened since it was cleared:
 * a ring costs a system call only when the loop may be asleep. */
#include "courier/bell.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "courier/inside.h"

struct bell {
	atomic_uint refs;
	atomic_bool rung;
	struct held pair[2]; /* the loop looks at the first */
};

struct bell *bell_new(void)
{
	struct bell *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->pair[0].fd = b->pair[1].fd = -1;
	if (held_pair(b->pair))
		return b;
	bell_unref(b);
	return NULL;
}

struct bell *bell_ref(struct bell *b)
{
	/* relaxed: whoever passes the pointer on holds a reference already */
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return b;
}

void bell_unref(struct bell *b)
{
	/* acq_rel: every use by others happens before the memory is freed */
	if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	held_close(&b->pair[0]);
	held_close(&b->pair[1]);
	free(b);
}

int bell_fd(const struct bell *b)
{
	return b->pair[0].fd;
}

void bell_ring(struct bell *b)
{
	int keep = errno;

	/* acq_rel: passes on what happened before to whoever clears it */
	if (!atomic_exchange_explicit(&b->rung, true, memory_order_acq_rel) &&
	    held_still(&b->pair[1]))
		(void)send(b->pair[1].fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	errno = keep;
}

/* Emptied first: what rings in between is seen by the look that follows. It is emptied whatever
 * `rung` says, since the byte of a ring may come after the look that it was for. */
void bell_clear(struct bell *b)
{
	int keep = errno;
	char bytes[8];

	while (held_still(&b->pair[0]) &&
	       recv(b->pair[0].fd, bytes, sizeof bytes, MSG_DONTWAIT) == (ssize_t)sizeof bytes)
		;
	/* acq_rel: pairs with bell_ring */
	atomic_exchange_explicit(&b->rung, false, memory_order_acq_rel);
	errno = keep;
}

void bell_forked(struct bell *b)
{
	held_close(&b->pair[0]);
	held_close(&b->pair[1]);
}
