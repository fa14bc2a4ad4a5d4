/* See index.h.
 *
 * A rule has an entry for each of its methods, in the chain of a bucket that host and method
 * choose; a pattern that fits many hosts, or every method, is under 0 in that place, so a look-up
 * walks four chains side by side, each in the order of the rules. An entry also holds a hash of the
 * segments that the pattern's path begins with, and one of the first text behind a {name}, which
 * rule out nearly all rules of one host by two comparisons. What is left is matched as a whole: the
 * index never decides. */
#include "policy/index.h"

#include <stdlib.h>
#include <string.h>

#include "policy/matcher.h"

enum { DEPTH_MAX = 8, CHAINS = 4, NO_ENTRY = UINT32_MAX, NO_SEGMENT = UINT32_MAX };

static const uint64_t hash_start = UINT64_C(0xcbf29ce484222325);

struct entry {
	uint64_t key;   /* of host and method */
	uint64_t place; /* of the first `depth` segments */
	uint64_t text;  /* of segment `later`, which has others than text before it */
	uint32_t rule, depth, later, next;
};

struct rule_index {
	struct entry *entry;
	uint32_t count;
	uint32_t *first, *last; /* of each bucket */
	uint32_t mask;
};

/* --- hashes --- */

static uint64_t hash_byte(uint64_t h, unsigned char c)
{
	return (h ^ c) * UINT64_C(0x100000001b3);
}

/* 0 is kept for "any". */
static uint64_t hash_text(struct span text, bool fold)
{
	uint64_t h = hash_start;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		h = hash_byte(h, (unsigned char)(fold && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c));
	}
	return h | 1;
}

static uint64_t hash_address(const unsigned char ipv6[16])
{
	return hash_text((struct span){(const char *)ipv6, 16}, false) ^ 2;
}

static uint64_t hash_both(uint64_t host, uint64_t method)
{
	return (host * UINT64_C(0x9e3779b97f4a7c15)) ^ method;
}

static bool has_star(struct span host)
{
	return host.n && memchr(host.p, '*', host.n);
}

static uint64_t pattern_host(const struct matcher *m)
{
	if (m->host_kind == HOST_ANY || (m->host_kind == HOST_LABELS && has_star(m->host)))
		return 0;
	return m->host_kind == HOST_IPV6 ? hash_address(m->ipv6) : hash_text(m->host, true);
}

static size_t method_count(const struct matcher *m)
{
	return m->any_method ? 1 : m->method_count;
}

static uint64_t pattern_method(const struct matcher *m, size_t i)
{
	return m->any_method ? 0 : hash_text(m->method[i], false);
}

/* Of a request: an address in any spelling is one host. */
static uint64_t target_host(struct span host)
{
	unsigned char ipv6[16];

	if (span_starts(host, "[") && host.p[host.n - 1] == ']')
		host = (struct span){host.p + 1, host.n - 2};
	if (host.n && memchr(host.p, ':', host.n) && matcher_ipv6(host, ipv6))
		return hash_address(ipv6);
	return hash_text(matcher_bare_host(host), true);
}

/* Hashes of the first 0, 1, 2, ... segments, and of each by itself (0: it is no text). */
struct places {
	uint64_t place[DEPTH_MAX + 1], segment[DEPTH_MAX];
	uint32_t depth, count;
};

/* Decoded unless `encoded`. As long as all are text, they also are a beginning. */
static void places_add(struct places *p, struct span text, bool encoded)
{
	uint64_t alone = hash_start, h = p->place[p->depth];
	bool begins = p->depth == p->count;

	while (text.n) {
		unsigned char c = (unsigned char)*text.p;

		if (encoded)
			c = (unsigned char)matcher_take_byte(&text);
		else
			text = (struct span){text.p + 1, text.n - 1};
		alone = hash_byte(alone, c);
		h = hash_byte(h, c);
	}
	p->segment[p->count++] = alone | 1;
	if (begins)
		p->place[++p->depth] = hash_byte(h, 0);
}

static void target_places(struct span path, struct places *p)
{
	bool more = path.n == 0 || *path.p == '/';

	*p = (struct places){.place = {hash_start}};
	if (path.n && more)
		path = (struct span){path.p + 1, path.n - 1};
	while (more && p->count < DEPTH_MAX) {
		more = path.n && memchr(path.p, '/', path.n);
		places_add(p, matcher_take_until(&path, '/'), true);
	}
}

static void pattern_places(const struct matcher *m, struct places *p)
{
	*p = (struct places){.place = {hash_start}};
	for (size_t i = 0; i < m->segment_count && p->count < DEPTH_MAX; i++) {
		if (m->segment[i].kind == SEGMENT_TEXT)
			places_add(p, m->segment[i].text, false);
		else
			p->segment[p->count++] = 0;
	}
}

/* --- making --- */

static void add_entry(struct rule_index *index, uint32_t rule, uint64_t key, const struct places *p)
{
	uint32_t at = index->count++, bucket = (uint32_t)(key ^ key >> 32) & index->mask;

	index->entry[at] = (struct entry){.key = key,
	                                  .place = p->place[p->depth],
	                                  .rule = rule,
	                                  .depth = p->depth,
	                                  .later = NO_SEGMENT,
	                                  .next = NO_ENTRY};
	for (uint32_t i = p->depth; i < p->count; i++) {
		if (!p->segment[i])
			continue;
		index->entry[at].later = i;
		index->entry[at].text = p->segment[i];
		break;
	}
	if (index->first[bucket] == NO_ENTRY)
		index->first[bucket] = at;
	else
		index->entry[index->last[bucket]].next = at;
	index->last[bucket] = at;
}

static void add_all(struct rule_index *index, const struct policy *policy)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct matcher *m = policy->rules[i].matcher;
		uint64_t host = pattern_host(m);
		struct places p;

		pattern_places(m, &p);
		for (size_t j = 0; j < method_count(m); j++)
			add_entry(index, (uint32_t)i, hash_both(host, pattern_method(m, j)), &p);
	}
}

int index_make(const struct policy *policy, struct rule_index **out)
{
	struct rule_index *index = calloc(1, sizeof(*index));
	size_t entries = 0, buckets = 16;

	for (size_t i = 0; i < policy->rule_count; i++)
		entries += method_count(policy->rules[i].matcher);
	while (buckets < entries)
		buckets *= 2;
	if (index) {
		index->entry = malloc((entries + 1) * sizeof(*index->entry));
		index->first = malloc(2 * buckets * sizeof(*index->first));
	}
	if (!index || !index->entry || !index->first) {
		index_free(index);
		return -1;
	}
	memset(index->first, 0xff, 2 * buckets * sizeof(*index->first));
	index->last = index->first + buckets;
	index->mask = (uint32_t)buckets - 1;
	add_all(index, policy);
	*out = index;
	return 0;
}

void index_free(struct rule_index *index)
{
	if (!index)
		return;
	free(index->entry);
	free(index->first);
	free(index);
}

/* --- looking up --- */

/* Four chains, walked side by side. */
struct walk {
	const struct rule_index *index;
	const struct places *places;
	uint64_t key[CHAINS];
	uint32_t at[CHAINS];
	size_t chains;
};

static bool fits(const struct walk *w, size_t chain)
{
	const struct entry *e = &w->index->entry[w->at[chain]];
	const struct places *p = w->places;

	if (e->key != w->key[chain] || e->depth > p->depth || e->place != p->place[e->depth])
		return false;
	return e->later == NO_SEGMENT || (e->later < p->count && e->text == p->segment[e->later]);
}

static void settle(struct walk *w, size_t chain)
{
	while (w->at[chain] != NO_ENTRY && !fits(w, chain))
		w->at[chain] = w->index->entry[w->at[chain]].next;
}

/* Where a chain is begun to look for rules from number `from` on: behind the rule before, if that
 * one is in it. Entries stand in the order of their rules. */
static uint32_t chain_start(const struct rule_index *index, uint64_t key, size_t from)
{
	uint32_t low = 0, high = from ? index->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (index->entry[middle].rule + 1 < from)
			low = middle + 1;
		else
			high = middle;
	}
	for (; from && low < index->count && index->entry[low].rule + 1 == from; low++) {
		if (index->entry[low].key == key)
			return index->entry[low].next;
	}
	return index->first[(uint32_t)(key ^ key >> 32) & index->mask];
}

/* `host` and `method` 0: the chains under "any" alone. */
static void walk_start(struct walk *w, const struct rule_index *index, const struct places *places,
                       uint64_t host, uint64_t method, size_t from)
{
	*w = (struct walk){.index = index, .places = places};
	for (int i = 0; i < CHAINS; i++) {
		uint64_t key = hash_both(i & 1 ? host : 0, i & 2 ? method : 0);

		if ((i & 1 && !host) || (i & 2 && !method))
			continue;
		w->key[w->chains] = key;
		w->at[w->chains] = chain_start(index, key, from);
		settle(w, w->chains++);
	}
}

/* The next rule's number; NO_ENTRY at the end. */
static uint32_t walk_next(struct walk *w)
{
	uint32_t least = NO_ENTRY;
	size_t chain = 0;

	for (size_t i = 0; i < w->chains; i++) {
		if (w->at[i] != NO_ENTRY && w->index->entry[w->at[i]].rule < least) {
			least = w->index->entry[w->at[i]].rule;
			chain = i;
		}
	}
	if (least == NO_ENTRY)
		return least;
	w->at[chain] = w->index->entry[w->at[chain]].next;
	settle(w, chain);
	return least;
}

const struct rule *index_match(const struct policy *policy, const struct policy_target *target,
                               size_t from)
{
	struct places places;
	struct walk w;
	uint32_t i;

	target_places(target->path, &places);
	walk_start(&w, policy->index, &places, target_host(target->host),
	           hash_text(target->method, false), from);
	while ((i = walk_next(&w)) != NO_ENTRY) {
		if (i >= from && matcher_matches(policy->rules[i].matcher, target))
			return &policy->rules[i];
	}
	return NULL;
}

const struct rule *index_covering(const struct policy *policy, size_t at)
{
	const struct matcher *m = policy->rules[at].matcher;
	struct places places;
	struct walk w;
	uint32_t i;

	pattern_places(m, &places);
	walk_start(&w, policy->index, &places, pattern_host(m), pattern_method(m, 0), 0);
	while ((i = walk_next(&w)) < at) {
		const struct rule *rule = &policy->rules[i];

		if (rule->when.count == 0 && matcher_covers(rule->matcher, m))
			return rule;
	}
	return NULL;
}
