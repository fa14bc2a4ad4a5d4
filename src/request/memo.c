/* See memo.h. A program that writes to one place from many handles has its URL parsed for each of
 * them, and again by libcurl when it is sent; what a URL's parts are depends on nothing but its
 * text, the flags and the libcurl. A few of them are kept, each in the place its hash gives.
 *
 * The lock is tried and never waited for: who does not get it has the URL parsed. So a child of
 * fork(2) whose parent held it does without. */
#include "request/memo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 32, TEXT_MOST = 2048 };

struct place {
	uint64_t seen; /* hash of what was last asked for here, and the libcurl; 0: nothing */
	const struct flavour *seen_by, *fl;
	char *text; /* null: not kept */
	size_t n;
	unsigned flags;
	struct url_parts *parts;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place places[PLACES];

static uint64_t hash_of(const struct memo_key *key)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ key->flags; /* FNV-1a */

	for (size_t i = 0; i < key->text.n; i++)
		hash = (hash ^ (unsigned char)key->text.p[i]) * UINT64_C(0x100000001b3);
	return hash | 1;
}

static bool is_it(const struct place *p, const struct memo_key *key)
{
	return p->text && p->fl == key->fl && p->flags == key->flags &&
	       span_equal((struct span){p->text, p->n}, key->text);
}

void parts_unref(struct url_parts *parts)
{
	/* acq_rel: every use by others happens before the memory is freed */
	if (!parts || atomic_fetch_sub_explicit(&parts->refs, 1, memory_order_acq_rel) != 0)
		return;
	free(parts->scheme);
	free(parts->host);
	free(parts->path);
	free(parts->query);
	free(parts->user);
	free(parts->password);
	free(parts);
}

static struct url_parts *parts_ref(struct url_parts *parts)
{
	/* relaxed: whoever passes the pointer on holds a reference already */
	atomic_fetch_add_explicit(&parts->refs, 1, memory_order_relaxed);
	return parts;
}

/* What is behind an @ in a query is kept out, too: no harm. */
static bool may_be_kept(const struct memo_key *key)
{
	return key->text.n <= TEXT_MOST && !memchr(key->text.p, '@', key->text.n);
}

struct url_parts *memo_get(const struct memo_key *key)
{
	struct place *p = &places[hash_of(key) / 2 % PLACES];
	struct url_parts *parts = NULL;

	if (!may_be_kept(key) || pthread_mutex_trylock(&lock))
		return NULL;
	if (is_it(p, key))
		parts = parts_ref(p->parts);
	pthread_mutex_unlock(&lock);
	return parts;
}

static void keep(struct place *p, const struct memo_key *key, struct url_parts *parts)
{
	free(p->text);
	parts_unref(p->parts);
	p->parts = NULL;
	p->text = span_dup(key->text);
	p->n = key->text.n;
	p->fl = key->fl;
	p->flags = key->flags;
	if (p->text)
		p->parts = parts_ref(parts);
}

void memo_put(const struct memo_key *key, struct url_parts *parts)
{
	uint64_t hash = hash_of(key);
	struct place *p = &places[hash / 2 % PLACES];

	if (!may_be_kept(key) || parts->user || parts->password || pthread_mutex_trylock(&lock))
		return;
	if (p->seen == hash && p->seen_by == key->fl)
		keep(p, key, parts);
	p->seen = hash;
	p->seen_by = key->fl;
	pthread_mutex_unlock(&lock);
}
