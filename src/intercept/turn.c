/* See turn.h. What is counted is the calls whose answer was delivered, per content and run, and in
 * this process alone: a resumed run begins at 1 again and is answered from the ledger in turn. A
 * call keeps the number it began with, so that two that ran at once and shared one sending are one.
 *
 * An entry is forgotten once the records it counts have expired; one that cannot be made for want
 * of memory lets the next call be answered from the ledger once more, and sends nothing twice. */
#define HASH_NONFATAL_OOM 1
#include "intercept/turn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/clock.h"

#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) ((void)(element), out_of_memory = true)

enum { FORGET_PER_CALL = 4 };

struct counted_key {
	uint8_t content[HASH_SIZE];
	uint64_t run;
};

struct counted {
	struct counted_key key;
	uint32_t delivered;
	int64_t until_us; /* on the boot clock */
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counted *table; /* in the order in which they were last counted */

static void make_key(const struct writing *w, struct counted_key *key)
{
	memcpy(key->content, w->id.content, sizeof(key->content));
	key->run = write_run(w);
}

/* With the lock held. */
static struct counted *find(const struct counted_key *key)
{
	struct counted *c;

	HASH_FIND(hh, table, key, sizeof(*key), c);
	return c;
}

/* With the lock held: to the end of the order; false: no memory, and it is in no table. */
static bool put_last(struct counted *c)
{
	bool out_of_memory = false;

	HASH_ADD(hh, table, key, sizeof(c->key), c);
	return !out_of_memory;
}

static void forget_old(int64_t now_us)
{
	for (int i = 0; i < FORGET_PER_CALL && table && table->until_us < now_us; i++) {
		struct counted *old = table;

		HASH_DEL(table, old);
		free(old);
	}
}

static uint32_t turn_of(const struct writing *w)
{
	struct counted_key key;
	struct counted *c;
	uint32_t turn;

	make_key(w, &key);
	pthread_mutex_lock(&lock);
	c = find(&key);
	turn = c ? c->delivered + 1 : 1;
	pthread_mutex_unlock(&lock);
	return turn;
}

void turn_over(const struct writing *w)
{
	int64_t now_us = clock_boot_us();
	struct counted_key key;
	struct counted *c;

	if (!w->turn)
		return;
	make_key(w, &key);
	pthread_mutex_lock(&lock);
	forget_old(now_us);
	c = find(&key);
	if (c)
		HASH_DEL(table, c);
	else
		c = calloc(1, sizeof(*c));
	if (c) {
		c->key = key;
		c->delivered = w->turn > c->delivered ? w->turn : c->delivered;
		c->until_us = now_us + w->rule->ttl;
		if (!put_last(c))
			free(c);
	}
	pthread_mutex_unlock(&lock);
}

/* A key of the program's own says by itself which write is meant. */
static bool says_itself(const struct writing *w)
{
	return w->id.has_own_key && w->rule->app_key == APP_KEY_TRUST;
}

bool turn_choose(struct writing *w, const uint8_t *content, struct stamp now,
                 struct record_view *view)
{
	struct record_view mine;
	uint32_t place;

	if (w->rule->repeat != REPEAT_ORDINAL || says_itself(w))
		return false;
	if (!w->turn)
		w->turn = turn_of(w);
	if (view->hit != HIT_CONTENT || view->state != REC_DONE || !view->first_delivered.wall_us ||
	    ledger_find_turn(w->ledger, content, write_run(w), w->turn, now, &mine, &place) !=
	            LEDGER_OK)
		return false;
	*view = mine;
	return place < w->turn;
}

void turn_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void turn_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
