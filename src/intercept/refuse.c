/* A refusal, as an HTTP answer or as a CURLcode, in words that a person and an agent's model can
 * act on. */
#include <stdio.h>

#include "courier/answer.h"
#include "intercept/notice.h"
#include "intercept/writing.h"

static enum ledger_counter counter_of(enum verdict_reason reason)
{
	switch (reason) {
	case REASON_UNKNOWN_OUTCOME:
		return COUNT_refused_unknown_outcome;
	case REASON_IN_PROGRESS:
		return COUNT_refused_in_progress;
	case REASON_KEY_CONFLICT:
		return COUNT_refused_key_conflict;
	case REASON_ANSWER_NOT_KEPT:
		return COUNT_refused_answer_not_kept;
	default:
		return COUNT_refused_other;
	}
}

/* A doubt must not look like success to a program that never looks at the status, as `curl -d`. */
static bool as_error(const struct writing *w, enum verdict_reason reason,
                     const struct record_view *view, bool lost)
{
	switch (w->rule ? w->rule->refuse_as : REFUSE_AUTO) {
	case REFUSE_RESPONSE:
		return false;
	case REFUSE_ERROR:
		return true;
	case REFUSE_AUTO:
		break;
	}
	if (reason != REASON_UNKNOWN_OUTCOME)
		return false;
	return lost || w->serving.player.sink.fail_on_error || (view && view->ended_by_curlcode);
}

static CURLcode play_error(struct writing *w, const struct refusal_facts *facts)
{
	struct buf text = {0};

	refusal_error(facts, &text);
	player_error(&w->serving.player, text.data ? text.data : facts->reason);
	buf_free(&text);
	return CURLE_RECV_ERROR;
}

/* Null: no memory. */
static struct tape *make_answer(struct writing *w, const struct refusal_facts *facts)
{
	struct buf head = {0}, body = {0}, url = {0};
	struct tape *tape = NULL;

	refusal_answer(facts, &head, &body);
	if (w->led_to.n)
		buf_add_span(&url, span_buf(&w->led_to));
	else
		gather_url(&w->shadow->target, &url);
	if (!head.failed && !body.failed)
		tape = answer_made(span_buf(&head), span_buf(&body), url.failed ? NULL : url.data);
	buf_free(&head);
	buf_free(&body);
	buf_free(&url);
	return tape;
}

static void tell(struct writing *w, const char *reason, const char *detail)
{
	struct event event;

	w->tally.verdict = verdict_kind_name(VERDICT_REFUSE);
	w->tally.reason = reason;
	w->tally.curlcode = w->code;
	if (w->rule) {
		tally_write(&w->tally, "refusal");
		return;
	}
	event = notice_event(w->process, "refusal");
	event.method = w->tally.method;
	event.host = w->tally.host;
	event.verdict = w->tally.verdict;
	event.reason = reason;
	event.text = detail;
	notice_send(w->process, &event);
}

static const char *lost_text(const struct record_view *view, char *out, size_t room)
{
	char when[32];

	clock_rfc3339(when, sizeof(when), view->ended.wall_us);
	snprintf(out, room,
	         "Records of writes made before %s were lost to damage of the ledger, and this "
	         "write may be one of them",
	         when);
	return out;
}

static enum step told(struct writing *w)
{
	if (w->ledger)
		ledger_count(w->ledger, counter_of(w->refused));
	tell(w, verdict_reason_name(w->refused), w->refused_detail);
	return STEP_DONE;
}

static enum step played(struct writing *w)
{
	w->code = w->how == SERVE_ENDED ? serve_end(&w->serving) : w->serving.code;
	return told(w);
}

static enum step play(struct writing *w, const struct refusal_facts *facts)
{
	struct tape *tape = make_answer(w, facts);
	enum step step;

	w->code = CURLE_OUT_OF_MEMORY;
	if (!tape || !tape_attach(tape)) {
		tape_unref(tape);
		return told(w);
	}
	step = write_play(w, tape, NULL, played);
	tape_unref(tape);
	return step;
}

enum step refuse(struct writing *w, enum verdict_reason reason, const struct record_view *view,
                 bool generic, bool lost, const char *detail)
{
	char text[160];
	struct refusal_facts facts = {
	        .reason = verdict_reason_name(reason),
	        .operation = w->rule ? w->rule->operation : NULL,
	        .detail = detail,
	        .generic = generic,
	};

	if (view && view->hit == HIT_LOST) {
		facts.detail = lost_text(view, text, sizeof(text));
	} else if (view && view->state != REC_NONE && !generic) {
		facts.first_sent_us = view->first_sent.wall_us;
		facts.exe = view->exe[0] ? view->exe : NULL;
		facts.pid = view->owner_pid;
		facts.key = view->key;
		facts.attempts = view->attempts;
	}
	w->refused = reason;
	w->refused_detail = detail;
	w->tally.verdict = verdict_kind_name(VERDICT_REFUSE);
	if (!as_error(w, reason, view, lost))
		return play(w, &facts);
	w->code = play_error(w, &facts);
	return told(w);
}
