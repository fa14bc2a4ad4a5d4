/* Expiry: a few records a reserve, no thread.
 *
 * done + ttl -> tombstone (answer and facts go back to the heap); freed + ttl -> the same;
 * tombstone
 * + tombstone_us -> the place is empty. A `reserved` record whose owner is dead never sent a byte
 * and is freed. A record in doubt is never touched. Emptying a place goes word first, then keys and
 * index entries, then `linked`; whoever finds it half done does the rest again. */
#include "ledger/internal.h"

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
	lock_drop(&l->header->table_lock, token);
}

static bool finish_drop(struct ledger *l, struct layout_record *rec)
{
	uint64_t token;

	if (atomic_load_explicit(&rec->linked, memory_order_acquire) == 0)
		return true;
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

static bool tombstone_over(const struct layout_bank *bank, struct stamp now)
{
	int64_t keep = bank->tombstone_us > bank->ttl_us ? bank->tombstone_us : bank->ttl_us;

	return bank->ended.wall_us && clock_age_min(bank->ended, now) > keep;
}

enum sweep_step { SWEEP_KEEP, SWEEP_TOMB, SWEEP_DROP, SWEEP_FREE, SWEEP_TRIM };

static enum sweep_step sweep_what(struct ledger *l, struct layout_record *rec, uint64_t word,
                                  const struct layout_bank *bank, struct stamp now)
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
		    clock_age_min(bank->made, now) > bank->ttl_us)
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

/* Most records that are looked at are not over yet. That much is seen in a third of the bank, and
 * need not be proven: what looks over is read whole, and tested, before anything is done to it. */
static bool not_over_yet(struct layout_record *rec, struct stamp now)
{
	uint64_t word = atomic_load_explicit(&rec->word, memory_order_acquire);
	struct word w = word_read(word);
	struct layout_bank bank;

	if (w.state != REC_DONE && w.state != REC_FREED)
		return false;
	shared_out(&bank, &rec->bank[w.bank], offsetof(struct layout_bank, attempts));
	if (bank.answer && !(bank.flags & BANK_ANSWER_FINAL))
		return false;
	return !record_expired(&bank, now);
}

static void apply(struct change *c, enum sweep_step step, struct stamp now)
{
	change_drop_answer(c);
	switch (step) {
	case SWEEP_TOMB:
		/* From this moment on it is remembered; a freed one from when it was freed. */
		if (c->word.state == REC_DONE)
			c->bank.ended = now;
		c->word.state = REC_TOMBSTONE;
		c->bank.facts = 0;
		c->bank.run_count = 0;
		break;
	case SWEEP_FREE:
		c->word.state = REC_FREED;
		c->bank.freed = FREED_WITHDRAWN;
		c->bank.ended = now;
		change_own(c, (struct owner){0, 0});
		break;
	case SWEEP_DROP:
		c->word.state = REC_NONE;
		c->bank.facts = 0;
		change_own(c, (struct owner){0, 0});
		break;
	default:
		break;
	}
}

bool sweep_one(struct ledger *l, struct layout_record *rec, struct stamp now)
{
	struct layout_bank bank;
	struct change c;
	uint64_t id, word;
	enum sweep_step step;

	if (not_over_yet(rec, now))
		return false;
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

/* The cursor goes round by itself: a count that only grows, taken modulo an end that grows with it,
 * would stay where it is while every reservation is a new record. */
void sweep_some(struct ledger *l, unsigned count, struct stamp now)
{
	uint64_t end = atomic_load_explicit(&l->header->next_record, memory_order_acquire), at;

	if (end > l->fixed.record_count)
		end = l->fixed.record_count;
	for (unsigned i = 0; i < count && end; i++) {
		/* Relaxed: where it looks next orders nothing; two that meet look twice. */
		at = atomic_load_explicit(&l->header->sweep_cursor, memory_order_relaxed);
		at = at < end ? at : 0;
		atomic_store_explicit(&l->header->sweep_cursor, at + 1, memory_order_relaxed);
		sweep_one(l, record_at(l, at), now);
	}
}
