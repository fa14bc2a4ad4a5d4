/* What the verdicts that send do: take the record, build the request, hand it to the courier or
 * serve it in place. What then comes of it is sending.c's. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "courier/courier.h"
#include "intercept/carry.h"
#include "intercept/fetch.h"
#include "intercept/inplace.h"
#include "intercept/jar.h"
#include "intercept/local.h"
#include "intercept/pseudo.h"
#include "intercept/send.h"
#include "intercept/writing.h"

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

	local_add(send->hold.id, send, attempt, send->looped ? DRIVER_COURIER : DRIVER_CALL);
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
	        .detaches = rule->exit == EXIT_DETACH,
	        .calls = send_calls,
	        .ctx = send,
	        .ready = ready,
	};
	int rc = COURIER_NOMEM;

	if (w->looped && w->shadow->pseudo)
		plan.bounds = w->shadow->pseudo->multi->bounds;
	fetch_plan(w, &plan);
	carry_plan(carried, &plan);
	if (ambient_proxies(ambient, &w->shadow->options, &w->shadow->target) == 0) {
		plan.extra_count = ambient->count;
		plan.preface = ambient->said;
		plan.proxy[0] = ambient->proxy[0];
		plan.proxy[1] = ambient->proxy[1];
		rc = attempt_start(&plan, attempt);
	}
	CURL_FN(w->shadow->flavour, slist_free_all)(cookies);
	return rc;
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
	send->max_response = send->look = (size_t)w->process->policy->max_response;
	send->counter = counter_of(verdict);
	send->looped = w->looped;
	text_copy(w->tally.key, key);
	w->tally.record = hold->id;
	w->tally.served = "courier";
	tally_copy(&send->tally, &w->tally);
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
	return sending_play(w, send, attempt);
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
		act_asked(w, view);
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
