/* Expiry: a few records a reserve, no thread. Also what a write does that finds no room.
 *
 * Records are looked at in groups of 12, and only when something in one may be over (due.c).
 * done + ttl -> tombstone (answer and facts go back to the heap); freed + ttl -> the same;
 * tombstone + tombstone_us -> the place is empty. A `reserved` record whose owner is dead never
 * sent a byte and is freed. A record in doubt is never touched. Emptying a place goes word first,
 * then keys and index entries, then `linked`; whoever finds it half done does the rest again. */
#include "ledger/internal.h"

#define LOOK_AGAIN_US INT64_C(5000000)
/* For one write that finds no room. */
enum { ROOM_GROUPS = 8192, ROOM_SWEEPS = 8, ROOM_LOOKS = 65536, ROOM_PAUSE_SECONDS = 60 };

/* The record's lock is held, its word says REC_NONE. */
static void unlink_place(struct ledger *l, struct layout_record *rec)
{
	uint64_t token = lock_take(l, &l->header->table_lock);
	uint64_t number = record_number(l, rec);
	uint64_t life = atomic_load_explicit(&rec->life, memory_order_relaxed) & UINT32_MAX;
	uint8_t hash[LEDGER_HASH];

	key_unbind_all(l, rec, record_id(number, life));
	shared_out(hash, rec->content, sizeof(hash));
	index_remove(l, hash, INDEX_CONTENT, number);
	shared_out(hash, rec->any_account, sizeof(hash));
	index_remove(l, hash, INDEX_ANY, number);
	/* Its id ends: cells and extents that still name it are free. */
	atomic_store_explicit(&rec->life, (life + 1) & INT32_MAX, memory_order_release);
	/* Release: only now may the place be taken. */
	atomic_store_explicit(&rec->linked, 0, memory_order_release);
	due_emptied(l, number);
	lock_drop(&l->header->table_lock, token);
}

static bool finish_drop(struct ledger *l, struct layout_record *rec)
{
	uint64_t token;

	if (atomic_load_explicit(&rec->linked, memory_order_acquire) == 0)
		return true;
	if (!file_header_ready(l) || !file_ready(l, rec, sizeof(*rec)))
		return false;
	/* Held by somebody alive: an insertion under way. */
	token = lock_try(l, &rec->lock);
	if (token == 0)
		return false;
	if (word_read(atomic_load_explicit(&rec->word, memory_order_acquire)).state == REC_NONE &&
	    atomic_load_explicit(&rec->linked, memory_order_acquire) != 0)
		unlink_place(l, rec);
	lock_drop(&rec->lock, token);
	return true;
}

static bool tombstone_over(const struct bank *bank, struct stamp now)
{
	int64_t keep = bank->tombstone_us > bank->ttl_us ? bank->tombstone_us : bank->ttl_us;
	struct stamp ended = stamp_read(bank->ended, now);

	return ended.wall_us && clock_age_min(ended, now) > keep;
}

enum sweep_step { SWEEP_KEEP, SWEEP_TOMB, SWEEP_DROP, SWEEP_FREE, SWEEP_TRIM };

static enum sweep_step sweep_what(struct ledger *l, struct layout_record *rec, uint64_t word,
                                  const struct bank *bank, struct stamp now)
{
	struct word w = word_read(word);

	if (bank->flags & BANK_DAMAGED)
		return SWEEP_KEEP;
	switch (w.state) {
	case REC_DONE:
	case REC_FREED:
		if (record_expired(bank, now))
			return SWEEP_TOMB;
		break;
	case REC_TOMBSTONE:
		return tombstone_over(bank, now) ? SWEEP_DROP : SWEEP_KEEP;
	case REC_RESERVED:
		if (owner_life(l, w.owner, w.nonce, now) == OWNER_DEAD)
			return SWEEP_FREE;
		if (!lease_fresh(atomic_load_explicit(&rec->lease, memory_order_acquire), now) &&
		    clock_age_min(stamp_read(bank->made, now), now) > bank->ttl_us)
			return SWEEP_FREE;
		break;
	default:
		break;
	}
	if (bank->answer && !(bank->flags & BANK_ANSWER_FINAL) &&
	    !lease_fresh(bank->keep_until, now))
		return SWEEP_TRIM;
	return SWEEP_KEEP;
}

static void apply(struct change *c, enum sweep_step step, struct stamp now)
{
	change_drop_answer(c);
	switch (step) {
	case SWEEP_TOMB:
		/* From this moment on it is remembered; a freed one from when it was freed. */
		if (c->word.state == REC_DONE)
			c->bank.ended = stamp_pack(now);
		c->word.state = REC_TOMBSTONE;
		change_drop_facts(c);
		break;
	case SWEEP_FREE:
		c->word.state = REC_FREED;
		c->bank.freed = FREED_WITHDRAWN;
		c->bank.ended = stamp_pack(now);
		change_own(c, (struct owner){0, 0});
		break;
	case SWEEP_DROP:
		c->word.state = REC_NONE;
		change_drop_facts(c);
		change_own(c, (struct owner){0, 0});
		break;
	default:
		break;
	}
}

bool sweep_one(struct ledger *l, struct layout_record *rec, struct stamp now)
{
	struct bank bank;
	struct change c;
	uint64_t id, word;
	enum sweep_step step;

	if (!record_read(l, rec, &id, &word, &bank))
		return finish_drop(l, rec);
	if (sweep_what(l, rec, word, &bank, now) == SWEEP_KEEP)
		return false;
	if (change_begin(l, id, &c) != LEDGER_OK)
		return false;
	step = sweep_what(l, rec, c.seen, &c.bank, now);
	if (step == SWEEP_KEEP) {
		change_cancel(&c);
		return false;
	}
	apply(&c, step, now);
	if (change_publish(l, &c, NULL) != LEDGER_OK || step != SWEEP_DROP)
		return false;
	return finish_drop(l, rec);
}

/* When this one may be over. What cannot be told from its own moments is looked at again later. */
static uint64_t next_look(struct ledger *l, struct layout_record *rec, struct stamp now)
{
	struct bank bank;
	uint64_t id, word, due, soon = (uint64_t)(now.wall_us + LOOK_AGAIN_US);

	if (!record_read(l, rec, &id, &word, &bank))
		return atomic_load_explicit(&rec->linked, memory_order_relaxed) ? soon : 0;
	if (bank.flags & BANK_DAMAGED)
		return 0;
	due = due_of(&bank);
	return due && due < soon ? soon : due;
}

/* Every record of a group. Returns how many places in it are empty, and when to look again. */
static uint64_t sweep_group(struct ledger *l, uint64_t group, struct stamp now, uint64_t *next)
{
	uint64_t first = group * LAYOUT_GROUP, end = record_end(l), empty = 0, look;

	*next = 0;
	for (uint64_t n = first; n < first + LAYOUT_GROUP && n < end; n++) {
		empty += sweep_one(l, record_at(l, n), now);
		look = next_look(l, record_at(l, n), now);
		if (look && (!*next || look < *next))
			*next = look;
	}
	return empty;
}

/* Whatever its moment says; that is put right, and places nobody uses are noted: what dead
 * processes took and did not use is found here only. */
static void look_at_group(struct ledger *l, uint64_t group, struct stamp now)
{
	uint64_t next, empty = sweep_group(l, group, now, &next);

	due_note(l, group * LAYOUT_GROUP, next);
	due_empty_at_least(l, group, empty);
}

static uint64_t group_end(const struct ledger *l)
{
	return (record_end(l) + LAYOUT_GROUP - 1) / LAYOUT_GROUP;
}

/* The cursor goes round by itself: a count that only grows, taken modulo an end that grows with it,
 * would stay where it is while every reservation is a new record. */
static void sweep_due(struct ledger *l, uint64_t count, unsigned sweeps, struct stamp now)
{
	uint64_t groups = group_end(l), at, token, next;

	for (uint64_t i = 0; i < count && i < groups && sweeps; i++) {
		/* Relaxed: where it looks next orders nothing; two that meet look twice. */
		at = atomic_load_explicit(&l->sweep_cursor, memory_order_relaxed);
		at = at < groups ? at : 0;
		atomic_store_explicit(&l->sweep_cursor, at + 1, memory_order_relaxed);
		token = due_begin(l, at, now);
		if (!token)
			continue;
		sweep_group(l, at, now, &next);
		due_end(l, at, token, next);
		sweeps--;
	}
}

void sweep_some(struct ledger *l, uint64_t count, struct stamp now)
{
	if (count < record_end(l)) {
		sweep_due(l, count, 1, now);
		return;
	}
	for (uint64_t group = 0; group < group_end(l); group++)
		look_at_group(l, group, now);
}

/* The next part of the look at everything is ours. `looked`: the second of CLOCK_BOOTTIME in which
 * this round began 32, and its next group 32. Who dies over his part leaves it to the next round.
 */
static bool look_claim(struct ledger *l, uint64_t *from, struct stamp now)
{
	uint64_t seen = atomic_load_explicit(&l->header->looked, memory_order_relaxed);
	uint64_t second = (uint64_t)(now.boot_us / 1000000) & UINT32_MAX, began = seen >> 32;

	*from = seen & UINT32_MAX;
	if (*from >= group_end(l)) {
		if (second >= began && second - began < ROOM_PAUSE_SECONDS)
			return false;
		*from = 0;
	}
	began = *from ? began : second;
	/* Relaxed: numbers only. */
	return atomic_compare_exchange_strong_explicit(
	        &l->header->looked, &seen, began << 32 | (*from + ROOM_LOOKS / LAYOUT_GROUP),
	        memory_order_relaxed, memory_order_relaxed);
}

/* What the moments of the groups and the notes of empty places do not say (a power loss took them,
 * the clock jumped, a process died with places it had taken) a look at everything does; after that
 * they say everything, so once a minute is enough, for all processes together. */
void sweep_for_room(struct ledger *l, struct stamp now)
{
	uint64_t from, end;

	sweep_due(l, ROOM_GROUPS, ROOM_SWEEPS, now);
	if (!look_claim(l, &from, now))
		return;
	end = from + ROOM_LOOKS / LAYOUT_GROUP;
	for (; from < end && from < group_end(l); from++)
		look_at_group(l, from, now);
}
