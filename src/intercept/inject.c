/* See inject.h. Records of this mode are told from others by their hashes, which are made once more
 * under a label: no flag that a later reader could overlook, and no path by which enforce could
 * take an answer as its own. For people they carry the label in the operation's name.
 *
 * What cannot be kept in the ledger is sent all the same, under the key of a first generation. */
#include "intercept/inject.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "intercept/carry.h"
#include "intercept/fetch.h"
#include "intercept/inplace.h"
#include "intercept/turn.h"
#include "intercept/write.h"

enum { TRIES = 8 };

/* The hashes the ledger gets instead. */
struct domain {
	uint8_t content[HASH_SIZE], any_account[HASH_SIZE], own_key[HASH_SIZE], place[HASH_SIZE];
	char operation[300];
};

static void separate(const struct writing *w, const uint8_t hash[HASH_SIZE], uint8_t out[HASH_SIZE])
{
	static const char label[] = "sendonce inject";
	uint8_t text[sizeof(label) + HASH_SIZE];

	memcpy(text, label, sizeof(label));
	memcpy(text + sizeof(label), hash, HASH_SIZE);
	hash_hmac(w->in.secret, text, sizeof(text), out);
}

static void make_domain(const struct writing *w, struct domain *d)
{
	separate(w, w->id.content, d->content);
	separate(w, w->id.any_account, d->any_account);
	separate(w, w->id.own_key, d->own_key);
	separate(w, w->id.place, d->place);
	snprintf(d->operation, sizeof(d->operation), "inject:%s", w->rule->operation);
}

static int find(const struct writing *w, const struct domain *d, struct stamp now,
                struct record_view *view)
{
	struct ledger_ids ids = {
	        .content = d->content,
	        .any_account = d->any_account,
	        .own_key = w->id.has_own_key ? d->own_key : NULL,
	        .place = d->place,
	        .settings = w->id.settings,
	        .operation = d->operation,
	};
	int rc = ledger_find(w->ledger, &ids, now, view);

	if (rc == LEDGER_NONE)
		*view = (struct record_view){0};
	return rc == LEDGER_NONE ? LEDGER_OK : rc;
}

/* A record of this very write, and not of another one under the same key. */
static bool is_same_write(const struct writing *w, const struct record_view *view)
{
	return (view->hit == HIT_CONTENT || view->hit == HIT_OWN_KEY) && view->state != REC_NONE &&
	       memcmp(view->fingerprint, w->id.fingerprint, HASH_SIZE) == 0;
}

static bool takes_hold(struct verdict verdict)
{
	return verdict.kind == VERDICT_EXECUTE || verdict.kind == VERDICT_TAKE ||
	       verdict.kind == VERDICT_RESEND;
}

static uint32_t generation_of(const struct writing *w, const struct domain *d,
                              const struct record_view *view, struct verdict verdict)
{
	struct record_view last;
	uint32_t generation = view->generation;

	if (!is_same_write(w, view))
		return 1;
	if (!verdict.next_generation)
		return generation;
	if (ledger_find_content(w->ledger, d->content, 0, clock_now(), &last) == LEDGER_OK &&
	    last.generation > generation)
		generation = last.generation;
	return generation + 1;
}

/* The program's own key, the record's, or a new one. */
static void choose_key(struct writing *w, const struct domain *d, const struct record_view *view,
                       struct verdict verdict)
{
	bool fresh = verdict.kind == VERDICT_EXECUTE &&
	             (verdict.own_record || verdict.next_generation || view->state == REC_NONE);
	uint32_t generation = generation_of(w, d, view, verdict);

	if (w->id.has_own_key)
		snprintf(w->tally.key, sizeof(w->tally.key), "%s", w->id.own_key_text);
	else if (!fresh && is_same_write(w, view) && view->key[0])
		snprintf(w->tally.key, sizeof(w->tally.key), "%s", view->key);
	else if (w->rule->carrier != CARRIER_NONE)
		identity_key(&w->in, &w->id, generation, w->tally.key);
	w->tally.generation = generation;
}

static int take_hold(struct writing *w, const struct domain *d, const struct record_view *view,
                     struct verdict verdict, struct hold *hold)
{
	const struct rule *rule = w->rule;
	bool fresh = view->state == REC_NONE || verdict.own_record;
	struct record_new made = {
	        .content = d->content,
	        .any_account = d->any_account,
	        .own_key = w->id.has_own_key ? d->own_key : NULL,
	        .place = d->place,
	        .fingerprint = w->id.fingerprint,
	        .wire_body = w->id.wire_body,
	        .settings = w->id.settings,
	        .operation = d->operation,
	        .key = w->tally.key,
	        .trace = w->tally.trace,
	        .generation = (uint32_t)w->tally.generation,
	        .ttl_us = rule->ttl,
	        .tombstone_us = rule->key_ttl > rule->ttl ? rule->key_ttl : rule->ttl,
	        .run = write_run(w),
	};

	if (verdict.kind != VERDICT_EXECUTE)
		return ledger_take(w->ledger, view, clock_now(), hold);
	return ledger_reserve(w->ledger, &made, fresh ? NULL : view, clock_now(), hold);
}

/* `hold` null: nothing is kept of this one. Null: no memory. */
static struct send *make_send(struct writing *w, struct verdict verdict, struct hold *hold)
{
	struct send *send = send_new(w->ledger, w->rule, hold, verdict.kind == VERDICT_RESEND);

	if (!send && hold)
		ledger_withdraw(w->ledger, hold, clock_now());
	if (!send)
		return NULL;
	w->tally.record = hold ? hold->id : 0;
	/* No answer is ever given from here, but whether it was one may be for its body to say. */
	send->max_response = 0;
	send->look = w->rule->body.count ? (size_t)w->process->policy->max_response : 0;
	send->counter = verdict.kind == VERDICT_RESEND ? COUNT_resent : COUNT_executed;
	send->always = true;
	tally_copy(&send->tally, &w->tally);
	return send;
}

static enum step deliver(struct writing *w, struct send *send, const struct record_view *view)
{
	struct carried carried = {0};
	enum step step = STEP_DONE;

	if (send)
		send->dated = carry_time(w, view, (uint32_t)w->tally.generation);
	if (send && carry_key(w, w->tally.key, send->dated.wall_us, &carried) != 0) {
		send_drop(send);
		send = NULL;
	}
	if (send)
		step = inplace_send(w, send, &carried);
	else
		w->code = CURLE_OUT_OF_MEMORY;
	carried_free(&carried);
	return step;
}

/* True: somebody else was faster, look again. */
static bool is_lost(struct writing *w, const struct domain *d, enum step *step)
{
	struct stamp now = clock_now();
	struct record_view view;
	struct verdict verdict;
	struct asked asked;
	struct hold hold;
	int rc = find(w, d, now, &view);

	if (rc != LEDGER_OK)
		view = (struct record_view){0};
	w->behind = turn_choose(w, d->content, now, &view);
	asked = write_asked(w, &view);
	verdict = verdict_decide(&view, w->rule, &asked, now);
	choose_key(w, d, &view, verdict);
	w->tally.verdict = verdict_kind_name(
	        verdict.kind == VERDICT_EXECUTE || verdict.kind == VERDICT_TAKE ? VERDICT_EXECUTE
	                                                                        : VERDICT_RESEND);
	w->tally.served = "in-place";
	if (rc == LEDGER_OK && takes_hold(verdict)) {
		rc = take_hold(w, d, &view, verdict, &hold);
		if (rc == LEDGER_LOST)
			return true;
	} else {
		rc = LEDGER_NONE;
	}
	*step = deliver(w, make_send(w, verdict, rc == LEDGER_OK ? &hold : NULL), &view);
	return false;
}

/* Without a key of ours; `silent`: what there is to say was said. */
static enum step as_it_came(struct writing *w, bool silent)
{
	struct send *send;

	w->tally.key[0] = '\0';
	send = make_send(w, (struct verdict){.kind = VERDICT_EXECUTE}, NULL);
	if (send && silent)
		send_silence(send);
	return deliver(w, send, &(struct record_view){0});
}

enum step inject_failed(struct writing *w, enum verdict_reason failed, const char *why)
{
	write_unprotected(w->shadow, w->process, w->rule, why ? why : verdict_reason_name(failed));
	return as_it_came(w, true);
}

enum step inject_send(struct writing *w)
{
	struct domain domain;
	enum step step;

	if (identity_complete(&w->in, &w->id) != IDENTITY_OK)
		return inject_failed(w, REASON_LEDGER_UNAVAILABLE, NULL);
	make_domain(w, &domain);
	for (int i = 0; i < TRIES; i++) {
		if (!is_lost(w, &domain, &step))
			return step;
	}
	return as_it_came(w, false);
}
