/* See simulate.h. A record is kept as the ledger would keep it, and each attempt asks
 * verdict_decide, so that there is one table and no second opinion.
 *
 * The log tells how each attempt really ended. An attempt that enforce would have sent ends that
 * way here too; one it would have joined, answered or refused is not sent, so its real end changes
 * nothing. Where the program's own deadline ended an attempt, enforce would have gone on for
 * `linger`: until then another attempt would have joined it. Whether the answer had come by then
 * nobody knows, so afterwards it is in doubt here. */
#include "report/simulate.h"

#include <string.h>

enum { TIMED_OUT = 28, ABORTED = 42, HTTP_ERROR = 22 };

static struct stamp stamp_of(int64_t wall_us)
{
	return (struct stamp){.wall_us = wall_us, .boot_us = wall_us, .boot = 1};
}

static uint64_t run_of(const struct simulation *s, const struct entry *e)
{
	uint64_t run = ledger_name_hash(span_of(log_text(s->log, e->run)));

	if (run || s->rule->repeat == REPEAT_REPLAY)
		return run;
	return (uint64_t)e->pid; /* the process stands for the run */
}

static struct run_entry *find_run(struct record_view *r, uint64_t run)
{
	for (size_t i = 0; i < r->run_count; i++)
		if (r->runs[i].run == run)
			return &r->runs[i];
	if (r->run_count == LEDGER_RUNS) {
		memmove(r->runs, r->runs + 1, (LEDGER_RUNS - 1) * sizeof(*r->runs));
		r->run_count--;
	}
	r->runs[r->run_count] = (struct run_entry){.run = run};
	return &r->runs[r->run_count++];
}

static void ask(struct simulation *s, const struct entry *e)
{
	uint64_t run = run_of(s, e);

	if (run)
		find_run(&s->record, run)->asked_us = e->began_us;
}

static void deliver(struct simulation *s, const struct entry *e, int64_t at_us)
{
	uint64_t run = run_of(s, e);

	if (s->record.first_delivered.wall_us == 0)
		s->record.first_delivered = stamp_of(at_us);
	if (run)
		find_run(&s->record, run)->delivered_us = at_us;
}

static bool has_key(const struct simulation *s, uint64_t key)
{
	for (size_t i = 0; key && i < s->own_key_count; i++)
		if (s->own_keys[i] == key)
			return true;
	return false;
}

static void bind_key(struct simulation *s, const struct entry *e)
{
	if (e->own_key && !has_key(s, e->own_key) && s->own_key_count < SIMULATED_KEYS)
		s->own_keys[s->own_key_count++] = e->own_key;
}

/* --- an attempt begins and ends --- */

static void begin(struct simulation *s, const struct entry *e, const struct verdict *v)
{
	struct record_view *r = &s->record;
	uint32_t generation =
	        r->generation + (v->next_generation || v->own_record || !r->generation);

	if (v->kind == VERDICT_EXECUTE) {
		memset(r, 0, sizeof(*r));
		r->generation = generation;
		r->first_sent = stamp_of(e->began_us);
		if (v->own_record)
			s->own_key_count = 0;
	}
	r->hit = HIT_CONTENT;
	r->state = REC_SENT;
	r->ever_sent = true;
	r->owner = OWNER_ALIVE;
	r->lease_fresh = true;
	memcpy(r->fingerprint, &e->fingerprint, sizeof(e->fingerprint));
	ask(s, e);
	bind_key(s, e);
	s->driving = e;
	s->driven_until_us = e->ended_us;
	if ((e->curlcode == TIMED_OUT || e->curlcode == ABORTED) && e->outcome == OUTCOME_UNKNOWN)
		s->driven_until_us += s->rule->linger;
}

static void settle(struct record_view *r, enum record_state state, enum freed_how how)
{
	r->state = state;
	r->freed = how;
}

static void end(struct simulation *s)
{
	const struct entry *e = s->driving;
	struct record_view *r = &s->record;

	s->driving = NULL;
	r->owner = OWNER_NONE;
	r->lease_fresh = false;
	r->ended = stamp_of(s->driven_until_us);
	r->status = e->status > 0 ? e->status : 0;
	switch (e->outcome) {
	case OUTCOME_NOT_EXECUTED:
		settle(r, REC_FREED, FREED_WITHDRAWN);
		break;
	case OUTCOME_FREED:
		settle(r, REC_FREED, FREED_ANSWER);
		break;
	case OUTCOME_FREED_STORED:
		settle(r, REC_FREED, FREED_STORED);
		break;
	case OUTCOME_DONE:
	case OUTCOME_DONE_NOT_KEPT:
		settle(r, REC_DONE, FREED_NOT);
		r->answer_kept = e->outcome == OUTCOME_DONE;
		r->answer_final = true;
		if (e->curlcode == 0 || e->curlcode == HTTP_ERROR)
			deliver(s, e, e->ended_us);
		break;
	default:
		settle(r, REC_UNKNOWN, FREED_NOT);
		r->in_doubt = true;
		r->ended_by_curlcode = e->curlcode > 0;
	}
}

struct verdict simulate_attempt(struct simulation *s, const struct entry *e)
{
	uint8_t fingerprint[LEDGER_HASH] = {0};
	struct asked asked = {.mode = MODE_ENFORCE,
	                      .has_own_key = e->own_key != 0,
	                      .fingerprint = fingerprint,
	                      .wire_body = s->record.wire_body,
	                      .run = run_of(s, e)};
	struct verdict v;

	if (s->driving && s->driven_until_us <= e->began_us)
		end(s);
	memcpy(fingerprint, &e->fingerprint, sizeof(e->fingerprint));
	asked.own_key_matches = has_key(s, e->own_key);
	v = verdict_decide(&s->record, s->rule, &asked, stamp_of(e->began_us));
	switch (v.kind) {
	case VERDICT_EXECUTE:
	case VERDICT_TAKE:
	case VERDICT_RESEND:
		begin(s, e, &v);
		break;
	case VERDICT_JOIN:
		ask(s, e);
		bind_key(s, e);
		break;
	case VERDICT_REPLAY:
		bind_key(s, e);
		deliver(s, e, e->began_us);
		break;
	case VERDICT_REFUSE:
		break;
	}
	return v;
}
