/* Driving: whoever waits for a tape does the work of all attempts of its courier.
 *
 * One thread at a time holds the leadership. It takes a turn (new and cancelled attempts,
 * curl_multi_perform, finished transfers), sleeps in curl_multi_wait when there is nothing to do,
 * and leaves as soon as there is news for its own attempt. The others sleep on a condition until a
 * turn is over or the leadership is free. Queueing from another thread wakes the leader up.
 *
 * SIGPIPE is kept away while driving (shield.c). A program that leaves our poll by siglongjmp finds
 * its leadership again. */
#include "courier/inside.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE_POLL_MS = 1000, LOST_US = 5000000 };

int64_t courier_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* --- the end of an attempt --- */

/* Without PREREQ only these prove that no byte of the request left. */
static bool drive_never_sent(struct attempt *a, CURLcode code)
{
	double sent = 1;

	if (!(atomic_load_explicit(&a->phase, memory_order_relaxed) & GATED))
		return true;
	if (!a->passes.by_lines || a->asked_again)
		return false;
	if (code != CURLE_COULDNT_RESOLVE_PROXY && code != CURLE_COULDNT_RESOLVE_HOST &&
	    code != CURLE_COULDNT_CONNECT && code != CURLE_SSL_CONNECT_ERROR &&
	    code != CURLE_PEER_FAILED_VERIFICATION)
		return false;
	CURL_FN(a->courier->fl, easy_getinfo)(a->easy, CURLINFO_PRETRANSFER_TIME, &sent);
	return sent <= 0;
}

static void drive_unlist(struct courier *c, struct attempt *a)
{
	if (a->prev)
		a->prev->next = a->next;
	else
		c->all = a->next;
	if (a->next)
		a->next->prev = a->prev;
	a->next = a->prev = NULL;
	c->count--;
}

/* By the driver, without the lock. `added`: it is on the CURLM. */
static void drive_end(struct courier *c, struct attempt *a, CURLcode code, bool added)
{
	struct tape_end end = {.ended = true, .code = code, .complete = code == CURLE_OK};
	CURL *easy = a->easy;

	if (added)
		CURL_FN(c->fl, multi_remove_handle)(c->multi, easy);
	crowd_connected(a);
	again_flush(a);
	snapshot_take(a);
	end.stopped = drive_never_sent(a, code);
	end.status = a->passes.status;
	end.seen_at = passes_seen_at(&a->passes, code != CURLE_OK);
	memcpy(end.text, a->error, sizeof end.text);
	end.text[sizeof end.text - 1] = '\0';
	if (a->cookie_engine)
		CURL_FN(c->fl, easy_getinfo)(easy, CURLINFO_COOKIELIST, &a->cookies);
	a->easy = NULL;
	if (c->share)
		CURL_FN(c->fl, easy_setopt)(easy, CURLOPT_SHARE, NULL);
	if (a->stays && code == CURLE_OK)
		stay_keep(a, easy);
	else
		courier_give_easy(c, easy, !a->cookie_engine && !(a->work & WORK_CANCEL));
	a->calls.ended(a->ctx, a->tape, &end);
	tape_finish(a->tape, &end);
	a->calls.release(a->ctx);
	pthread_mutex_lock(&c->lock);
	a->state = ATTEMPT_ENDED;
	drive_unlist(c, a);
	attempt_tell(a, 0);
	pthread_mutex_unlock(&c->lock);
	attempt_unref(a);
}

/* --- one turn --- */

static void drive_due(struct courier *c, int64_t when)
{
	if (when < c->due_us)
		c->due_us = when;
}

static unsigned drive_exit_work(struct courier *c, struct attempt *a, int64_t now)
{
	int64_t end = c->exit_us + a->exit_wait_us;

	if (!c->exit_us || a->abandoned)
		return 0;
	/* what has not left yet does not outlive the program */
	if (!(atomic_load_explicit(&a->phase, memory_order_relaxed) & GATED)) {
		a->cancel_code = CURLE_ABORTED_BY_CALLBACK;
		return WORK_CANCEL;
	}
	if (now < end) {
		drive_due(c, end);
		return 0;
	}
	a->abandoned = true;
	return WORK_ABANDON;
}

static bool drive_lingered(struct courier *c, struct attempt *a, int64_t now)
{
	int64_t end = a->idle_us + a->linger_us;

	if (!a->orphan || a->waiting || a->listeners || c->exit_us)
		return false;
	if (now < end) {
		drive_due(c, end);
		return false;
	}
	a->cancel_code = CURLE_OPERATION_TIMEDOUT;
	return true;
}

/* To be sent again, and nobody waits for it any more: the last answer is the answer. */
static bool drive_gives_up(struct courier *c, struct attempt *a)
{
	if (!a->again_us || again_is_awaited(c, a))
		return false;
	a->cancel_code = CURLE_OK;
	return true;
}

static unsigned drive_work_of(struct courier *c, struct attempt *a, int64_t now)
{
	unsigned work = drive_exit_work(c, a, now);

	if (a->cancel || drive_lingered(c, a, now) || drive_gives_up(c, a))
		work |= WORK_CANCEL;
	else if (a->state == ATTEMPT_QUEUED && a->again_us <= now)
		work |= WORK_ADD;
	else if (a->state == ATTEMPT_QUEUED)
		drive_due(c, a->again_us);
	if (c->look && a->stale && a->state == ATTEMPT_FLYING)
		work |= WORK_LOOK;
	if (a->renew_us <= now)
		work |= WORK_RENEW;
	drive_due(c, a->renew_us <= now ? now + RENEW_US : a->renew_us);
	/* relaxed: the driver's own note to itself */
	if (atomic_load_explicit(&a->paused, memory_order_relaxed))
		work |= WORK_UNPAUSE;
	return work;
}

/* Nothing is to be done for any attempt before it is asked for, or its time comes. What nobody says
 * (a listener is gone) is seen within a second. */
static bool drive_must_look(struct courier *c, int64_t now)
{
	if (c->asked || c->pausing)
		return true;
	return (now >= c->due_us || now - c->looked_us >= IDLE_POLL_MS * INT64_C(1000)) &&
	       !batch_is_coming(c, now);
}

/* With the lock held: what is to be done, as a chain that the driver walks without it. */
static struct attempt *drive_collect(struct courier *c)
{
	struct attempt *todo = NULL;
	int64_t now = courier_now();
	bool wider;

	if (!drive_must_look(c, now))
		return NULL;
	wider = bounds_widen(c);
	c->asked = c->pausing = false;
	c->looked_us = now;
	c->due_us = NEVER_US;
	for (struct attempt *a = c->all; a; a = a->next) {
		a->work = drive_work_of(c, a, now);
		if (wider && bounds_hold(a))
			a->work |= WORK_AGAIN;
		c->pausing = c->pausing || (a->work & WORK_UNPAUSE);
		if (!a->work)
			continue;
		a->todo = todo;
		todo = a;
	}
	c->look = false;
	return todo;
}

static void drive_add(struct courier *c, struct attempt *a)
{
	again_begin(a);
	if (gate_before_add(a)) {
		drive_end(c, a, CURLE_ABORTED_BY_CALLBACK, false);
		return;
	}
	if (c->share)
		CURL_FN(c->fl, easy_setopt)(a->easy, CURLOPT_SHARE, c->share);
	CURL_FN(c->fl, easy_setopt)(a->easy, CURLOPT_PRIVATE, a);
	if (CURL_FN(c->fl, multi_add_handle)(c->multi, a->easy)) {
		drive_end(c, a, CURLE_FAILED_INIT, false);
		return;
	}
	if (a->unshown) /* from before it began */
		attempt_fresh(a);
	pthread_mutex_lock(&c->lock);
	a->state = ATTEMPT_FLYING;
	pthread_mutex_unlock(&c->lock);
}

static void drive_put_in_again(struct courier *c, struct attempt *a)
{
	CURL_FN(c->fl, multi_remove_handle)(c->multi, a->easy);
	if (CURL_FN(c->fl, multi_add_handle)(c->multi, a->easy))
		drive_end(c, a, CURLE_FAILED_INIT, false);
}

static void drive_act(struct courier *c, struct attempt *a)
{
	unsigned work = a->work;

	if (work & WORK_ABANDON)
		a->calls.abandon(a->ctx);
	if (work & WORK_CANCEL) {
		drive_end(c, a, a->cancel_code, a->state == ATTEMPT_FLYING);
		return;
	}
	if (work & WORK_LOOK)
		snapshot_take(a);
	if (work & WORK_RENEW) {
		a->renew_us = courier_now() + RENEW_US;
		a->calls.renew(a->ctx);
	}
	if ((work & WORK_UNPAUSE) && !tape_full(a->tape)) {
		atomic_store_explicit(&a->paused, false, memory_order_relaxed);
		CURL_FN(c->fl, easy_pause)(a->easy, CURLPAUSE_CONT);
	}
	if (work & WORK_ADD)
		drive_add(c, a);
	else if (work & WORK_AGAIN)
		drive_put_in_again(c, a);
}

/* All that have ended, in that order. Each is taken out of the list of messages before one is taken
 * off the CURLM, for which libcurl looks through that list. */
static struct attempt *drive_ended(struct courier *c)
{
	struct attempt *first = NULL, **last = &first;
	struct CURLMsg *m;
	int left;

	while ((m = CURL_FN(c->fl, multi_info_read)(c->multi, &left))) {
		struct attempt *a = NULL;
		CURL *easy = m->easy_handle;

		if (m->msg != CURLMSG_DONE)
			continue;
		CURL_FN(c->fl, easy_getinfo)(easy, CURLINFO_PRIVATE, (char **)&a);
		if (!a || a->easy != easy) /* a handle libcurl made for itself (DoH) */
			continue;
		a->code = m->data.result;
		a->todo = NULL;
		*last = a;
		last = &a->todo;
	}
	return first;
}

static void drive_reap(struct courier *c)
{
	struct attempt *a, *next;

	for (a = drive_ended(c); a; a = next) {
		next = a->todo;
		if (!again_later(c, a, a->code))
			drive_end(c, a, a->code, true);
	}
}

static void drive_transfers(struct courier *c)
{
	int running;

	if (!c->multi)
		return;
	if (c->ready.on)
		ready_perform(c);
	else
		CURL_FN(c->fl, multi_perform)(c->multi, &running);
	drive_reap(c);
}

static void drive_turn(struct courier *c)
{
	struct attempt *next, *todo;

	todo = drive_collect(c);
	c->crowd = c->count;
	struct courier_bounds bounds = bounds_now(c);
	pthread_mutex_unlock(&c->lock);
	if (todo)
		rest_end(c);
	if (c->multi) {
		crowd_keep(c);
		bounds_keep(c, &bounds);
		ready_choose(c);
		crowd_connect(c, todo);
	}
	for (; todo; todo = next) {
		next = todo->todo;
		drive_act(c, todo);
	}
	drive_transfers(c);
	snapshots_after(c, false);
	pthread_mutex_lock(&c->lock);
	ready_end(c);
	if (c->told)
		courier_ring(c);
	if (c->sleeping)
		pthread_cond_broadcast(&c->changed);
}

/* --- leading and following --- */

static int drive_poll_ms(struct courier *c, int64_t until)
{
	int64_t end = until < c->due_us ? until : c->due_us;
	int64_t left = end == NEVER_US ? IDLE_POLL_MS : (end - courier_now() + 999) / 1000;

	if (left > IDLE_POLL_MS)
		left = IDLE_POLL_MS;
	return left < 0 ? 0 : (int)left;
}

static void drive_lead(struct courier *c, courier_done *done, void *arg, int64_t until, int cancel)
{
	struct shield shield;
	unsigned epoch = ++c->epoch;

	c->driven = true;
	c->driver = pthread_self();
	shield_up(&shield);
	for (;;) {
		drive_turn(c);
		if (c->closed || done(c, arg) || courier_now() >= until)
			break;
		if (c->asked)
			continue;
		int ms = drive_poll_ms(c, until);
		bool stale = c->fresh && !c->ready.on;
		int wake = courier_wake_fd(c);
		if (c->ready.on)
			ready_open(&c->ready, &c->wake[0]);
		c->polling = true;
		c->poll_end_us = courier_now() + (int64_t)ms * 1000;
		pthread_mutex_unlock(&c->lock);
		courier_sleep(c, wake, ms, stale, cancel);
		pthread_mutex_lock(&c->lock);
		if (c->epoch != epoch || c->closed) { /* not ours any more */
			shield_down(&shield);
			return;
		}
		c->polling = false;
	}
	rest_begin(c);
	/* what was asked for after the turn is left to the next driver, who is woken here */
	c->driven = c->closed;
	if (c->sleeping)
		pthread_cond_broadcast(&c->changed);
	shield_down(&shield);
}

static void drive_follow(struct courier *c, int64_t until)
{
	struct timespec ts;
	int64_t latest = courier_now() + 1000000;

	if (until > latest)
		until = latest; /* a driver that vanished is looked for now and then */
	ts.tv_sec = (time_t)(until / 1000000);
	ts.tv_nsec = (long)(until % 1000000) * 1000;
	c->sleeping++;
	pthread_cond_timedwait(&c->changed, &c->lock, &ts);
	c->sleeping--;
}

void courier_leave_poll(struct courier *c)
{
	if (!c->driven || !c->polling || c->closed || !pthread_equal(c->driver, pthread_self()))
		return;
	c->driven = c->polling = false;
	c->epoch++;
	pthread_cond_broadcast(&c->changed);
}

/* A driver that left its poll without coming back: by siglongjmp out of a signal handler (this very
 * thread then), or cancelled. Everything is at rest there, so its leadership is taken over. */
static bool drive_is_lost(const struct courier *c)
{
	if (!c->driven || !c->polling)
		return false;
	return pthread_equal(c->driver, pthread_self()) || courier_now() > c->poll_end_us + LOST_US;
}

/* A thread may be cancelled where nothing is held: asleep in the driver's poll, and here. */
static void drive_let_cancel(struct courier *c, int cancel)
{
	int ours;

	pthread_mutex_unlock(&c->lock);
	pthread_setcancelstate(cancel, &ours);
	pthread_testcancel();
	pthread_setcancelstate(ours, &ours);
	pthread_mutex_lock(&c->lock);
}

void courier_drive(struct courier *c, courier_done *done, void *arg, int64_t until)
{
	int cancel, ours;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (bool first = true; !c->closed && !done(c, arg); first = false) {
		if (drive_is_lost(c))
			c->driven = c->polling = false;
		if ((!first || c->driven) && courier_now() >= until)
			break;
		if (!c->driven) {
			drive_lead(c, done, arg, until, cancel);
			continue;
		}
		drive_follow(c, until);
		if (cancel == PTHREAD_CANCEL_ENABLE)
			drive_let_cancel(c, cancel);
	}
	pthread_setcancelstate(cancel, &ours);
}
