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
 * which is what they would find out.
 *
 * To wake the driver and the program's loop costs as much as an answer's own work, so a driver lets
 * news gather. It waits for as long as an eighth of a crowd takes at the pace of late, which is an
 * eighth of the time that each is in flight (Little's law): a crowd that is answered slowly enough
 * is answered at once, and a fast one is not slowed down by a fixed delay. */
#include "courier/inside.h"

#include <time.h>

enum { BATCH_COURIERS = 4, BATCH_CHECK_US = 50000, BATCH_WAIT_US = 50000 };
/* How long the driver waits for more news at most: for each attempt in flight, and in all; for
 * what share of them, and for how many at least. */
enum { CROWD_EACH_US = 64, CROWD_MAX_US = 32000, CROWD_SHARE = 8, CROWD_FEW = 2 };
/* A silence counts for so long at most, and one piece of news for so many, to be halved. */
enum { PACE_US = 64000, PACE_ONE = 16 };

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

/* Half of what is known is forgotten each time. */
static void pace_note(struct crowd_pace *p)
{
	int64_t now = courier_now(), since = now - p->woke_us;

	p->span_us = p->span_us / 2 + (since < PACE_US ? since : PACE_US);
	p->news = p->news / 2 + p->fresh * PACE_ONE;
	p->woke_us = now;
	p->fresh = 0;
}

/* Until an eighth of the attempts had news, if it goes on at this pace. 0: so little comes that
 * waiting would bring nothing together. */
static int64_t pace_wait_us(const struct crowd_pace *p, unsigned crowd)
{
	int64_t most = (int64_t)crowd * CROWD_EACH_US, us;

	if (most > CROWD_MAX_US)
		most = CROWD_MAX_US;
	if (most * p->news <= CROWD_FEW * PACE_ONE * p->span_us)
		return 0;
	us = crowd / CROWD_SHARE * PACE_ONE * p->span_us / p->news;
	return us < most ? us : most;
}

bool crowd_gather(struct courier *c, int ms)
{
	struct timespec nap;
	int64_t us;

	pace_note(&c->pace);
	us = c->crowd < CROWD ? 0 : pace_wait_us(&c->pace, c->crowd);
	if (us == 0 || ms <= us / 1000)
		return false;
	nap = (struct timespec){.tv_nsec = us * 1000};
	nanosleep(&nap, NULL);
	return true;
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
