/* See life.h. fork(2) may happen in any thread at any moment, so every lock of ours is taken before
 * it, in one order, and freed after it on both sides. vfork and raw clone skip these handlers;
 * their children may only exec or exit, and the ledger tells owners by pid anyway. */
#include "intercept/life.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/curlapi.h"
#include "courier/courier.h"
#include "intercept/local.h"
#include "intercept/multi.h"
#include "intercept/names.h"
#include "intercept/process.h"
#include "intercept/shadow.h"
#include "intercept/turn.h"
#include "intercept/watch.h"

enum { FLAVOURS_MAX = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct flavour *known[FLAVOURS_MAX];
static size_t known_count;

static void prepare(void)
{
	pthread_mutex_lock(&lock);
	process_fork_prepare();
	shadow_fork_prepare();
	multi_fork_prepare();
	watch_fork_prepare();
	local_fork_prepare();
	turn_fork_prepare();
	names_fork_prepare();
	courier_fork_prepare();
}

static void parent(void)
{
	courier_fork_parent();
	names_fork_done();
	turn_fork_done();
	local_fork_parent();
	watch_fork_parent();
	multi_fork_parent();
	shadow_fork_done();
	process_fork_done();
	pthread_mutex_unlock(&lock);
}

static void child(void)
{
	courier_fork_child();
	names_fork_done();
	turn_fork_done();
	local_fork_child();
	watch_fork_child();
	multi_fork_child();
	shadow_fork_done();
	process_fork_done();
	pthread_mutex_unlock(&lock);
}

static bool note_flavour(const struct flavour *flavour, bool *first)
{
	for (size_t i = 0; i < known_count; i++) {
		if (known[i] == flavour)
			return false;
	}
	*first = known_count == 0;
	if (known_count < FLAVOURS_MAX)
		known[known_count++] = flavour;
	return true;
}

void life_start(const struct flavour *flavour)
{
	bool first = false, fresh;

	pthread_mutex_lock(&lock);
	fresh = note_flavour(flavour, &first);
	pthread_mutex_unlock(&lock);
	if (!fresh)
		return;
	if (CURL_HAS(flavour, global_init))
		CURL_FN(flavour, global_init)(CURL_GLOBAL_DEFAULT);
	atexit(courier_at_exit);
	if (first)
		pthread_atfork(prepare, parent, child);
}
