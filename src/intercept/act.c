/* What each verdict does. A sending is shared with the courier (send.h); everything else is played
 * from what the ledger keeps. `delivered` is written last, when the return code is ready: a crash
 * before that makes a retry replay, never send. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "courier/answer.h"
#include "courier/courier.h"
#include "courier/fields.h"
#include "identity/echo.h"
#include "intercept/carry.h"
#include "intercept/fetch.h"
#include "intercept/inplace.h"
#include "intercept/jar.h"
#include "intercept/local.h"
#include "intercept/notice.h"
#include "intercept/send.h"
#include "intercept/write.h"
#include "intercept/writing.h"

enum { LEDGER_SLICE_US = 1000000, ANSWER_REST_US = 1000000 };

static bool is_delivery(CURLcode code)
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
static void asked(struct writing *w, const struct record_view *view)
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

/* --- sending --- */

/* One more than the last of this content, also in a record beside it: no two generations of one
 * write may ever come to the same key. */
static uint32_t generation_of(const struct writing *w, const struct record_view *view,
                              struct verdict verdict)
{
	struct record_view last;
	uint32_t generation = view->generation;

	if (view->state == REC_NONE || (view->hit != HIT_CONTENT && view->hit != HIT_OWN_KEY))
		return 1;
	if (!verdict.next_generation && !verdict.own_record)
		return generation;
	if (ledger_find_content(w->ledger, w->id.content, 0, clock_now(), &last) == LEDGER_OK &&
	    last.generation > generation)
		generation = last.generation;
	return generation + 1;
}

uint32_t act_key(const struct writing *w, const struct record_view *view, struct verdict verdict,
                 char *key)
{
	uint32_t generation = generation_of(w, view, verdict);

	if (verdict.kind != VERDICT_EXECUTE)
		snprintf(key, KEY_TEXT_MAX + 1, "%s", view->key);
	else if (w->id.has_own_key)
		snprintf(key, KEY_TEXT_MAX + 1, "%s", w->id.own_key_text);
	else if (w->rule->carrier == CARRIER_NONE)
		*key = '\0';
	else
		identity_key(&w->in, &w->id, generation, key);
	return generation;
}

/* The record becomes this call's: reserved, taken over, or taken to be sent again. */
static int take_hold(struct writing *w, const struct record_view *view, struct verdict verdict,
                     char *key, struct hold *hold)
{
	const struct rule *rule = w->rule;
	struct stamp now = clock_now();
	bool fresh = view->state == REC_NONE || verdict.own_record;
	struct record_new made = {
	        .content = w->id.content,
	        .any_account = w->id.any_account,
	        .own_key = w->id.has_own_key ? w->id.own_key : NULL,
	        .place = w->id.place,
	        .fingerprint = w->id.fingerprint,
	        .wire_body = w->id.wire_body,
	        .settings = w->id.settings,
	        .operation = rule->operation,
	        .key = key,
	        .trace = w->tally.trace,
	        .ttl_us = rule->ttl,
	        .tombstone_us = rule->key_ttl > rule->ttl ? rule->key_ttl : rule->ttl,
	        .run = write_run(w),
	        .opaque = w->id.account_opaque,
	};

	if (identity_complete(&w->in, &w->id) != IDENTITY_OK)
		return LEDGER_NOMEM;
	made.generation = act_key(w, view, verdict, key);
	w->tally.generation = made.generation;
	if (verdict.kind != VERDICT_EXECUTE)
		return ledger_take(w->ledger, view, now, hold);
	return ledger_reserve(w->ledger, &made, fresh ? NULL : view, now, hold);
}

/* Another thread may drive the attempt to its end before attempt_start has returned: what comes
 * back must find a reader, and the end must find the entry it takes away. */
static void ready(void *ctx, struct attempt *attempt)
{
	struct send *send = ctx;

	local_add(send->hold.id, send, attempt);
	tape_attach(attempt_tape(attempt));
}

static int start(struct writing *w, struct send *send, const struct carried *carried,
                 struct attempt **attempt)
{
	const struct rule *rule = w->rule;
	struct curl_slist *cookies = jar_take(w->shadow);
	struct ambient *ambient = &w->shadow->ambient;
	struct courier_plan plan = {
	        .flavour = w->shadow->flavour,
	        .options = &w->shadow->options,
	        .no_stale_reuse = !rule->dedups,
	        .cookies = cookies,
	        .extra = ambient->extra,
	        .stay = &w->shadow->stay,
	        .keep = send->max_response,
	        .linger_us = rule->linger,
	        .exit_wait_us = rule_exit_wait(rule),
	        .calls = send_calls,
	        .ctx = send,
	        .ready = ready,
	};
	int rc = COURIER_NOMEM;

	fetch_plan(w, &plan);
	carry_plan(carried, &plan);
	if (ambient_proxies(ambient, &w->shadow->options, &w->shadow->target) == 0) {
		plan.extra_count = ambient->count;
		rc = attempt_start(&plan, attempt);
	}
	CURL_FN(w->shadow->flavour, slist_free_all)(cookies);
	return rc;
}

/* FAILONERROR ends the playing at the headers, where libcurl returns. The outcome is known only
 * when the rest has come; it usually has, and a body that hangs is left to the courier. */
static void await_rest(struct writing *w, struct attempt *attempt)
{
	int64_t limit = w->serving.player.sink.timeout_us;
	int64_t until = serve_now_us() + ANSWER_REST_US;
	struct attempt_phase phase;

	if (limit > 0 && w->serving.player.started_us + limit < until)
		until = w->serving.player.started_us + limit;
	for (;;) {
		attempt_phase(attempt, &phase);
		if (phase.ended || serve_now_us() >= until)
			return;
		attempt_wait(attempt, until);
	}
}

static bool attempt_over(struct attempt *attempt)
{
	struct attempt_phase phase;

	attempt_phase(attempt, &phase);
	return phase.ended;
}

/* The program's side ended the call. Before the gate the write is taken back; after it the courier
 * goes on without the program. */
static void part(struct send *send, struct attempt *attempt)
{
	if (attempt_over(attempt))
		return;
	if (send_withdraw(send)) {
		attempt_cancel(attempt);
		return;
	}
	local_orphaned(send->hold.id, send);
	attempt_orphan(attempt);
}

/* The ledger kept the gate shut: nothing was sent, nothing was played. */
static enum step shut_out(struct writing *w, struct send *send)
{
	enum send_gate gate = send_gate(send);

	send_silence(send);
	send_leave(send, CURLE_OK, 0);
	if (gate == GATE_LOST) {
		w->lost = true;
		return STEP_AGAIN;
	}
	return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false,
	              "the disk did not take the record");
}

static bool has_left(struct attempt *attempt)
{
	struct attempt_phase phase;

	attempt_phase(attempt, &phase);
	return phase.gated;
}

/* A callback jumped out of this call, and its handle is given up. The memory of the call stays as
 * it is, but the sending goes on by itself. */
static void jumped_out(void *ctx)
{
	struct writing *w = ctx;

	part(w->send, w->attempt);
	send_leave(w->send, CURLE_ABORTED_BY_CALLBACK, w->serving.player.body_seen);
	attempt_unref(w->attempt);
}

static enum serve_how serve_guarded(struct writing *w, struct send *send, struct attempt *attempt,
                                    struct tape_end *end, CURLcode *code)
{
	struct playing *playing = &w->serving.playing;
	enum serve_how how;

	w->send = send;
	w->attempt = attempt;
	playing->ctx = w;
	playing->left = jumped_out;
	how = serve_tape(&w->serving, attempt_tape(attempt), attempt, end, code);
	playing->left = NULL;
	return how;
}

static enum step serve_sending(struct writing *w, struct send *send, struct attempt *attempt)
{
	uint64_t record = send->hold.id;
	uint32_t generation = (uint32_t)w->tally.generation;
	struct tape_end end;
	CURLcode code = CURLE_OK;
	enum serve_how how = serve_guarded(w, send, attempt, &end, &code);

	if (how == SERVE_ENDED && !w->serving.fed && send_gate(send) != GATE_NOT_SHUT)
		return shut_out(w, send);
	if (how == SERVE_ENDED)
		code = serve_end(&w->serving, &end);
	else if (code == CURLE_HTTP_RETURNED_ERROR)
		await_rest(w, attempt);
	part(send, attempt);
	w->unsent = !has_left(attempt);
	jar_return(w->shadow, attempt);
	courier_stay_back(attempt, &w->shadow->stay);
	if (is_delivery(code) && attempt_over(attempt) && send_is_done(send))
		write_delivered(w, record, generation);
	send_leave(send, code, w->serving.player.body_seen);
	w->code = code;
	return STEP_DONE;
}

static enum ledger_counter counter_of(struct verdict verdict)
{
	if (verdict.kind != VERDICT_RESEND)
		return COUNT_executed;
	return verdict.blind ? COUNT_resent_blind : COUNT_resent;
}

static struct send *make_send(struct writing *w, struct verdict verdict, const struct hold *hold,
                              const char *key)
{
	struct send *send = send_new(w->ledger, w->rule, hold, verdict.kind == VERDICT_RESEND);

	if (!send)
		return NULL;
	send->max_response = (size_t)w->process->policy->max_response;
	send->counter = counter_of(verdict);
	snprintf(w->tally.key, sizeof(w->tally.key), "%s", key);
	w->tally.record = hold->id;
	w->tally.served = "courier";
	send->tally = w->tally;
	return send;
}

/* On the program's own handle. */
static enum step in_place(struct writing *w, struct send *send, struct carried *carried,
                          const char *reason)
{
	w->tally.reason = send->tally.reason = reason;
	w->tally.served = send->tally.served = "in-place";
	inplace_count(w->ledger, reason);
	return inplace_send(w, send, carried);
}

static enum step out_of_memory(struct writing *w, struct send *send)
{
	send_drop(send);
	w->code = CURLE_OUT_OF_MEMORY;
	return STEP_DONE;
}

/* By the courier where it can. */
static enum step deliver(struct writing *w, struct send *send, struct carried *carried)
{
	struct attempt *attempt = NULL;
	enum step step;
	int rc;

	if (w->in_place)
		return in_place(w, send, carried, w->in_place);
	rc = start(w, send, carried, &attempt);
	if (rc != COURIER_OK)
		local_remove(send->hold.id, send);
	if (rc == COURIER_CANNOT)
		return in_place(w, send, carried, "an option the courier cannot carry");
	if (rc == COURIER_CLOSED)
		return in_place(w, send, carried, "the process is ending");
	if (rc != COURIER_OK)
		return out_of_memory(w, send);
	step = serve_sending(w, send, attempt);
	attempt_unref(attempt);
	return step;
}

enum step act_execute(struct writing *w, const struct record_view *view, struct verdict verdict)
{
	char key[KEY_TEXT_MAX + 1];
	struct carried carried;
	struct send *send;
	struct hold hold;
	enum step step;
	int rc = take_hold(w, view, verdict, key, &hold);

	if (rc == LEDGER_LOST)
		return STEP_AGAIN;
	if (rc != LEDGER_OK)
		return refuse(w, rc == LEDGER_FULL ? REASON_LEDGER_FULL : REASON_LEDGER_UNAVAILABLE,
		              NULL, false, false, NULL);
	if (verdict.kind != VERDICT_EXECUTE)
		asked(w, view);
	send = make_send(w, verdict, &hold, key);
	if (!send) {
		ledger_withdraw(w->ledger, &hold, clock_now());
		w->code = CURLE_OUT_OF_MEMORY;
		return STEP_DONE;
	}
	if (verdict.doubt_dropped)
		tally_write(&w->tally, "doubt-dropped");
	send->dated = carry_time(w, view, (uint32_t)w->tally.generation);
	if (carry_key(w, key, send->dated.wall_us, &carried) == 0)
		step = deliver(w, send, &carried);
	else
		step = out_of_memory(w, send);
	carried_free(&carried);
	return step;
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

static enum step join_tape(struct writing *w, const struct record_view *view,
                           struct attempt *attempt)
{
	struct tape_end end;
	CURLcode code = CURLE_OK;
	enum serve_how how = serve_tape(&w->serving, attempt_tape(attempt), attempt, &end, &code);

	if (how == SERVE_ENDED && !end.complete && !w->serving.fed)
		return STEP_AGAIN;
	if (how == SERVE_ENDED)
		code = serve_end(&w->serving, &end);
	else if (code == CURLE_HTTP_RETURNED_ERROR)
		await_rest(w, attempt);
	jar_return(w->shadow, attempt);
	return joined(w, view, code);
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
	ledger_wait(w->ledger, view->id, view->word,
	            patience < LEDGER_SLICE_US ? patience : LEDGER_SLICE_US);
	return STEP_AGAIN;
}

enum step act_join(struct writing *w, const struct record_view *view)
{
	bool nested = false;
	struct attempt *attempt = local_find(view->id, &nested);
	enum step step;

	if (nested) {
		attempt_unref(attempt);
		return refuse(w, REASON_IN_PROGRESS, view, false, false, NULL);
	}
	if (w->attached != view->id)
		asked(w, view);
	/* A live answer is the other request's; only a stored one can be made this one's. */
	if (attempt && !w->rule->echo.count && tape_attach(attempt_tape(attempt)))
		step = join_tape(w, view, attempt);
	else
		step = join_ledger(w, view);
	if (attempt)
		attempt_unref(attempt);
	return step;
}

/* --- replaying --- */

static bool echo(void *ctx, struct span head, struct span body, struct buf *out)
{
	const struct writing *w = ctx;

	return echo_answer(&w->rule->echo, w->in.body, fields_find(head, "Content-Type"), body,
	                   out);
}

static enum step play_stored(struct writing *w, const struct record_view *view,
                             struct answer_marks marks, CURLcode *code)
{
	struct buf blob = {0}, url = {0};
	struct tape *tape = NULL;
	struct tape_end end;
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
		return STEP_AGAIN;
	}
	if (serve_tape(&w->serving, tape, NULL, &end, code) == SERVE_ENDED)
		*code = serve_end(&w->serving, &end);
	tape_unref(tape);
	w->tally.status = status;
	return STEP_DONE;
}

enum step act_attached(struct writing *w, const struct record_view *view)
{
	CURLcode code = CURLE_OK;

	w->attached = 0;
	if (play_stored(w, view, (struct answer_marks){0}, &code) == STEP_AGAIN)
		return STEP_AGAIN;
	w->tally.verdict = verdict_kind_name(VERDICT_JOIN);
	w->tally.record = view->id;
	w->tally.generation = view->generation;
	return joined(w, view, code);
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

enum step act_replay(struct writing *w, const struct record_view *view, struct verdict verdict)
{
	bool only_read = w->process->acting == MODE_REPLAY; /* what it gives is no delivery */
	struct answer_marks marks = {.replayed = true};
	struct buf text = {0};
	CURLcode code = CURLE_OK;
	enum step step;

	add_verdict(&text, view);
	marks.verdict = text.failed ? NULL : text.data;
	memcpy(w->tally.key, view->key, sizeof(w->tally.key));
	if (!only_read)
		asked(w, view);
	step = play_stored(w, view, marks, &code);
	buf_free(&text);
	if (step == STEP_AGAIN)
		return refuse(w, REASON_ANSWER_NOT_KEPT, view, false, false, NULL);
	if (is_delivery(code) && !only_read)
		write_delivered(w, view->id, view->generation);
	ledger_count(w->ledger, COUNT_replayed);
	if (verdict.replay_late)
		tally_write(&w->tally, "replay-late");
	return over(w, code);
}
