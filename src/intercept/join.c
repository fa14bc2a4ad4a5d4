/* What the verdicts that do not send do: wait for somebody else's sending, or play what the ledger
 * keeps. `delivered` is written last, when the return code is ready: a crash before that makes a
 * retry replay, never send. */
#include <string.h>

#include "base/clock.h"
#include "courier/answer.h"
#include "courier/courier.h"
#include "courier/fields.h"
#include "identity/echo.h"
#include "intercept/jar.h"
#include "intercept/local.h"
#include "intercept/writing.h"

enum { LEDGER_SLICE_US = 1000000 };

bool is_delivery(CURLcode code)
{
	return code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR;
}

static bool has_asked(const struct record_view *view, uint64_t run)
{
	for (size_t i = 0; i < view->run_count; i++) {
		if (view->runs[i].run == run)
			return view->runs[i].asked_us != 0;
	}
	return false;
}

/* A record that this call did not make is one that its run asked for, and its own key means. */
void act_asked(struct writing *w, const struct record_view *view)
{
	uint64_t run = write_run(w);

	if (run && !has_asked(view, run))
		ledger_asked(w->ledger, view->id, view->generation, run, clock_now());
	if (w->id.has_own_key)
		ledger_bind_key(w->ledger, view->id, w->id.own_key);
}

/* The call is over without a sending of its own. */
static enum step over(struct writing *w, CURLcode code)
{
	w->code = code;
	w->tally.curlcode = code;
	w->tally.bytes = w->serving.player.body_seen;
	tally_write(&w->tally, "write");
	return STEP_DONE;
}

/* --- joining --- */

static enum step joined(struct writing *w, const struct record_view *view, CURLcode code)
{
	struct record_view now;

	if (is_delivery(code) && ledger_look(w->ledger, view->id, clock_now(), &now) == LEDGER_OK &&
	    now.state == REC_DONE && now.generation == view->generation)
		write_delivered(w, view->id, view->generation);
	ledger_count(w->ledger, COUNT_joined);
	return over(w, code);
}

static void leave_attempt(struct writing *w)
{
	attempt_unref(w->attempt);
	w->attempt = NULL;
}

static enum step tape_joined(struct writing *w)
{
	jar_return(w->shadow, w->attempt);
	leave_attempt(w);
	return joined(w, &w->view, w->code);
}

static enum step tape_played(struct writing *w)
{
	const struct serving *v = &w->serving;

	if (w->how == SERVE_ENDED && !v->end.complete && !v->fed) {
		leave_attempt(w);
		w->stage = write_look;
		return STEP_AGAIN;
	}
	w->code = w->how == SERVE_ENDED ? serve_end(&w->serving) : v->code;
	if (w->how == SERVE_EARLY && w->code == CURLE_HTTP_RETURNED_ERROR)
		return sending_await_rest(w, tape_joined);
	return tape_joined(w);
}

/* Another process sends: wait for its record to change, with the program's own deadlines. */
static enum step join_ledger(struct writing *w, const struct record_view *view)
{
	bool gated = view->state == REC_SENT;
	int64_t patience;
	CURLcode code = serve_tick(&w->serving, gated, &patience);

	w->attached = view->id;
	w->attached_generation = view->generation;
	w->attached_attempt = view->attempts + (gated ? 0 : 1);
	if (code != CURLE_OK)
		return over(w, code);
	w->stage = write_look;
	if (patience > LEDGER_SLICE_US)
		patience = LEDGER_SLICE_US;
	return write_wait(w, (struct wait){.kind = WAIT_RECORD,
	                                   .record = view->id,
	                                   .word = view->word,
	                                   .until_us = serve_now_us() + patience});
}

/* Nobody but this thread can drive it, and it would stand here. What the courier sends for a
 * program's multi, or for this thread's own call around a callback, is driven in the background
 * once a loop listens to it. */
static bool waits_for_itself(const struct writing *w, enum local_nesting nesting,
                             const struct attempt *attempt)
{
	if (w->looped)
		return nesting == LOCAL_BELOW && !attempt;
	return nesting != LOCAL_APART;
}

enum step act_join(struct writing *w, const struct record_view *view)
{
	enum local_nesting nesting;
	struct attempt *attempt = local_find(view->id, &nesting);

	if (waits_for_itself(w, nesting, attempt)) {
		attempt_unref(attempt);
		return refuse(w, REASON_IN_PROGRESS, view, false, false, NULL);
	}
	if (w->attached != view->id)
		act_asked(w, view);
	/* A live answer is the other request's; only a stored one can be made this one's. */
	if (attempt && !w->rule->echo.count && tape_attach(attempt_tape(attempt))) {
		w->attempt = attempt;
		return write_play(w, attempt_tape(attempt), attempt, tape_played);
	}
	attempt_unref(attempt);
	return join_ledger(w, view);
}

/* --- replaying --- */

static bool echo(void *ctx, struct span head, struct span body, struct buf *out)
{
	const struct writing *w = ctx;

	return echo_answer(&w->rule->echo, w->in.body, fields_find(head, "Content-Type"), body,
	                   out);
}

/* Null: it cannot be read after all. The caller's, attached. */
static struct tape *stored(struct writing *w, const struct record_view *view,
                           struct answer_marks marks)
{
	struct buf blob = {0}, url = {0};
	struct tape *tape = NULL;
	long status = 0;

	if (ledger_answer(w->ledger, view, &blob, &status) == LEDGER_OK) {
		gather_url(&w->shadow->target, &url);
		marks.url = url.data;
		marks.edit = w->rule->echo.count ? echo : NULL;
		marks.ctx = w;
		tape = answer_load(&blob, &marks);
	}
	buf_free(&blob);
	buf_free(&url);
	if (!tape || !tape_attach(tape)) {
		tape_unref(tape);
		return NULL;
	}
	w->tally.status = status;
	return tape;
}

static CURLcode stored_code(struct writing *w)
{
	return w->how == SERVE_ENDED ? serve_end(&w->serving) : w->serving.code;
}

static enum step play_stored(struct writing *w, struct tape *tape, stage_fn *after)
{
	enum step step = write_play(w, tape, NULL, after);

	tape_unref(tape);
	return step;
}

static enum step attached_played(struct writing *w)
{
	w->tally.verdict = verdict_kind_name(VERDICT_JOIN);
	w->tally.record = w->view.id;
	w->tally.generation = w->view.generation;
	return joined(w, &w->view, stored_code(w));
}

enum step act_attached(struct writing *w, const struct record_view *view)
{
	struct tape *tape = stored(w, view, (struct answer_marks){0});

	w->attached = 0;
	if (tape)
		return play_stored(w, tape, attached_played);
	w->stage = write_look;
	return STEP_AGAIN;
}

static void add_verdict(struct buf *out, const struct record_view *view)
{
	char time[32];

	clock_rfc3339(time, sizeof(time), view->first_sent.wall_us);
	buf_add_text(out, "replay; first=");
	buf_add_text(out, time);
	buf_add_text(out, "; attempts=");
	buf_add_number(out, view->attempts);
}

/* What mode replay gives is no delivery. */
static bool is_read_only(const struct writing *w)
{
	return w->process->acting == MODE_REPLAY;
}

static enum step replayed(struct writing *w)
{
	CURLcode code = stored_code(w);

	if (is_delivery(code) && !is_read_only(w))
		write_delivered(w, w->view.id, w->view.generation);
	ledger_count(w->ledger, COUNT_replayed);
	if (w->verdict.replay_late)
		tally_write(&w->tally, "replay-late");
	return over(w, code);
}

enum step act_replay(struct writing *w, const struct record_view *view)
{
	struct answer_marks marks = {.replayed = true};
	struct buf text = {0};
	struct tape *tape;

	add_verdict(&text, view);
	marks.verdict = text.failed ? NULL : text.data;
	memcpy(w->tally.key, view->key, sizeof(w->tally.key));
	if (!is_read_only(w))
		act_asked(w, view);
	tape = stored(w, view, marks);
	buf_free(&text);
	if (tape)
		return play_stored(w, tape, replayed);
	return refuse(w, REASON_ANSWER_NOT_KEPT, view, false, false, NULL);
}
