/* What `ledger recover` could not read: a stretch of time in which writes were made that nobody
 * remembers any more.
 *
 * A write that is asked for today may be a retry of one of them. So as long as the stretch is not
 * settled, a write without a record is in doubt if its operation was in use then. The operations
 * are known by their hashes; where even that was lost, it means every one. It is written once, into
 * a ledger that nobody uses yet, and later only opened or closed by one word. */
#include <errno.h>
#include <string.h>

#include "ledger/internal.h"

static uint64_t lost_sum(const struct layout_lost *lost)
{
	return sum_bytes(0, (const char *)lost + sizeof(lost->sum),
	                 sizeof(*lost) - sizeof(lost->sum));
}

void lost_set(struct ledger *l, const struct ledger_lost *lost)
{
	struct layout_lost there = {.from_us = lost->from_us,
	                            .until = lost->until,
	                            .every = lost->every,
	                            .count = (uint32_t)lost->count};

	memcpy(there.operations, lost->operations, lost->count * sizeof(there.operations[0]));
	there.sum = lost_sum(&there);
	shared_in(&l->header->lost, &there, sizeof(there));
	/* Release: publishes the description. */
	atomic_store_explicit(&l->header->lost_open, 1, memory_order_release);
}

bool ledger_lost(const struct ledger *l, struct ledger_lost *out)
{
	struct layout_lost there;

	memset(out, 0, sizeof(*out));
	/* Acquire: pairs with lost_set. */
	if (atomic_load_explicit(&l->header->lost_open, memory_order_acquire) == 0)
		return false;
	shared_out(&there, &l->header->lost, sizeof(there));
	out->from_us = there.from_us;
	out->until = there.until;
	/* A description that is damaged itself excludes nothing. */
	out->every = there.every || there.sum != lost_sum(&there);
	out->count = there.count < LEDGER_LOST_OPERATIONS ? there.count : LEDGER_LOST_OPERATIONS;
	memcpy(out->operations, there.operations, sizeof(out->operations));
	return true;
}

bool lost_add(struct ledger_lost *lost, uint64_t operation)
{
	for (size_t i = 0; i < lost->count; i++) {
		if (lost->operations[i] == operation)
			return true;
	}
	if (lost->count == LEDGER_LOST_OPERATIONS) {
		lost->every = true;
		return false;
	}
	lost->operations[lost->count++] = operation;
	return false;
}

static bool was_in_use(const struct ledger_lost *lost, const char *operation)
{
	uint64_t hash = find_operation_hash(operation);

	for (size_t i = 0; i < lost->count && !lost->every; i++) {
		if (lost->operations[i] == hash)
			return true;
	}
	return lost->every;
}

int ledger_find_lost(const struct ledger *l, const char *operation, struct record_view *out)
{
	struct ledger_lost lost;

	memset(out, 0, sizeof(*out));
	if (!ledger_lost(l, &lost) || !was_in_use(&lost, operation))
		return LEDGER_NONE;
	out->state = REC_UNKNOWN;
	out->hit = HIT_LOST;
	out->generation = 1;
	out->ever_sent = out->in_doubt = true;
	/* As one that ended so may have: it must not look like a success. */
	out->ended_by_curlcode = true;
	out->made.wall_us = lost.from_us;
	out->first_sent = out->ended = lost.until;
	return LEDGER_OK;
}

int ledger_settle_lost(struct ledger *l)
{
	if (l->read_only || retire_no_change(l) || !file_header_ready(l))
		return LEDGER_CANNOT;
	/* Relaxed: nothing is published by it; what was lost stays described. */
	atomic_store_explicit(&l->header->lost_open, 0, memory_order_relaxed);
	return file_flush(l);
}
