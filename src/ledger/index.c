/* The index: open addressing over 8-byte words, so that a lookup touches one cache line.
 *
 * word: number 27 (record or key cell, plus 1), tag 35 (the top bits of the hash), kind 2. 0 is an
 * empty place that ends a probe, INDEX_GONE one that was used and does not. A hit is only a hint:
 * the caller compares the whole hash in the record.
 *
 * It is as large as it needs to be: each level has an area of its own, twice as large as the one
 * before, and the header says which one counts. The level is filled from the one before, entry by
 * entry in the same order, as an entry's place is its first bits; then it is switched to, and the
 * old one is never written again. Whoever dies on the way left entries the next one finds there.
 *
 * Looking up takes no lock, nor a look at the header: where a probe would end in a level that was
 * left it finds INDEX_MOVED instead, and goes on in the one that counts.
 * Adding and removing happen under the table lock, which is what lets a removed entry in front of
 * an empty place become empty again, so that probes stay short for years. */
#include <sys/mman.h>

#include "ledger/internal.h"

#define INDEX_GONE  UINT64_C(3)
#define INDEX_MOVED UINT64_C(1)
enum { NUMBER_SHIFT = 37, TAG_BITS = 35, PROBES_MOST = 64 };

struct table {
	shared64 *words;
	unsigned bits;
	uint64_t mask;
};

static unsigned level_known(const struct ledger *l)
{
	/* Relaxed: the index is looked at with acquire; an earlier level is merely not the last
	 * word (walk_again). */
	uint64_t level = atomic_load_explicit(&l->level, memory_order_relaxed);

	return level < l->fixed.index_levels ? (unsigned)level
	                                     : (unsigned)l->fixed.index_levels - 1;
}

static unsigned level_now(const struct ledger *l)
{
	/* Acquire: a level is complete before it is switched to. */
	uint64_t level = atomic_load_explicit(&l->header->index_level, memory_order_acquire);
	shared64 *known = &((struct ledger *)(uintptr_t)l)->level; /* a note of this process */

	if (level != atomic_load_explicit(known, memory_order_relaxed))
		atomic_store_explicit(known, level, memory_order_relaxed);
	return level_known(l);
}

static struct table table_at(const struct ledger *l, unsigned level)
{
	unsigned bits = LAYOUT_LEVEL + level;
	uint64_t before = (UINT64_C(1) << bits) - (UINT64_C(1) << LAYOUT_LEVEL);

	return (struct table){(shared64 *)(void *)(l->base + l->fixed.index_at) + before, bits,
	                      (UINT64_C(1) << bits) - 1};
}

static uint64_t place_of(const struct table *t, uint64_t hash)
{
	return hash >> (64 - t->bits);
}

static uint64_t entry_make(uint64_t hash, enum index_kind kind, uint64_t number)
{
	return (number + 1) << NUMBER_SHIFT | hash >> (64 - TAG_BITS) << 2 | (uint64_t)kind;
}

/* As much of the hash as the entry keeps. */
static uint64_t entry_hash(uint64_t word)
{
	return word >> 2 << (64 - TAG_BITS);
}

static uint64_t word_at(const struct table *t, uint64_t place)
{
	/* Acquire: publishes the record the entry names. */
	return atomic_load_explicit(&t->words[place & t->mask], memory_order_acquire);
}

uint64_t index_words(const struct ledger *l)
{
	return table_at(l, level_now(l)).mask + 1;
}

uint64_t index_word(const struct ledger *l, uint64_t slot, uint64_t *offset)
{
	struct table t = table_at(l, level_now(l));

	*offset = (uint64_t)((char *)&t.words[slot & t.mask] - l->base);
	return word_at(&t, slot);
}

int index_kind_of(uint64_t word)
{
	return word >> NUMBER_SHIFT ? (int)(word & 3) : 0;
}

uint64_t index_number_of(uint64_t word)
{
	return (word >> NUMBER_SHIFT) - 1;
}

struct index_walk index_start(const struct ledger *l, const uint8_t *hash, enum index_kind kind)
{
	return (struct index_walk){hash_tag(hash) * (2 * (uint64_t)kind + 1), 0, level_known(l),
	                           kind};
}

void index_fetch(const struct ledger *l, const uint8_t *hash, enum index_kind kind)
{
	struct index_walk walk = index_start(l, hash, kind);
	struct table t = table_at(l, walk.level);

	__builtin_prefetch((void *)(uintptr_t)&t.words[place_of(&t, walk.hash)]);
}

/* A level that was switched to meanwhile has everything this one had, and more. */
static bool walk_again(const struct ledger *l, struct index_walk *walk)
{
	unsigned level = level_now(l);

	if (level == walk->level)
		return false;
	walk->level = level;
	walk->at = 0;
	return true;
}

int64_t index_next(const struct ledger *l, struct index_walk *walk)
{
	uint64_t want = entry_make(walk->hash, walk->kind, 0), word;
	uint64_t same = (UINT64_C(1) << NUMBER_SHIFT) - 1;
	struct table t;

	do {
		t = table_at(l, walk->level);
		for (word = 0; walk->at <= t.mask;) {
			word = word_at(&t, place_of(&t, walk->hash) + walk->at++);
			if (word == 0 || word == INDEX_MOVED)
				break;
			if (word >> NUMBER_SHIFT && ((word ^ want) & same) == 0)
				return (int64_t)index_number_of(word);
		}
		walk->at = t.mask + 1;
	} while (word == INDEX_MOVED && walk_again(l, walk));
	return -1;
}

bool index_has(const struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number)
{
	struct index_walk walk = index_start(l, hash, kind);
	int64_t found;

	while ((found = index_next(l, &walk)) >= 0) {
		if ((uint64_t)found == number)
			return true;
	}
	return false;
}

/* Puts the entry at its first free place unless it is there. False: no place. By compare-and-swap,
 * as a process that stood still for long may not know that the lock is another's by now. */
static bool table_put(struct ledger *l, const struct table *t, uint64_t hash, uint64_t entry,
                      uint64_t *probes)
{
	uint64_t first = place_of(t, hash), seen = 0;
	shared64 *free;

	for (;;) {
		free = NULL;
		for (*probes = 0; *probes <= t->mask; ++*probes) {
			uint64_t word = word_at(t, first + *probes);
			if (word == entry)
				return true;
			if (word >> NUMBER_SHIFT == 0 && !free) {
				free = &t->words[(first + *probes) & t->mask];
				seen = word;
			}
			if (word == 0)
				break;
		}
		if (!free || !file_ready(l, free, sizeof(*free)))
			return false;
		/* Release: publishes the record behind the entry. */
		if (atomic_compare_exchange_strong_explicit(
		            free, &seen, entry, memory_order_release, memory_order_relaxed))
			return true;
	}
}

/* No probe ends in a level that was left. Before anything is added to the next one; who finds that
 * it was not done to the end does it again. */
static bool leave_levels(struct ledger *l, unsigned level)
{
	shared64 *left = &l->header->index_left;
	struct table t;
	uint64_t empty;

	for (uint64_t n = atomic_load_explicit(left, memory_order_relaxed); n < level; n++) {
		t = table_at(l, (unsigned)n);
		if (!file_ready(l, t.words, (t.mask + 1) * 8))
			return false;
		for (uint64_t i = 0; i <= t.mask; i++) {
			empty = 0;
			/* Release: the level that counts is known before. */
			atomic_compare_exchange_strong_explicit(&t.words[i], &empty, INDEX_MOVED,
			                                        memory_order_release,
			                                        memory_order_relaxed);
		}
		atomic_store_explicit(left, n + 1, memory_order_release);
	}
	return true;
}

/* The next level, filled, and on the disk before it counts: what it holds is already relied on. */
static bool index_grow(struct ledger *l, unsigned level)
{
	struct table from = table_at(l, level), to;
	uint64_t expected = level, size, word, probes;

	if (level + 1 >= l->fixed.index_levels)
		return false;
	to = table_at(l, level + 1);
	size = (to.mask + 1) * 8;
	if (!file_populate(l, (uint64_t)((char *)to.words - l->base), size))
		return false;
	for (uint64_t i = 0; i <= from.mask; i++) {
		word = word_at(&from, i);
		if (index_kind_of(word) && !table_put(l, &to, entry_hash(word), word, &probes))
			return false;
	}
	if (atomic_load_explicit(&l->header->flushed, memory_order_relaxed) &&
	    file_flush_range(l, to.words, size) != LEDGER_OK)
		return false;
	/* Release: publishes the level. Only from the one it was filled from. */
	return atomic_compare_exchange_strong_explicit(&l->header->index_level, &expected,
	                                               level + 1, memory_order_release,
	                                               memory_order_relaxed);
}

int index_add(struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number)
{
	uint64_t full = hash_tag(hash) * (2 * (uint64_t)kind + 1), probes;
	unsigned level = level_now(l);
	struct table t = table_at(l, level);
	bool fine;

	if (!leave_levels(l, level))
		return LEDGER_FULL;
	fine = table_put(l, &t, full, entry_make(full, kind, number), &probes);

	if (fine && probes < PROBES_MOST)
		return LEDGER_OK;
	if (!index_grow(l, level) && !fine)
		return LEDGER_FULL;
	level = level_now(l);
	if (!leave_levels(l, level))
		return LEDGER_FULL;
	if (fine)
		return LEDGER_OK;
	t = table_at(l, level);
	return table_put(l, &t, full, entry_make(full, kind, number), &probes) ? LEDGER_OK
	                                                                       : LEDGER_FULL;
}

/* A place in front of an empty one need not be marked as used, and so on backwards. */
static void tidy(struct ledger *l, const struct table *t, uint64_t slot)
{
	for (uint64_t i = 0; i < 64; i++, slot--) {
		if (word_at(t, slot + 1) != 0 || word_at(t, slot) != INDEX_GONE ||
		    !file_ready(l, &t->words[slot & t->mask], sizeof(*t->words)))
			return;
		atomic_store_explicit(&t->words[slot & t->mask], 0, memory_order_release);
	}
}

void index_remove(struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number)
{
	struct index_walk walk = index_start(l, hash, kind);
	struct table t;
	uint64_t slot;
	int64_t found;

	while ((found = index_next(l, &walk)) >= 0) {
		if ((uint64_t)found != number)
			continue;
		t = table_at(l, walk.level);
		slot = place_of(&t, walk.hash) + walk.at - 1;
		/* One that must stay leads to a place that is empty, and is passed over. */
		if (!file_ready(l, &t.words[slot & t.mask], sizeof(*t.words)))
			return;
		atomic_store_explicit(&t.words[slot & t.mask], INDEX_GONE, memory_order_release);
		tidy(l, &t, slot);
		return;
	}
}
