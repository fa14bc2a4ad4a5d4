/* News of attempts: counted for whoever waits here, rung for programs' loops that sleep elsewhere.
 *
 * The driver notes whose news listeners have to hear of, and rings once a turn, when the turn's
 * snapshots are on the tapes: a loop that comes at the first bell finds all of it. */
#include "courier/inside.h"

void attempt_count(struct attempt *a, unsigned phase)
{
	/* relaxed: `news`, added below, is what publishes it */
	atomic_fetch_or_explicit(&a->phase, phase, memory_order_relaxed);
	/* seq_cst: releases the tape, the phase and the counters that this news is about, and comes
	 * before the look at `heard` that follows it */
	atomic_fetch_add_explicit(&a->news, 1, memory_order_seq_cst);
}

void attempt_tell(struct attempt *a, unsigned phase)
{
	struct courier *c = a->courier;

	attempt_count(a, phase);
	/* seq_cst: who listens from a moment later on sees the news itself (attempt_listen) */
	if (a->told || !atomic_load_explicit(&a->heard, memory_order_seq_cst))
		return;
	/* seq_cst: likewise */
	if (phase && !atomic_load_explicit(&a->phases, memory_order_seq_cst))
		return;
	a->told = true;
	a->next_told = c->told;
	c->told = attempt_ref(a);
}

void attempt_ring(const struct attempt *a)
{
	for (const struct listener *l = a->listeners; l; l = l->next)
		bell_tell(l->bell, l->note);
}

/* A loop may come by at the first bell: what ended first has to be there. */
static struct attempt *told_first(struct attempt *last)
{
	struct attempt *first = NULL, *before;

	for (; last; last = before) {
		before = last->next_told;
		last->next_told = first;
		first = last;
	}
	return first;
}

/* Once a turn, when all of it has been done. With the lock held, which is given up. */
void courier_ring(struct courier *c)
{
	struct attempt *told = told_first(c->told), *next;

	c->told = NULL;
	for (struct attempt *a = told; a; a = a->next_told)
		attempt_ring(a);
	pthread_mutex_unlock(&c->lock);
	for (; told; told = next) {
		next = told->next_told;
		told->told = false;
		attempt_unref(told);
	}
	pthread_mutex_lock(&c->lock);
}

bool attempt_listen(struct attempt *a, struct listener *l)
{
	struct courier *c = a->courier;
	bool driven;

	pthread_mutex_lock(&c->lock);
	l->next = a->listeners;
	a->listeners = l;
	/* seq_cst: either the driver sees them at its next news, or we see that news */
	if (l->phases)
		atomic_store_explicit(&a->phases, true, memory_order_seq_cst);
	atomic_store_explicit(&a->heard, true, memory_order_seq_cst);
	if (a->state != ATTEMPT_ENDED)
		life_background(c);
	driven = c->background || a->state == ATTEMPT_ENDED;
	pthread_mutex_unlock(&c->lock);
	return driven;
}

void attempt_unlisten(struct attempt *a, struct listener *l)
{
	struct courier *c = a->courier;

	pthread_mutex_lock(&c->lock);
	for (struct listener **at = &a->listeners; *at; at = &(*at)->next) {
		if (*at == l) {
			*at = l->next;
			break;
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* relaxed: a hint; the driver looks again at its next turn anyway */
void attempt_played(struct attempt *a)
{
	struct courier *c = a->courier;

	if (!atomic_load_explicit(&a->paused, memory_order_relaxed) || tape_full(a->tape))
		return;
	pthread_mutex_lock(&c->lock);
	courier_ask(c);
	pthread_mutex_unlock(&c->lock);
}
