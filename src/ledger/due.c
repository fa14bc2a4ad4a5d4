/* When to look at records again: one moment for every 12 of them.
 *
 * Most records are not over yet, and each that is looked at in vain is a cache miss. So a group
 * knows the earliest moment anything in it may end, and what ends later may only bring it forward.
 * A sweep of the whole group finds the next such moment; whoever publishes meanwhile takes the
 * sweep's mark away, and it is looked at once more. All of it is a hint: a moment that was lost
 * with a power failure leaves records where they are until a reserve finds no room, which looks at
 * everything.
 *
 * due: 0 never, 1 now, else microseconds of the wall clock; the top bit marks a sweep under way. */
#include "ledger/internal.h"

#define DUE_SWEEP (UINT64_C(1) << 63)
enum { DUE_NEVER, DUE_NOW, DUE_BUSY_SECONDS = 5 };

static struct layout_group *group_at(const struct ledger *l, uint64_t group)
{
	return (struct layout_group *)(void *)(l->base + l->fixed.groups_at) + group;
}

static uint64_t later_by(int64_t wall_us, int64_t by)
{
	uint64_t at = wall_us > 0 ? (uint64_t)wall_us : 0;

	at += by > 0 ? (uint64_t)by : 0;
	return at < DUE_SWEEP ? at : DUE_SWEEP - 1;
}

uint64_t due_of(const struct bank *bank)
{
	int64_t keep = bank->tombstone_us > bank->ttl_us ? bank->tombstone_us : bank->ttl_us;

	if (bank->answer && !(bank->flags & BANK_ANSWER_FINAL))
		return later_by(bank->ended.wall_us, LEASE_SECONDS * INT64_C(1000000));
	switch (bank->state) {
	case REC_RESERVED:
		return later_by(bank->made.wall_us, bank->ttl_us);
	case REC_DONE:
	case REC_FREED:
		return later_by(bank->ended.wall_us, bank->ttl_us);
	case REC_TOMBSTONE:
		return later_by(bank->ended.wall_us, keep);
	default:
		return DUE_NEVER;
	}
}

void due_note(struct ledger *l, uint64_t number, uint64_t when)
{
	shared64 *due = &group_at(l, number / LAYOUT_GROUP)->due;
	uint64_t seen = atomic_load_explicit(due, memory_order_relaxed), mine;

	if (when == DUE_NEVER || !file_ready(l, due, sizeof(*due)))
		return;
	do {
		if (seen != DUE_NEVER && seen <= when)
			return;
		mine = seen & DUE_SWEEP ? DUE_NOW : when;
		/* Release: a sweep that this one disturbs sees the record on its next turn. */
	} while (!atomic_compare_exchange_weak_explicit(due, &seen, mine, memory_order_release,
	                                                memory_order_relaxed));
}

/* Somebody else is at it. */
static bool is_busy(uint64_t seen, struct stamp now)
{
	uint64_t began = (seen & ~DUE_SWEEP) >> 10, here = (uint64_t)now.boot_us & UINT64_MAX >> 11;

	return seen & DUE_SWEEP && here >= began &&
	       here - began < DUE_BUSY_SECONDS * UINT64_C(1000000);
}

uint64_t due_begin(struct ledger *l, uint64_t group, struct stamp now)
{
	shared64 *due = &group_at(l, group)->due;
	uint64_t seen = atomic_load_explicit(due, memory_order_relaxed), token;

	if (seen == DUE_NEVER || is_busy(seen, now))
		return 0;
	if (!(seen & DUE_SWEEP) && seen > (uint64_t)now.wall_us)
		return 0;
	if (!file_ready(l, due, sizeof(*due)))
		return 0;
	token = DUE_SWEEP | ((uint64_t)now.boot_us & UINT64_MAX >> 11) << 10 |
	        (owner_self(l).slot & 0x3ff);
	/* Acquire: what was published before is seen by this sweep. */
	return atomic_compare_exchange_strong_explicit(due, &seen, token, memory_order_acquire,
	                                               memory_order_relaxed)
	               ? token
	               : 0;
}

void due_end(struct ledger *l, uint64_t group, uint64_t token, uint64_t next)
{
	if (!file_ready(l, group_at(l, group), sizeof(struct layout_group)))
		return;
	/* Relaxed: a hint. */
	atomic_compare_exchange_strong_explicit(&group_at(l, group)->due, &token, next,
	                                        memory_order_relaxed, memory_order_relaxed);
}

void due_emptied(struct ledger *l, uint64_t number)
{
	if (!file_ready(l, group_at(l, number / LAYOUT_GROUP), sizeof(struct layout_group)))
		return;
	/* Relaxed: hints. */
	atomic_fetch_add_explicit(&group_at(l, number / LAYOUT_GROUP)->emptied, 1,
	                          memory_order_relaxed);
	atomic_fetch_add_explicit(&l->header->emptied, 1, memory_order_relaxed);
}

bool due_has_empty(const struct ledger *l, uint64_t group)
{
	return atomic_load_explicit(&group_at(l, group)->emptied, memory_order_relaxed) != 0;
}

void due_empty_at_least(struct ledger *l, uint64_t group, uint64_t count)
{
	shared64 *emptied = &group_at(l, group)->emptied;
	uint64_t seen = atomic_load_explicit(emptied, memory_order_relaxed);

	if (seen >= count || !file_ready(l, emptied, sizeof(*emptied)) || !file_header_ready(l))
		return;
	/* Relaxed: hints. Whoever is faster knows as much. */
	if (atomic_compare_exchange_strong_explicit(emptied, &seen, count, memory_order_relaxed,
	                                            memory_order_relaxed))
		atomic_fetch_add_explicit(&l->header->emptied, count - seen, memory_order_relaxed);
}

/* Returns what was taken off. */
static uint64_t count_down(shared64 *count, uint64_t most)
{
	uint64_t seen = atomic_load_explicit(count, memory_order_relaxed), off;

	do {
		off = seen < most ? seen : most;
	} while (off && !atomic_compare_exchange_weak_explicit(count, &seen, seen - off,
	                                                       memory_order_relaxed,
	                                                       memory_order_relaxed));
	return off;
}

void due_filled(struct ledger *l, uint64_t group, bool none_left)
{
	if (!file_ready(l, group_at(l, group), sizeof(struct layout_group)))
		return;
	count_down(&l->header->emptied,
	           count_down(&group_at(l, group)->emptied, none_left ? UINT64_MAX : 1));
}
