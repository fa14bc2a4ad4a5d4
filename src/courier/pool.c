/* The couriers, at least one for each libcurl in the process, and the easy handles each keeps.
 *
 * CURLOPT_RESOLVE goes into the name cache of the whole CURLM and its connections are filed under
 * the name, so writes with other such lines would be sent to another's address: each set of lines
 * has a courier of its own, up to a number. So has a multi with bounds (bounds.c).
 *
 * A handle from the pool was reset and never had a cookie engine, so nothing of one write can show
 * in the next; what a reset keeps (connections are the CURLM's) saves most of the cost of a new
 * one. Couriers are never freed: connections and readers may outlive every attempt. One whose
 * connections the program has closed gets no more attempts, and another takes its place. */
#include "courier/inside.h"

#include <stdlib.h>

/* Those with bounds leave room for those without, which cannot do with another's. */
enum { POOL_COURIERS = 64, POOL_BOUNDED = 48, POOL_SPOILED = 8 };

pthread_mutex_t courier_table_lock = PTHREAD_MUTEX_INITIALIZER;
struct courier *courier_table;
static atomic_uint pool_spoiled;

static int pool_condition(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int rc;

	if (pthread_condattr_init(&attr))
		return -1;
	rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) || pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return rc ? -1 : 0;
}

CURLM *pool_multi(const struct flavour *fl)
{
	CURLM *multi = held_multi(fl);

	if (multi)
		CURL_FN(fl, multi_setopt)(multi, CURLMOPT_MAXCONNECTS, (long)COURIER_CONNECTIONS);
	return multi;
}

static struct courier *pool_new(const struct flavour *fl)
{
	struct courier *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->fl = fl;
	c->wake[0].fd = c->wake[1].fd = -1;
	c->kept = COURIER_CONNECTIONS;
	/* a reference of our own, never given back: the program's global_cleanup may come early */
	if (CURL_HAS(fl, global_init) && CURL_FN(fl, global_init)(CURL_GLOBAL_DEFAULT))
		goto fail;
	c->multi = pool_multi(fl);
	if (!c->multi || pthread_mutex_init(&c->lock, NULL) || pool_condition(&c->changed))
		goto fail;
	ready_prepare(c);
	c->share = CURL_HAS(fl, share_init) ? CURL_FN(fl, share_init)() : NULL;
	if (c->share)
		CURL_FN(fl, share_setopt)(c->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	return c;
fail:
	if (c->multi)
		CURL_FN(fl, multi_cleanup)(c->multi);
	free(c);
	return NULL;
}

/* What is still ours is closed, so that a server does not wait for a courier at rest; the CURLM is
 * left alone, for its goodbyes would go to numbers that are the program's now. */
static void pool_spoil(struct courier *c)
{
	c->spoiled = true;
	/* relaxed: a count of how often */
	atomic_fetch_add_explicit(&pool_spoiled, 1, memory_order_relaxed);
	pthread_mutex_lock(&c->lock);
	if (!c->all && !c->driven)
		held_close_all(c);
	pthread_mutex_unlock(&c->lock);
}

static bool pool_fits(struct courier *c, const struct flavour *fl, const struct buf *resolve)
{
	if (c->spoiled || c->fl != fl || !span_equal(span_buf(resolve), span_of(c->resolve)))
		return false;
	if (batch_has_checked(c) || held_all_there(c))
		return true;
	pool_spoil(c);
	return false;
}

/* Null when there is no memory, or when there are too many already. */
static struct courier *pool_insert(const struct flavour *fl, const struct buf *resolve,
                                   size_t count, bool bounded)
{
	struct courier *c;

	if (resolve->failed || count >= (bounded ? POOL_BOUNDED : POOL_COURIERS))
		return NULL;
	c = pool_new(fl);
	if (!c)
		return NULL;
	c->bounded = bounded;
	c->resolve = resolve->n ? span_dup(span_buf(resolve)) : NULL;
	c->next = courier_table;
	courier_table = c;
	return c;
}

/* With the table lock held. */
static struct courier *pool_find(const struct flavour *fl, const struct buf *lines,
                                 const struct courier_bounds *bounds)
{
	struct courier *c;
	size_t count = 0;

	for (c = courier_table; c; c = c->next) {
		if (bounds_fit(c, bounds) && pool_fits(c, fl, lines))
			break;
		count += !c->spoiled;
	}
	for (struct courier *f = bounds->owner ? courier_table : NULL; f && !c; f = f->next)
		if (bounds_are_free(f) && pool_fits(f, fl, lines))
			c = f;
	if (!c)
		c = pool_insert(fl, lines, count, bounds->owner != 0);
	if (c)
		bounds_take(c, bounds);
	return c;
}

struct courier *courier_of(const struct flavour *fl, const struct curl_slist *resolve,
                           const struct courier_bounds *bounds)
{
	static const struct courier_bounds none;
	struct courier *c;
	struct buf lines = {0};

	for (; resolve; resolve = resolve->next)
		buf_printf(&lines, "%s\n", resolve->data);
	pthread_mutex_lock(&courier_table_lock);
	c = pool_find(fl, &lines, bounds);
	if (!c && bounds->owner)
		c = pool_find(fl, &lines, &none);
	pthread_mutex_unlock(&courier_table_lock);
	buf_free(&lines);
	return c;
}

/* Each time costs a CURLM that cannot be freed. */
bool courier_keeps_connections(void)
{
	return atomic_load_explicit(&pool_spoiled, memory_order_relaxed) < POOL_SPOILED;
}

CURL *courier_take_easy(struct courier *c)
{
	CURL *easy = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->pooled)
		easy = c->pool[--c->pooled];
	pthread_mutex_unlock(&c->lock);
	return easy ? easy : CURL_FN(c->fl, easy_init)();
}

/* A handle whose cookie engine was on is not used again: reset does not switch the engine off, and
 * in 7.88 loses the list of cookie files. Nor is one that was taken out midway: where it had waited
 * for a connection it keeps its buffer, and then takes no BUFFERSIZE. */
void courier_give_easy(struct courier *c, CURL *easy, bool clean)
{
	if (!easy)
		return;
	pthread_mutex_lock(&c->lock);
	bool room = clean && c->pooled < COURIER_POOL;
	pthread_mutex_unlock(&c->lock);
	if (!room) {
		CURL_FN(c->fl, easy_cleanup)(easy);
		return;
	}
	CURL_FN(c->fl, easy_reset)(easy);
	pthread_mutex_lock(&c->lock);
	bool kept = c->pooled < COURIER_POOL;
	if (kept)
		c->pool[c->pooled++] = easy;
	pthread_mutex_unlock(&c->lock);
	if (!kept)
		CURL_FN(c->fl, easy_cleanup)(easy);
}
