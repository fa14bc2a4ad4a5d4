/* See write.h. The loop: find the record, ask the verdict, act, and look again whenever somebody
 * else was faster. Nothing here waits without the program's own deadlines being watched. */
#include "intercept/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "intercept/choose.h"
#include "intercept/fetch.h"
#include "intercept/inject.h"
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
	struct writing *w = calloc(1, sizeof(*w));

	if (!w || ambient_login(&s->ambient, &s->options, &s->target) != 0) {
		free(w);
		return NULL;
	}
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

static CURLcode finish(struct writing *w)
{
	CURLcode code = w->code;

	serve_stop(&w->serving);
	if (w->unplayed)
		w->shadow->played = false;
	fetch_end(w);
	gather_free(&w->own);
	free(w);
	return code;
}

static enum verdict_reason open_ledger(struct writing *w, struct ledger_error *error)
{
	w->ledger = process_ledger(error);
	if (w->ledger)
		w->in.secret = process_secret(w->ledger, error);
	return w->in.secret.n ? REASON_NONE : REASON_LEDGER_UNAVAILABLE;
}

static enum verdict_reason gather(struct writing *w, struct ledger_error *error)
{
	if (gather_identity(w->shadow, &w->own, &w->in) != 0) {
		snprintf(error->text, sizeof(error->text), "out of memory");
		return REASON_LEDGER_UNAVAILABLE;
	}
	names_read(w->process, w->own.headers, w->own.count, &w->tally.names);
	w->in.scope = span_of(w->tally.names.scope);
	w->in.step = span_of(w->tally.names.step);
	return fetch_body(w, error);
}

/* The body that `when` asks for was read: another rule may be the one, or none. */
static enum verdict_reason choose_again(struct writing *w)
{
	const struct rule *rule = choose_read(w->process, w->rule, &w->in);

	if (rule)
		w->rule = w->in.rule = w->tally.rule = rule;
	else if (write_refuses_unlisted(w->shadow, w->process))
		return REASON_UNLISTED;
	else
		fetch_pass(w);
	return REASON_NONE;
}

/* Everything that has to be known before a record is looked for. A ledger that cannot be used is no
 * reason to refuse what may turn out not to be a write, so that is found out first. */
static enum verdict_reason identify(struct writing *w, struct ledger_error *error)
{
	bool open = choose_is_open(w->shadow, w->rule);
	enum verdict_reason reason;

	w->in = (struct identity_in){
	        .rule = w->rule,
	        .scope = span_of(w->tally.names.scope),
	        .step = span_of(w->tally.names.step),
	        .env = process_env,
	};
	reason = open ? gather(w, error) : open_ledger(w, error);
	if (open && reason == REASON_NONE && !w->over)
		reason = choose_again(w);
	if (reason == REASON_NONE && !w->over)
		reason = open ? open_ledger(w, error) : gather(w, error);
	if (reason != REASON_NONE || w->over)
		return reason;
	switch (identity_begin(&w->in, &w->id)) {
	case IDENTITY_OK:
		break;
	case IDENTITY_BAD_KEY:
		snprintf(error->text, sizeof(error->text),
		         "the program's own key is longer than %d bytes or not printable",
		         KEY_TEXT_MAX);
		return REASON_KEY_INVALID;
	case IDENTITY_NO_PLACE:
		snprintf(error->text, sizeof(error->text),
		         "the body has no place for the key (%.200s): it is not JSON, or what the "
		         "key stands in is no object",
		         w->rule->carrier_name);
		return REASON_KEY_INVALID;
	default:
		snprintf(error->text, sizeof(error->text), "out of memory");
		return REASON_LEDGER_UNAVAILABLE;
	}
	memcpy(w->tally.identity, w->id.content, sizeof(w->tally.identity));
	if (w->id.has_own_key)
		memcpy(w->tally.own_key, w->id.own_key, sizeof(w->tally.own_key));
	memcpy(w->tally.fingerprint, w->id.fingerprint, sizeof(w->tally.fingerprint));
	gather_trace(&w->own, w->tally.trace);
	return REASON_NONE;
}

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
	        .account_opaque = w->id.account_opaque,
	        .fingerprint = w->id.fingerprint,
	        .wire_body = w->id.wire_body,
	        .settings = w->id.settings,
	        .run = write_run(w),
	        .ordinal_behind = w->behind,
	};
}

static enum step act(struct writing *w, const struct record_view *view, struct verdict verdict)
{
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
		return act_replay(w, view, verdict);
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

static enum step look(struct writing *w)
{
	struct stamp now = clock_now();
	struct record_view view;
	int rc = write_find(w, now, &view);

	if (rc == LEDGER_NOMEM)
		return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false, "out of memory");
	if (rc != LEDGER_OK)
		return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false,
		              "the ledger could not be read: run `sendonce ledger verify`");
	if (has_come(w, &view))
		return act_attached(w, &view);
	return act(w, &view, write_judge(w, now, &view));
}

CURLcode write_perform(struct shadow *s, const struct process *process, const struct rule *rule,
                       const char *in_place)
{
	struct ledger_error error = {{0}};
	struct writing *w = begin(s, process, rule);
	enum verdict_reason reason;

	if (!w)
		return CURLE_OUT_OF_MEMORY;
	w->in_place = in_place;
	reason = identify(w, &error);
	if (process->acting == MODE_INJECT && !w->over) {
		inject_perform(w, reason, error.text[0] ? error.text : NULL);
		return finish(w);
	}
	if (reason != REASON_NONE) {
		refuse(w, reason, NULL, false, false, error.text[0] ? error.text : NULL);
		return finish(w);
	}
	if (w->over)
		return finish(w);
	life_start(s->flavour);
	while (look(w) == STEP_AGAIN)
		;
	return finish(w);
}

CURLcode write_refuse_policy(struct shadow *s, const struct process *process)
{
	struct writing *w = begin(s, process, NULL);

	if (!w)
		return CURLE_OUT_OF_MEMORY;
	refuse(w, REASON_POLICY_INVALID, NULL, false, false, process->error);
	return finish(w);
}

bool write_refuses_unlisted(const struct shadow *s, const struct process *process)
{
	bool wanted =
	        process->acting == MODE_REPLAY ||
	        (process->acting == MODE_ENFORCE && process->policy->unlisted == UNLISTED_REFUSE);

	return process->state == PROCESS_ON && wanted &&
	       !request_is_read(request_method(&s->options));
}

CURLcode write_refuse(struct shadow *s, const struct process *process, const struct rule *rule,
                      enum verdict_reason reason)
{
	struct writing *w = begin(s, process, rule);

	if (!w)
		return CURLE_OUT_OF_MEMORY;
	w->ledger = process_ledger_opened();
	refuse(w, reason, NULL, false, false, NULL);
	return finish(w);
}

CURLcode write_refuse_redirected(struct shadow *s, const struct process *process,
                                 const struct rule *rule, const char *method,
                                 const struct request_target *target)
{
	struct writing *w = begin(s, process, rule);

	if (!w)
		return CURLE_OUT_OF_MEMORY;
	copy_span(w->tally.method, sizeof(w->tally.method), span_of(method));
	copy_span(w->tally.host, sizeof(w->tally.host), span_of(target->host));
	w->target = target;
	w->ledger = process_ledger_opened();
	refuse(w, REASON_REDIRECTED_INTO_RULE, NULL, false, false, NULL);
	return finish(w);
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
