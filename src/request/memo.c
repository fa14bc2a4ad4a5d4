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
	struct request_target parts;
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

static bool copy_text(char **to, const char *from)
{
	*to = from ? span_dup(span_of(from)) : NULL;
	return *to || !from;
}

static int copy_parts(struct request_target *to, const struct request_target *from)
{
	to->port = from->port;
	return copy_text(&to->scheme, from->scheme) && copy_text(&to->host, from->host) &&
	                       copy_text(&to->path, from->path) &&
	                       copy_text(&to->query, from->query)
	               ? 0
	               : -1;
}

/* What is behind an @ in a query is kept out, too: no harm. */
static bool may_be_kept(const struct memo_key *key)
{
	return key->text.n <= TEXT_MOST && !memchr(key->text.p, '@', key->text.n);
}

int memo_get(const struct memo_key *key, struct request_target *out)
{
	struct place *p = &places[hash_of(key) / 2 % PLACES];
	int rc = 0;

	if (!may_be_kept(key) || pthread_mutex_trylock(&lock))
		return 0;
	if (is_it(p, key))
		rc = copy_parts(out, &p->parts) == 0 ? 1 : -1;
	pthread_mutex_unlock(&lock);
	return rc;
}

static void keep(struct place *p, const struct memo_key *key, const struct request_target *parsed)
{
	free(p->text);
	request_target_free(&p->parts);
	p->text = span_dup(key->text);
	p->n = key->text.n;
	p->fl = key->fl;
	p->flags = key->flags;
	if (p->text && copy_parts(&p->parts, parsed) == 0)
		return;
	free(p->text);
	p->text = NULL;
}

void memo_put(const struct memo_key *key, const struct request_target *parsed)
{
	uint64_t hash = hash_of(key);
	struct place *p = &places[hash / 2 % PLACES];

	if (!may_be_kept(key) || parsed->user || parsed->password || pthread_mutex_trylock(&lock))
		return;
	if (p->seen == hash && p->seen_by == key->fl)
		keep(p, key, parsed);
	p->seen = hash;
	p->seen_by = key->fl;
	pthread_mutex_unlock(&lock);
}
