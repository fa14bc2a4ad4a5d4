/* Attempts as the rest of the program knows them: started, waited for, orphaned, cancelled.
 *
 * An attempt has two owners: whoever started it, and the courier until it has ended. Nothing here
 * touches the transfer itself; what a caller wants done is noted under the lock and done by
 * whoever drives, the caller itself when nobody else does. */
#include "courier/inside.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The version of news this thread has seen, so that nothing is slept through between two waits. */
static __thread struct {
	uint64_t id;
	unsigned news;
} attempt_seen;

static void attempt_free(struct attempt *a)
{
	tape_unref(a->tape);
	tape_unref(a->held);
	if (a->kept)
		CURL_FN(a->courier->fl, easy_cleanup)(a->kept);
	build_free(a);
	free(a);
}

struct attempt *attempt_ref(struct attempt *a)
{
	/* relaxed: whoever passes the pointer on holds a reference already */
	atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
	return a;
}

void attempt_unref(struct attempt *a)
{
	/* acq_rel: every use by others happens before the memory is freed */
	if (a && atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1)
		attempt_free(a);
}

static struct attempt *attempt_new(const struct courier_plan *plan, struct courier *c)
{
	static atomic_ullong last_id;
	struct attempt *a = malloc(sizeof *a);

	if (!a)
		return NULL;
	memset(a, 0, offsetof(struct attempt, error));
	a->error[0] = '\0';
	a->tape = tape_new(plan->keep);
	if (!a->tape) {
		free(a);
		return NULL;
	}
	tape_hold(a->tape);
	atomic_init(&a->refs, 1);
	/* relaxed: only has to be another number each time */
	a->id = 1 + atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
	a->courier = c;
	a->calls = plan->calls;
	a->ctx = plan->ctx;
	a->linger_us = plan->linger_us;
	a->exit_wait_us = plan->exit_wait_us;
	a->detaches = plan->detaches;
	a->cancel_code = CURLE_ABORTED_BY_CALLBACK;
	a->idle_us = courier_now();
	a->renew_us = a->idle_us + RENEW_US;
	a->captured_us = a->idle_us;
	return a;
}

int attempt_start(const struct courier_plan *plan, struct attempt **out)
{
	const struct curl_slist *resolve = options_pointer(plan->options, CURLOPT_RESOLVE);
	struct courier *c = courier_of(plan->flavour, resolve, &plan->bounds);
	struct attempt *a = c ? attempt_new(plan, c) : NULL;
	int rc;

	if (!c)
		return COURIER_CANNOT;
	if (!a)
		return COURIER_NOMEM;
	rc = build_handle(a, plan);
	if (rc) {
		courier_give_easy(c, a->easy, false);
		attempt_free(a);
		return rc;
	}
	if (plan->ready)
		plan->ready(plan->ctx, a);
	attempt_ref(a); /* the courier's, until it has ended */
	pthread_mutex_lock(&c->lock);
	if (c->closed) { /* a destructor of the program writes after our exit is through */
		pthread_mutex_unlock(&c->lock);
		courier_give_easy(c, a->easy, false);
		attempt_unref(a);
		attempt_unref(a);
		return COURIER_CLOSED;
	}
	a->next = c->all;
	if (c->all)
		c->all->prev = a;
	c->all = a;
	c->count++;
	if (!batch_puts_off(c))
		courier_ask(c);
	pthread_mutex_unlock(&c->lock);
	*out = a;
	return COURIER_OK;
}

struct tape *attempt_tape(struct attempt *a)
{
	return a->tape;
}

struct attempt_waiter {
	struct attempt *attempt;
	unsigned seen;
};

static bool attempt_has_news(struct courier *c, void *arg)
{
	struct attempt_waiter *w = arg;

	(void)c;
	/* acquire: what the news is about is visible to whoever counts it */
	return w->attempt->state == ATTEMPT_ENDED ||
	       atomic_load_explicit(&w->attempt->news, memory_order_acquire) != w->seen;
}

/* The wait this thread is in; found still set when a signal handler jumped out of it. The key says
 * the same when the thread ends: it was cancelled there, or jumped out and never came back. */
static __thread struct attempt *attempt_inside;
static pthread_key_t attempt_key;
static pthread_once_t attempt_once = PTHREAD_ONCE_INIT;

static void attempt_leave_inside(void)
{
	struct attempt *a = attempt_inside;

	if (!a)
		return;
	attempt_inside = NULL;
	pthread_setspecific(attempt_key, NULL);
	pthread_mutex_lock(&a->courier->lock);
	if (a->waiting)
		a->waiting--;
	courier_leave_poll(a->courier);
	pthread_mutex_unlock(&a->courier->lock);
	attempt_unref(a);
}

static void attempt_thread_ends(void *arg)
{
	struct attempt *a = attempt_ref(arg);

	attempt_leave_inside();
	attempt_orphan(a);
	attempt_unref(a);
}

static void attempt_make_key(void)
{
	if (pthread_key_create(&attempt_key, attempt_thread_ends))
		attempt_key = (pthread_key_t)-1; /* none is left: setting it does nothing */
}

void attempt_wait(struct attempt *a, int64_t until_us)
{
	struct courier *c = a->courier;
	struct attempt_waiter w = {a, attempt_seen.id == a->id ? attempt_seen.news : 0};

	pthread_once(&attempt_once, attempt_make_key);
	courier_batch_end();
	attempt_leave_inside();
	attempt_inside = attempt_ref(a);
	pthread_setspecific(attempt_key, a);
	pthread_mutex_lock(&c->lock);
	a->waiting++;
	/* relaxed: a hint; the driver looks again at its next turn anyway */
	if (c->driven && atomic_load_explicit(&a->paused, memory_order_relaxed) &&
	    !tape_full(a->tape))
		courier_wake(c);
	courier_drive(c, attempt_has_news, &w, until_us);
	a->idle_us = courier_now();
	attempt_seen.id = a->id;
	attempt_seen.news = atomic_load_explicit(&a->news, memory_order_acquire);
	pthread_mutex_unlock(&c->lock);
	attempt_leave_inside();
}

unsigned attempt_news(const struct attempt *a)
{
	/* acquire: what the news is about is visible to whoever counts it */
	return atomic_load_explicit(&a->news, memory_order_acquire);
}

void attempt_phase(struct attempt *a, struct attempt_phase *out)
{
	unsigned phase = atomic_load_explicit(&a->phase, memory_order_acquire);

	out->resolved = phase & RESOLVED;
	out->connected = phase & CONNECTED;
	out->gated = phase & GATED;
	out->queued = a->courier->bounded && !(phase & (STARTED | RESOLVED));
	out->ended = tape_has_ended(a->tape);
	/* relaxed: a number for progress callbacks */
	out->uploaded = atomic_load_explicit(&a->uploaded, memory_order_relaxed);
}

static bool attempt_has_ended(struct courier *c, void *arg)
{
	(void)c;
	return ((struct attempt *)arg)->state == ATTEMPT_ENDED;
}

void attempt_cancel(struct attempt *a)
{
	struct courier *c = a->courier;

	pthread_mutex_lock(&c->lock);
	if (a->state != ATTEMPT_ENDED) {
		a->cancel = true;
		courier_ask(c);
		courier_drive(c, attempt_has_ended, a, courier_now() + 1000000);
	}
	pthread_mutex_unlock(&c->lock);
}

void attempt_drop(struct attempt *a)
{
	struct courier *c = a->courier;

	pthread_mutex_lock(&c->lock);
	if (a->state != ATTEMPT_ENDED) {
		a->cancel = true;
		courier_ask(c);
		life_background(c);
	}
	pthread_mutex_unlock(&c->lock);
}

void attempt_orphan(struct attempt *a)
{
	struct courier *c = a->courier;

	attempt_leave_inside();
	pthread_mutex_lock(&c->lock);
	if (a->state != ATTEMPT_ENDED && !a->orphan) {
		a->orphan = true;
		a->idle_us = courier_now();
		courier_ask(c);
		life_background(c);
	}
	pthread_mutex_unlock(&c->lock);
}

/* The second list was taken before the tape's end was told; neither changes afterwards. */
bool attempt_cookies(struct attempt *a, const struct curl_slist **before,
                     const struct curl_slist **after)
{
	struct tape_end end;

	tape_ended(a->tape, &end);
	if (!end.ended || !a->cookie_engine)
		return false;
	*before = a->old_cookies;
	*after = a->cookies;
	return true;
}
