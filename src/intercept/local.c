/* See local.h. */
#define HASH_NONFATAL_OOM 1
#include "intercept/local.h"

#include <pthread.h>
#include <stdlib.h>

#include <uthash.h>

#include "courier/courier.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((void)(element), out_of_memory = true)

struct local {
	uint64_t record; /* the key */
	const void *owner;
	struct attempt *attempt;
	pthread_t thread; /* that added it */
	enum local_driver driver;
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct local *table;

/* With the lock held. */
static struct local *find(uint64_t record)
{
	struct local *l;

	HASH_FIND(hh, table, &record, sizeof(record), l);
	return l;
}

static bool put_in(struct local *l)
{
	bool out_of_memory = false;

	HASH_ADD(hh, table, record, sizeof(l->record), l);
	return !out_of_memory;
}

void local_add(uint64_t record, const void *owner, struct attempt *attempt,
               enum local_driver driver)
{
	struct local *l = calloc(1, sizeof(*l)), *stale;

	if (!l)
		return;
	*l = (struct local){.record = record,
	                    .owner = owner,
	                    .attempt = attempt ? attempt_ref(attempt) : NULL,
	                    .thread = pthread_self(),
	                    .driver = driver};
	pthread_mutex_lock(&lock);
	stale = find(record);
	if (stale)
		HASH_DEL(table, stale);
	if (!put_in(l)) {
		attempt_unref(l->attempt);
		free(l);
	}
	pthread_mutex_unlock(&lock);
	if (stale) {
		attempt_unref(stale->attempt);
		free(stale);
	}
}

void local_remove(uint64_t record, const void *owner)
{
	struct local *l;

	pthread_mutex_lock(&lock);
	l = find(record);
	if (l && l->owner == owner)
		HASH_DEL(table, l);
	else
		l = NULL;
	pthread_mutex_unlock(&lock);
	if (!l)
		return;
	attempt_unref(l->attempt);
	free(l);
}

void local_orphaned(uint64_t record, const void *owner)
{
	struct local *l;

	pthread_mutex_lock(&lock);
	l = find(record);
	if (l && l->owner == owner)
		l->driver = DRIVER_COURIER;
	pthread_mutex_unlock(&lock);
}

static enum local_nesting nesting_of(const struct local *l)
{
	if (l->driver == DRIVER_COURIER || !pthread_equal(l->thread, pthread_self()))
		return LOCAL_APART;
	return l->driver == DRIVER_CALL ? LOCAL_BELOW : LOCAL_BESIDE;
}

struct attempt *local_find(uint64_t record, enum local_nesting *nesting)
{
	struct attempt *attempt = NULL;
	struct local *l;

	*nesting = LOCAL_APART;
	pthread_mutex_lock(&lock);
	l = find(record);
	if (l) {
		attempt = l->attempt ? attempt_ref(l->attempt) : NULL;
		*nesting = nesting_of(l);
	}
	pthread_mutex_unlock(&lock);
	return attempt;
}

void local_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void local_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The attempts are the parent's. The entries are left where they are: freeing them would end
 * attempts that the child must not touch. */
void local_fork_child(void)
{
	table = NULL;
	pthread_mutex_unlock(&lock);
}
