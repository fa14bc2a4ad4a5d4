/* See notice.h. A line that cannot be written is counted: the host is never made to wait for its
 * log. The count is in the ledger, if there is one, and in the log itself: behind the next line
 * that could be written, else by a last try when the process exits.
 *
 * A batch belongs to one call of the program's loop and to its thread; what it holds back is the
 * process's, so that exit(3) out of a callback finds it. So one thread may write another's lines,
 * which then waits until they are in the log. One that a callback jumped out of ends with that
 * thread's next call of ours. */
#include "intercept/notice.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { HELD_MOST = 64 * 1024, EXIT_PATIENCE_S = 1 };

/* Lines of this process that were lost and not told of yet. */
static atomic_ullong untold;

/* `writing` first: from the moment on that lines are taken out of `held` until they are in the log.
 * `lock`: `held` itself. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buf held; /* lines that a batch holds back */
static atomic_bool prepared, exiting;
static __thread bool batching, holding; /* holding: a line of this thread may be in `held` */

struct event notice_event(const struct process *p, const char *name)
{
	struct event event = event_make(name);

	event.scope = p->scope[0] ? p->scope : NULL;
	event.run = p->run[0] ? p->run : NULL;
	event.mode = p->mode;
	return event;
}

static bool put(const struct process *p, const struct event *event)
{
	return p->events_path[0] && event_write(p->events_path, event) == 0;
}

static void tell_lost(const struct process *p)
{
	/* Relaxed: a number; whoever takes it tells of it. */
	unsigned long long lines = atomic_exchange_explicit(&untold, 0, memory_order_relaxed);
	struct event event = notice_event(p, "lost");

	if (!lines)
		return;
	event.lost = (int64_t)lines;
	if (!put(p, &event))
		atomic_fetch_add_explicit(&untold, lines, memory_order_relaxed);
}

static void note_lost(size_t lines)
{
	struct ledger *ledger = process_ledger_opened();

	atomic_fetch_add_explicit(&untold, lines, memory_order_relaxed);
	for (size_t i = 0; i < lines && ledger; i++)
		ledger_count(ledger, COUNT_events_lost);
}

/* --- batches --- */

/* With both locks held; gives `lock` back. */
static void write_locked(void)
{
	const struct process *p;
	struct buf lines = held;
	size_t lost;

	held = (struct buf){0};
	pthread_mutex_unlock(&lock);
	if (lines.n) {
		p = process_get(); /* which is not made for nothing */
		lost = event_append(p->events_path, span_buf(&lines));
		note_lost(lost);
		if (!lost)
			tell_lost(p);
	}
	buf_free(&lines);
}

/* What this thread held back is in the log then, whoever wrote it. */
static void write_held(void)
{
	holding = false;
	pthread_mutex_lock(&writing);
	pthread_mutex_lock(&lock);
	write_locked();
	pthread_mutex_unlock(&writing);
}

/* exit may be called by a signal handler on top of a thread that has them. */
static bool lock_in_time(pthread_mutex_t *mutex)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_PATIENCE_S;
	return pthread_mutex_timedlock(mutex, &until) == 0;
}

static void write_last(void)
{
	bool alone = lock_in_time(&writing);

	if (lock_in_time(&lock))
		write_locked();
	if (alone)
		pthread_mutex_unlock(&writing);
}

/* False: it is to be written at once. */
static bool hold_back(const struct process *p, const struct event *event)
{
	size_t before;
	bool kept, full;

	/* Relaxed: what is held back a moment too late goes with the process, as its thread does.
	 */
	if (!batching || !p->events_path[0] || atomic_load_explicit(&exiting, memory_order_relaxed))
		return false;
	holding = true;
	pthread_mutex_lock(&lock);
	before = held.n;
	event_format(&held, event, clock_now());
	kept = !held.failed;
	if (!kept) {
		held.failed = false;
		held.n = before;
	}
	full = held.n >= HELD_MOST;
	pthread_mutex_unlock(&lock);
	if (full)
		write_held();
	return kept;
}

static void at_exit(void)
{
	int saved = errno;

	atomic_store_explicit(&exiting, true, memory_order_relaxed);
	write_last();
	if (atomic_load_explicit(&untold, memory_order_relaxed))
		tell_lost(process_get());
	errno = saved;
}

/* The parent writes what it held back, and tells of what it lost. Another thread of it may have
 * been at it just then, so it is not looked at here but forgotten. A child may leave by _exit(2),
 * so it holds nothing back itself. */
static void in_child(void)
{
	pthread_mutex_init(&writing, NULL);
	pthread_mutex_init(&lock, NULL);
	batching = holding = false;
	held = (struct buf){0};
	atomic_store_explicit(&untold, 0, memory_order_relaxed);
}

static void prepare(void)
{
	/* Relaxed: who is first registers; nothing is published by it. */
	if (atomic_load_explicit(&prepared, memory_order_relaxed) ||
	    atomic_exchange_explicit(&prepared, true, memory_order_relaxed))
		return;
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
}

void notice_batch_begin(void)
{
	notice_batch_end();
	prepare();
	batching = true;
}

void notice_batch_end(void)
{
	int saved = errno;

	if (!batching)
		return;
	batching = false;
	if (holding)
		write_held();
	errno = saved;
}

/* --- one line --- */

void notice_send(const struct process *p, const struct event *event)
{
	int saved = errno;

	if (!hold_back(p, event)) {
		if (put(p, event)) {
			tell_lost(p);
		} else {
			prepare();
			note_lost(1);
		}
	}
	errno = saved;
}

void notice_warning(const struct process *p, const char *reason, const char *text)
{
	struct event event = notice_event(p, "warning");

	event.reason = reason;
	event.text = text;
	notice_send(p, &event);
}
