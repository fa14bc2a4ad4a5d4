/* Many attempts at once. A turn of the driver looks at every attempt, and so does a look through
 * the connections: what is there for one of them is done once for many.
 *
 * A batch are the attempts that one call of a program's loop starts. The connections are looked
 * through once, and the driver is woken at the end. It is this thread's and belongs to one call of
 * the program. One that a callback jumped out of ends with the next one, or with the next wait;
 * until then the driver finds its attempts when it next looks by itself, within a second.
 *
 * For a new connection libcurl looks through all there are, in case one is free: for a thousand
 * writes that begin together half a million looks, each at cold memory. Where there was none before
 * none can be free, and those that begin then are told to open their own (CURLOPT_FRESH_CONNECT),
 * which is what they would find out. */
#include "courier/inside.h"

#include <time.h>

enum { BATCH_COURIERS = 4, BATCH_CHECK_US = 50000, BATCH_WAIT_US = 50000 };
/* How long the driver waits for more news, for each attempt in flight. */
enum { CROWD_EACH_US = 16, CROWD_MAX_US = 16000 };

static __thread struct {
	bool open;
	unsigned count;
	struct courier *asked[BATCH_COURIERS];
	const struct courier *checked;
	int64_t checked_us;
} batch;

void courier_batch_begin(void)
{
	courier_batch_end();
	batch.open = true;
	batch.checked = NULL;
}

void courier_batch_end(void)
{
	unsigned count = batch.count;

	batch.open = false;
	batch.count = 0;
	for (unsigned i = 0; i < count; i++) {
		struct courier *c = batch.asked[i];

		pthread_mutex_lock(&c->lock);
		c->batch_us = 0;
		courier_ask(c);
		pthread_mutex_unlock(&c->lock);
	}
}

bool batch_puts_off(struct courier *c)
{
	for (unsigned i = 0; i < batch.count; i++)
		if (batch.asked[i] == c)
			return true;
	if (!batch.open || batch.count == BATCH_COURIERS)
		return false;
	batch.asked[batch.count++] = c;
	c->batch_us = courier_now();
	return true;
}

/* A driver that begins, or looks by itself, in the middle of a batch would take its first few and
 * have to be asked for the others again. */
bool batch_is_coming(struct courier *c, int64_t now)
{
	int64_t end = c->batch_us + BATCH_WAIT_US;

	if (!c->batch_us || now >= end)
		return false;
	c->due_us = end;
	return true;
}

bool batch_has_checked(const struct courier *c)
{
	int64_t now;

	if (!batch.open)
		return false;
	now = courier_now();
	if (batch.checked == c && now - batch.checked_us < BATCH_CHECK_US)
		return true;
	batch.checked = c;
	batch.checked_us = now;
	return false;
}

void courier_ask(struct courier *c)
{
	c->asked = true;
	if (c->driven)
		courier_wake(c);
}

void crowd_gather(unsigned crowd, int ms)
{
	long us = crowd < CROWD ? 0 : (long)crowd * CROWD_EACH_US;
	struct timespec nap;

	if (us > CROWD_MAX_US)
		us = CROWD_MAX_US;
	if (us == 0 || ms <= us / 1000)
		return;
	nap = (struct timespec){.tv_nsec = us * 1000};
	nanosleep(&nap, NULL);
}

/* libcurl looks for the oldest connection among all each time that one is too many, so the bound
 * does not follow the crowd down while it goes. */
void crowd_keep(struct courier *c)
{
	unsigned want = c->crowd ? c->kept : COURIER_CONNECTIONS;

	if (c->crowd > want)
		want = c->crowd;
	if (want == c->kept)
		return;
	c->kept = want;
	CURL_FN(c->fl, multi_setopt)(c->multi, CURLMOPT_MAXCONNECTS, (long)want);
}

static bool has_to_connect(const struct attempt *a)
{
	return (a->work & WORK_ADD) && !a->connects && !a->verbose && !a->passes.by_lines;
}

void crowd_connect(struct courier *c, struct attempt *todo)
{
	unsigned adding = 0;

	if (c->bounded || c->socket_count)
		return;
	for (const struct attempt *a = todo; a; a = a->todo)
		adding += has_to_connect(a);
	for (struct attempt *a = adding < CROWD ? NULL : todo; a; a = a->todo)
		if (has_to_connect(a) &&
		    CURL_FN(c->fl, easy_setopt)(a->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK)
			a->fresh_connect = true;
}

void crowd_connected(struct attempt *a)
{
	if (!a->fresh_connect)
		return;
	a->fresh_connect = false;
	CURL_FN(a->courier->fl, easy_setopt)(a->easy, CURLOPT_FRESH_CONNECT, 0L);
}
