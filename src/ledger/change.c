/* How a record is changed: one publication.
 *
 * A change takes the record's lock, copies the bank that counts, fills the spare one and installs
 * it by one compare-and-swap of the state word. A process killed anywhere in between has changed
 * nothing, and the next one steals its lock. One that stood still so long that its lock was stolen
 * finds that out before it writes, and its publication fails. */
#include <string.h>

#include "ledger/internal.h"

int change_begin(struct ledger *l, uint64_t id, struct change *c)
{
	struct layout_record *rec = record_of(l, id, NULL);

	if (l->read_only)
		return LEDGER_CANNOT;
	if (!rec)
		return LEDGER_NONE;
	if (!file_header_ready(l) || !file_ready(l, rec, sizeof(*rec)))
		return LEDGER_CANNOT;
	c->rec = rec;
	c->token = lock_take(l, &rec->lock);
	if (retire_no_change(l)) {
		lock_drop(&rec->lock, c->token);
		return LEDGER_CANNOT;
	}
	if (!record_read(l, rec, &c->id, &c->seen, &c->bank) || c->id != id) {
		lock_drop(&rec->lock, c->token);
		return LEDGER_NONE;
	}
	if (!bank_ready(l, c->id, &c->bank)) {
		lock_drop(&rec->lock, c->token);
		return LEDGER_CANNOT;
	}
	c->word = word_read(c->seen);
	c->word.state = (enum record_state)c->bank.state;
	memcpy(&c->live, &c->bank, offsetof(struct bank, runs));
	return LEDGER_OK;
}

void change_cancel(struct change *c)
{
	lock_drop(&c->rec->lock, c->token);
}

static void wake(struct layout_record *rec)
{
	/* Sequentially consistent, with the store in ledger_wait: either we see that somebody
	 * waits, or he sees the new word. */
	if (atomic_load(&rec->waiting) && atomic_exchange(&rec->waiting, 0))
		futex_wake_all(&rec->word);
}

void change_seal(struct layout_record *rec, struct bank *bank, struct word w)
{
	bank->state = (uint8_t)w.state;
	bank->sequence = w.sequence & 0x3ffff;
	bank->flags &= (uint8_t)~BANK_DAMAGED;
	for (size_t i = bank->run_count; i < LAYOUT_RUNS; i++)
		bank->runs[i] = (struct run_entry){0};
	bank->sum = bank_sum(rec, bank);
}

int change_publish(struct ledger *l, struct change *c, uint64_t *installed)
{
	struct word w = c->word;
	uint64_t expected = c->seen, word;
	bool done;

	w.bank = !word_read(c->seen).bank;
	w.sequence = word_read(c->seen).sequence + 1;
	w.generation = c->bank.generation & 0xfff;
	change_seal(c->rec, &c->bank, w);
	word = word_make(w);
	/* Not ours any more, then the spare bank is not either. */
	if (!lock_held(&c->rec->lock, c->token) ||
	    atomic_load_explicit(&c->rec->word, memory_order_acquire) != c->seen) {
		change_cancel(c);
		return LEDGER_LOST;
	}
	bank_store(l, c->rec, c->id, w.bank, &c->bank);
	/* Sequentially consistent: publishes the bank; see also wake(). */
	done = atomic_compare_exchange_strong(&c->rec->word, &expected, word);
	if (done && c->live.facts != c->bank.facts)
		room_give(l, c->live.facts, c->id);
	if (done && c->live.answer != c->bank.answer)
		room_give(l, c->live.answer, c->id);
	if (done && c->live.more_runs != c->bank.more_runs)
		heap_give(l, c->live.more_runs, c->id);
	change_cancel(c);
	if (!done)
		return LEDGER_LOST;
	due_note(l, record_number(l, c->rec), due_of(&c->bank));
	wake(c->rec);
	if (installed)
		*installed = word;
	return LEDGER_OK;
}

void change_own(struct change *c, struct owner who)
{
	c->word.owner = who.slot;
	c->word.nonce = who.nonce;
	c->word.tenure = word_read(c->seen).tenure + 1;
}

void change_drop_answer(struct change *c)
{
	c->bank.answer = 0;
	c->bank.answer_size = 0;
	c->bank.answer_sum = 0;
	c->bank.keep_until = 0;
	c->bank.flags &= (uint8_t) ~(BANK_ANSWER_FINAL | BANK_ANSWER_HASH);
}

void change_drop_facts(struct change *c)
{
	c->bank.facts = 0;
	c->bank.facts_size = 0;
	c->bank.run_count = 0;
	c->bank.more_runs = 0;
}

bool change_is_hold(const struct change *c, const struct hold *hold)
{
	struct word mine = word_read(hold->word), now = word_read(c->seen);

	return mine.owner && now.owner == mine.owner && now.nonce == mine.nonce &&
	       now.tenure == mine.tenure && now.generation == mine.generation;
}

bool change_same_generation(const struct change *c, const struct hold *hold)
{
	return word_read(c->seen).generation == word_read(hold->word).generation;
}

bool change_owner_holds(struct ledger *l, const struct change *c, struct stamp now)
{
	struct word w = word_read(c->seen);
	enum owner_life life;

	if (!w.owner ||
	    !lease_fresh(atomic_load_explicit(&c->rec->lease, memory_order_acquire), now))
		return false;
	life = owner_life(l, w.owner, w.nonce, now);
	return life == OWNER_ALIVE || life == OWNER_UNKNOWABLE;
}

/* The third run needs an extent, which is the record's until its runs are dropped; where there is
 * none, two have to do. */
size_t change_runs_room(struct ledger *l, struct change *c, size_t count, struct stamp now)
{
	if (count <= LAYOUT_RUNS)
		return LAYOUT_RUNS;
	if (!c->bank.more_runs)
		c->bank.more_runs =
		        heap_take(l, sizeof(struct layout_runs), EXTENT_RUNS, c->id, now);
	return c->bank.more_runs ? LEDGER_RUNS : LAYOUT_RUNS;
}
