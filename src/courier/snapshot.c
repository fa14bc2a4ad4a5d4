/* Snapshots of getinfo, for readers on other threads.
 *
 * Snapshots of getinfo cost more than anything else here, so they are not taken at every step: one
 * at the end; one after a turn that brought header lines but not the end of the transfer, since a
 * program may ask in its callbacks, and what a turn brought is shown to readers only after it; and
 * one where a turn changed something and the last snapshot is 50 ms old, or nothing happened for a
 * millisecond after it. A short exchange pays for the last one alone.
 *
 * In a crowd the last kind is left out: hardly any of a thousand transfers under way is asked
 * about. A reader that finds one unseen has all that are old taken in the driver's next turn.
 *
 * Attempts with something new are on a list of the courier's; the others are not looked at. */
#include "courier/inside.h"

enum { CAPTURE_US = 50000, LOOK_US = 100000 };

void snapshot_take(struct attempt *a)
{
	struct info *info = info_new();

	if (!info)
		return;
	info_capture(info, a->courier->fl, a->easy);
	tape_info(a->tape, info);
	a->stale = a->stale_head = false;
	/* relaxed: the tape's lock publishes what there is to see */
	atomic_store_explicit(&a->unseen, false, memory_order_relaxed);
	a->captured_us = courier_now();
}

void attempt_fresh(struct attempt *a)
{
	struct courier *c = a->courier;

	if (a->fresh)
		return;
	a->fresh = true;
	a->next_fresh = c->fresh;
	c->fresh = attempt_ref(a);
}

static void snapshot_show(struct attempt *a)
{
	if (!a->unshown)
		return;
	a->unshown = false;
	tape_show(a->tape);
	attempt_tell(a, 0);
}

static bool snapshot_is_due(const struct attempt *a, bool quiet, int64_t now)
{
	if (!a->stale || a->stale_head)
		return a->stale;
	return !a->courier->ready.on && (quiet || now - a->captured_us >= CAPTURE_US);
}

/* An old snapshot stays on the list until its time has come; in a crowd it has to be asked for. */
static void snapshot_put_off(struct attempt *a)
{
	if (a->courier->ready.on)
		/* relaxed: who reads it too early finds what was there before, as told */
		atomic_store_explicit(&a->unseen, true, memory_order_relaxed);
	else
		attempt_fresh(a);
}

void snapshots_after(struct courier *c, bool quiet)
{
	struct attempt *a = c->fresh, *next;
	int64_t now = a ? courier_now() : 0;

	if (!a)
		return;
	pthread_mutex_lock(&c->lock);
	for (; a; a = a->next_fresh)
		a->flying = a->state == ATTEMPT_FLYING;
	pthread_mutex_unlock(&c->lock);
	a = c->fresh;
	c->fresh = NULL;
	for (; a; a = next) {
		next = a->next_fresh;
		a->fresh = false;
		if (a->flying) {
			if (snapshot_is_due(a, quiet, now))
				snapshot_take(a);
			snapshot_show(a);
			if (a->stale)
				snapshot_put_off(a);
		}
		attempt_unref(a);
	}
}

static bool snapshot_is_new(struct courier *c, void *arg)
{
	struct attempt *a = arg;

	(void)c;
	return a->state != ATTEMPT_FLYING ||
	       !atomic_load_explicit(&a->unseen, memory_order_relaxed);
}

void attempt_look(struct attempt *a)
{
	struct courier *c = a->courier;

	if (!atomic_load_explicit(&a->unseen, memory_order_relaxed))
		return;
	pthread_mutex_lock(&c->lock);
	c->look = true;
	courier_ask(c);
	courier_drive(c, snapshot_is_new, a, courier_now() + LOOK_US);
	pthread_mutex_unlock(&c->lock);
}
