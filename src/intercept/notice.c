/* See notice.h. A line that cannot be written is counted: the host is never made to wait for its
 * log. The count is in the ledger, if there is one, and in the log itself: behind the next line
 * that could be written, else by a last try when the process exits. */
#include "intercept/notice.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Lines of this process that were lost and not told of yet. */
static atomic_ullong untold;

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

static void at_exit(void)
{
	int saved = errno;

	if (atomic_load_explicit(&untold, memory_order_relaxed))
		tell_lost(process_get());
	errno = saved;
}

/* The parent tells of what it lost. */
static void in_child(void)
{
	atomic_store_explicit(&untold, 0, memory_order_relaxed);
}

static void note_lost(void)
{
	static atomic_bool prepared;

	if (!atomic_exchange_explicit(&prepared, true, memory_order_relaxed)) {
		pthread_atfork(NULL, NULL, in_child);
		atexit(at_exit);
	}
	atomic_fetch_add_explicit(&untold, 1, memory_order_relaxed);
}

void notice_send(const struct process *p, const struct event *event)
{
	struct ledger *ledger = process_ledger_opened();
	int saved = errno;

	if (put(p, event)) {
		tell_lost(p);
	} else {
		note_lost();
		if (ledger)
			ledger_count(ledger, COUNT_events_lost);
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
