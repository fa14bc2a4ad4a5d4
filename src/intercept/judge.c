/* Finding the record of a write, and the verdict on it. Reads the ledger and changes nothing. */
#include <string.h>

#include "intercept/turn.h"
#include "intercept/writing.h"

static struct ledger_ids ids_of(const struct writing *w)
{
	bool whole = w->id.complete;

	return (struct ledger_ids){
	        .content = w->id.content,
	        .any_account = whole ? w->id.any_account : NULL,
	        .own_key = w->id.has_own_key ? w->id.own_key : NULL,
	        .place = whole ? w->id.place : NULL,
	        .settings = w->id.settings,
	        .operation = w->rule->operation,
	};
}

static int find(const struct writing *w, struct stamp now, struct record_view *view)
{
	struct ledger_ids ids = ids_of(w);

	return ledger_find(w->ledger, &ids, now, view);
}

/* The record as it is now; a view of state REC_NONE where there is none. What only other records
 * are found by, and what a doubt is judged by, is hashed when there is no finished one. */
static int look_up(struct writing *w, struct stamp now, struct record_view *view)
{
	int rc = find(w, now, view);

	if (w->id.complete || (rc == LEDGER_OK && view->state == REC_DONE))
		return rc;
	if (identity_complete(&w->in, &w->id) != IDENTITY_OK)
		return LEDGER_NOMEM;
	return rc == LEDGER_NONE ? find(w, now, view) : rc;
}

uint64_t write_run(const struct writing *w)
{
	if (w->tally.names.run_hash || w->rule->repeat == REPEAT_REPLAY)
		return w->tally.names.run_hash;
	return process_as_run();
}

void write_delivered(const struct writing *w, uint64_t record, uint32_t generation)
{
	if (record)
		ledger_delivered(w->ledger, record, generation, write_run(w), clock_now());
	turn_over(w);
}

struct asked write_asked(const struct writing *w, const struct record_view *view)
{
	return (struct asked){
	        .mode = w->process->acting,
	        .has_own_key = w->id.has_own_key,
	        .own_key_matches =
	                w->id.has_own_key &&
	                (view->hit == HIT_OWN_KEY || strcmp(view->key, w->id.own_key_text) == 0),
	        .other_content = view->hit == HIT_OWN_KEY &&
	                         memcmp(view->content, w->id.content, LEDGER_HASH) != 0,
	        .account_opaque = w->id.account_opaque,
	        .fingerprint = w->id.fingerprint,
	        .wire_body = w->id.wire_body,
	        .settings = w->id.settings,
	        .run = write_run(w),
	        .ordinal_behind = w->behind,
	};
}

/* A write with a record of its own that is to be made anew is refused all the same while it is in
 * doubt under another token or other settings. */
static bool is_hindered(struct writing *w, struct stamp now, struct record_view *other,
                        struct verdict *verdict)
{
	struct ledger_ids ids;
	struct asked asked;

	if (identity_complete(&w->in, &w->id) != IDENTITY_OK)
		return false; /* and nothing will be sent */
	ids = ids_of(w);
	if (ledger_find_neighbour(w->ledger, &ids, now, other) != LEDGER_OK)
		return false;
	asked = write_asked(w, other);
	*verdict = verdict_decide(other, w->rule, &asked, now);
	return verdict->kind == VERDICT_REFUSE;
}

/* A write for which a record would be made may have had one that was lost to damage. True: it is
 * refused for that. A doubt that is over is only noted. */
static bool is_lost(const struct writing *w, struct stamp now, struct verdict *verdict,
                    struct record_view *view)
{
	struct record_view lost;
	struct verdict instead;
	struct asked asked;

	if (!verdict->own_record || !w->ledger ||
	    ledger_find_lost(w->ledger, w->rule->operation, &lost) != LEDGER_OK)
		return false;
	asked = write_asked(w, &lost);
	instead = verdict_decide(&lost, w->rule, &asked, now);
	verdict->doubt_dropped |= instead.doubt_dropped;
	if (instead.kind != VERDICT_REFUSE)
		return false;
	*verdict = instead;
	*view = lost;
	return true;
}

static bool was_told(const struct writing *w, const struct record_view *view)
{
	for (size_t i = 0; view->state == REC_DONE && i < view->run_count; i++)
		if (view->runs[i].run == write_run(w) && view->runs[i].delivered_us)
			return true;
	return false;
}

/* What another run's newer write of the same content comes to: this run's own answer, if it has
 * one, or this run's own last try, which is made again and not counted on. */
static void prefer_own(struct writing *w, struct stamp now, struct record_view *view,
                       struct verdict *verdict)
{
	struct record_view other;
	struct asked asked;
	struct verdict own;
	bool beside =
	        verdict->kind == VERDICT_EXECUTE && verdict->next_generation && verdict->own_record;

	if (view->hit != HIT_CONTENT || was_told(w, view))
		return;
	if (write_run(w) && !w->turn &&
	    ledger_find_content(w->ledger, w->id.content, write_run(w), now, &other) == LEDGER_OK) {
		asked = write_asked(w, &other);
		own = verdict_decide(&other, w->rule, &asked, now);
		if (own.kind == VERDICT_REPLAY || own.reason == REASON_ANSWER_NOT_KEPT) {
			*view = other;
			*verdict = own;
			return;
		}
	}
	if (beside && ledger_find_content(w->ledger, w->id.content, 0, now, &other) == LEDGER_OK &&
	    other.generation > view->generation &&
	    (other.state == REC_FREED || other.state == REC_TOMBSTONE)) {
		asked = write_asked(w, &other);
		*view = other;
		*verdict = verdict_decide(view, w->rule, &asked, now);
	}
}

int write_find(struct writing *w, struct stamp now, struct record_view *view)
{
	int rc = look_up(w, now, view);

	return rc == LEDGER_NONE ? LEDGER_OK : rc;
}

struct verdict write_judge(struct writing *w, struct stamp now, struct record_view *view)
{
	struct verdict verdict, hindered;
	struct record_view other;
	struct asked asked;

	w->behind = turn_choose(w, w->id.content, now, view);
	asked = write_asked(w, view);
	verdict = verdict_decide(view, w->rule, &asked, now);
	prefer_own(w, now, view, &verdict);
	if (verdict.kind != VERDICT_EXECUTE)
		return verdict;
	if (is_lost(w, now, &verdict, view) || view->state == REC_NONE ||
	    !is_hindered(w, now, &other, &hindered))
		return verdict;
	*view = other;
	return hindered;
}
