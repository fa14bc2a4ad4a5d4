/* See write.h. The way: identify the write, find its record, ask the verdict, act, and look again
 * whenever somebody else was faster. write_run alone waits, and never without the program's own
 * deadlines being watched. */
#include "intercept/write.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "intercept/choose.h"
#include "intercept/fetch.h"
#include "intercept/inject.h"
#include "intercept/inplace.h"
#include "intercept/life.h"
#include "intercept/notice.h"
#include "intercept/turn.h"
#include "intercept/writing.h"

static void copy_span(char *out, size_t room, struct span s)
{
	size_t n = s.n < room ? s.n : room - 1;

	if (n)
		memcpy(out, s.p, n);
	out[n] = '\0';
}

/* On the heap, not on the stack: a callback that longjmps out leaves the shadow pointing at it.
 * Such a call's memory is never freed. Null: no memory. */
static struct writing *begin(struct shadow *s, const struct process *process,
                             const struct rule *rule)
{
	struct writing *w = malloc(sizeof(*w));

	if (!w || ambient_login(&s->ambient, &s->options, &s->target) != 0) {
		free(w);
		return NULL;
	}
	memset(w, 0, offsetof(struct writing, own.first));
	w->error.text[0] = '\0';
	tally_clear(&w->tally);
	w->shadow = s;
	w->process = process;
	w->rule = rule;
	w->tally.process = process;
	names_take(process, &w->tally.names);
	w->tally.rule = rule;
	w->tally.started_us = clock_boot_us();
	copy_span(w->tally.method, sizeof(w->tally.method), span_of(request_method(&s->options)));
	copy_span(w->tally.host, sizeof(w->tally.host), span_of(s->target.host));
	serve_start(&w->serving, s);
	return w;
}

CURLcode write_end(struct writing *w)
{
	CURLcode code = w->code;

	serve_stop(&w->serving);
	if (w->unplayed)
		w->shadow->played = false;
	fetch_end(w);
	gather_free(&w->own);
	buf_free(&w->led_to);
	free(w);
	return code;
}

/* What was sent says itself how it ended; else this is all there is to say. */
void write_abandon(struct writing *w)
{
	bool sending = w->send || w->inplace;

	w->code = CURLE_ABORTED_BY_CALLBACK;
	serve_drop(&w->serving);
	if (w->inplace)
		inplace_abandon(w);
	else if (w->send)
		sending_abandon(w);
	else
		attempt_unref(w->attempt);
	if (!sending && w->tally.verdict && w->rule) {
		w->tally.curlcode = w->code;
		w->tally.bytes = w->serving.player.body_seen;
		tally_write(&w->tally, "write");
	}
	write_end(w);
}

static void note_error(struct writing *w, const char *text)
{
	snprintf(w->error.text, sizeof(w->error.text), "%s", text);
}

static enum verdict_reason open_ledger(struct writing *w)
{
	w->ledger = process_ledger(&w->error);
	if (w->ledger)
		w->in.secret = process_secret(w->ledger, &w->error);
	return w->in.secret.n ? REASON_NONE : REASON_LEDGER_UNAVAILABLE;
}

static enum step gather(struct writing *w)
{
	if (gather_identity(w->shadow, &w->own, &w->in) != 0) {
		note_error(w, "out of memory");
		return write_failed(w, REASON_LEDGER_UNAVAILABLE);
	}
	names_read(w->process, w->own.headers, w->own.count, &w->tally.names);
	w->in.scope = span_of(w->tally.names.scope);
	w->in.step = span_of(w->tally.names.step);
	return fetch_body(w);
}

/* Everything that has to be known before a record is looked for. A ledger that cannot be used is no
 * reason to refuse what may turn out not to be a write, so that is found out first. */
static enum step prepared(struct writing *w)
{
	enum verdict_reason reason = REASON_NONE;

	w->open = choose_is_open(w->shadow, w->rule);
	w->in = (struct identity_in){
	        .rule = w->rule,
	        .scope = span_of(w->tally.names.scope),
	        .step = span_of(w->tally.names.step),
	        .env = process_env,
	};
	if (!w->open)
		reason = open_ledger(w);
	return reason == REASON_NONE ? gather(w) : write_failed(w, reason);
}

/* The body that `when` asks for was read: another rule may be the one, or none (false). */
static bool choose_again(struct writing *w)
{
	const struct rule *rule = choose_read(w->process, w->rule, &w->in);

	if (rule)
		w->rule = w->in.rule = w->tally.rule = rule;
	return rule != NULL;
}

static enum verdict_reason identify(struct writing *w)
{
	switch (identity_begin(&w->in, &w->id)) {
	case IDENTITY_OK:
		break;
	case IDENTITY_BAD_KEY:
		snprintf(w->error.text, sizeof(w->error.text),
		         "the program's own key is longer than %d bytes or not printable",
		         KEY_TEXT_MAX);
		return REASON_KEY_INVALID;
	case IDENTITY_NO_PLACE:
		snprintf(w->error.text, sizeof(w->error.text),
		         "the body has no place for the key (%.200s): it is not JSON, or what the "
		         "key stands in is no object",
		         w->rule->carrier_name);
		return REASON_KEY_INVALID;
	default:
		note_error(w, "out of memory");
		return REASON_LEDGER_UNAVAILABLE;
	}
	memcpy(w->tally.identity, w->id.content, sizeof(w->tally.identity));
	if (w->id.has_own_key)
		memcpy(w->tally.own_key, w->id.own_key, sizeof(w->tally.own_key));
	memcpy(w->tally.fingerprint, w->id.fingerprint, sizeof(w->tally.fingerprint));
	gather_trace(&w->own, w->tally.trace);
	return REASON_NONE;
}

static enum step act(struct writing *w, const struct record_view *found, struct verdict verdict)
{
	const struct record_view *view = &w->view;

	w->view = *found;
	w->verdict = verdict;
	w->tally.verdict = verdict_kind_name(verdict.kind);
	w->tally.record = view->state == REC_NONE ? 0 : view->id;
	w->tally.generation = view->state == REC_NONE ? 0 : view->generation;
	switch (verdict.kind) {
	case VERDICT_EXECUTE:
	case VERDICT_TAKE:
	case VERDICT_RESEND:
		return act_execute(w, view, verdict);
	case VERDICT_JOIN:
		return act_join(w, view);
	case VERDICT_REPLAY:
		return act_replay(w, view);
	case VERDICT_REFUSE:
		break;
	}
	return refuse(w, verdict.reason, view, verdict.generic_text, w->lost, NULL);
}

/* The answer this call is attached to, not one of an attempt before it. */
static bool has_come(const struct writing *w, const struct record_view *view)
{
	return w->attached && view->id == w->attached &&
	       view->generation == w->attached_generation && view->answer_kept &&
	       view->attempts >= w->attached_attempt;
}

enum step write_look(struct writing *w)
{
	struct stamp now = clock_now();
	struct record_view view;
	struct verdict verdict;
	int rc = write_find(w, now, &view);

	if (rc == LEDGER_NOMEM)
		return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false, "out of memory");
	if (rc != LEDGER_OK)
		return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false,
		              "the ledger could not be read: run `sendonce ledger verify`");
	if (has_come(w, &view)) {
		w->view = view;
		return act_attached(w, &w->view);
	}
	verdict = write_judge(w, now, &view);
	return act(w, &view, verdict);
}

/* --- the stages around it --- */

enum step write_failed(struct writing *w, enum verdict_reason reason)
{
	const char *why = w->error.text[0] ? w->error.text : NULL;

	if (w->process->acting == MODE_INJECT)
		return inject_failed(w, reason, why);
	return refuse(w, reason, NULL, false, false, why);
}

enum step write_identified(struct writing *w)
{
	enum verdict_reason reason = REASON_NONE;

	if (w->open) {
		if (!choose_again(w))
			return write_refuses_unlisted(w->shadow, w->process)
			               ? write_failed(w, REASON_UNLISTED)
			               : fetch_pass(w);
		reason = open_ledger(w);
	}
	if (reason == REASON_NONE)
		reason = identify(w);
	if (reason != REASON_NONE)
		return write_failed(w, reason);
	life_start(w->shadow->flavour);
	if (w->process->acting == MODE_INJECT)
		return inject_send(w);
	w->stage = write_look;
	return STEP_AGAIN;
}

struct writing *write_begin(struct shadow *s, const struct process *process,
                            const struct rule *rule, const char *in_place)
{
	struct writing *w = begin(s, process, rule);

	if (!w)
		return NULL;
	w->in_place = in_place;
	w->stage = prepared;
	return w;
}

static enum step refuse_policy(struct writing *w)
{
	return refuse(w, REASON_POLICY_INVALID, NULL, false, false, w->process->error);
}

struct writing *write_begin_policy(struct shadow *s, const struct process *process)
{
	struct writing *w = begin(s, process, NULL);

	if (w)
		w->stage = refuse_policy;
	return w;
}

bool write_refuses_unlisted(const struct shadow *s, const struct process *process)
{
	bool wanted =
	        process->acting == MODE_REPLAY ||
	        (process->acting == MODE_ENFORCE && process->policy->unlisted == UNLISTED_REFUSE);

	return process->state == PROCESS_ON && wanted &&
	       !request_is_read(request_method(&s->options));
}

static enum step refuse_it(struct writing *w)
{
	return refuse(w, w->refused, NULL, false, false, NULL);
}

struct writing *write_begin_refusal(struct shadow *s, const struct process *process,
                                    const struct rule *rule, enum verdict_reason reason)
{
	struct writing *w = begin(s, process, rule);

	if (!w)
		return NULL;
	w->ledger = process_ledger_opened();
	w->refused = reason;
	w->stage = refuse_it;
	return w;
}

static enum step refuse_redirected(struct writing *w)
{
	return refuse(w, REASON_REDIRECTED_INTO_RULE, NULL, false, false, NULL);
}

void write_redirected(struct writing *w, const struct rule *rule, const char *method,
                      const struct request_target *target)
{
	w->rule = w->tally.rule = rule;
	copy_span(w->tally.method, sizeof(w->tally.method), span_of(method));
	copy_span(w->tally.host, sizeof(w->tally.host), span_of(target->host));
	buf_reset(&w->led_to);
	gather_url(target, &w->led_to);
	w->ledger = process_ledger_opened();
	w->stage = refuse_redirected;
}

struct writing *write_begin_redirected(struct shadow *s, const struct process *process,
                                       const struct rule *rule, const char *method,
                                       const struct request_target *target)
{
	struct writing *w = begin(s, process, rule);

	if (w)
		write_redirected(w, rule, method, target);
	return w;
}

enum step write_step(struct writing *w)
{
	enum step step;

	do
		step = w->stage(w);
	while (step == STEP_AGAIN);
	return step;
}

enum step write_wait(struct writing *w, struct wait wait)
{
	w->wait = wait;
	return STEP_WAIT;
}

/* --- serving --- */

static enum step serving(struct writing *w)
{
	struct serving *v = &w->serving;
	int64_t patience_us = 0;

	w->how = serve_step(v, &patience_us);
	if (w->how != SERVE_WAITS)
		return w->after(w);
	return write_wait(w, (struct wait){
	                             .kind = v->end.ended ? WAIT_TIME : WAIT_ATTEMPT,
	                             .attempt = v->attempt,
	                             .news = v->news,
	                             .until_us = serve_now_us() + patience_us,
	                     });
}

enum step write_play(struct writing *w, struct tape *tape, struct attempt *attempt, stage_fn *after)
{
	serve_begin(&w->serving, tape, attempt);
	w->after = after;
	w->stage = serving;
	return STEP_AGAIN;
}

/* --- the blocking way --- */

static void nap(int64_t us)
{
	struct timespec t = {0, (us < WRITE_PAUSED_US ? us : WRITE_PAUSED_US) * 1000};

	if (us > 0)
		nanosleep(&t, NULL);
}

static void wait_here(struct writing *w)
{
	const struct wait *wait = &w->wait;
	int64_t left = wait->until_us - serve_now_us();

	switch (wait->kind) {
	case WAIT_ATTEMPT:
		attempt_wait(wait->attempt, wait->until_us);
		break;
	case WAIT_RECORD:
		if (left > 0)
			ledger_wait(w->ledger, wait->record, wait->word, left);
		break;
	case WAIT_TIME:
		nap(left);
		break;
	}
}

CURLcode write_through(struct writing *w)
{
	enum step step;

	if (!w)
		return CURLE_OUT_OF_MEMORY;
	while ((step = write_step(w)) != STEP_DONE) {
		if (step == STEP_NATIVE)
			w->native_code = shadow_perform(w->shadow);
		else
			wait_here(w);
	}
	return write_end(w);
}

void write_unprotected(const struct shadow *s, const struct process *process,
                       const struct rule *rule, const char *why)
{
	struct ledger *ledger = process->state == PROCESS_AUDIT ? NULL : process_ledger(NULL);
	struct event event = notice_event(process, "unprotected");

	event.operation = rule->operation;
	event.method = request_method(&s->options);
	event.host = s->target.host;
	event.path = rule->path_text;
	event.reason = why;
	notice_send(process, &event);
	if (ledger)
		ledger_count(ledger, COUNT_unprotected);
}
