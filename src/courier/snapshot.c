/* Snapshots of getinfo, for readers on other threads.
 *
 * Snapshots of getinfo cost more than anything else here, so they are not taken at every step: one
 * at the end; one after a turn that brought header lines but not the end of the transfer, since a
 * program may ask in its callbacks, and what a turn brought is shown to readers only after it; and
 * one where a turn changed something and the last snapshot is 50 ms old, or nothing happened for a
 * millisecond after it. A short exchange pays for the last one alone.
 *
 * Attempts with something new are on a list of the courier's; the others are not looked at. */
#include "courier/inside.h"

enum { CAPTURE_US = 50000 };

void snapshot_take(struct attempt *a)
{
	struct info *info = info_new();

	if (!info)
		return;
	info_capture(info, a->courier->fl, a->easy);
	tape_info(a->tape, info);
	a->stale = a->stale_head = false;
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
	return a->stale && (quiet || a->stale_head || now - a->captured_us >= CAPTURE_US);
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
				attempt_fresh(a);
		}
		attempt_unref(a);
	}
}
