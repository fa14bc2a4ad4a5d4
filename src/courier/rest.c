/* A courier at rest: when a program cleans its multi up and nothing is in flight, what the courier
 * holds open goes, as the connections of that multi would natively. The CURLM goes with it, since
 * libcurl closes idle connections on no other occasion, and comes back with the next write. The
 * courier of another multi with bounds (bounds.c) keeps its own. */
#include "courier/inside.h"

static bool rest_is_over(struct courier *c, void *arg)
{
	(void)arg;
	return !c->let_go;
}

void courier_let_go(const struct flavour *fl, uint64_t owner)
{
	struct courier *all;

	bounds_give_up(fl, owner);
	pthread_mutex_lock(&courier_table_lock);
	all = courier_table;
	pthread_mutex_unlock(&courier_table_lock);
	for (struct courier *c = all; c; c = c->next) {
		if (c->fl != fl)
			continue;
		pthread_mutex_lock(&c->lock);
		c->let_go = !c->all && !c->closed && !c->bounds.owner;
		courier_drive(c, rest_is_over, NULL, 0); /* or whoever drives does it, leaving */
		pthread_mutex_unlock(&c->lock);
	}
}

/* By the driver, with the lock held, which is given up meanwhile. Not where the program has closed
 * one of ours: the goodbye would go into whatever has its number now. */
void rest_begin(struct courier *c)
{
	CURLM *multi = c->multi;

	if (!c->let_go)
		return;
	c->let_go = false;
	if (c->all || c->closed || c->spoiled || !multi)
		return;
	pthread_mutex_unlock(&c->lock);
	if (held_all_there(c)) {
		CURL_FN(c->fl, multi_cleanup)(multi);
		c->multi = NULL;
		c->kept = COURIER_CONNECTIONS;
		ready_forget(c);
	}
	pthread_mutex_lock(&c->lock);
	if (!c->multi && !c->sleeping) {
		held_close(&c->wake[0]);
		held_close(&c->wake[1]);
	}
}

/* By the driver, without the lock. */
void rest_end(struct courier *c)
{
	if (c->multi)
		return;
	c->multi = pool_multi(c->fl);
	c->bound = (struct courier_bounds){0};
	if (c->multi)
		ready_prepare(c);
}
