/* Reads everything and says what is wrong: `sendonce ledger verify`.
 *
 * Changes nothing. What is written while it reads is looked at twice before it is called a fault.
 * Entries and places that a killed process left half done are not faults: they are finished by
 * whoever meets them. */
#include <errno.h>
#include <stddef.h>

#include "ledger/internal.h"

struct check {
	struct ledger *l;
	ledger_damage *damage;
	void *ctx;
	int faults;
};

static void fault(struct check *v, const void *at, const char *what)
{
	v->faults++;
	if (v->damage)
		v->damage(v->ctx, (uint64_t)((const char *)at - v->l->base), what);
}

static void check_header_again(struct check *v)
{
	struct layout_fixed now;

	shared_out(&now, &v->l->header->fixed, sizeof(now));
	if (now.sum != sum_bytes(0, &now, offsetof(struct layout_fixed, sum)) ||
	    now.sum != v->l->fixed.sum)
		fault(v, v->l->header, "header");
	if (atomic_load(&v->l->header->next_record) > v->l->fixed.record_count ||
	    atomic_load(&v->l->header->next_key) > v->l->fixed.key_count ||
	    atomic_load(&v->l->header->next_heap) > v->l->fixed.heap_size / LAYOUT_UNIT)
		fault(v, &v->l->header->next_record, "allocation mark beyond the end");
	if (atomic_load(&v->l->header->index_level) >= v->l->fixed.index_levels)
		fault(v, &v->l->header->index_level, VERIFY_INDEX " level beyond the last");
}

/* A place gets its first life before its first entry: one that has had none was wiped. */
static bool is_blank(const struct ledger *l, uint64_t word)
{
	if (index_kind_of(word) != INDEX_CONTENT)
		return false;
	return atomic_load(&record_at(l, index_number_of(word))->life) == 0;
}

static void check_index(struct check *v)
{
	struct ledger *l = v->l;
	uint64_t word, limit, offset;

	for (uint64_t i = 0; i < index_words(l); i++) {
		word = index_word(l, i, &offset);
		if (index_kind_of(word) == 0 && word != 0 && word != 3)
			fault(v, l->base + offset, VERIFY_INDEX " entry");
		if (index_kind_of(word) == 0)
			continue;
		limit = index_kind_of(word) == INDEX_KEY ? l->fixed.key_count
		                                         : l->fixed.record_count;
		if (index_number_of(word) >= limit)
			fault(v, l->base + offset, VERIFY_INDEX " entry out of bounds");
		else if (is_blank(l, word))
			fault(v, record_at(l, index_number_of(word)), VERIFY_BLANK);
	}
}

static void check_answer(struct check *v, const struct layout_record *rec,
                         const struct record_view *view)
{
	struct buf blob = {0};
	long status;
	uint8_t hash[LEDGER_HASH];
	int rc = ledger_answer_hash(v->l, view, hash);

	if (rc != LEDGER_OK)
		rc = ledger_answer(v->l, view, &blob, &status);
	buf_free(&blob);
	if (rc == LEDGER_NONE)
		fault(v, rec, "stored answer");
}

static bool unchanged(struct layout_record *rec, uint64_t word)
{
	return atomic_load_explicit(&rec->word, memory_order_acquire) == word;
}

static void check_record(struct check *v, struct layout_record *rec, uint64_t number)
{
	struct bank bank;
	struct facts facts;
	struct record_view view = {0};
	uint64_t id, word;
	uint8_t hash[LEDGER_HASH];

	if (!record_read(v->l, rec, &id, &word, &bank))
		return;
	if (bank.flags & BANK_DAMAGED) {
		if (unchanged(rec, word))
			fault(v, rec, "record");
		return;
	}
	if (bank.facts && !record_facts(v->l, rec, id, &bank, &facts) && unchanged(rec, word))
		fault(v, rec, "what the record was written with");
	shared_out(hash, rec->content, sizeof(hash));
	if (!index_has(v->l, hash, INDEX_CONTENT, number) && unchanged(rec, word))
		fault(v, rec, VERIFY_INDEX " lacks a record");
	view.id = id;
	view.generation = bank.generation;
	if (bank.answer && unchanged(rec, word))
		check_answer(v, rec, &view);
}

static void check_heap(struct check *v)
{
	uint64_t unit = 1, word, end = atomic_load(&v->l->header->next_heap);

	while (heap_step(v->l, &unit, &word))
		;
	if (unit < end && end <= v->l->fixed.heap_size / LAYOUT_UNIT)
		fault(v, v->l->base + v->l->fixed.heap_at + unit * LAYOUT_UNIT, "heap");
}

int ledger_verify(struct ledger *l, ledger_damage *damage, void *ctx)
{
	struct check v = {l, damage, ctx, 0};
	uint64_t end = record_end(l);
	int saved = errno;

	check_header_again(&v);
	check_index(&v);
	for (uint64_t i = 0; i < end; i++)
		check_record(&v, record_at(l, i), i);
	check_heap(&v);
	errno = saved;
	return v.faults;
}
