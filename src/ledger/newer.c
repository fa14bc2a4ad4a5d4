/* Which of two records of one content is newer: the table an import goes by.
 *
 * Within one generation, as one key names it, "executed" beats everything and is never taken back;
 * a doubt is given up only for what came after it. What came after is seen by the moment the record
 * was made, which two records share that come from one reservation, then by the attempts. Two that
 * were made at different moments in different ledgers cannot be ordered by it: there the doubt
 * stays. Another generation is a newer or older state of ours only if it is of the same run. */
#include <string.h>

#include "ledger/carry.h"
#include "ledger/internal.h"

enum order { OLDER = -1, EQUAL, NEWER, APART };

static bool is_doubt(const struct record_view *v)
{
	return v->state == REC_SENT || v->state == REC_UNKNOWN;
}

/* Known to have been executed; a tombstone remembers that much. */
static bool is_executed(const struct record_view *v)
{
	return v->state == REC_DONE || (v->state == REC_TOMBSTONE && v->freed == FREED_NOT);
}

static bool is_driven(const struct record_view *v)
{
	return (v->owner == OWNER_ALIVE || v->owner == OWNER_UNKNOWABLE) && v->lease_fresh;
}

static int64_t age_between(struct stamp a, struct stamp b)
{
	if (a.boot && a.boot == b.boot)
		return clock_span(b.boot_us, a.boot_us);
	return clock_span(b.wall_us, a.wall_us);
}

/* Of one generation. APART: made separately. */
static enum order order_of(const struct record_view *theirs, const struct record_view *ours,
                           bool same)
{
	int64_t later = age_between(theirs->made, ours->made);

	if (later)
		return !same ? APART : later > 0 ? NEWER : OLDER;
	if (theirs->attempts != ours->attempts)
		return theirs->attempts > ours->attempts ? NEWER : OLDER;
	return EQUAL;
}

static enum carry_act decide_executed(const struct record_view *ours)
{
	if (ours->state == REC_DONE)
		return CARRY_MERGE;
	return is_executed(ours) ? CARRY_KEEP : CARRY_TAKE;
}

static enum carry_act decide_doubt(const struct record_view *ours, enum order order)
{
	switch (ours->state) {
	case REC_DONE:
		return CARRY_MERGE;
	case REC_RESERVED:
		return CARRY_TAKE;
	case REC_SENT:
	case REC_UNKNOWN:
		return order == NEWER ? CARRY_TAKE : CARRY_MERGE;
	default:
		if (is_executed(ours))
			return CARRY_KEEP;
		return order == NEWER || order == APART ? CARRY_TAKE : CARRY_KEEP;
	}
}

/* "It did not happen": believed against a doubt only if it came after it. */
static enum carry_act decide_freed(const struct record_view *ours, enum order order)
{
	if (is_executed(ours))
		return CARRY_KEEP;
	if (is_doubt(ours))
		return order == NEWER || order == EQUAL ? CARRY_TAKE : CARRY_KEEP;
	return order == NEWER && ours->state != REC_RESERVED ? CARRY_TAKE : CARRY_KEEP;
}

static enum carry_act decide_same(const struct record_view *theirs, const struct record_view *ours,
                                  bool same)
{
	enum order order = order_of(theirs, ours, same);

	if (is_driven(ours) || theirs->state == REC_RESERVED)
		return CARRY_KEEP;
	if (is_executed(theirs))
		return theirs->state == REC_TOMBSTONE && ours->state == REC_DONE
		               ? CARRY_KEEP
		               : decide_executed(ours);
	return is_doubt(theirs) ? decide_doubt(ours, order) : decide_freed(ours, order);
}

static bool share_run(const struct record_view *a, const struct record_view *b)
{
	for (size_t i = 0; i < a->run_count; i++)
		for (size_t k = 0; k < b->run_count; k++)
			if (a->runs[i].run == b->runs[k].run)
				return true;
	return false;
}

/* One is what became of the other. Where no run is known that is believed of settled writes only.
 */
static bool one_line(const struct record_view *a, const struct record_view *b)
{
	if (share_run(a, b))
		return true;
	return a->run_count == 0 && b->run_count == 0 && !is_doubt(a) && !is_doubt(b);
}

static enum carry_act decide_other(const struct record_view *theirs, const struct record_view *ours,
                                   bool same)
{
	bool settled = theirs->state == REC_RESERVED || theirs->state == REC_FREED ||
	               theirs->state == REC_TOMBSTONE;

	if (theirs->generation < ours->generation)
		return same || settled || one_line(theirs, ours) ? CARRY_KEEP : CARRY_INSERT;
	if (theirs->generation == ours->generation || theirs->state == REC_RESERVED)
		return CARRY_INSERT; /* another key: another write */
	if (is_driven(ours) || ours->state == REC_RESERVED || !one_line(theirs, ours))
		return CARRY_INSERT;
	return CARRY_TAKE;
}

static bool is_same(const struct record_view *a, const struct record_view *b)
{
	if (a->generation != b->generation)
		return false;
	/* A tombstone, and what was forgotten, has no key any more. */
	return !a->key[0] || !b->key[0] || strcmp(a->key, b->key) == 0;
}

enum carry_act carry_decide(const struct record_view *theirs, const struct record_view *ours,
                            bool same)
{
	if (!ours)
		return CARRY_INSERT;
	return is_same(theirs, ours) ? decide_same(theirs, ours, same)
	                             : decide_other(theirs, ours, same);
}

/* --- bringing one in --- */

/* Of several of ours: the same generation, else one of its line, else the newest. */
static int fitness(const struct record_view *theirs, const struct record_view *ours)
{
	return is_same(theirs, ours) ? 3 : one_line(theirs, ours) ? 2 : 1;
}

static bool find_ours(struct ledger *l, const struct record_view *theirs, struct stamp now,
                      struct record_view *out)
{
	struct index_walk walk = index_start(l, theirs->content, INDEX_CONTENT);
	struct layout_record *rec;
	struct record_view view;
	int64_t number;
	int best = 0, fit;

	while ((number = index_next(l, &walk)) >= 0) {
		rec = record_at(l, (uint64_t)number);
		if (!rec || !record_view(l, rec, now, &view) ||
		    memcmp(view.content, theirs->content, LEDGER_HASH) != 0)
			continue;
		fit = fitness(theirs, &view);
		if (fit < best || (fit == best && view.generation <= out->generation))
			continue;
		best = fit;
		*out = view;
	}
	return best > 0;
}

static void merge_run(struct record_view *into, struct run_entry run)
{
	for (size_t i = 0; i < into->run_count; i++) {
		struct run_entry *e = &into->runs[i];

		if (e->run != run.run)
			continue;
		if (run.asked_us && (!e->asked_us || run.asked_us < e->asked_us))
			e->asked_us = run.asked_us;
		if (run.delivered_us > e->delivered_us)
			e->delivered_us = run.delivered_us;
		return;
	}
	if (into->run_count < LEDGER_RUNS)
		into->runs[into->run_count++] = run;
}

/* Ours, with what only theirs knows: an answer, runs, keys, the first delivery. */
static int merge(struct ledger *l, const struct ledger_record *theirs,
                 const struct record_view *ours, struct stamp now)
{
	struct ledger_record both = {0};
	const struct record_view *v = &theirs->view;
	int rc = carry_read(l, ours, &both);

	for (size_t i = 0; i < v->run_count && i < LEDGER_RUNS; i++)
		merge_run(&both.view, v->runs[i]);
	if (v->first_delivered.wall_us && !both.view.first_delivered.wall_us)
		both.view.first_delivered = v->first_delivered;
	if (rc == LEDGER_OK && v->state == REC_DONE && !both.answer.n) {
		buf_add_span(&both.answer, span_buf(&theirs->answer));
		both.view.status = both.view.status ? both.view.status : v->status;
		rc = both.answer.failed ? LEDGER_NOMEM : rc;
	}
	if (rc == LEDGER_OK)
		rc = carry_put(l, &both, ours, now);
	if (rc == LEDGER_OK)
		rc = carry_bind(l, ours->id, theirs);
	carry_free(&both);
	return rc;
}

int carry_in(struct ledger *l, const struct ledger_record *record, bool same, struct stamp now,
             enum carry_act *did)
{
	struct record_view ours;
	bool there = find_ours(l, &record->view, now, &ours);

	*did = carry_decide(&record->view, there ? &ours : NULL, same);
	switch (*did) {
	case CARRY_KEEP:
		return LEDGER_OK;
	case CARRY_MERGE:
		return merge(l, record, &ours, now);
	case CARRY_TAKE:
		return carry_put(l, record, &ours, now);
	case CARRY_INSERT:
		break;
	}
	return carry_put(l, record, NULL, now);
}
