/* The index: open addressing over 8-byte words, so that a lookup touches one cache line.
 *
 * word: number 32 (record or key cell, plus 1), tag 30 (of the hash), kind 2. 0 is an empty place
 * that ends a probe, INDEX_GONE one that was used and does not. Looking up takes no lock. Adding
 * and removing happen under the table lock, which is what lets a removed entry in front of an empty
 * place become empty again, so that probes stay short for years. A hit is only a hint: the caller
 * compares the whole hash in the record. */
#include "ledger/internal.h"

#define INDEX_GONE UINT64_C(3)

static shared64 *words(const struct ledger *l)
{
	return (shared64 *)(void *)(l->base + l->fixed.index_at);
}

static uint64_t entry_make(uint64_t hash, enum index_kind kind, uint64_t number)
{
	return (number + 1) << 32 | (hash >> 34) << 2 | (uint64_t)kind;
}

uint64_t index_word(const struct ledger *l, uint64_t slot)
{
	return atomic_load_explicit(&words(l)[slot & (l->fixed.index_count - 1)],
	                            memory_order_acquire);
}

int index_kind_of(uint64_t word)
{
	return word >> 32 ? (int)(word & 3) : 0;
}

uint64_t index_number_of(uint64_t word)
{
	return (word >> 32) - 1;
}

uint64_t index_tag_of(uint64_t word)
{
	return word >> 2 & 0x3fffffff;
}

struct index_walk index_start(const uint8_t *hash, enum index_kind kind)
{
	return (struct index_walk){hash_tag(hash) * (2 * (uint64_t)kind + 1), 0, kind};
}

int64_t index_next(const struct ledger *l, struct index_walk *walk)
{
	uint64_t want = entry_make(walk->hash, walk->kind, 0) & UINT32_MAX, word;

	while (walk->at < l->fixed.index_count) {
		/* Acquire (in index_word): publishes the record the entry names. */
		word = index_word(l, walk->hash + walk->at++);
		if (word == 0)
			break;
		if (word >> 32 && (word & UINT32_MAX) == want)
			return (int64_t)index_number_of(word);
	}
	walk->at = l->fixed.index_count;
	return -1;
}

bool index_has(const struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number)
{
	struct index_walk walk = index_start(hash, kind);
	int64_t found;

	while ((found = index_next(l, &walk)) >= 0) {
		if ((uint64_t)found == number)
			return true;
	}
	return false;
}

int index_add(struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number)
{
	struct index_walk walk = index_start(hash, kind);
	uint64_t mask = l->fixed.index_count - 1, entry = entry_make(walk.hash, kind, number);
	shared64 *place = NULL;

	for (uint64_t i = 0; i <= mask; i++) {
		uint64_t word = index_word(l, walk.hash + i);
		if (word == entry)
			return LEDGER_OK;
		if (word >> 32 == 0 && !place)
			place = &words(l)[(walk.hash + i) & mask];
		if (word == 0)
			break;
	}
	if (!place)
		return LEDGER_FULL;
	/* Release: publishes the record behind the entry. */
	atomic_store_explicit(place, entry, memory_order_release);
	return LEDGER_OK;
}

/* A place in front of an empty one need not be marked as used, and so on backwards. */
static void tidy(struct ledger *l, uint64_t slot)
{
	uint64_t mask = l->fixed.index_count - 1;

	for (uint64_t i = 0; i < 64; i++, slot--) {
		if (index_word(l, slot + 1) != 0 || index_word(l, slot) != INDEX_GONE)
			return;
		atomic_store_explicit(&words(l)[slot & mask], 0, memory_order_release);
	}
}

void index_remove(struct ledger *l, const uint8_t *hash, enum index_kind kind, uint64_t number)
{
	struct index_walk walk = index_start(hash, kind);
	uint64_t mask = l->fixed.index_count - 1;
	int64_t found;

	while ((found = index_next(l, &walk)) >= 0) {
		if ((uint64_t)found != number)
			continue;
		atomic_store_explicit(&words(l)[(walk.hash + walk.at - 1) & mask], INDEX_GONE,
		                      memory_order_release);
		tidy(l, walk.hash + walk.at - 1);
		return;
	}
}
