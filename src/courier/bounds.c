/* A program that bounds the connections of its multi (CURLMOPT_MAX_HOST_CONNECTIONS and its like)
 * means its writes, too: they wait for each other, in the order they were added, and a server never
 * sees more of them at once. So such a multi has a courier of its own, whose CURLM has the same
 * bounds. One whose multi is gone is taken for the next such multi, once it is idle.
 *
 * A sending that its program has given up on takes nobody's place, as natively it would have ended:
 * the bounds are wider by so many. What waits for a place does so inside libcurl, which looks again
 * when a connection is done; when the bounds are widened it is taken out and put in once more.
 *
 * Not promised: what libcurl sends by itself in the same multi (reads, what is served in place) is
 * counted apart. Where there are too many couriers already, a multi's writes have no bounds. */
#include "courier/inside.h"

#include <limits.h>

bool bounds_fit(const struct courier *c, const struct courier_bounds *wanted)
{
	return c->bounded == (wanted->owner != 0) && c->bounds.owner == wanted->owner;
}

bool bounds_are_free(struct courier *c)
{
	bool idle;

	if (!c->bounded || c->bounds.owner)
		return false;
	pthread_mutex_lock(&c->lock);
	idle = !c->all;
	pthread_mutex_unlock(&c->lock);
	return idle;
}

void bounds_take(struct courier *c, const struct courier_bounds *wanted)
{
	if (!c->bounded)
		return;
	pthread_mutex_lock(&c->lock);
	c->bounds = *wanted;
	pthread_mutex_unlock(&c->lock);
}

void bounds_give_up(const struct flavour *fl, uint64_t owner)
{
	if (!owner)
		return;
	pthread_mutex_lock(&courier_table_lock);
	for (struct courier *c = courier_table; c; c = c->next) {
		if (!c->bounded || c->fl != fl || c->bounds.owner != owner)
			continue;
		pthread_mutex_lock(&c->lock); /* who drives reads it under that one */
		c->bounds.owner = 0;
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&courier_table_lock);
}

bool bounds_widen(struct courier *c)
{
	unsigned orphans = 0, before = c->orphans;

	for (const struct attempt *a = c->bounded ? c->all : NULL; a; a = a->next)
		orphans += a->orphan && a->state == ATTEMPT_FLYING;
	c->orphans = orphans;
	return orphans > before;
}

bool bounds_hold(const struct attempt *a)
{
	/* relaxed: the driver's own notes */
	return a->state == ATTEMPT_FLYING && !a->orphan &&
	       atomic_load_explicit(&a->phase, memory_order_relaxed) == 0;
}

static long bounds_wider(long bound, unsigned more)
{
	return bound && bound <= LONG_MAX - (long)more ? bound + (long)more : bound;
}

struct courier_bounds bounds_now(const struct courier *c)
{
	struct courier_bounds b = c->bounds;

	b.host = bounds_wider(b.host, c->orphans);
	b.total = bounds_wider(b.total, c->orphans);
	return b;
}

static void bounds_tell(struct courier *c, CURLMoption option, long was, long is)
{
	if (was != is)
		CURL_FN(c->fl, multi_setopt)(c->multi, option, is);
}

void bounds_keep(struct courier *c, const struct courier_bounds *now)
{
	struct courier_bounds *old = &c->bound;

	if (!c->bounded)
		return;
	bounds_tell(c, CURLMOPT_MAX_HOST_CONNECTIONS, old->host, now->host);
	bounds_tell(c, CURLMOPT_MAX_TOTAL_CONNECTIONS, old->total, now->total);
	bounds_tell(c, CURLMOPT_PIPELINING, old->apart ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX,
	            now->apart ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX);
	if (CURL_HAS(c->fl, multi_poll)) /* as old as it or older */
		bounds_tell(c, CURLMOPT_MAX_CONCURRENT_STREAMS, old->streams, now->streams);
	*old = *now;
}
