/* See judge.h. Entries are sorted by identity, and each identity's attempts are walked once in
 * the order they began (simulate.c); keys of the program's own are looked at before, since a key
 * that was used for another write is a conflict whatever its content. What is left, writes that
 * are the first of their identity, is compared by business fields (near.c). */
#include "report/judge.h"

#include <stdlib.h>
#include <string.h>

#include "report/near.h"
#include "report/simulate.h"

struct work {
	struct analysis *a;
	const struct log *log;
	analysis_rule *rule;
	void *ctx;
	uint32_t *by; /* entries, sorted by whatever is looked at */
	size_t count;
};

const char *finding_name(enum finding finding)
{
	static const char *const names[] = {
#define FINDING_NAME(id, name) [FIND_##id] = (name),
	        FINDINGS(FINDING_NAME)
#undef FINDING_NAME
	};

	return (unsigned)finding < FIND_COUNT ? names[finding] : "invalid";
}

const char *cause_name(enum cause cause)
{
	static const char *const names[] = {
	        [CAUSE_NONE] = "",
	        [CAUSE_NO_ANSWER] = "retry: no answer had come",
	        [CAUSE_DOUBT] = "retry: the answer proved nothing",
	        [CAUSE_OVERLAP] = "sent again while the first was under way",
	        [CAUSE_AFTER_ANSWER] = "repeat: it had been answered",
	        [CAUSE_WIRE] = "libcurl's own resend: the connection had died",
	};

	return (unsigned)cause < sizeof(names) / sizeof(*names) ? names[cause] : "invalid";
}

/* --- sorting --- */

static bool is_write(const struct entry *e)
{
	return e->kind == ENTRY_WRITE || e->kind == ENTRY_UNLISTED || e->kind == ENTRY_REFUSAL;
}

static int compare_times(const struct entry *a, const struct entry *b)
{
	if (a->began_us != b->began_us)
		return a->began_us < b->began_us ? -1 : 1;
	if (a->ended_us != b->ended_us)
		return a->ended_us < b->ended_us ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int compare_identity(const void *left, const void *right, void *log)
{
	const struct entry *entry = ((const struct log *)log)->entry;
	const struct entry *a = &entry[*(const uint32_t *)left];
	const struct entry *b = &entry[*(const uint32_t *)right];

	if (a->identity != b->identity)
		return a->identity < b->identity ? -1 : 1;
	return compare_times(a, b);
}

static int compare_key(const void *left, const void *right, void *log)
{
	const struct entry *entry = ((const struct log *)log)->entry;
	const struct entry *a = &entry[*(const uint32_t *)left];
	const struct entry *b = &entry[*(const uint32_t *)right];

	if (a->own_key != b->own_key)
		return a->own_key < b->own_key ? -1 : 1;
	return compare_times(a, b);
}

typedef bool chooser(const struct work *w, uint32_t at);

static void choose(struct work *w, chooser *wanted)
{
	w->count = 0;
	for (size_t i = 0; i < w->log->count; i++)
		if (wanted(w, w->log->order[i]))
			w->by[w->count++] = w->log->order[i];
}

static bool has_own_key(const struct work *w, uint32_t at)
{
	const struct entry *e = &w->log->entry[at];

	return is_write(e) && e->identity && e->own_key;
}

static bool has_identity(const struct work *w, uint32_t at)
{
	const struct entry *e = &w->log->entry[at];

	return is_write(e) && e->identity;
}

/* A write that nothing has been said about, and that has parts to be compared. */
static bool stands_alone(const struct work *w, uint32_t at)
{
	const struct entry *e = &w->log->entry[at];

	return has_identity(w, at) && e->part_count && e->wire_sends > 0 &&
	       !(w->a->of[at].found & (FOUND(DUPLICATE) | FOUND(CONFLICT)));
}

/* --- keys of the program's own --- */

static void find_conflicts(struct work *w)
{
	const struct entry *holder = NULL, *e;

	choose(w, has_own_key);
	qsort_r(w->by, w->count, sizeof(*w->by), compare_key, (void *)w->log);
	for (size_t i = 0; i < w->count; i++) {
		e = &w->log->entry[w->by[i]];
		if (!holder || holder->own_key != e->own_key ||
		    near_cause(holder, e) == CAUSE_NONE) {
			holder = e;
		} else if (holder->identity != e->identity) {
			w->a->of[w->by[i]].found |= FOUND(CONFLICT);
			w->a->of[w->by[i]].before = (uint32_t)(holder - w->log->entry);
		}
	}
}

/* --- the attempts of one identity --- */

/* The newest attempt before `i` that may have happened, if any. */
static uint32_t attempt_before(const struct work *w, size_t first, size_t i, enum cause *cause)
{
	for (size_t k = i; k-- > first;) {
		*cause = near_cause(&w->log->entry[w->by[k]], &w->log->entry[w->by[i]]);
		if (*cause != CAUSE_NONE)
			return w->by[k];
	}
	*cause = CAUSE_NONE;
	return NO_ENTRY;
}

/* The provider knows the key already, and the program sent it itself. */
static bool provider_dedups(const struct rule *rule, const struct entry *before,
                            const struct entry *e)
{
	return rule->dedups && e->own_key && e->own_key == before->own_key;
}

static bool is_stopped(const struct verdict *v)
{
	switch (v->kind) {
	case VERDICT_EXECUTE:
	case VERDICT_TAKE:
		return false;
	case VERDICT_REFUSE:
		return v->reason == REASON_UNKNOWN_OUTCOME || v->reason == REASON_ANSWER_NOT_KEPT ||
		       v->reason == REASON_IN_PROGRESS || v->reason == REASON_KEY_CONFLICT;
	default:
		return true;
	}
}

static void note_repeat(struct work *w, size_t first, size_t i, const struct verdict *v,
                        const struct rule *rule)
{
	const struct entry *e = &w->log->entry[w->by[i]], *before;
	struct judged *j = &w->a->of[w->by[i]];
	enum cause cause;
	uint32_t at = attempt_before(w, first, i, &cause);

	if (at == NO_ENTRY || e->wire_sends == 0)
		return;
	before = &w->log->entry[at];
	if (e->own_key && before->own_key && e->own_key != before->own_key)
		j->found |= FOUND(FRESH_KEY);
	if (is_stopped(v) && !provider_dedups(rule, before, e))
		j->found |= FOUND(DUPLICATE);
	if (!j->found)
		return;
	j->before = at;
	j->cause = (uint8_t)cause;
}

/* Enforce has already done what it does: nothing is supposed of its events. */
static void note_enforced(struct work *w, size_t i)
{
	const struct entry *e = &w->log->entry[w->by[i]];
	struct judged *j = &w->a->of[w->by[i]];

	j->verdict = e->kind == ENTRY_REFUSAL ? VERDICT_REFUSE : e->verdict;
}

static void judge_attempt(struct work *w, struct simulation *s, size_t first, size_t i)
{
	const struct entry *e = &w->log->entry[w->by[i]];
	struct judged *j = &w->a->of[w->by[i]];
	struct verdict v = {.kind = VERDICT_REFUSE, .reason = REASON_KEY_CONFLICT};

	if (e->verdict >= 0 || e->kind == ENTRY_REFUSAL) {
		note_enforced(w, i);
		return;
	}
	if (!(j->found & FOUND(CONFLICT))) {
		v = simulate_attempt(s, e);
		note_repeat(w, first, i, &v, s->rule);
	}
	j->verdict = (int8_t)v.kind;
	j->reason = (uint8_t)v.reason;
}

/* Sent, without an answer that says what became of it, and nothing later settled it. */
static void find_doubts(struct work *w, size_t first, size_t end)
{
	bool settled = false;

	for (size_t i = end; i-- > first;) {
		const struct entry *e = &w->log->entry[w->by[i]];

		settled |= e->outcome == OUTCOME_DONE || e->outcome == OUTCOME_DONE_NOT_KEPT;
		if (!settled && e->outcome == OUTCOME_UNKNOWN && e->wire_sends > 0) {
			w->a->of[w->by[i]].found |= FOUND(UNKNOWN);
			return;
		}
	}
}

static void judge_identity(struct work *w, size_t first, size_t end)
{
	const struct entry *e = &w->log->entry[w->by[first]];
	struct simulation s = {.log = w->log,
	                       .rule = w->rule(w->ctx, log_text(w->log, e->operation))};

	for (size_t i = first; i < end; i++) {
		judge_attempt(w, &s, first, i);
		w->a->of[w->by[i]].next = i + 1 < end ? w->by[i + 1] : NO_ENTRY;
	}
	find_doubts(w, first, end);
}

/* --- what an event says by itself --- */

static void judge_alone(struct work *w)
{
	for (uint32_t at = 0; at < w->log->count; at++) {
		const struct entry *e = &w->log->entry[at];
		struct judged *j = &w->a->of[at];

		if (e->kind == ENTRY_UNPROTECTED)
			j->found |= FOUND(UNPROTECTED);
		if (e->wire_resend && e->wire_sends > 1) {
			j->found |= FOUND(WIRE_DUPLICATE);
			if (j->cause == CAUSE_NONE)
				j->cause = CAUSE_WIRE;
		}
		if (!e->identity && is_write(e)) {
			j->verdict = e->verdict;
			if (e->outcome == OUTCOME_UNKNOWN && e->wire_sends > 0)
				j->found |= FOUND(UNKNOWN);
		}
	}
}

int judge_entries(struct analysis *a, analysis_rule *rule, void *ctx)
{
	struct work w = {.a = a, .log = a->log, .rule = rule, .ctx = ctx};
	size_t end;
	int rc;

	w.by = malloc((a->log->count + 1) * sizeof(*w.by));
	if (!w.by)
		return -1;
	find_conflicts(&w);
	choose(&w, has_identity);
	qsort_r(w.by, w.count, sizeof(*w.by), compare_identity, (void *)a->log);
	for (size_t first = 0; first < w.count; first = end) {
		uint64_t identity = a->log->entry[w.by[first]].identity;

		for (end = first + 1;
		     end < w.count && a->log->entry[w.by[end]].identity == identity; end++)
			;
		judge_identity(&w, first, end);
	}
	judge_alone(&w);
	choose(&w, stands_alone);
	rc = near_find(a, w.by, w.count, rule, ctx);
	free(w.by);
	return rc;
}
