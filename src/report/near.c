/* See near.h. An agent that lost the answer asks its model again, and the second request says the
 * same in other words. Its identity differs; its business fields do not.
 *
 * The log holds a sort and a hash of each leaf of a request, never its content. Numbers, words and
 * short texts without spaces are business fields; free text, times and random ids are not. Two
 * writes of one operation and scope are near duplicates when all their business fields are equal,
 * something else differs, and there is a reason to send again: the first got no proper answer, and
 * the record of it would still be there; or it got one, not longer ago than a repeat would be
 * replayed, and at least two numbers or ids agree (a chat's second message has one: its channel).
 */
#include "report/near.h"

#include <stdlib.h>
#include <string.h>

enum { ENOUGH_AFTER_ANSWER = 2 };

/* What two near duplicates have in common. */
struct business {
	uint64_t hash;
	uint32_t strong; /* numbers and short texts; words such as true prove little */
	uint32_t entry;
};

static bool is_business(char sort)
{
	return sort == 'n' || sort == 's' || sort == 'b';
}

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ (h >> 29);
}

static struct business business_of(const struct log *log, uint32_t at)
{
	const struct entry *e = &log->entry[at];
	const struct log_part *part = log->part + e->parts_at;
	struct business b = {.entry = at, .hash = mix(mix(1, e->operation), e->scope)};

	b.hash = mix(mix(b.hash, e->method), mix(e->host, e->path));
	for (size_t i = 0; i < e->part_count; i++) {
		if (!is_business(part[i].sort))
			continue;
		b.hash = mix(mix(b.hash, part[i].name), part[i].hash);
		b.strong += part[i].sort != 'b';
	}
	return b;
}

static int compare_business(const void *left, const void *right, void *log)
{
	const struct entry *entry = ((const struct log *)log)->entry;
	const struct business *a = left, *b = right;
	const struct entry *x = &entry[a->entry], *y = &entry[b->entry];

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	if (x->began_us != y->began_us)
		return x->began_us < y->began_us ? -1 : 1;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

enum cause near_cause(const struct entry *before, const struct entry *e)
{
	if (before->wire_sends == 0)
		return CAUSE_NONE;
	if (before->ended_us > e->began_us)
		return CAUSE_OVERLAP;
	switch (before->outcome) {
	case OUTCOME_NOT_EXECUTED:
	case OUTCOME_FREED:
	case OUTCOME_FREED_STORED:
		return CAUSE_NONE;
	case OUTCOME_DONE:
	case OUTCOME_DONE_NOT_KEPT:
		return before->curlcode > 0 && before->curlcode != 22 ? CAUSE_NO_ANSWER
		                                                      : CAUSE_AFTER_ANSWER;
	default:
		break;
	}
	return before->status > 0 && before->curlcode <= 0 ? CAUSE_DOUBT : CAUSE_NO_ANSWER;
}

/* Is `e` suspicious after `before`, whose business fields it shares? */
static enum cause suspicion(const struct entry *before, const struct entry *e, uint32_t strong,
                            const struct rule *rule)
{
	enum cause cause = near_cause(before, e);
	int64_t age = e->began_us - before->ended_us;

	if (cause == CAUSE_AFTER_ANSWER) {
		if (rule->repeat == REPEAT_AFTER_ANSWER || rule->repeat == REPEAT_ORDINAL)
			return CAUSE_NONE;
		return strong >= ENOUGH_AFTER_ANSWER && age <= rule->replay_for ? cause
		                                                                : CAUSE_NONE;
	}
	return age <= rule->ttl ? cause : CAUSE_NONE;
}

/* The newest one before `i` that was sent and says something else. */
static void judge(struct analysis *a, const struct business *b, size_t first, size_t i,
                  const struct rule *rule)
{
	const struct log *log = a->log;
	const struct entry *e = &log->entry[b[i].entry], *before;
	enum cause cause;

	for (size_t k = i; k-- > first;) {
		before = &log->entry[b[k].entry];
		if (before->identity == e->identity)
			continue;
		cause = suspicion(before, e, b[i].strong, rule);
		if (cause == CAUSE_NONE)
			continue;
		a->of[b[i].entry].found |= FOUND(NEAR_DUPLICATE);
		a->of[b[i].entry].before = b[k].entry;
		a->of[b[i].entry].cause = (uint8_t)cause;
		return;
	}
}

int near_find(struct analysis *a, uint32_t *which, size_t count, analysis_rule *rule, void *ctx)
{
	struct business *b = malloc((count + 1) * sizeof(*b));
	size_t n = 0, first = 0;

	if (!b)
		return -1;
	for (size_t i = 0; i < count; i++) {
		b[n] = business_of(a->log, which[i]);
		n += b[n].strong > 0;
	}
	qsort_r(b, n, sizeof(*b), compare_business, (void *)a->log);
	for (size_t i = 1; i < n; i++) {
		if (b[i].hash != b[first].hash)
			first = i;
		if (i > first)
			judge(a, b, first, i,
			      rule(ctx, log_text(a->log, a->log->entry[b[i].entry].operation)));
	}
	free(b);
	return 0;
}

static const struct log_part *find_part(const struct log *log, const struct entry *e, uint32_t name)
{
	for (size_t i = 0; i < e->part_count; i++)
		if (log->part[e->parts_at + i].name == name)
			return &log->part[e->parts_at + i];
	return NULL;
}

static void add_name(const struct log *log, uint32_t name, struct buf *out)
{
	if (out->n)
		buf_add_text(out, ", ");
	buf_add_text(out, log_text(log, name));
}

void near_differences(const struct log *log, const struct entry *a, const struct entry *b,
                      struct buf *out)
{
	const struct log_part *part, *other;

	for (size_t i = 0; i < a->part_count; i++) {
		part = &log->part[a->parts_at + i];
		other = find_part(log, b, part->name);
		if (!other || other->hash != part->hash)
			add_name(log, part->name, out);
	}
	for (size_t i = 0; i < b->part_count; i++) {
		part = &log->part[b->parts_at + i];
		if (!find_part(log, a, part->name))
			add_name(log, part->name, out);
	}
}
