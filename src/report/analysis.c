/* See analysis.h. From judged entries (judge.c) to groups and counts, worst first. */
#include <stdlib.h>
#include <string.h>

#include "report/judge.h"

static int add_group(struct analysis *a, struct group group)
{
	struct group *more;
	size_t room;

	if (a->group_count == a->group_room) {
		room = a->group_room ? a->group_room * 2 : 256;
		more = realloc(a->group, room * sizeof(*more));
		if (!more)
			return -1;
		a->group = more;
		a->group_room = room;
	}
	a->group[a->group_count++] = group;
	return 0;
}

/* The chain that begins at `at`; `found` is 0 when there is nothing to show. */
static struct group chain_of(const struct analysis *a, uint32_t at)
{
	struct group g = {.first = at};

	for (uint32_t i = at; i != NO_ENTRY; i = a->of[i].next) {
		g.attempts++;
		g.found |= a->of[i].found & (uint8_t)~FOUND(NEAR_DUPLICATE);
	}
	return g;
}

static int collect_groups(struct analysis *a, const bool *follows)
{
	struct group g;

	for (size_t i = 0; i < a->log->count; i++) {
		uint32_t at = a->log->order[i];

		if (!follows[at]) {
			g = chain_of(a, at);
			if (g.found && add_group(a, g) != 0)
				return -1;
		}
		if (a->of[at].found & FOUND(NEAR_DUPLICATE)) {
			g = (struct group){at, 2, FOUND(NEAR_DUPLICATE), true};
			if (add_group(a, g) != 0)
				return -1;
		}
	}
	return 0;
}

/* Duplicates before doubts before the rest; within that the most attempts. */
static int rank(const struct group *g)
{
	static const uint8_t order[] = {FOUND(DUPLICATE) | FOUND(WIRE_DUPLICATE), FOUND(CONFLICT),
	                                FOUND(NEAR_DUPLICATE), FOUND(UNKNOWN), FOUND(FRESH_KEY)};

	for (int i = 0; i < (int)sizeof(order); i++)
		if (g->found & order[i])
			return i;
	return (int)sizeof(order);
}

static int compare_groups(const void *left, const void *right, void *ctx)
{
	const struct analysis *a = ctx;
	const struct group *x = left, *y = right;
	const struct entry *e = &a->log->entry[x->first], *f = &a->log->entry[y->first];

	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	if (x->attempts != y->attempts)
		return x->attempts > y->attempts ? -1 : 1;
	if (e->began_us != f->began_us)
		return e->began_us < f->began_us ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* --- operations --- */

bool op_counts_hold(const struct op_counts *op, const struct entry *e)
{
	return op->operation == e->operation &&
	       (op->operation ||
	        (op->method == e->method && op->host == e->host && op->path == e->path));
}

/* Operations by hash, for logs of thousands of unlisted ones. */
struct op_table {
	uint32_t *slot; /* number + 1; 0: empty */
	size_t slots;   /* power of two, at most half full */
};

static size_t hash_op(const struct entry *e)
{
	uint64_t h = e->operation;

	if (!h)
		h = ((uint64_t)e->method << 40 ^ (uint64_t)e->host << 20 ^ e->path) + 1;
	h *= UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(h >> 32);
}

static int grow_table(struct op_table *t, const struct analysis *a)
{
	size_t slots = t->slots ? t->slots * 2 : 256;
	uint32_t *slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return -1;
	for (size_t i = 0; i < a->op_count; i++) {
		const struct op_counts *op = &a->op[i];
		struct entry e = {.operation = op->operation,
		                  .method = op->method,
		                  .host = op->host,
		                  .path = op->path};
		size_t at = hash_op(&e) & (slots - 1);

		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = (uint32_t)i + 1;
	}
	free(t->slot);
	*t = (struct op_table){slot, slots};
	return 0;
}

static struct op_counts *add_op(struct analysis *a, const struct entry *e)
{
	struct op_counts *more;
	size_t room;

	if (a->op_count == a->op_room) {
		room = a->op_room ? a->op_room * 2 : 64;
		more = realloc(a->op, room * sizeof(*more));
		if (!more)
			return NULL;
		a->op = more;
		a->op_room = room;
	}
	a->op[a->op_count] = (struct op_counts){.operation = e->operation};
	if (!e->operation) {
		a->op[a->op_count].method = e->method;
		a->op[a->op_count].host = e->host;
		a->op[a->op_count].path = e->path;
	}
	return &a->op[a->op_count++];
}

static struct op_counts *op_of(struct analysis *a, struct op_table *t, const struct entry *e)
{
	size_t at;

	if (a->op_count * 2 >= t->slots && grow_table(t, a) != 0)
		return NULL;
	for (at = hash_op(e) & (t->slots - 1); t->slot[at]; at = (at + 1) & (t->slots - 1))
		if (op_counts_hold(&a->op[t->slot[at] - 1], e))
			return &a->op[t->slot[at] - 1];
	t->slot[at] = (uint32_t)a->op_count + 1;
	return add_op(a, e);
}

static void count(struct op_counts *op, const struct entry *e, const struct judged *j)
{
	bool enforced = e->verdict >= 0 || e->kind == ENTRY_REFUSAL;

	op->writes += e->kind != ENTRY_UNPROTECTED;
	op->wire_sends += e->wire_sends > 0 ? (unsigned long)e->wire_sends : 0;
	op->prevented += enforced && (j->verdict == VERDICT_JOIN || j->verdict == VERDICT_REPLAY ||
	                              j->verdict == VERDICT_REFUSE);
	for (int i = 0; i < FIND_COUNT; i++)
		op->found[i] += (j->found >> i) & 1;
}

static bool is_counted(const struct entry *e)
{
	return e->kind != ENTRY_OTHER && e->kind != ENTRY_WARNING;
}

static int count_all(struct analysis *a)
{
	struct op_table table = {0};
	struct op_counts *op;
	int rc = 0;

	for (size_t i = 0; i < a->log->count; i++) {
		uint32_t at = a->log->order[i];
		const struct entry *e = &a->log->entry[at];

		if (!is_counted(e))
			continue;
		op = op_of(a, &table, e);
		if (!op) {
			rc = -1;
			break;
		}
		count(op, e, &a->of[at]);
		count(&a->all, e, &a->of[at]);
		if (a->from_us == 0)
			a->from_us = e->began_us;
		if (e->ended_us > a->to_us)
			a->to_us = e->ended_us;
	}
	free(table.slot);
	return rc;
}

static unsigned long total(const struct op_counts *op)
{
	unsigned long sum = 0;

	for (int i = 0; i < FIND_COUNT; i++)
		sum += op->found[i];
	return sum;
}

static int compare_ops(const void *left, const void *right)
{
	const struct op_counts *a = left, *b = right;
	unsigned long x = total(a), y = total(b);

	if (x != y)
		return x > y ? -1 : 1;
	return a->writes != b->writes
	               ? (a->writes > b->writes ? -1 : 1)
	               : (a->operation > b->operation) - (a->operation < b->operation);
}

/* --- all of it --- */

static int collect(struct analysis *a)
{
	bool *follows = calloc(a->log->count + 1, sizeof(*follows));
	int rc = -1;

	if (!follows)
		return -1;
	for (size_t i = 0; i < a->log->count; i++)
		if (a->of[i].next != NO_ENTRY)
			follows[a->of[i].next] = true;
	if (collect_groups(a, follows) == 0 && count_all(a) == 0)
		rc = 0;
	free(follows);
	if (rc)
		return rc;
	if (a->group_count)
		qsort_r(a->group, a->group_count, sizeof(*a->group), compare_groups, a);
	if (a->op_count)
		qsort(a->op, a->op_count, sizeof(*a->op), compare_ops);
	return 0;
}

int analysis_make(const struct log *log, analysis_rule *rule, void *ctx, struct analysis *out)
{
	*out = (struct analysis){.log = log};
	out->of = calloc(log->count + 1, sizeof(*out->of));
	if (!out->of)
		return -1;
	for (size_t i = 0; i < log->count; i++)
		out->of[i] = (struct judged){.before = NO_ENTRY, .next = NO_ENTRY, .verdict = -1};
	return judge_entries(out, rule, ctx) == 0 ? collect(out) : -1;
}

void analysis_free(struct analysis *a)
{
	free(a->of);
	free(a->group);
	free(a->op);
	*a = (struct analysis){0};
}

bool analysis_has(const struct analysis *a, unsigned mask)
{
	for (int i = 0; i < FIND_COUNT; i++)
		if ((mask >> i & 1) && a->all.found[i])
			return true;
	return false;
}
