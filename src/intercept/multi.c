/* See multi.h. One table for the process, as for easy handles: a multi is looked up once per call,
 * for the look-up only. */
#define HASH_NONFATAL_OOM                1
#define HASH_FUNCTION(key, length, hash) ((void)(length), (hash) = hash_handle(key))
#include "intercept/multi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/process.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((void)(element), out_of_memory = true)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct multi *table;
static uint64_t last_serial;

static unsigned hash_handle(const void *key)
{
	uint64_t word = 0;

	memcpy(&word, key, sizeof(CURLM *));
	return (unsigned)(word * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static struct multi *take_out(CURLM *handle)
{
	struct multi *m;

	pthread_mutex_lock(&lock);
	HASH_FIND_PTR(table, &handle, m);
	if (m)
		HASH_DEL(table, m);
	pthread_mutex_unlock(&lock);
	return m;
}

static bool put_in(struct multi *m)
{
	bool out_of_memory = false;

	pthread_mutex_lock(&lock);
	m->serial = ++last_serial;
	HASH_ADD_PTR(table, handle, m);
	pthread_mutex_unlock(&lock);
	return !out_of_memory;
}

static struct multi *make(CURLM *handle, const struct flavour *flavour)
{
	struct multi *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->handle = handle;
	m->flavour = flavour;
	m->native_due_us = m->told_due_us = MULTI_NEVER;
	if (put_in(m))
		return m;
	free(m);
	return NULL;
}

void multi_new(CURLM *handle, const struct flavour *flavour)
{
	multi_drop(handle);
	(void)make(handle, flavour);
}

struct multi *multi_find(CURLM *handle)
{
	struct multi *m;

	pthread_mutex_lock(&lock);
	HASH_FIND_PTR(table, &handle, m);
	pthread_mutex_unlock(&lock);
	return m;
}

struct multi *multi_get(CURLM *handle, const struct flavour *flavour)
{
	struct multi *m = multi_find(handle);

	return m ? m : make(handle, flavour);
}

const struct flavour *multi_flavour(CURLM *handle, struct multi **managed, const void *caller)
{
	struct multi *known = handle ? multi_find(handle) : NULL;

	*managed = known && known->managed ? known : NULL;
	return known ? known->flavour : process_flavour(caller);
}

bool multi_lives(CURLM *handle, uint64_t serial)
{
	const struct multi *m = multi_find(handle);

	return m && m->serial == serial;
}

void multi_drop(CURLM *handle)
{
	struct multi *m = take_out(handle);

	if (!m)
		return;
	while (m->messages.first)
		message_drop(m->messages.first);
	queue_free(&m->queue);
	late_free(m);
	bell_unref(m->bell);
	free(m);
}

void multi_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void multi_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The bells are the parent's: they ring in its loops. */
void multi_fork_child(void)
{
	struct multi *m, *next;

	HASH_ITER (hh, table, m, next) {
		m->forked = true;
		if (m->bell)
			bell_forked(m->bell);
	}
	pthread_mutex_unlock(&lock);
}
