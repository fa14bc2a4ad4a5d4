/* What becomes of attempts that nobody waits for: in the background, at exit, and across fork.
 *
 * Background: one detached thread per courier, with all signals blocked, from the first orphan on
 * until none is in flight. Exit: the exiting thread drives what has passed its gate, each attempt
 * for its own exit_wait, until SIGINT or SIGTERM comes; what has not is withdrawn. The leadership
 * is then kept for ever, so that destructors of libraries never meet a driver at work, and
 * connections at rest are closed. Fork: the child has the memory of its parent's attempts but not
 * the right to end them. Their tapes end with an error, their sockets are closed without a TLS
 * goodbye, the CURLM is left alone and leaked, and the next write of the child makes a new courier.
 * None of the plan's calls is made there: the records are the parent's. The one exception is the
 * child that exit itself makes (detach.c). */
#include "courier/detach.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	LIFE_STACK = 512 << 10,
	QUIET_PATIENCE_MS = 200,
	LOCK_PATIENCE_S = 1,
	EXIT_SLICE_US = 50000
};

/* Signals that end the waiting at exit. */
struct exit_watch {
	sigset_t set, old;
};

/* --- background --- */

static bool life_no_orphan(struct courier *c, void *arg)
{
	(void)arg;
	for (const struct attempt *a = c->all; a; a = a->next)
		if ((a->orphan || a->cancel || a->listeners || c->exit_us) && !a->abandoned)
			return false;
	return true;
}

static void *life_main(void *arg)
{
	struct courier *c = arg;

	pthread_mutex_lock(&c->lock);
	courier_drive(c, life_no_orphan, NULL, NEVER_US);
	c->background = false;
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int life_create(struct courier *c, const pthread_attr_t *attr)
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &old))
		return -1;
	rc = pthread_create(&thread, attr, life_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* When there can be no thread, the next one that waits or exits drives the orphans too. */
void life_background(struct courier *c)
{
	pthread_attr_t attr;

	if (c->background || c->closed || pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, LIFE_STACK);
	c->background = life_create(c, &attr) == 0;
	pthread_attr_destroy(&attr);
}

/* --- exit --- */

static void life_nap(void)
{
	const struct timespec ms = {0, 1000000};

	nanosleep(&ms, NULL);
}

/* exit may be called by a signal handler on top of a thread that holds the lock. */
static bool life_lock(pthread_mutex_t *lock)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += LOCK_PATIENCE_S;
	return pthread_mutex_timedlock(lock, &ts) == 0;
}

static bool life_may_go(struct courier *c, void *arg)
{
	(void)arg;
	for (const struct attempt *a = c->all; a; a = a->next)
		if (!a->abandoned)
			return false;
	return true;
}

static int64_t life_last_exit(const struct courier *c)
{
	int64_t last = 0;

	for (const struct attempt *a = c->all; a; a = a->next)
		last = a->exit_wait_us > last ? a->exit_wait_us : last;
	return c->exit_us + last;
}

/* Whoever drives cannot be waited for any longer: the rest is marked from here. */
static void life_abandon_rest(struct courier *c)
{
	struct attempt *a = c->all;

	while (a) {
		if (a->abandoned) {
			a = a->next;
			continue;
		}
		a->abandoned = true;
		attempt_ref(a);
		pthread_mutex_unlock(&c->lock);
		a->calls.abandon(a->ctx);
		pthread_mutex_lock(&c->lock);
		attempt_unref(a);
		a = c->all;
	}
}

static void life_end(struct attempt *a, const char *text)
{
	struct tape_end end = {.ended = true, .code = CURLE_RECV_ERROR};

	memcpy(end.text, text, strlen(text) + 1);
	tape_finish(a->tape, &end);
	a->state = ATTEMPT_ENDED;
	attempt_count(a, 0);
}

/* Whoever still waits is let go: a destructor of the program may join that thread. */
static void life_close(struct courier *c)
{
	for (int i = 0; i < QUIET_PATIENCE_MS && c->driven && !c->polling; i++) {
		pthread_mutex_unlock(&c->lock);
		life_nap();
		pthread_mutex_lock(&c->lock);
	}
	courier_wake(c);
	c->driven = c->closed = true;
	for (struct attempt *a = c->all; a; a = a->next) {
		life_end(a, "the process is exiting");
		attempt_ring(a);
	}
	pthread_cond_broadcast(&c->changed);
}

/* Everybody's waiting time begins now; `help`: this thread will be busy with another courier. */
static void life_exit_begin(struct courier *c, int64_t now, bool help)
{
	if (!life_lock(&c->lock))
		return;
	c->exit_us = now;
	c->asked = true;
	if (c->driven)
		courier_wake(c);
	if (help && c->all)
		life_background(c);
	pthread_mutex_unlock(&c->lock);
}

/* Connections at rest are closed as they would be by a program that cleans up: TLS and FTP servers
 * are told. Not where somebody was inside libcurl, nor where the program has closed one of ours,
 * for then the goodbye would go into whatever has its number now. */
static void life_goodbye(struct courier *c)
{
	struct shield shield;

	if (!c->multi || c->spoiled || !held_all_there(c))
		return;
	shield_up(&shield);
	CURL_FN(c->fl, multi_cleanup)(c->multi);
	shield_down(&shield);
}

/* Who sends SIGINT or SIGTERM to a process that waits at its end wants it gone. A program may have
 * handlers that only note the signal, so it is kept in the mask and looked for between slices; what
 * the program itself blocks is its own business. */
static void life_watch(struct exit_watch *w)
{
	static const int watched[] = {SIGINT, SIGTERM};
	sigset_t pending;

	sigemptyset(&w->set);
	pthread_sigmask(SIG_SETMASK, NULL, &w->old);
	sigpending(&pending);
	for (size_t i = 0; i < sizeof(watched) / sizeof(*watched); i++)
		if (!sigismember(&w->old, watched[i]) && !sigismember(&pending, watched[i]))
			sigaddset(&w->set, watched[i]);
	pthread_sigmask(SIG_BLOCK, &w->set, NULL);
}

static bool life_called(const struct exit_watch *w)
{
	sigset_t pending;

	sigpending(&pending);
	return (sigismember(&w->set, SIGINT) && sigismember(&pending, SIGINT)) ||
	       (sigismember(&w->set, SIGTERM) && sigismember(&pending, SIGTERM));
}

/* With the lock held. The slack lets the driver mark the last ones itself. */
static void life_exit_wait(struct courier *c, const struct exit_watch *w)
{
	int64_t end = life_last_exit(c) + 500000, now;

	while (!c->closed && !life_may_go(c, NULL) && !life_called(w)) {
		now = courier_now();
		if (now >= end)
			break;
		courier_drive(c, life_may_go, NULL,
		              now + EXIT_SLICE_US < end ? now + EXIT_SLICE_US : end);
	}
}

static void life_exit_end(struct courier *c, const struct exit_watch *w)
{
	bool at_rest;

	if (!c->exit_us || !life_lock(&c->lock))
		return;
	life_exit_wait(c, w);
	life_abandon_rest(c);
	at_rest = !c->driven && !c->all;
	life_close(c);
	pthread_mutex_unlock(&c->lock);
	if (at_rest)
		life_goodbye(c);
}

void courier_at_exit(void)
{
	int keep = errno;
	struct exit_watch watch;
	int64_t now;

	courier_detach();
	life_watch(&watch);
	now = courier_now();
	if (life_lock(&courier_table_lock)) {
		struct courier *all = courier_table;

		pthread_mutex_unlock(&courier_table_lock);
		for (struct courier *c = all; c; c = c->next)
			life_exit_begin(c, now, c != all);
		for (struct courier *c = all; c; c = c->next)
			life_exit_end(c, &watch);
	}
	pthread_sigmask(SIG_SETMASK, &watch.old, NULL); /* what came meanwhile arrives here */
	errno = keep;
}

/* --- fork --- */

static bool life_table_locked;
static struct courier *life_locked; /* head of the table when the locks were taken */

/* Until nobody is inside libcurl: a driver asleep in poll is as good as none, for it cannot go on
 * before the lock is given back. */
static bool life_quiet(struct courier *c)
{
	if (!life_lock(&c->lock))
		return false;
	for (int i = 0; i < QUIET_PATIENCE_MS && c->driven && !c->polling && !c->closed; i++) {
		pthread_mutex_unlock(&c->lock);
		life_nap();
		if (!life_lock(&c->lock))
			return false;
	}
	return true;
}

void courier_fork_prepare(void)
{
	life_table_locked = life_lock(&courier_table_lock);
	life_locked = life_table_locked ? courier_table : NULL;
	for (struct courier *c = life_locked; c; c = c->next)
		c->locked = life_quiet(c);
}

void courier_fork_parent(void)
{
	for (struct courier *c = life_locked; c; c = c->next) {
		if (!c->locked)
			continue;
		if (detach_takes(c))
			detach_leave(c);
		pthread_mutex_unlock(&c->lock);
	}
	life_locked = NULL;
	if (life_table_locked)
		pthread_mutex_unlock(&courier_table_lock);
}

/* The old courier stays where it is for those who still hold one of its attempts. */
static void life_leave(struct courier *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->sleeping = 0;
	c->driven = c->closed = true; /* nobody may touch this CURLM again */
	c->polling = c->background = false;
	for (struct attempt *a = c->all; a; a = a->next) {
		tape_forked(a->tape);
		life_end(a, "in flight in the parent process");
	}
	c->all = NULL;
	c->count = 0;
	held_close_all(c);
}

void courier_fork_child(void)
{
	int keep = errno;

	struct courier *kept = NULL, *next;

	pthread_mutex_init(&courier_table_lock, NULL);
	for (struct courier *c = courier_table; c; c = next) {
		next = c->next;
		if (c->locked && detach_takes(c)) {
			detach_keep(c);
			c->next = kept;
			kept = c;
		} else {
			life_leave(c);
		}
	}
	courier_table = kept;
	life_locked = NULL;
	errno = keep;
}
