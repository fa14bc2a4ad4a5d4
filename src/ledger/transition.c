/* The transitions of a record that has an owner: take, gate, renew, withdraw, and how it ended.
 *
 * Each is one publication (record.c). Who may make it is tested on the copy taken under the
 * record's lock: the hold's tenure for what only the owner may do, the generation for a final
 * answer, which is accepted from any attempt. What the program or a provider is about to rely on is
 * flushed before the function returns. */
#include <errno.h>

#include "ledger/internal.h"

enum { LOCK_LOST = 1, TRIES = 8 }; /* LOCK_LOST: beside enum ledger_code, in here only */

static int begin_held(struct ledger *l, const struct hold *hold, struct change *c)
{
	int rc = change_begin(l, hold->id, c);

	if (rc == LEDGER_NONE)
		return LEDGER_LOST;
	if (rc != LEDGER_OK)
		return rc;
	if (change_is_hold(c, hold))
		return LEDGER_OK;
	change_cancel(c);
	return LEDGER_LOST;
}

static int lose(struct change *c)
{
	change_cancel(c);
	return LEDGER_LOST;
}

static int lock_lost(struct change *c)
{
	change_cancel(c);
	return LOCK_LOST;
}

/* Publish, remember the word in the hold, and flush. LOCK_LOST: we stood still for so long that the
 * lock was taken away, and somebody else published. That alone ends nothing (it may have been a
 * note): whoever may still make the change begins again. */
static int finish(struct ledger *l, struct change *c, struct hold *hold, bool flush)
{
	int rc = change_publish(l, c, hold ? &hold->word : NULL);

	if (rc == LEDGER_LOST)
		return LOCK_LOST;
	return rc == LEDGER_OK && flush ? file_flush(l) : rc;
}

/* For the condition of a loop around one change. */
static bool begin_again(int *rc, unsigned *tries)
{
	if (*rc == LOCK_LOST && ++*tries < TRIES)
		return true;
	if (*rc == LOCK_LOST)
		*rc = LEDGER_LOST;
	return false;
}

static void set_lease(struct change *c, struct stamp now)
{
	/* Release: there before the word that needs it. */
	atomic_store_explicit(&c->rec->lease, lease_make(now, LEASE_SECONDS), memory_order_release);
}

static void become_unknown(struct change *c, struct stamp now)
{
	if (c->word.state == REC_SENT)
		c->bank.ended = stamp_pack(now);
	c->word.state = REC_UNKNOWN;
	c->bank.flags |= BANK_IN_DOUBT;
}

static int take(struct ledger *l, const struct record_view *view, struct stamp now,
                struct hold *out)
{
	struct owner self = owner_self(l);
	struct change c;
	int rc = self.slot ? change_begin(l, view->id, &c) : LEDGER_FULL;

	if (rc != LEDGER_OK)
		return rc == LEDGER_NONE ? LEDGER_LOST : rc;
	if (retire_no_new(l)) {
		change_cancel(&c);
		return LEDGER_CANNOT;
	}
	if (c.seen != view->word || change_owner_holds(l, &c, now))
		return lose(&c);
	if (c.word.state == REC_SENT)
		become_unknown(&c, now);
	if (c.word.state != REC_RESERVED && c.word.state != REC_UNKNOWN)
		return lose(&c);
	change_own(&c, self);
	set_lease(&c, now);
	out->id = view->id;
	return change_publish(l, &c, &out->word);
}

int ledger_take(struct ledger *l, const struct record_view *view, struct stamp now,
                struct hold *out)
{
	int saved = errno, rc = l->read_only ? LEDGER_CANNOT : take(l, view, now, out);

	if (rc == LEDGER_OK)
		owner_seen(l, now);
	errno = saved;
	return rc;
}

/* The disk did not take it, so the bytes will not leave: as it was before. */
static int gate_undo(struct ledger *l, struct hold *hold, const struct bank *before,
                     enum record_state state)
{
	struct change c;

	if (begin_held(l, hold, &c) != LEDGER_OK)
		return LEDGER_CANNOT;
	c.word.state = state;
	c.bank.first_sent = before->first_sent;
	c.bank.ended = before->ended;
	c.bank.flags = before->flags;
	c.bank.attempts = before->attempts;
	c.bank.wire_sends = before->wire_sends;
	change_publish(l, &c, &hold->word);
	return LEDGER_CANNOT;
}

static int gate(struct ledger *l, struct hold *hold, struct stamp first, struct stamp now)
{
	struct change c;
	struct bank before;
	enum record_state state;
	int rc = begin_held(l, hold, &c);

	if (rc != LEDGER_OK)
		return rc;
	if (c.word.state != REC_RESERVED && c.word.state != REC_UNKNOWN)
		return lose(&c);
	before = c.bank;
	state = c.word.state;
	c.word.state = REC_SENT;
	if (c.bank.first_sent.wall_us == 0)
		c.bank.first_sent = stamp_pack(first);
	/* A doubt about this send, should it come to one, begins here. */
	c.bank.ended = stamp_pack(now);
	c.bank.flags |= BANK_EVER_SENT;
	c.bank.flags &= (uint8_t)~BANK_CURLCODE;
	c.bank.attempts++;
	c.bank.wire_sends++;
	change_drop_answer(&c);
	set_lease(&c, now);
	rc = finish(l, &c, hold, true);
	return rc == LEDGER_CANNOT ? gate_undo(l, hold, &before, state) : rc;
}

int ledger_gate(struct ledger *l, struct hold *hold, struct stamp now)
{
	return ledger_gate_dated(l, hold, now, now);
}

int ledger_gate_dated(struct ledger *l, struct hold *hold, struct stamp first, struct stamp now)
{
	unsigned tries = 0;
	int saved = errno, rc;

	do {
		rc = gate(l, hold, first, now);
	} while (begin_again(&rc, &tries));
	errno = saved;
	return rc;
}

static int wire_send(struct ledger *l, struct hold *hold)
{
	struct change c;
	int rc = begin_held(l, hold, &c);

	if (rc != LEDGER_OK)
		return rc;
	if (c.word.state != REC_SENT)
		return lose(&c);
	c.bank.wire_sends++;
	return finish(l, &c, hold, false);
}

int ledger_wire_send(struct ledger *l, struct hold *hold)
{
	unsigned tries = 0;
	int saved = errno, rc;

	do {
		rc = wire_send(l, hold);
	} while (begin_again(&rc, &tries));
	errno = saved;
	return rc;
}

static bool word_is_held(struct ledger *l, const struct hold *hold, struct change *c)
{
	c->rec = record_of(l, hold->id, NULL);
	if (!c->rec)
		return false;
	c->seen = atomic_load_explicit(&c->rec->word, memory_order_acquire);
	return change_is_hold(c, hold);
}

/* The lease is not in the state word, so that copies of a hold stay good. The second look is what
 * "goes on only if it still owns" rests on; a taker that came in between made a new tenure, and
 * the gate tests that again. */
int ledger_renew(struct ledger *l, struct hold *hold, struct stamp now)
{
	struct change c;
	int saved = errno;
	bool held;

	if (l->read_only)
		return LEDGER_CANNOT;
	held = word_is_held(l, hold, &c);
	if (held && file_ready(l, c.rec, sizeof(*c.rec))) {
		set_lease(&c, now);
		owner_seen(l, now);
		held = word_is_held(l, hold, &c);
	}
	errno = saved;
	return held ? LEDGER_OK : LEDGER_LOST;
}

static int withdraw(struct ledger *l, struct hold *hold, struct stamp now)
{
	struct change c;
	int rc = begin_held(l, hold, &c);

	if (rc != LEDGER_OK)
		return rc;
	if (c.word.state != REC_RESERVED && c.word.state != REC_UNKNOWN)
		return lose(&c);
	if (c.word.state == REC_RESERVED) {
		c.word.state = REC_FREED;
		c.bank.freed = FREED_WITHDRAWN;
		c.bank.ended = stamp_pack(now);
	}
	change_own(&c, (struct owner){0, 0});
	return finish(l, &c, hold, false);
}

int ledger_withdraw(struct ledger *l, struct hold *hold, struct stamp now)
{
	unsigned tries = 0;
	int saved = errno, rc;

	do {
		rc = withdraw(l, hold, now);
	} while (begin_again(&rc, &tries));
	errno = saved;
	return rc;
}

static int begin_generation(struct ledger *l, const struct hold *hold, struct change *c)
{
	int rc = change_begin(l, hold->id, c);

	if (rc == LEDGER_NONE)
		return LEDGER_LOST;
	if (rc != LEDGER_OK)
		return rc;
	if (change_same_generation(c, hold) &&
	    (c->word.state == REC_SENT || c->word.state == REC_UNKNOWN))
		return LEDGER_OK;
	return lose(c);
}

static void become_done(struct change *c, struct stamp now)
{
	c->word.state = REC_DONE;
	c->bank.ended = stamp_pack(now);
	c->bank.freed = FREED_NOT;
	c->bank.flags &= (uint8_t) ~(BANK_IN_DOUBT | BANK_CURLCODE);
	change_own(c, (struct owner){0, 0});
}

static int done(struct ledger *l, struct hold *hold, const struct ledger_answer *answer,
                uint32_t unit, struct stamp now)
{
	struct change c;
	int rc = begin_generation(l, hold, &c);

	if (rc != LEDGER_OK)
		return rc;
	become_done(&c, now);
	if (!answer_attach(l, &c, answer, unit, true, now))
		return lock_lost(&c);
	return finish(l, &c, hold, true);
}

int ledger_done(struct ledger *l, struct hold *hold, const struct ledger_answer *answer,
                struct stamp now)
{
	uint32_t unit = 0;
	unsigned tries = 0;
	int saved = errno, rc = LEDGER_CANNOT;

	if (l->read_only)
		return rc;
	answer_write(l, answer, hold->id, now, &unit);
	do {
		rc = done(l, hold, answer, unit, now);
	} while (begin_again(&rc, &tries));
	if (rc == LEDGER_LOST)
		heap_give(l, unit, hold->id);
	errno = saved;
	return rc;
}

/* A late word from an attempt that no longer owns the record: it stays somebody else's, but that an
 * earlier send got no answer is now known. */
static int unknown_late(struct ledger *l, struct change *c, bool curlcode)
{
	c->bank.flags |= BANK_IN_DOUBT;
	if (curlcode && c->word.state == REC_UNKNOWN)
		c->bank.flags |= BANK_CURLCODE;
	return finish(l, c, NULL, true);
}

/* `mine`: the answer went with it. */
static int unknown(struct ledger *l, struct hold *hold, bool ended_by_curlcode,
                   const struct ledger_answer *answer, uint32_t unit, struct stamp now, bool *mine)
{
	struct change c;
	int rc = begin_generation(l, hold, &c);

	*mine = rc == LEDGER_OK && change_is_hold(&c, hold);
	if (rc != LEDGER_OK)
		return rc;
	if (!*mine)
		return unknown_late(l, &c, ended_by_curlcode);
	become_unknown(&c, now);
	if (ended_by_curlcode)
		c.bank.flags |= BANK_CURLCODE;
	if (!answer_attach(l, &c, answer, unit, false, now))
		return lock_lost(&c);
	change_own(&c, (struct owner){0, 0});
	return finish(l, &c, hold, true);
}

int ledger_unknown(struct ledger *l, struct hold *hold, bool ended_by_curlcode,
                   const struct ledger_answer *answer, struct stamp now)
{
	uint32_t unit = 0;
	unsigned tries = 0;
	int saved = errno, rc = LEDGER_CANNOT;
	bool mine = false;

	if (l->read_only)
		return rc;
	answer_write(l, answer, hold->id, now, &unit);
	do {
		rc = unknown(l, hold, ended_by_curlcode, answer, unit, now, &mine);
	} while (begin_again(&rc, &tries));
	if (rc == LEDGER_LOST || !mine)
		heap_give(l, unit, hold->id);
	errno = saved;
	return rc;
}

/* "Not executed" is believed of the owner's own attempt only, or when the record was merely turned
 * unknown since: another attempt in between may have executed. */
static bool may_free(const struct change *c, const struct hold *hold)
{
	unsigned tenure = (word_read(hold->word).tenure + 1) & 0xff;

	if (change_is_hold(c, hold))
		return true;
	return c->word.state == REC_UNKNOWN && !c->word.owner && c->word.tenure == tenure;
}

static int freed(struct ledger *l, struct hold *hold, enum freed_how how,
                 const struct ledger_answer *answer, uint32_t unit, struct stamp now)
{
	struct change c;
	int rc = begin_generation(l, hold, &c);

	if (rc != LEDGER_OK)
		return rc;
	if (!may_free(&c, hold))
		return lose(&c);
	c.word.state = REC_FREED;
	c.bank.freed = (uint8_t)how;
	c.bank.ended = stamp_pack(now);
	c.bank.flags &= (uint8_t) ~(BANK_IN_DOUBT | BANK_CURLCODE);
	if (!answer_attach(l, &c, answer, unit, false, now))
		return lock_lost(&c);
	change_own(&c, (struct owner){0, 0});
	return finish(l, &c, hold, true);
}

int ledger_freed(struct ledger *l, struct hold *hold, enum freed_how how,
                 const struct ledger_answer *answer, struct stamp now)
{
	uint32_t unit = 0;
	unsigned tries = 0;
	int saved = errno, rc;

	if (l->read_only)
		return LEDGER_CANNOT;
	answer_write(l, answer, hold->id, now, &unit);
	do {
		rc = freed(l, hold, how, answer, unit, now);
	} while (begin_again(&rc, &tries));
	if (rc == LEDGER_LOST)
		heap_give(l, unit, hold->id);
	errno = saved;
	return rc;
}

void ledger_abandon(struct ledger *l, struct hold *hold, struct stamp now)
{
	if (ledger_withdraw(l, hold, now) == LEDGER_LOST)
		ledger_unknown(l, hold, false, NULL, now);
}
