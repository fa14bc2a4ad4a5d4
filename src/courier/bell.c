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
	_Atomic(struct bell_note *) notes;
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

void bell_tell(struct bell *b, struct bell_note *note)
{
	struct bell_note *first;

	/* acq_rel: passes on what happened before to bell_take, also where the note lies there */
	if (!atomic_exchange_explicit(&note->left, true, memory_order_acq_rel)) {
		/* relaxed: what is read of it is only put back */
		first = atomic_load_explicit(&b->notes, memory_order_relaxed);
		do
			note->next = first;
		while (!atomic_compare_exchange_weak_explicit(
		        /* release: the note's own words; relaxed: as above */
		        &b->notes, &first, note, memory_order_release, memory_order_relaxed));
	}
	bell_ring(b);
}

/* Only the loop takes notes out, and all of them at once, so none can be lost or met twice. */
void bell_take(struct bell *b, void (*each)(void *ctx, struct bell_note *note), void *ctx)
{
	/* acquire: pairs with the release in bell_tell */
	struct bell_note *n = atomic_exchange_explicit(&b->notes, NULL, memory_order_acquire);
	struct bell_note *next;

	for (; n; n = next) {
		next = n->next;
		/* acq_rel: pairs with a bell_tell that found it lying there */
		atomic_exchange_explicit(&n->left, false, memory_order_acq_rel);
		each(ctx, n);
	}
}

bool bell_has_notes(const struct bell *b)
{
	/* relaxed: whoever finds one takes it before it looks */
	return atomic_load_explicit(&b->notes, memory_order_relaxed) != NULL;
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
