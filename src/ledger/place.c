/* Where a new record goes.
 *
 * First a place that became empty again; else the next of a few that this process took for itself,
 * one, then two, four, at most 48 at a time, so that a process that writes much stays on pages of
 * its own and one that writes once takes one place. When all were taken once, what is noted as
 * empty anywhere; a write that finds none has everything looked at, and noted (sweep.c).
 * A place is ours from the moment its lock is, which is also what keeps the sweep away. */
#include "ledger/internal.h"

enum { GRANT_MOST = 48, EMPTY_SEARCH = 64, EMPTY_SEARCH_LAST = 8192 };

static bool record_unused(struct layout_record *rec)
{
	return word_read(atomic_load_explicit(&rec->word, memory_order_acquire)).state ==
	               REC_NONE &&
	       atomic_load_explicit(&rec->linked, memory_order_acquire) == 0;
}

/* Ours from here on, for everybody who looks for a place or for something to sweep. */
static bool place_lock(struct ledger *l, struct layout_record *rec, uint64_t *token)
{
	*token = record_unused(rec) && file_ready(l, rec, sizeof(*rec)) ? lock_try(l, &rec->lock)
	                                                                : 0;
	if (*token == 0)
		return false;
	if (record_unused(rec))
		return true;
	lock_drop(&rec->lock, *token);
	return false;
}

static struct layout_record *place_in_group(struct ledger *l, uint64_t group, uint64_t *token)
{
	uint64_t end = record_end(l), first = group * LAYOUT_GROUP;

	for (uint64_t n = first; n < first + LAYOUT_GROUP && n < end; n++) {
		if (!place_lock(l, record_at(l, n), token))
			continue;
		due_filled(l, group, false);
		return record_at(l, n);
	}
	due_filled(l, group, true);
	return NULL;
}

/* Looks at some groups, from where the last one was found. */
static struct layout_record *place_emptied(struct ledger *l, uint64_t search, uint64_t *token)
{
	uint64_t groups = (record_end(l) + LAYOUT_GROUP - 1) / LAYOUT_GROUP, at;
	struct layout_record *rec = NULL;

	if (groups == 0 || atomic_load_explicit(&l->header->emptied, memory_order_relaxed) == 0)
		return NULL;
	at = atomic_load_explicit(&l->header->record_cursor, memory_order_relaxed) % groups;
	for (uint64_t i = 0; i < search && i < groups && !rec; i++) {
		if (due_has_empty(l, at))
			rec = place_in_group(l, at, token);
		if (!rec)
			at = at + 1 < groups ? at + 1 : 0;
	}
	/* Relaxed: where the next search begins orders nothing. */
	atomic_store_explicit(&l->header->record_cursor, at, memory_order_relaxed);
	return rec;
}

static bool places_populate(struct ledger *l, uint64_t first, uint64_t count)
{
	const char *from = (const char *)record_at(l, first);
	const char *end = (const char *)record_at(l, first + count - 1) + LAYOUT_RECORD;

	return file_populate(l, (uint64_t)(from - l->base), (uint64_t)(end - from));
}

/* Some more for this process: the number of the first, and how many. There is room for them before
 * they count as used: whoever walks over what is used touches them. */
static uint64_t grant_more(struct ledger *l, uint64_t *first)
{
	uint64_t count = l->fixed.record_count, size, next, most;

	size = atomic_load_explicit(&l->grant_size, memory_order_relaxed);
	size = size ? size : 1;
	next = atomic_load_explicit(&l->header->next_record, memory_order_relaxed);
	do {
		if (next >= count)
			return 0;
		most = count - next < size ? count - next : size;
		if (!places_populate(l, next, most))
			return 0;
		/* Release: a walk that sees the new end sees a zeroed or an older record. */
	} while (!atomic_compare_exchange_weak_explicit(&l->header->next_record, &next, next + most,
	                                                memory_order_release,
	                                                memory_order_relaxed));
	*first = next;
	size = size * 2 < GRANT_MOST ? size * 2 : GRANT_MOST;
	atomic_store_explicit(&l->grant_size, size, memory_order_relaxed);
	return most;
}

/* The next place of this process. Several threads take from one grant; one that asks for another
 * meanwhile wastes what is left of it until everything was used once. */
static bool grant_take(struct ledger *l, uint64_t *number)
{
	uint64_t grant = atomic_load_explicit(&l->grant, memory_order_relaxed), left, first;

	while (grant & UINT32_MAX) {
		/* Relaxed: numbers only; the place has a lock of its own. */
		if (atomic_compare_exchange_weak_explicit(
		            &l->grant, &grant, grant + (UINT64_C(1) << 32) - 1,
		            memory_order_relaxed, memory_order_relaxed)) {
			*number = grant >> 32;
			return true;
		}
	}
	left = grant_more(l, &first);
	if (left == 0)
		return false;
	atomic_store_explicit(&l->grant, (first + 1) << 32 | (left - 1), memory_order_relaxed);
	*number = first;
	return true;
}

struct layout_record *place_take(struct ledger *l, uint64_t *token)
{
	struct layout_record *rec = place_emptied(l, EMPTY_SEARCH, token);
	uint64_t number;

	/* After a power loss some beyond the mark may be in use. */
	while (!rec && grant_take(l, &number)) {
		if (place_lock(l, record_at(l, number), token))
			rec = record_at(l, number);
	}
	return rec ? rec : place_emptied(l, EMPTY_SEARCH_LAST, token);
}
