/* A sending of this call's own, as the program sees it: its tape is played, its end is told, and
 * whatever ends the call earlier takes the write back or leaves it to the courier. */
#include "base/clock.h"
#include "courier/courier.h"
#include "intercept/jar.h"
#include "intercept/local.h"
#include "intercept/send.h"
#include "intercept/writing.h"

enum { ANSWER_REST_US = 1000000 };

static bool attempt_over(struct attempt *attempt)
{
	struct attempt_phase phase;

	attempt_phase(attempt, &phase);
	return phase.ended;
}

static bool has_left(struct attempt *attempt)
{
	struct attempt_phase phase;

	attempt_phase(attempt, &phase);
	return phase.gated;
}

/* The program's side ended the call. Before the gate the write is taken back; after it the courier
 * goes on without the program. */
static void part(struct writing *w)
{
	struct send *send = w->send;

	if (attempt_over(w->attempt))
		return;
	if (!send_withdraw(send)) {
		local_orphaned(send->hold.id, send);
		attempt_orphan(w->attempt);
	} else if (w->looped) {
		attempt_drop(w->attempt);
	} else {
		attempt_cancel(w->attempt);
	}
}

static void leave(struct writing *w, CURLcode code)
{
	send_leave(w->send, code, w->serving.player.body_seen);
	attempt_unref(w->attempt);
	w->send = NULL;
	w->attempt = NULL;
}

/* The ledger kept the gate shut: nothing was sent, nothing was played. */
static enum step shut_out(struct writing *w)
{
	enum send_gate gate = send_gate(w->send);

	send_silence(w->send);
	leave(w, CURLE_OK);
	if (gate == GATE_LOST) {
		w->lost = true;
		w->stage = write_look;
		return STEP_AGAIN;
	}
	return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false,
	              "the disk did not take the record");
}

/* --- the rest --- */

static enum step rest(struct writing *w)
{
	unsigned news = attempt_news(w->attempt);

	if (attempt_over(w->attempt) || serve_now_us() >= w->rest_until_us)
		return w->after(w);
	return write_wait(w, (struct wait){.kind = WAIT_ATTEMPT,
	                                   .attempt = w->attempt,
	                                   .news = news,
	                                   .until_us = w->rest_until_us});
}

/* The outcome is known only when the rest has come; it usually has, and a body that hangs is left
 * to the courier. */
enum step sending_await_rest(struct writing *w, stage_fn *after)
{
	const struct player *player = &w->serving.player;
	int64_t limit = player->sink.timeout_us;

	w->rest_until_us = serve_now_us() + ANSWER_REST_US;
	if (limit > 0 && player->started_us + limit < w->rest_until_us)
		w->rest_until_us = player->started_us + limit;
	w->after = after;
	w->stage = rest;
	return STEP_AGAIN;
}

/* --- the end --- */

static enum step sent(struct writing *w)
{
	struct attempt *attempt = w->attempt;
	struct send *send = w->send;

	part(w);
	w->unsent = !has_left(attempt);
	jar_return(w->shadow, attempt);
	courier_stay_back(attempt, &w->shadow->stay);
	if (is_delivery(w->code) && attempt_over(attempt) && send_is_done(send))
		write_delivered(w, send->hold.id, (uint32_t)w->tally.generation);
	leave(w, w->code);
	return STEP_DONE;
}

static enum step played(struct writing *w)
{
	w->serving.playing.left = NULL;
	if (w->how == SERVE_ENDED && !w->serving.fed && send_gate(w->send) != GATE_NOT_SHUT)
		return shut_out(w);
	w->code = w->how == SERVE_ENDED ? serve_end(&w->serving) : w->serving.code;
	if (w->how == SERVE_EARLY && w->code == CURLE_HTTP_RETURNED_ERROR)
		return sending_await_rest(w, sent);
	return sent(w);
}

void sending_abandon(struct writing *w)
{
	part(w);
	leave(w, CURLE_ABORTED_BY_CALLBACK);
}

/* A callback jumped out of this call, and its handle is given up. The memory of the call stays as
 * it is, but the sending goes on by itself. */
static void jumped_out(void *ctx)
{
	sending_abandon(ctx);
}

enum step sending_play(struct writing *w, struct send *send, struct attempt *attempt)
{
	struct playing *playing = &w->serving.playing;

	w->send = send;
	w->attempt = attempt;
	playing->ctx = w;
	playing->left = w->looped ? NULL : jumped_out;
	return write_play(w, attempt_tape(attempt), attempt, played);
}
