/* The heap: what does not fit into its record, in extents of 64-byte units.
 *
 * Every extent starts with a word (size in units 24, kind 4, magic 8, second of birth 28) and the
 * id of its record, so that the heap can be walked from its start. Taking one happens under the
 * table lock: first a few extents from where the last search ended (two, while nothing was free
 * there), then fresh room at the end, and only when that is used up a walk through everything. The
 * walk merges free neighbours and
 * frees what nobody points to: an extent whose maker died before it was published is a minute old
 * and its record names another one. Giving back is one compare-and-swap and needs no lock. */
#include "ledger/internal.h"

enum {
	EXTENT_MAGIC = 0xa7,
	HEAP_QUICK_STEPS = 16,
	HEAP_GLANCE = 2,
	ORPHAN_SECONDS = 60,
	MEND_MOST = 1 << 16
};

static uint64_t extent_word(uint64_t units, unsigned kind, struct stamp now)
{
	return units << 40 | (uint64_t)kind << 36 | (uint64_t)EXTENT_MAGIC << 28 |
	       ((uint64_t)(now.boot_us / 1000000) & 0xfffffff);
}

static uint64_t units_of(uint64_t word)
{
	return word >> 40;
}

static unsigned kind_of(uint64_t word)
{
	return (unsigned)(word >> 36 & 15);
}

static uint64_t heap_units(const struct ledger *l)
{
	return l->fixed.heap_size / LAYOUT_UNIT;
}

/* Unit 0 is never given out: 0 means "none". */
static struct layout_extent *extent_at(const struct ledger *l, uint64_t unit)
{
	return (struct layout_extent *)(void *)(l->base + l->fixed.heap_at + unit * LAYOUT_UNIT);
}

static uint64_t heap_end(const struct ledger *l)
{
	uint64_t end = atomic_load_explicit(&l->header->next_heap, memory_order_acquire);

	return end < heap_units(l) ? end : heap_units(l);
}

/* The word of the extent at *unit, and *unit moved behind it. False: the end, or damage. */
bool heap_step(const struct ledger *l, uint64_t *unit, uint64_t *word)
{
	uint64_t end = heap_end(l);

	if (*unit == 0 || *unit >= end)
		return false;
	*word = atomic_load_explicit(&extent_at(l, *unit)->word, memory_order_acquire);
	if ((*word >> 28 & 0xff) != EXTENT_MAGIC || units_of(*word) == 0 ||
	    units_of(*word) > end - *unit)
		return false;
	*unit += units_of(*word);
	return true;
}

/* The record of the extent refers to it. */
static bool is_named(struct ledger *l, uint64_t unit)
{
	uint64_t parent = atomic_load_explicit(&extent_at(l, unit)->parent, memory_order_relaxed);
	struct layout_record *rec = record_of(l, parent, NULL);
	struct bank bank;
	uint64_t id, state;

	if (!rec || !record_read(l, rec, &id, &state, &bank) || id != parent)
		return false;
	return (bank.flags & BANK_DAMAGED) || bank.facts == unit || bank.answer == unit ||
	       bank.more_runs == unit;
}

static bool is_orphan(struct ledger *l, uint64_t unit, uint64_t word, struct stamp now)
{
	uint64_t age = ((uint64_t)(now.boot_us / 1000000) - (word & 0xfffffff)) & 0xfffffff;

	/* First: looking at the record is a cache miss. */
	return age >= ORPHAN_SECONDS && !is_named(l, unit);
}

/* A power loss may have taken a page with the words of some extents. What lies between here and the
 * next one that a record refers to belongs to nobody. */
static bool heap_mend(struct ledger *l, uint64_t unit, struct stamp now)
{
	uint64_t end = heap_end(l), next = unit + 1, at, word;

	if (unit >= end)
		return false;
	for (; next < end && next - unit < MEND_MOST; next++) {
		at = next;
		if (heap_step(l, &at, &word) && kind_of(word) != EXTENT_FREE && is_named(l, next))
			break;
	}
	if (!file_ready(l, extent_at(l, unit), LAYOUT_UNIT))
		return false;
	/* Release: as in extent_install. */
	atomic_store_explicit(&extent_at(l, unit)->word, extent_word(next - unit, EXTENT_FREE, now),
	                      memory_order_release);
	return true;
}

/* Free now, or could be: the latter is made free. */
static bool extent_usable(struct ledger *l, uint64_t unit, uint64_t *word, struct stamp now)
{
	if (kind_of(*word) == EXTENT_FREE)
		return true;
	if (!is_orphan(l, unit, *word, now))
		return false;
	heap_give(l, (uint32_t)unit,
	          atomic_load_explicit(&extent_at(l, unit)->parent, memory_order_relaxed));
	*word = atomic_load_explicit(&extent_at(l, unit)->word, memory_order_acquire);
	return kind_of(*word) == EXTENT_FREE;
}

/* All of it, and the word behind it where a rest is left. */
static bool extent_ready(struct ledger *l, uint64_t unit, uint64_t have, uint64_t need)
{
	uint64_t units = have > need ? need + 1 : have;

	return file_ready(l, extent_at(l, unit), units * LAYOUT_UNIT);
}

/* Merge the free extents from `unit` on, until it holds `need` units; its size now. */
static uint64_t merge_free(struct ledger *l, uint64_t unit, uint64_t need, struct stamp now)
{
	uint64_t next = unit, word, have = 0, at;

	while (have < need) {
		at = next;
		if (!heap_step(l, &next, &word) || !extent_usable(l, at, &word, now))
			break;
		have = next - unit;
	}
	if (!have || !extent_ready(l, unit, have, need))
		return 0;
	atomic_store_explicit(&extent_at(l, unit)->word, extent_word(have, EXTENT_FREE, now),
	                      memory_order_release);
	return have;
}

static void extent_install(struct ledger *l, uint64_t unit, uint64_t have, uint64_t need,
                           enum extent_kind kind, uint64_t parent, struct stamp now)
{
	/* The rest first: until the first word shrinks, nobody walks into it. */
	if (have > need)
		atomic_store_explicit(&extent_at(l, unit + need)->word,
		                      extent_word(have - need, EXTENT_FREE, now),
		                      memory_order_release);
	atomic_store_explicit(&extent_at(l, unit)->parent, parent, memory_order_release);
	atomic_store_explicit(&extent_at(l, unit)->word, extent_word(need, kind, now),
	                      memory_order_release);
}

/* Only then the next search may begin behind it: who dies in between must not leave it to begin
 * where no extent does. */
static void extent_take(struct ledger *l, uint64_t unit, uint64_t have, uint64_t need,
                        enum extent_kind kind, uint64_t parent, struct stamp now)
{
	extent_install(l, unit, have, need, kind, parent, now);
	/* Release: the word behind it is there. */
	atomic_store_explicit(&l->header->heap_cursor, unit + need, memory_order_release);
}

/* Where the last search ended. What was noted in another boot may not be where an extent begins
 * today: the one page may have got to the disk without the other. */
static uint64_t heap_start(struct ledger *l, struct stamp now)
{
	uint64_t unit = atomic_load_explicit(&l->header->heap_cursor, memory_order_relaxed);

	if (atomic_load_explicit(&l->header->heap_boot, memory_order_relaxed) == now.boot && unit)
		return unit;
	atomic_store_explicit(&l->header->heap_boot, now.boot, memory_order_relaxed);
	return 1;
}

/* First fit within so many extents, going round once. 0: none. */
static uint64_t heap_search(struct ledger *l, uint64_t need, uint64_t steps, struct stamp now,
                            uint64_t *have)
{
	bool whole = steps == UINT64_MAX;
	uint64_t unit = whole ? 1 : heap_start(l, now), next, word;

	/* From the start on, what is merged may swallow the place where the last search ended. */
	if (whole)
		atomic_store_explicit(&l->header->heap_cursor, 1, memory_order_relaxed);
	for (; steps; steps--) {
		next = unit;
		if (!heap_step(l, &next, &word) &&
		    !(whole && heap_mend(l, unit, now) && heap_step(l, &next, &word))) {
			next = 0;
			break;
		}
		*have = extent_usable(l, unit, &word, now) ? merge_free(l, unit, need, now) : 0;
		if (*have >= need)
			return unit;
		unit = *have ? unit + *have : next;
	}
	atomic_store_explicit(&l->header->heap_cursor, next ? unit : 1, memory_order_relaxed);
	return 0;
}

static uint64_t heap_fresh(struct ledger *l, uint64_t need)
{
	uint64_t unit = atomic_load_explicit(&l->header->next_heap, memory_order_relaxed);

	if (unit == 0)
		unit = 1;
	if (unit > heap_units(l) || need > heap_units(l) - unit)
		return 0;
	if (unit == 1 && !file_populate_ahead(l, l->fixed.heap_at, 0, LAYOUT_UNIT))
		return 0;
	if (!file_populate_ahead(l, l->fixed.heap_at, unit * LAYOUT_UNIT, need * LAYOUT_UNIT))
		return 0;
	return extent_ready(l, unit, need, need) ? unit : 0;
}

/* Every extent that is looked at is a cache miss, and so is its record. Where the last search found
 * nothing a young heap has nothing: then a glance, which still comes round to whatever is freed. */
static uint64_t quick_steps(struct ledger *l)
{
	return atomic_load_explicit(&l->heap_free_seen, memory_order_relaxed) ? HEAP_QUICK_STEPS
	                                                                      : HEAP_GLANCE;
}

/* Who found nothing in a walk through everything need not walk again at once. What another process
 * gives back meanwhile is found by a glance, or a second later. `heap_none`: second of
 * CLOCK_BOOTTIME 32, units 32. */
static bool walk_is_vain(struct ledger *l, uint64_t need, struct stamp now)
{
	/* Relaxed: a note of this process. */
	uint64_t seen = atomic_load_explicit(&l->heap_none, memory_order_relaxed);

	return seen && seen >> 32 == ((uint64_t)(now.boot_us / 1000000) & UINT32_MAX) &&
	       need >= (seen & UINT32_MAX);
}

static uint64_t heap_walk(struct ledger *l, uint64_t need, struct stamp now, uint64_t *have)
{
	uint64_t second = (uint64_t)(now.boot_us / 1000000) & UINT32_MAX, unit;

	if (walk_is_vain(l, need, now))
		return 0;
	unit = heap_search(l, need, UINT64_MAX, now, have);
	if (!unit)
		atomic_store_explicit(&l->heap_none, second << 32 | need, memory_order_relaxed);
	return unit;
}

uint32_t heap_take(struct ledger *l, size_t n, enum extent_kind kind, uint64_t parent,
                   struct stamp now)
{
	uint64_t need = (n + sizeof(struct layout_extent) + LAYOUT_UNIT - 1) / LAYOUT_UNIT;
	uint64_t token, unit, have = need;

	if (n > l->fixed.heap_size || need >= 1 << 24 || !file_header_ready(l))
		return 0;
	token = lock_take(l, &l->header->table_lock);
	unit = heap_search(l, need, quick_steps(l), now, &have);
	/* Relaxed: a hint of this process. */
	atomic_store_explicit(&l->heap_free_seen, unit != 0, memory_order_relaxed);
	if (!unit) {
		unit = heap_fresh(l, need);
		have = need;
		if (unit) {
			extent_install(l, unit, have, need, kind, parent, now);
			/* Release: the extent's word is there before the walk can reach it. */
			atomic_store_explicit(&l->header->next_heap, unit + need,
			                      memory_order_release);
			goto done;
		}
		unit = heap_walk(l, need, now, &have);
	}
	if (unit)
		extent_take(l, unit, have, need, kind, parent, now);
done:
	lock_drop(&l->header->table_lock, token);
	return (uint32_t)unit;
}

void heap_give(struct ledger *l, uint32_t unit, uint64_t parent)
{
	uint64_t word;

	if (unit == 0 || unit >= heap_end(l))
		return;
	word = atomic_load_explicit(&extent_at(l, unit)->word, memory_order_acquire);
	if ((word >> 28 & 0xff) != EXTENT_MAGIC || kind_of(word) == EXTENT_FREE ||
	    atomic_load_explicit(&extent_at(l, unit)->parent, memory_order_acquire) != parent ||
	    !file_ready(l, extent_at(l, unit), LAYOUT_UNIT))
		return;
	/* Relaxed: a note of this process. */
	atomic_store_explicit(&l->heap_none, 0, memory_order_relaxed);
	/* Release: our reads and writes of the extent end before its next user's begin. */
	atomic_compare_exchange_strong_explicit(&extent_at(l, unit)->word, &word,
	                                        (word & ~(UINT64_C(15) << 36)) |
	                                                (uint64_t)EXTENT_FREE << 36,
	                                        memory_order_acq_rel, memory_order_relaxed);
}

void *heap_at(const struct ledger *l, uint32_t unit, enum extent_kind kind, uint64_t parent,
              size_t n)
{
	uint64_t end = unit, word;

	if (!heap_step(l, &end, &word) || kind_of(word) != kind)
		return NULL;
	if (atomic_load_explicit(&extent_at(l, unit)->parent, memory_order_acquire) != parent)
		return NULL;
	if (n > (end - unit) * LAYOUT_UNIT - sizeof(struct layout_extent))
		return NULL;
	return extent_at(l, unit) + 1;
}
