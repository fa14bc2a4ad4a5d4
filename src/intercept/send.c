/* See send.h. */
#include "intercept/send.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pid.h"
#include "courier/answer.h"
#include "courier/fields.h"
#include "identity/identity.h"
#include "identity/predicate.h"
#include "intercept/local.h"

enum { BLOB_ROOM = 1536 }; /* of an answer with a short body */

struct send *send_new(struct ledger *ledger, const struct rule *rule, const struct hold *hold,
                      bool resend)
{
	struct send *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	memset(s, 0, offsetof(struct send, tally));
	tally_clear(&s->tally);
	pthread_mutex_init(&s->lock, NULL);
	s->parties = 2;
	s->pid = pid_own();
	s->ledger = ledger;
	s->rule = rule;
	if (hold)
		s->hold = *hold;
	s->resend = resend;
	return s;
}

static void send_free(struct send *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* One party goes; the last one writes the event, outside the lock. */
static void leave(struct send *s)
{
	int left;

	pthread_mutex_lock(&s->lock);
	left = --s->parties;
	pthread_mutex_unlock(&s->lock);
	if (left > 0)
		return;
	if (!s->silent)
		tally_write(&s->tally, "write");
	send_free(s);
}

static int pass_gate(struct send *s)
{
	struct stamp now = clock_now();

	return ledger_gate_dated(s->ledger, &s->hold, s->dated.wall_us ? s->dated : now, now);
}

static int open_gate(struct send *s)
{
	int rc = pass_gate(s);

	if (rc != LEDGER_OK) {
		s->gate = rc == LEDGER_LOST ? GATE_LOST : GATE_FAILED;
		return -1;
	}
	s->gate_opened = true;
	ledger_count(s->ledger, s->counter);
	s->tally.wire_sends = 1;
	return 0;
}

/* libcurl is about to send again because a reused connection died without an answer (curl pull
 * request 18417). The server may have executed it: only where a retry by the program would be sent.
 */
static bool may_resend(struct send *s)
{
	struct record_view view;
	struct stamp now = clock_now();

	if (ledger_look(s->ledger, s->hold.id, now, &view) == LEDGER_OK &&
	    verdict_may_resend(s->rule, view.first_sent, true, now))
		return true;
	ledger_count(s->ledger, COUNT_wire_resends_blocked);
	s->blocked = BLOCKED_RESEND;
	return false;
}

/* Each further send asks whether the record is still ours: a process that was stopped may wake up
 * between an answer and what follows it, and find that another one has taken over. */
static int next_gate(struct send *s, bool after_answer)
{
	if (!after_answer && !may_resend(s))
		return -1;
	if (ledger_wire_send(s->ledger, &s->hold) != LEDGER_OK) {
		s->blocked = BLOCKED_TAKEN;
		return -1;
	}
	s->resend = s->resend || !after_answer;
	s->tally.wire_sends++;
	return 0;
}

/* Mode inject: nothing is ever held back; what the ledger does not take is not kept. */
static int free_gate(struct send *s)
{
	int rc = LEDGER_OK;

	if (s->hold.id)
		rc = s->gate_opened ? ledger_wire_send(s->ledger, &s->hold) : pass_gate(s);
	if (rc != LEDGER_OK)
		s->hold.id = 0;
	if (s->ledger && !s->gate_opened)
		ledger_count(s->ledger, s->counter);
	s->gate_opened = true;
	s->tally.wire_sends++;
	return 0;
}

static int gate(void *ctx, const struct gate_pass *pass)
{
	struct send *s = ctx;
	int rc;

	pthread_mutex_lock(&s->lock);
	if (s->always)
		rc = free_gate(s);
	else
		rc = s->gate_opened ? next_gate(s, pass->after_answer) : open_gate(s);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void renew(void *ctx)
{
	struct send *s = ctx;

	pthread_mutex_lock(&s->lock);
	if (s->hold.id)
		ledger_renew(s->ledger, &s->hold, clock_now());
	pthread_mutex_unlock(&s->lock);
}

/* With the lock held: does the provider still know what it would be asked for? */
static bool may_ask_again(struct send *s, struct stamp now)
{
	struct record_view view;

	return !s->always && !s->blocked && s->hold.id &&
	       ledger_look(s->ledger, s->hold.id, now, &view) == LEDGER_OK &&
	       verdict_may_ask_again(s->rule, view.first_sent, now);
}

static bool again(void *ctx, long status)
{
	struct send *s = ctx;
	bool yes;

	if (!status_set_has(&s->rule->in_progress, status))
		return false;
	pthread_mutex_lock(&s->lock);
	yes = may_ask_again(s, clock_now());
	pthread_mutex_unlock(&s->lock);
	return yes;
}

/* Stripe and others mark an answer they gave before: then a "not executed" is about the first send.
 */
static bool provider_replayed(struct tape *tape)
{
	struct span head = tape_head(tape);

	return head.p && strcasestr(head.p, "\nidempotent-replayed: true") != NULL;
}

/* store: meta. Who has the answer can prove that it is this one; nobody can read it here. */
static void keep_hash(const struct send *s, struct tape *tape, struct buf *blob,
                      struct ledger_answer *answer)
{
	struct buf spare = {0};
	struct span body;
	uint8_t hash[HASH_SIZE];

	if (tape_body(tape, s->max_response, &spare, &body) == 0) {
		hash_hmac((struct span){(const char *)ledger_secret(s->ledger), LEDGER_SECRET},
		          body.p, body.n, hash);
		buf_add(blob, hash, sizeof(hash));
		answer->blob = span_buf(blob);
		answer->hash = true;
	}
	buf_free(&spare);
}

/* Who waits for this sending elsewhere gets a complete answer of it, final or not. One that says
 * "in progress" is none for him: nobody waits here any more, he does, and he asks himself. */
static bool is_for_followers(struct send *s, const struct tape_end *end, struct stamp now)
{
	return end->complete && !(s->outcome == OUTCOME_IN_PROGRESS && may_ask_again(s, now));
}

static void write_outcome(struct send *s, struct tape *tape, const struct tape_end *end)
{
	char room[BLOB_ROOM];
	struct buf blob = buf_in(room, sizeof(room));
	struct ledger_answer answer = {.status = end->status};
	struct stamp now = clock_now();

	if (end->complete && s->rule->store == STORE_META)
		keep_hash(s, tape, &blob, &answer);
	else if (end->complete && s->outcome != OUTCOME_DONE_NOT_KEPT && s->max_response > 0 &&
	         answer_keep(tape, s->max_response, &blob) == 0)
		answer.blob = span_buf(&blob);
	switch (s->outcome) {
	case OUTCOME_NOT_EXECUTED:
		if (s->gate_opened)
			ledger_freed(s->ledger, &s->hold, FREED_WITHDRAWN, NULL, now);
		else
			ledger_withdraw(s->ledger, &s->hold, now);
		break;
	case OUTCOME_DONE:
	case OUTCOME_DONE_NOT_KEPT:
		ledger_done(s->ledger, &s->hold, &answer, now);
		break;
	case OUTCOME_FREED:
		ledger_freed(s->ledger, &s->hold, FREED_ANSWER, &answer, now);
		break;
	case OUTCOME_FREED_STORED:
		ledger_freed(s->ledger, &s->hold, FREED_STORED, &answer, now);
		break;
	case OUTCOME_IN_PROGRESS:
	case OUTCOME_UNKNOWN:
		ledger_unknown(s->ledger, &s->hold, end->code != CURLE_OK,
		               is_for_followers(s, end, now) ? &answer : NULL, now);
		ledger_count(s->ledger, COUNT_unknown);
		break;
	}
	buf_free(&blob);
}

/* What we stopped must not look like the program's own abort. */
static void explain_blocked(enum send_blocked why, struct tape_end *end)
{
	end->code = CURLE_RECV_ERROR;
	snprintf(end->text, sizeof(end->text), "sendonce: %s",
	         why == BLOCKED_RESEND
	                 ? "the connection died before an answer came; the write may have been "
	                   "executed and was not sent again"
	                 : "another process took this write over while this one stood still");
}

/* Of an answer that is not there whole nothing can be said. */
static bool body_matches(struct send *s, struct tape *tape, const struct tape_end *end)
{
	struct buf spare = {0};
	struct predicate_view view = {0};
	bool matches = false;

	if (!s->rule->body.count)
		return true;
	if (!end->complete)
		return false;
	if (tape_body(tape, s->look, &spare, &view.body) == 0) {
		view.content_type = fields_find(tape_head(tape), "Content-Type");
		matches = predicates_hold_answer(&s->rule->body, &view);
	}
	buf_free(&spare);
	return matches;
}

static void ended(void *ctx, struct tape *tape, struct tape_end *end)
{
	struct send *s = ctx;
	struct ending ending = {
	        .complete = end->complete,
	        .status = end->status,
	        .seen_at = end->seen_at,
	        .provider_replayed = end->complete && provider_replayed(tape),
	        .body_matches = body_matches(s, tape, end),
	};

	pthread_mutex_lock(&s->lock);
	/* What proves that no byte left also counts where the gate had opened before. */
	ending.gate_opened = s->gate_opened && (!end->stopped || s->resend);
	ending.earlier_in_doubt = s->resend;
	s->outcome = verdict_outcome(&ending, s->rule);
	if (s->blocked)
		explain_blocked(s->blocked, end);
	if (s->hold.id)
		write_outcome(s, tape, end);
	s->ended = true;
	s->tally.outcome = outcome_kind_name(s->outcome);
	s->tally.status = end->status;
	s->tally.ended_us = clock_boot_us();
	pthread_mutex_unlock(&s->lock);
	local_remove(s->hold.id, s);
}

static void abandon(void *ctx)
{
	struct send *s = ctx;

	pthread_mutex_lock(&s->lock);
	ledger_abandon(s->ledger, &s->hold, clock_now());
	s->tally.outcome =
	        outcome_kind_name(s->gate_opened ? OUTCOME_UNKNOWN : OUTCOME_NOT_EXECUTED);
	if (!s->silent)
		tally_write(&s->tally, "write");
	s->silent = true;
	pthread_mutex_unlock(&s->lock);
}

static void adopt(void *ctx)
{
	struct send *s = ctx;

	s->pid = pid_own();
	if (s->ledger)
		ledger_adopt(s->ledger);
}

static void release(void *ctx)
{
	leave(ctx);
}

const struct attempt_calls send_calls = {.gate = gate,
                                         .renew = renew,
                                         .again = again,
                                         .ended = ended,
                                         .adopt = adopt,
                                         .abandon = abandon,
                                         .release = release};

bool send_withdraw(struct send *s)
{
	bool done;

	if (s->pid != pid_own())
		return true;
	pthread_mutex_lock(&s->lock);
	done = !s->gate_opened && ledger_withdraw(s->ledger, &s->hold, clock_now()) == LEDGER_OK;
	pthread_mutex_unlock(&s->lock);
	if (done)
		ledger_count(s->ledger, COUNT_withdrawn);
	return done;
}

void send_leave(struct send *s, CURLcode code, int64_t bytes)
{
	struct record_view view;

	if (s->pid != pid_own())
		return;
	pthread_mutex_lock(&s->lock);
	s->tally.curlcode = (int64_t)code;
	s->tally.bytes = bytes;
	if (code != CURLE_OK && s->gate_opened && s->hold.id &&
	    ledger_look(s->ledger, s->hold.id, clock_now(), &view) == LEDGER_OK)
		ledger_mark_curlcode(s->ledger, view.id, view.generation);
	pthread_mutex_unlock(&s->lock);
	leave(s);
}

void send_drop(struct send *s)
{
	send_withdraw(s);
	send_free(s);
}

enum send_gate send_gate(struct send *s)
{
	enum send_gate gate;

	pthread_mutex_lock(&s->lock);
	gate = s->gate;
	pthread_mutex_unlock(&s->lock);
	return gate;
}

void send_silence(struct send *s)
{
	pthread_mutex_lock(&s->lock);
	s->silent = true;
	pthread_mutex_unlock(&s->lock);
}

bool send_is_done(struct send *s)
{
	bool done;

	pthread_mutex_lock(&s->lock);
	done = s->ended && (s->outcome == OUTCOME_DONE || s->outcome == OUTCOME_DONE_NOT_KEPT);
	pthread_mutex_unlock(&s->lock);
	return done;
}
