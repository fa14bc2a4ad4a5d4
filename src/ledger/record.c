/* Records: where they are, and how one is read.
 *
 * A record's changing part exists twice. The bank the state word names is never written; a change
 * (change.c) fills the spare one and installs it by one compare-and-swap of the state word. So a
 * reader needs no lock: it looks at the word again after its copy. The bank's sum covers the state
 * and the record's hashes: a record that fails it is presented as in doubt, never as done and never
 * as absent. */
#include <string.h>

#include "ledger/internal.h"
#include "ledger/sum.h"

enum { READ_TRIES = 1000 };
/* What a bank's sum covers of the record: all but itself. Runs that are not there are zeroes. */
enum { SUMMED = sizeof(struct layout_bank) - sizeof(uint64_t) };
_Static_assert(offsetof(struct bank, runs[LAYOUT_RUNS]) == sizeof(struct layout_bank),
               "a bank begins as it lies in the file");

struct layout_record *record_at(const struct ledger *l, uint64_t number)
{
	uint64_t page = number / LAYOUT_PER_PAGE;

	if (number >= l->fixed.record_count)
		return NULL;
	return (struct layout_record *)(void *)(l->base + l->fixed.records_at + page * LAYOUT_PAGE +
	                                        number % LAYOUT_PER_PAGE * LAYOUT_RECORD);
}

uint64_t record_end(const struct ledger *l)
{
	/* Acquire: a walk that sees the new end sees a zeroed or an older record. */
	uint64_t end = atomic_load_explicit(&l->header->next_record, memory_order_acquire);

	return end < l->fixed.record_count ? end : l->fixed.record_count;
}

uint64_t record_number(const struct ledger *l, const struct layout_record *rec)
{
	uint64_t at = (uint64_t)((const char *)rec - l->base) - l->fixed.records_at;

	return at / LAYOUT_PAGE * LAYOUT_PER_PAGE + at % LAYOUT_PAGE / LAYOUT_RECORD;
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

/* The part that is used. What says more runs than there can be fails its check. */
size_t bank_size(const struct bank *bank)
{
	size_t runs = bank->run_count < LEDGER_RUNS ? bank->run_count : LEDGER_RUNS;

	return offsetof(struct bank, runs) + runs * sizeof(struct run_entry);
}

/* Of that, what does not lie in the bank itself. */
static size_t size_beyond(const struct bank *bank)
{
	size_t n = bank_size(bank);

	return n > sizeof(struct layout_bank) ? n - sizeof(struct layout_bank) : 0;
}

/* The hashes are random already: folded, not summed. */
static uint64_t bank_seed(struct layout_record *rec)
{
	uint64_t content[4], any[4], a = 0, b = 0;

	shared_out(content, rec->content, sizeof(content));
	shared_out(any, rec->any_account, sizeof(any));
	for (int i = 0; i < 4; i++) {
		a = (a << 7 | a >> 57) ^ content[i];
		b = (b << 9 | b >> 55) ^ any[i];
	}
	return a ^ (b << 31 | b >> 33);
}

uint64_t bank_sum(struct layout_record *rec, const struct bank *bank)
{
	size_t beyond = size_beyond(bank);
	uint64_t sum = sum_over(bank_seed(rec), false, NULL, (const char *)bank + sizeof(bank->sum),
	                        SUMMED);

	return beyond ? sum_bytes(sum, bank->runs + LAYOUT_RUNS, beyond) : sum;
}

/* Where a bank's runs beyond the first two are; null: nowhere. */
static void *more_runs(const struct ledger *l, uint64_t id, unsigned which, uint32_t unit)
{
	struct layout_runs *at = heap_at(l, unit, EXTENT_RUNS, id, sizeof(*at));

	return at ? at->more[which & 1] : NULL;
}

/* False: it fails its check. */
static bool bank_copy(const struct ledger *l, struct layout_record *rec, uint64_t id,
                      unsigned which, struct bank *bank)
{
	const char *at = (const char *)&rec->bank[which & 1];
	const void *more;
	size_t beyond;
	uint64_t sum;

	shared_out(&bank->sum, at, sizeof(bank->sum));
	sum = sum_over(bank_seed(rec), true, (char *)bank + sizeof(bank->sum),
	               at + sizeof(bank->sum), SUMMED);
	beyond = size_beyond(bank);
	if (beyond) {
		more = more_runs(l, id, which, bank->more_runs);
		if (!more)
			return false;
		sum = sum_out(bank->runs + LAYOUT_RUNS, more, beyond, sum);
	}
	return sum == bank->sum && bank->state >= REC_RESERVED && bank->state <= REC_TOMBSTONE &&
	       bank->run_count <= LEDGER_RUNS;
}

bool bank_ready(struct ledger *l, uint64_t id, const struct bank *bank)
{
	const void *more = bank->more_runs ? more_runs(l, id, 0, bank->more_runs) : NULL;

	return !more || file_ready(l, more, sizeof(struct layout_runs));
}

void bank_store(struct ledger *l, struct layout_record *rec, uint64_t id, unsigned which,
                const struct bank *bank)
{
	size_t beyond = size_beyond(bank);
	void *more = beyond ? more_runs(l, id, which, bank->more_runs) : NULL;

	if (more)
		shared_in(more, bank->runs + LAYOUT_RUNS, beyond);
	shared_in(&rec->bank[which & 1], bank, sizeof(struct layout_bank));
}

/* The bank is the one that was published with this word, not an older one of the same place. */
static bool bank_belongs(const struct bank *bank, struct word w)
{
	return bank->state == (unsigned)w.state && bank->sequence == w.sequence &&
	       (bank->generation & 0xfff) == w.generation;
}

/* The word says "empty" and its bank says otherwise: a bit fell over. A place that was emptied, or
 * never used, has a bank that says so. */
static bool word_lies(const struct ledger *l, struct layout_record *rec, uint64_t id, struct word w,
                      struct bank *bank)
{
	if (atomic_load_explicit(&rec->linked, memory_order_acquire) == 0)
		return false;
	return bank_copy(l, rec, id, w.bank, bank) && bank->sequence == w.sequence;
}

/* A power loss tore what was noted of a write that is done (who asked, who was answered), or that a
 * write that is over became a tombstone. What was told before is in the other bank, which was
 * flushed (runs.c). A bank that is whole and does not fit its word is another matter. */
static bool bank_before(const struct ledger *l, struct layout_record *rec, uint64_t id,
                        struct word w, bool torn, struct bank *bank)
{
	struct word earlier = w;

	if (w.state != REC_DONE && (w.state != REC_TOMBSTONE || !torn))
		return false;
	earlier.sequence = (w.sequence - 1) & 0x3ffff;
	if (!bank_copy(l, rec, id, !w.bank, bank))
		return false;
	if (w.state == REC_TOMBSTONE && (bank->state == REC_DONE || bank->state == REC_FREED))
		earlier.state = (enum record_state)bank->state;
	return bank_belongs(bank, earlier);
}

/* Neither believed nor forgotten: what the other bank still knows, in doubt. */
static void bank_rescue(const struct ledger *l, struct layout_record *rec, uint64_t id,
                        struct word w, struct bank *bank)
{
	uint32_t generation;

	if (!bank_copy(l, rec, id, !w.bank, bank)) {
		memset(bank, 0, sizeof(*bank));
		bank->generation = w.generation ? w.generation : 1;
	}
	/* Never an earlier generation again: its key may be known to the provider. */
	if ((bank->generation & 0xfff) != w.generation) {
		generation = (bank->generation & ~UINT32_C(0xfff)) | w.generation;
		bank->generation = generation + (generation < bank->generation ? 0x1000 : 0);
	}
	bank->state = REC_UNKNOWN;
	bank->flags &= (uint8_t)~BANK_ANSWER_FINAL;
	bank->flags |= BANK_EVER_SENT | BANK_IN_DOUBT | BANK_DAMAGED;
	bank->answer = 0;
}

/* What a look at a write that is done needs: it was published three times, so the second bank
 * counts. The rest comes when it is asked for; more at once than the processor can wait for would
 * only stop it. */
void record_fetch(const struct layout_record *rec)
{
	size_t from = offsetof(struct layout_record, bank[1]) / 64 * 64;

	__builtin_prefetch(rec);
	__builtin_prefetch((const char *)rec + 64);
	for (size_t i = from; i < from + 13 * (size_t)64; i += 64)
		__builtin_prefetch((const char *)rec + i);
}

/* As it is there, not yet believed. False: empty. */
static bool record_copy(const struct ledger *l, struct layout_record *rec, uint64_t *id,
                        uint64_t *word, struct bank *bank, bool *sound)
{
	uint64_t number = record_number(l, rec);
	struct word w;

	for (int i = 0; i < READ_TRIES; i++) {
		/* Acquire: publishes the bank it names. */
		*word = atomic_load_explicit(&rec->word, memory_order_acquire);
		w = word_read(*word);
		*id = record_id(number, atomic_load_explicit(&rec->life, memory_order_acquire) &
		                                UINT32_MAX);
		if (w.state == REC_NONE && !word_lies(l, rec, *id, w, bank))
			return false;
		*sound = bank_copy(l, rec, *id, w.bank, bank);
		if (atomic_load_explicit(&rec->word, memory_order_acquire) == *word)
			break;
	}
	return true;
}

bool record_read(const struct ledger *l, struct layout_record *rec, uint64_t *id, uint64_t *word,
                 struct bank *bank)
{
	struct word w;
	bool sound, torn;

	if (!record_copy(l, rec, id, word, bank, &sound))
		return false;
	w = word_read(*word);
	/* Written in part, or not at all: then it is the one that was there before. */
	torn = !sound || bank->sequence == ((w.sequence - 2) & 0x3ffff);
	if ((torn || !bank_belongs(bank, w)) && !bank_before(l, rec, *id, w, torn, bank))
		bank_rescue(l, rec, *id, w, bank);
	return true;
}

bool record_expired(const struct bank *bank, struct stamp now)
{
	struct stamp sent = stamp_read(bank->first_sent, now), ended = stamp_read(bank->ended, now);

	if (sent.wall_us && clock_age_max(sent, now) < 0)
		return false;
	return ended.wall_us && clock_age_min(ended, now) > bank->ttl_us;
}
