/* Stored answers: bytes beside the record or in the heap, their size and sum in the record's bank.
 *
 * A large answer is copied into the heap before the record is locked; a small one goes into the
 * record's room under its lock. Publishing the bank is what makes either the answer. One that finds
 * no room, or is larger than max_response, is not kept: the write is still done, and a retry is
 * told that it was executed. A copy out is checked against the sum and the state word, so that
 * bytes given to somebody else meanwhile are noticed. */
#include <errno.h>
#include <string.h>

#include "ledger/internal.h"

/* What is not larger goes beside the record when it fits. */
enum { ANSWER_INLINE = 704 };

static bool is_kept(const struct ledger *l, const struct ledger_answer *answer)
{
	if (!answer || answer->blob.n == 0 || answer->blob.n > UINT32_MAX - 8)
		return false;
	return l->max_response <= 0 || answer->blob.n <= (uint64_t)l->max_response;
}

void answer_write(struct ledger *l, const struct ledger_answer *answer, uint64_t id,
                  struct stamp now, uint32_t *unit)
{
	struct layout_record *rec = record_of(l, id, NULL);
	void *at;

	*unit = 0;
	if (!is_kept(l, answer) || answer->blob.n <= ANSWER_INLINE)
		return;
	*unit = heap_take(l, (answer->blob.n + 7) / 8 * 8, EXTENT_ANSWER, id, now);
	at = *unit && rec ? room_at(l, rec, id, *unit, EXTENT_ANSWER, answer->blob.n) : NULL;
	if (at)
		shared_in_bytes(at, answer->blob.p, answer->blob.n);
	else
		*unit = 0;
}

/* Beside the record; in the heap after all where other bytes are in the way. */
static bool attach_here(struct ledger *l, struct change *c, const struct ledger_answer *answer,
                        struct stamp now, uint32_t *at)
{
	*at = room_gap(&c->live, &c->bank, answer->blob.n);
	if (!*at)
		*at = heap_take(l, (answer->blob.n + 7) / 8 * 8, EXTENT_ANSWER, c->id, now);
	return !*at || room_put(l, c, *at, EXTENT_ANSWER, answer->blob);
}

bool answer_attach(struct ledger *l, struct change *c, const struct ledger_answer *answer,
                   uint32_t unit, bool final, struct stamp now)
{
	bool fine = true;

	change_drop_answer(c);
	c->bank.status = answer ? (int32_t)answer->status : 0;
	if (!unit && is_kept(l, answer) && answer->blob.n <= ANSWER_INLINE)
		fine = attach_here(l, c, answer, now, &unit);
	if (!unit || !answer)
		return fine;
	c->bank.answer = unit;
	c->bank.answer_size = (uint32_t)answer->blob.n;
	c->bank.answer_sum = sum_bytes(c->id, answer->blob.p, answer->blob.n);
	if (final)
		c->bank.flags |=
		        answer->hash ? BANK_ANSWER_FINAL | BANK_ANSWER_HASH : BANK_ANSWER_FINAL;
	else
		c->bank.keep_until = lease_make(now, LEASE_SECONDS);
	return fine;
}

static int copy_out(struct ledger *l, struct layout_record *rec, uint64_t id,
                    struct record_answer answer, struct buf *blob)
{
	const char *at = room_at(l, rec, id, answer.at, EXTENT_ANSWER, answer.size);
	size_t start = blob->n;
	char *to;

	/* A size of 0 is damage: no answer is kept as nothing. */
	if (!at || !answer.size)
		return LEDGER_NONE;
	to = buf_grow(blob, answer.size);
	if (!to)
		return LEDGER_NOMEM;
	if (sum_out(to, at, answer.size, id) == answer.sum)
		return LEDGER_OK;
	blob->n = start;
	return LEDGER_NONE;
}

static int answer_of(struct ledger *l, struct layout_record *rec, const struct record_view *view,
                     const struct bank *bank, struct buf *blob, long *status)
{
	int rc;

	if (bank->generation != view->generation || !bank->answer || (bank->flags & BANK_DAMAGED) ||
	    (bank->flags & BANK_ANSWER_HASH))
		return LEDGER_NONE;
	rc = copy_out(l, rec, view->id,
	              (struct record_answer){bank->answer, bank->answer_size, bank->answer_sum},
	              blob);
	if (rc == LEDGER_OK)
		*status = bank->status;
	return rc;
}

/* The bank that view was made of was tested then, and nothing it means is written over while its
 * word stands; the answer has a sum of its own. */
static int answer_of_view(struct ledger *l, struct layout_record *rec,
                          const struct record_view *view, struct buf *blob, long *status)
{
	int rc = LEDGER_NONE;

	if (view->answer_kept && view->answer.at &&
	    word_read(view->word).generation == (view->generation & 0xfff) &&
	    atomic_load_explicit(&rec->word, memory_order_acquire) == view->word)
		rc = copy_out(l, rec, view->id, view->answer, blob);
	if (rc == LEDGER_OK)
		*status = view->status;
	return rc;
}

/* What the short way does not find is read and tested again: it may have been published anew. */
int ledger_answer(struct ledger *l, const struct record_view *view, struct buf *blob, long *status)
{
	struct layout_record *rec = record_of(l, view->id, NULL);
	struct bank bank;
	uint64_t id, word;
	int saved = errno, rc = LEDGER_NONE;

	*status = 0;
	if (rec)
		rc = answer_of_view(l, rec, view, blob, status);
	if (rec && rc == LEDGER_NONE && record_read(l, rec, &id, &word, &bank) && id == view->id)
		rc = answer_of(l, rec, view, &bank, blob, status);
	errno = saved;
	return rc;
}

int ledger_answer_hash(struct ledger *l, const struct record_view *view, uint8_t out[LEDGER_HASH])
{
	struct layout_record *rec = record_of(l, view->id, NULL);
	struct buf blob = {0};
	struct bank bank;
	uint64_t id, word;
	int saved = errno, rc = LEDGER_NONE;

	if (rec && record_read(l, rec, &id, &word, &bank) && id == view->id &&
	    bank.generation == view->generation && (bank.flags & BANK_ANSWER_HASH) &&
	    bank.answer_size == LEDGER_HASH)
		rc = copy_out(
		        l, rec, id,
		        (struct record_answer){bank.answer, bank.answer_size, bank.answer_sum},
		        &blob);
	if (rc == LEDGER_OK)
		memcpy(out, blob.data, LEDGER_HASH);
	buf_free(&blob);
	errno = saved;
	return rc;
}
