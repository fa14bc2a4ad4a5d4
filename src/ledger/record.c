/* Records: where they are, how one is read, and how one is changed.
 *
 * A record's changing part exists twice. The bank the state word names is never written; a change
 * takes the record's lock, copies that bank, fills the spare one and installs it by one
 * compare-and-swap of the state word. So a reader needs no lock (it looks at the word again after
 * its copy), a process killed anywhere in between has changed nothing, and the next one steals its
 * lock. The bank's sum covers the state and the record's hashes: a record that fails it is
 * presented as in doubt, never as done and never as absent. */
#include <string.h>

#include "ledger/internal.h"

enum { READ_TRIES = 1000, FETCH_MOST = 576 };

struct layout_record *record_at(const struct ledger *l, uint64_t number)
{
	if (number >= l->fixed.record_count)
		return NULL;
	return (struct layout_record *)(void *)(l->base + l->fixed.records_at) + number;
}

uint64_t record_number(const struct ledger *l, const struct layout_record *rec)
{
	return (uint64_t)(rec - record_at(l, 0));
}

uint64_t record_id(uint64_t number, uint64_t life)
{
	return life << 32 | (number + 1);
}

struct layout_record *record_of(const struct ledger *l, uint64_t id, uint64_t *number)
{
	uint64_t n = (id & UINT32_MAX) - 1;
	struct layout_record *rec = (id & UINT32_MAX) ? record_at(l, n) : NULL;

	if (!rec)
		return NULL;
	/* Acquire: a life is published before the record that lives it. */
	if ((atomic_load_explicit(&rec->life, memory_order_acquire) & UINT32_MAX) != id >> 32)
		return NULL;
	if (number)
		*number = n;
	return rec;
}

uint64_t bank_sum(struct layout_record *rec, const struct layout_bank *bank)
{
	uint8_t hashes[2 * LEDGER_HASH];
	const char *rest = (const char *)bank + sizeof(bank->sum);

	shared_out(hashes, rec->content, sizeof(rec->content));
	shared_out(hashes + LEDGER_HASH, rec->any_account, sizeof(rec->any_account));
	return sum_bytes(sum_bytes(0, hashes, sizeof(hashes)), rest,
	                 sizeof(*bank) - sizeof(bank->sum));
}

static bool bank_valid(struct layout_record *rec, const struct layout_bank *bank)
{
	return bank->sum == bank_sum(rec, bank) && bank->state >= REC_RESERVED &&
	       bank->state <= REC_TOMBSTONE && bank->run_count <= LEDGER_RUNS;
}

/* The bank is the one that was published with this word, not an older one of the same place. */
static bool bank_belongs(const struct layout_bank *bank, struct word w)
{
	return bank->state == (uint32_t)w.state && bank->sequence == w.sequence &&
	       (bank->generation & 0xfff) == w.generation;
}

/* The word says "empty" and its bank says otherwise: a bit fell over. A place that was emptied, or
 * never used, has a bank that says so. */
static bool word_lies(struct layout_record *rec, struct word w, struct layout_bank *bank)
{
	if (atomic_load_explicit(&rec->linked, memory_order_acquire) == 0)
		return false;
	shared_out(bank, &rec->bank[w.bank], sizeof(*bank));
	return bank_valid(rec, bank) && bank->sequence == w.sequence;
}

/* A power loss tore what was noted of a write that is done: who asked, who was answered. What was
 * told before is in the other bank, which was flushed (runs.c). */
static bool bank_before(struct layout_record *rec, struct word w, struct layout_bank *bank)
{
	struct word earlier = w;

	if (w.state != REC_DONE)
		return false;
	earlier.sequence = (w.sequence - 1) & 0x3ffff;
	shared_out(bank, &rec->bank[!w.bank], sizeof(*bank));
	return bank_valid(rec, bank) && bank_belongs(bank, earlier);
}

/* Neither believed nor forgotten: what the other bank still knows, in doubt. */
static void bank_rescue(struct layout_record *rec, struct word w, struct layout_bank *bank)
{
	uint32_t generation;

	shared_out(bank, &rec->bank[!w.bank], sizeof(*bank));
	if (!bank_valid(rec, bank)) {
		memset(bank, 0, sizeof(*bank));
		bank->generation = w.generation ? w.generation : 1;
	}
	/* Never an earlier generation again: its key may be known to the provider. */
	if ((bank->generation & 0xfff) != w.generation) {
		generation = (bank->generation & ~UINT32_C(0xfff)) | w.generation;
		bank->generation = generation + (generation < bank->generation ? 0x1000 : 0);
	}
	bank->state = REC_UNKNOWN;
	bank->flags &= ~(uint32_t)BANK_ANSWER_FINAL;
	bank->flags |= BANK_EVER_SENT | BANK_IN_DOUBT | BANK_DAMAGED;
	bank->answer = 0;
}

void record_fetch(const struct layout_record *rec)
{
	for (size_t i = 0; i < sizeof(*rec); i += 64)
		__builtin_prefetch((const char *)rec + i);
}

/* Not more than the processor can wait for at once. */
static void heap_fetch(const struct ledger *l, uint64_t unit, size_t n)
{
	const char *at = l->base + l->fixed.heap_at + unit * LAYOUT_UNIT;

	if (unit == 0 || unit >= l->fixed.heap_size / LAYOUT_UNIT)
		return;
	for (size_t i = 0; i < n + sizeof(struct layout_extent) && i < FETCH_MOST; i += 64)
		__builtin_prefetch(at + i);
}

/* As it is there, not yet believed. False: empty. */
static bool record_copy(const struct ledger *l, struct layout_record *rec, uint64_t *id,
                        uint64_t *word, struct layout_bank *bank)
{
	uint64_t number = record_number(l, rec);
	struct word w;

	for (int i = 0; i < READ_TRIES; i++) {
		/* Acquire: publishes the bank it names. */
		*word = atomic_load_explicit(&rec->word, memory_order_acquire);
		w = word_read(*word);
		*id = record_id(number, atomic_load_explicit(&rec->life, memory_order_acquire) &
		                                UINT32_MAX);
		if (w.state == REC_NONE && !word_lies(rec, w, bank))
			return false;
		shared_out(bank, &rec->bank[w.bank], sizeof(*bank));
		if (atomic_load_explicit(&rec->word, memory_order_acquire) == *word)
			break;
	}
	return true;
}

static void bank_check(struct layout_record *rec, uint64_t word, struct layout_bank *bank)
{
	struct word w = word_read(word);

	if ((!bank_valid(rec, bank) || !bank_belongs(bank, w)) && !bank_before(rec, w, bank))
		bank_rescue(rec, w, bank);
}

bool record_read(const struct ledger *l, struct layout_record *rec, uint64_t *id, uint64_t *word,
                 struct layout_bank *bank)
{
	if (!record_copy(l, rec, id, word, bank))
		return false;
	bank_check(rec, *word, bank);
	return true;
}

bool record_facts(const struct ledger *l, uint64_t id, const struct layout_bank *bank,
                  struct layout_facts *facts)
{
	const void *at = heap_at(l, bank->facts, EXTENT_FACTS, id, sizeof(*facts));

	if (!at) {
		memset(facts, 0, sizeof(*facts));
		return false;
	}
	shared_out(facts, at, sizeof(*facts));
	facts->key[sizeof(facts->key) - 1] = '\0';
	facts->operation[sizeof(facts->operation) - 1] = '\0';
	facts->exe[sizeof(facts->exe) - 1] = '\0';
	return facts->sum == sum_bytes(id, (const char *)facts + sizeof(facts->sum),
	                               sizeof(*facts) - sizeof(facts->sum));
}

static void view_facts(struct record_view *out, const struct layout_facts *facts)
{
	memcpy(out->place, facts->place, LEDGER_HASH);
	memcpy(out->fingerprint, facts->fingerprint, LEDGER_HASH);
	memcpy(out->wire_body, facts->wire_body, LEDGER_HASH);
	memcpy(out->key, facts->key, sizeof(out->key));
	memcpy(out->operation, facts->operation, sizeof(out->operation));
	memcpy(out->exe, facts->exe, sizeof(out->exe));
	memcpy(out->trace, facts->trace, sizeof(out->trace));
	out->settings = facts->settings;
}

static void view_bank(struct record_view *out, const struct layout_bank *bank, struct stamp now)
{
	bool final = bank->flags & BANK_ANSWER_FINAL;

	out->state = (enum record_state)bank->state;
	out->generation = bank->generation;
	out->ever_sent = bank->flags & BANK_EVER_SENT;
	out->in_doubt = bank->flags & BANK_IN_DOUBT;
	out->ended_by_curlcode = bank->flags & BANK_CURLCODE;
	out->freed = bank->freed <= FREED_RESOLVED ? (enum freed_how)bank->freed : FREED_NOT;
	out->made = bank->made;
	out->first_sent = bank->first_sent;
	out->ended = bank->ended;
	out->first_delivered = bank->first_delivered;
	out->ttl_us = bank->ttl_us;
	out->tombstone_us = bank->tombstone_us;
	out->run_count = bank->run_count <= LEDGER_RUNS ? bank->run_count : 0;
	memcpy(out->runs, bank->runs, sizeof(out->runs));
	out->attempts = bank->attempts;
	out->wire_sends = bank->wire_sends;
	out->answer_final = bank->answer && final;
	out->answer_kept = bank->answer && (final || lease_fresh(bank->keep_until, now));
	out->status = bank->status;
}

/* Facts that fail their check make the record one in doubt: its fingerprint cannot be compared. */
static void view_damaged_facts(struct record_view *out)
{
	if (out->state == REC_FREED || out->state == REC_TOMBSTONE)
		return;
	out->state = REC_UNKNOWN;
	out->in_doubt = true;
	out->answer_kept = false;
}

bool record_view(struct ledger *l, struct layout_record *rec, struct stamp now,
                 struct record_view *out)
{
	struct layout_bank bank;
	struct layout_facts facts;
	struct word w;
	bool sound = true;

	for (int i = 0; i < READ_TRIES; i++) {
		memset(out, 0, sizeof(*out));
		if (!record_copy(l, rec, &out->id, &out->word, &bank))
			return false;
		/* On their way while the bank is checked. */
		heap_fetch(l, bank.facts, sizeof(facts));
		heap_fetch(l, bank.answer, bank.answer_size);
		bank_check(rec, out->word, &bank);
		sound = record_facts(l, out->id, &bank, &facts);
		shared_out(out->content, rec->content, sizeof(rec->content));
		shared_out(out->any_account, rec->any_account, sizeof(rec->any_account));
		/* The heap's extents are re-used only after the word has changed. */
		if (atomic_load_explicit(&rec->word, memory_order_acquire) == out->word)
			break;
	}
	w = word_read(out->word);
	view_bank(out, &bank, now);
	/* Half a key that looks like a key must not be sent. */
	if (sound)
		view_facts(out, &facts);
	else
		view_damaged_facts(out);
	out->owner = owner_life(l, w.owner, w.nonce, now);
	out->owner_pid = w.owner ? owner_pid(l, w.owner, w.nonce) : 0;
	out->lease_fresh =
	        w.owner &&
	        lease_fresh(atomic_load_explicit(&rec->lease, memory_order_acquire), now);
	return true;
}

bool record_expired(const struct layout_bank *bank, struct stamp now)
{
	if (bank->first_sent.wall_us && clock_age_max(bank->first_sent, now) < 0)
		return false;
	return bank->ended.wall_us && clock_age_min(bank->ended, now) > bank->ttl_us;
}

/* --- changes --- */

int change_begin(struct ledger *l, uint64_t id, struct change *c)
{
	struct layout_record *rec = record_of(l, id, NULL);

	memset(c, 0, sizeof(*c));
	if (l->read_only)
		return LEDGER_CANNOT;
	if (!rec)
		return LEDGER_NONE;
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
	c->word = word_read(c->seen);
	c->word.state = (enum record_state)c->bank.state;
	c->old_facts = c->bank.facts;
	c->old_answer = c->bank.answer;
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
	if (atomic_exchange(&rec->waiting, 0))
		futex_wake_all(&rec->word);
}

int change_publish(struct ledger *l, struct change *c, uint64_t *installed)
{
	struct word w = c->word;
	uint64_t expected = c->seen, word;
	bool done;

	w.bank = !word_read(c->seen).bank;
	w.sequence = word_read(c->seen).sequence + 1;
	w.generation = c->bank.generation & 0xfff;
	c->bank.state = (uint32_t)w.state;
	c->bank.sequence = w.sequence & 0x3ffff;
	c->bank.boot = clock_boot_id();
	c->bank.flags &= ~(uint32_t)BANK_DAMAGED;
	c->bank.sum = bank_sum(c->rec, &c->bank);
	word = word_make(w);
	/* Not ours any more, then the spare bank is not either. */
	if (!lock_held(&c->rec->lock, c->token) ||
	    atomic_load_explicit(&c->rec->word, memory_order_acquire) != c->seen) {
		change_cancel(c);
		return LEDGER_LOST;
	}
	shared_in(&c->rec->bank[w.bank], &c->bank, sizeof(c->bank));
	/* Sequentially consistent: publishes the bank; see also wake(). */
	done = atomic_compare_exchange_strong(&c->rec->word, &expected, word);
	if (done && c->old_facts != c->bank.facts)
		heap_give(l, c->old_facts, c->id);
	if (done && c->old_answer != c->bank.answer)
		heap_give(l, c->old_answer, c->id);
	change_cancel(c);
	if (!done)
		return LEDGER_LOST;
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
	c->bank.flags &= ~(uint32_t)BANK_ANSWER_FINAL;
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
