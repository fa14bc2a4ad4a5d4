/* Who asked for a record and who got its answer; the keys bound to it; waiting for it.
 *
 * All of these may come from any process at any time and change neither state nor owner. */
#include <errno.h>

#include "ledger/internal.h"

enum { WAIT_SLICE_US = 250000 };

/* Notes about a write that is done are not worth a flush each, but `done` must not be lost to one
 * that is torn by a power loss. So the bank that was flushed is overwritten only when the note in
 * the other one is on the disk too. */
static int note_flush(struct ledger *l, struct change *c)
{
	int rc = LEDGER_OK;

	if (c->word.state != REC_DONE)
		return rc;
	if (c->bank.flags & BANK_NOTED)
		rc = file_flush(l);
	c->bank.flags |= BANK_NOTED;
	return rc;
}

static int begin(struct ledger *l, uint64_t id, uint32_t generation, struct change *c)
{
	int rc = change_begin(l, id, c);

	if (rc != LEDGER_OK)
		return rc;
	rc = c->bank.generation == generation ? note_flush(l, c) : LEDGER_LOST;
	if (rc != LEDGER_OK)
		change_cancel(c);
	return rc;
}

/* Its entry, a new one, or the place of the oldest delivered one (of all: the oldest asked). */
static struct run_entry *run_entry_for(struct ledger *l, struct change *c, uint64_t run,
                                       struct stamp now)
{
	struct run_entry *victim = NULL, *e;

	for (uint32_t i = 0; i < c->bank.run_count; i++) {
		e = &c->bank.runs[i];
		if (e->run == run)
			return e;
		if (!victim || (e->delivered_us && !victim->delivered_us) ||
		    (!e->delivered_us == !victim->delivered_us &&
		     (e->delivered_us ? e->delivered_us < victim->delivered_us
		                      : e->asked_us < victim->asked_us)))
			victim = e;
	}
	if (c->bank.run_count < change_runs_room(l, c, c->bank.run_count + 1u, now))
		victim = &c->bank.runs[c->bank.run_count++];
	*victim = (struct run_entry){run, 0, 0};
	return victim;
}

static int publish(struct ledger *l, struct change *c)
{
	int rc = change_publish(l, c, NULL);

	if (rc == LEDGER_LOST && c->bank.more_runs != c->live.more_runs)
		heap_give(l, c->bank.more_runs, c->id);
	return rc;
}

/* Asking again changes nothing: what counts is when it first asked and when it was last answered.
 */
int ledger_asked(struct ledger *l, uint64_t id, uint32_t generation, uint64_t run, struct stamp now)
{
	struct change c;
	struct run_entry *e;
	int saved = errno, rc;

	if (run == 0)
		return LEDGER_OK;
	rc = begin(l, id, generation, &c);
	if (rc == LEDGER_OK) {
		e = run_entry_for(l, &c, run, now);
		if (e->asked_us == 0)
			e->asked_us = now.wall_us;
		rc = publish(l, &c);
	}
	errno = saved;
	return rc;
}

int ledger_delivered(struct ledger *l, uint64_t id, uint32_t generation, uint64_t run,
                     struct stamp now)
{
	struct change c;
	struct run_entry *e;
	int saved = errno, rc = begin(l, id, generation, &c);

	if (rc == LEDGER_OK) {
		if (c.bank.first_delivered.wall_us == 0)
			c.bank.first_delivered = stamp_pack(now);
		if (run) {
			e = run_entry_for(l, &c, run, now);
			if (e->asked_us == 0)
				e->asked_us = now.wall_us;
			e->delivered_us = now.wall_us;
		}
		rc = publish(l, &c);
	}
	errno = saved;
	return rc;
}

int ledger_mark_curlcode(struct ledger *l, uint64_t id, uint32_t generation)
{
	struct change c;
	int saved = errno, rc = begin(l, id, generation, &c);

	if (rc == LEDGER_OK) {
		c.bank.flags |= BANK_CURLCODE;
		rc = change_publish(l, &c, NULL);
	}
	errno = saved;
	return rc;
}

/* The record's lock keeps it from being dropped meanwhile. */
int ledger_bind_key(struct ledger *l, uint64_t id, const uint8_t *own_key)
{
	struct change c;
	uint64_t token;
	int saved = errno, rc = change_begin(l, id, &c);

	if (rc == LEDGER_OK) {
		token = lock_take(l, &l->header->table_lock);
		rc = key_bind(l, id, own_key);
		lock_drop(&l->header->table_lock, token);
		change_cancel(&c);
	}
	errno = saved;
	return rc;
}

/* The owner is gone, or as good as: whoever waits had better look again. */
static bool owner_gone(struct ledger *l, struct layout_record *rec, uint64_t word)
{
	struct word w = word_read(word);
	struct stamp now = clock_now();
	enum owner_life life;

	if (!w.owner)
		return false;
	if (!lease_fresh(atomic_load_explicit(&rec->lease, memory_order_acquire), now))
		return true;
	life = owner_life(l, w.owner, w.nonce, now);
	return life == OWNER_DEAD;
}

int ledger_wait(struct ledger *l, uint64_t id, uint64_t word, int64_t timeout_us)
{
	struct layout_record *rec = record_of(l, id, NULL);
	int64_t end = clock_boot_us() + timeout_us, left;

	while (rec && record_of(l, id, NULL)) {
		/* Sequentially consistent, with change_publish: see wake() there. */
		if (!l->read_only && file_ready(l, rec, sizeof(*rec)))
			atomic_store(&rec->waiting, 1);
		if (atomic_load(&rec->word) != word)
			return LEDGER_OK;
		left = end - clock_boot_us();
		if (left <= 0)
			return LEDGER_TIMEOUT;
		futex_sleep(&rec->word, word, left < WAIT_SLICE_US ? left : WAIT_SLICE_US);
		if (atomic_load(&rec->word) == word && owner_gone(l, rec, word))
			return LEDGER_OK;
	}
	return LEDGER_OK;
}
