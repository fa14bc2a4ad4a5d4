/* A record as its readers see it: one consistent copy, and what follows from it.
 *
 * Takes no lock. Facts that fail their sum are not shown, not even in part, and make the record one
 * in doubt: half a key that looks like a key must not be sent. */
#include <string.h>

#include "ledger/internal.h"

enum { VIEW_TRIES = 1000 };

uint64_t facts_seed(uint64_t id, uint32_t generation)
{
	return id + generation * UINT64_C(0x9e3779b97f4a7c15);
}

bool record_facts(const struct ledger *l, struct layout_record *rec, uint64_t id,
                  const struct bank *bank, struct facts *facts)
{
	struct layout_facts *f = &facts->fixed;
	size_t n = bank->facts_size, texts;
	const void *at = bank->facts && n >= sizeof(*f) && n <= sizeof(*facts)
	                         ? room_at(l, rec, id, bank->facts, EXTENT_FACTS, n)
	                         : NULL;
	uint64_t sum;

	if (!at)
		return false;
	shared_out(&f->sum, at, sizeof(f->sum));
	sum = sum_out((char *)f + sizeof(f->sum), (const char *)at + sizeof(f->sum),
	              n - sizeof(f->sum), facts_seed(id, bank->generation));
	texts = (size_t)f->key_size + f->operation_size + f->exe_size;
	return f->sum == sum && texts == n - sizeof(*f) && f->operation_size < VIEW_OPERATION &&
	       f->exe_size < VIEW_EXE;
}

static const char *take_text(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	to[n] = '\0';
	return from + n;
}

static void view_facts(struct record_view *out, const struct facts *facts)
{
	const struct layout_facts *f = &facts->fixed;
	const char *at = facts->texts;

	memcpy(out->place, f->place, LEDGER_HASH);
	memcpy(out->fingerprint, f->fingerprint, LEDGER_HASH);
	memcpy(out->wire_body, f->wire_body, LEDGER_HASH);
	memcpy(out->trace, f->trace, sizeof(out->trace));
	at = take_text(out->key, at, f->key_size);
	at = take_text(out->operation, at, f->operation_size);
	take_text(out->exe, at, f->exe_size);
	out->settings = f->settings;
}

static void view_no_facts(struct record_view *out)
{
	memset(out->place, 0, LEDGER_HASH);
	memset(out->fingerprint, 0, LEDGER_HASH);
	memset(out->wire_body, 0, LEDGER_HASH);
	memset(out->trace, 0, sizeof(out->trace));
	out->key[0] = out->operation[0] = out->exe[0] = '\0';
	out->settings = 0;
}

static void view_bank(struct record_view *out, const struct bank *bank, struct stamp now)
{
	bool final = bank->flags & BANK_ANSWER_FINAL, hash = bank->flags & BANK_ANSWER_HASH;

	out->state = (enum record_state)bank->state;
	out->generation = bank->generation;
	out->ever_sent = bank->flags & BANK_EVER_SENT;
	out->in_doubt = bank->flags & BANK_IN_DOUBT;
	out->ended_by_curlcode = bank->flags & BANK_CURLCODE;
	out->freed = bank->freed <= FREED_RESOLVED ? (enum freed_how)bank->freed : FREED_NOT;
	out->made = stamp_read(bank->made, now);
	out->first_sent = stamp_read(bank->first_sent, now);
	out->ended = stamp_read(bank->ended, now);
	out->first_delivered = stamp_read(bank->first_delivered, now);
	out->ttl_us = bank->ttl_us;
	out->tombstone_us = bank->tombstone_us;
	out->run_count = bank->run_count <= LEDGER_RUNS ? bank->run_count : 0;
	memcpy(out->runs, bank->runs, out->run_count * sizeof(*out->runs));
	out->attempts = bank->attempts;
	out->wire_sends = bank->wire_sends;
	out->answer_final = bank->answer && final && !hash;
	out->answer_kept = bank->answer && !hash && (final || lease_fresh(bank->keep_until, now));
	out->status = bank->status;
	out->answer = (struct record_answer){bank->answer, bank->answer_size, bank->answer_sum};
}

/* Its fingerprint cannot be compared: a doubt. Not where the facts are known to be gone: a person
 * has said what became of it, or nothing but the generation is left. */
static void view_damaged_facts(struct record_view *out)
{
	if (out->state == REC_FREED || out->state == REC_TOMBSTONE)
		return;
	out->state = REC_UNKNOWN;
	out->in_doubt = true;
	out->answer_kept = false;
}

static void view_owner(struct ledger *l, struct layout_record *rec, struct stamp now,
                       struct record_view *out)
{
	struct word w = word_read(out->word);

	out->owner = OWNER_NONE;
	out->owner_pid = 0;
	out->lease_fresh = false;
	if (!w.owner)
		return;
	out->owner = owner_life(l, w.owner, w.nonce, now);
	out->owner_pid = owner_pid(l, w.owner, w.nonce);
	out->lease_fresh =
	        lease_fresh(atomic_load_explicit(&rec->lease, memory_order_acquire), now);
}

bool record_view(struct ledger *l, struct layout_record *rec, struct stamp now,
                 struct record_view *out)
{
	struct bank bank;
	struct facts facts;
	bool sound = false;

	for (int i = 0; i < VIEW_TRIES; i++) {
		if (!record_read(l, rec, &out->id, &out->word, &bank))
			return false;
		sound = record_facts(l, rec, out->id, &bank, &facts);
		shared_out(out->content, rec->content, sizeof(rec->content));
		shared_out(out->any_account, rec->any_account, sizeof(rec->any_account));
		/* Facts and answers are written over only after the word has changed. */
		if (atomic_load_explicit(&rec->word, memory_order_acquire) == out->word)
			break;
	}
	out->hit = HIT_NONE;
	view_bank(out, &bank, now);
	if (sound)
		view_facts(out, &facts);
	else
		view_no_facts(out);
	if (!sound && (bank.facts || (bank.flags & BANK_DAMAGED)))
		view_damaged_facts(out);
	view_owner(l, rec, now, out);
	return true;
}
