/* See watch.h. The thread sleeps in the ledger on the first record that has not changed, in slices:
 * the others are looked at when it wakes. Once a second it rings for all of them, since an owner
 * that dies changes no word. */
#include "intercept/watch.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

enum { SLICE_US = 20000, ROUND_US = 1000000, STACK = 256 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch *watched;
static bool running;

static void ring(struct watch *w)
{
	/* release: what the ledger says by now is seen by whoever finds it rung */
	atomic_store_explicit(&w->rung, true, memory_order_release);
	bell_tell(w->bell, w->note);
}

/* With the lock held. The first one that is as it was; false: all have rung. */
static bool look_at_all(bool all, struct watch *first)
{
	bool found = false;

	for (struct watch *w = watched; w; w = w->next) {
		if (atomic_load_explicit(&w->rung, memory_order_relaxed))
			continue;
		if (all || ledger_wait(w->ledger, w->record, w->word, 0) == LEDGER_OK) {
			ring(w);
		} else if (!found) {
			first->ledger = w->ledger;
			first->record = w->record;
			first->word = w->word;
			found = true;
		}
	}
	return found;
}

static void nap(void)
{
	const struct timespec slice = {0, SLICE_US * 1000};

	nanosleep(&slice, NULL);
}

static void *watch_main(void *ctx)
{
	int64_t round = clock_boot_us() + ROUND_US;
	struct watch first = {.ledger = NULL};

	(void)ctx;
	pthread_mutex_lock(&lock);
	while (watched) {
		bool all = clock_boot_us() >= round;
		bool waits = look_at_all(all, &first);

		if (all)
			round = clock_boot_us() + ROUND_US;
		pthread_mutex_unlock(&lock);
		if (waits)
			ledger_wait(first.ledger, first.record, first.word, SLICE_US);
		else
			nap();
		pthread_mutex_lock(&lock);
	}
	running = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static bool create(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	bool made;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	made = pthread_create(&thread, &attr, watch_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return made;
}

static void unlink_it(struct watch *w)
{
	for (struct watch **at = &watched; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			return;
		}
	}
}

bool watch_add(struct watch *w, struct ledger *ledger, uint64_t record, uint64_t word,
               struct bell *bell, struct bell_note *note)
{
	bool looked_at;

	pthread_mutex_lock(&lock);
	unlink_it(w);
	w->ledger = ledger;
	w->record = record;
	w->word = word;
	w->bell = bell;
	w->note = note;
	atomic_store_explicit(&w->rung, false, memory_order_relaxed);
	w->next = watched;
	watched = w;
	if (!running)
		running = create();
	looked_at = running;
	if (!looked_at)
		unlink_it(w);
	pthread_mutex_unlock(&lock);
	return looked_at;
}

void watch_remove(struct watch *w)
{
	pthread_mutex_lock(&lock);
	unlink_it(w);
	pthread_mutex_unlock(&lock);
}

void watch_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void watch_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The thread is the parent's. */
void watch_fork_child(void)
{
	watched = NULL;
	running = false;
	pthread_mutex_unlock(&lock);
}
