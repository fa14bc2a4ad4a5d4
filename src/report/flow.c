/* See flow.h. */
#include "report/flow.h"

#include <stdlib.h>
#include <string.h>

enum { ENOUGH = 20, JUMP = 3 };

const char *flow_name(enum flow_kind kind)
{
	static const char *const names[] = {
#define FLOW_NAME(id, name) [FLOW_##id] = (name),
	        FLOWS(FLOW_NAME)
#undef FLOW_NAME
	};

	return (unsigned)kind < FLOW_COUNT ? names[kind] : "invalid";
}

/* FLOW_COUNT: no write. */
static enum flow_kind kind_of(const struct entry *e)
{
	static const uint8_t of_verdict[] = {
	        [VERDICT_EXECUTE] = FLOW_EXECUTE, [VERDICT_TAKE] = FLOW_EXECUTE,
	        [VERDICT_RESEND] = FLOW_RESEND,   [VERDICT_JOIN] = FLOW_JOIN,
	        [VERDICT_REPLAY] = FLOW_REPLAY,   [VERDICT_REFUSE] = FLOW_REFUSE,
	};

	switch (e->kind) {
	case ENTRY_REFUSAL:
		return FLOW_REFUSE;
	case ENTRY_UNPROTECTED:
		return FLOW_UNPROTECTED;
	case ENTRY_UNLISTED:
		return FLOW_AUDITED;
	case ENTRY_WRITE:
		return e->verdict < 0 ? FLOW_AUDITED : (enum flow_kind)of_verdict[e->verdict];
	default:
		return FLOW_COUNT;
	}
}

static struct flow *flow_of(struct flows *flows, uint32_t operation)
{
	struct flow *more;

	for (size_t i = 0; i < flows->count; i++)
		if (flows->of[i].operation == operation)
			return &flows->of[i];
	more = realloc(flows->of, (flows->count + 1) * sizeof(*more));
	if (!more)
		return NULL;
	flows->of = more;
	flows->of[flows->count] = (struct flow){.operation = operation};
	return &flows->of[flows->count++];
}

/* When the newest tenth begins. */
static int64_t late_since(const struct log *log)
{
	int64_t from, to;

	if (log->count == 0)
		return 0;
	from = log->entry[log->order[0]].began_us;
	to = log->entry[log->order[log->count - 1]].began_us;
	return to - (to - from) / 10;
}

int flows_make(const struct log *log, struct flows *out)
{
	int64_t since = late_since(log);

	*out = (struct flows){0};
	for (size_t i = 0; i < log->count; i++) {
		const struct entry *e = &log->entry[log->order[i]];
		enum flow_kind kind = kind_of(e);
		struct flow *flow;

		if (kind == FLOW_COUNT)
			continue;
		flow = flow_of(out, e->operation);
		if (!flow)
			return -1;
		flow->writes[kind]++;
		flow->unknown += e->outcome == OUTCOME_UNKNOWN;
		flow->late[kind] += e->began_us >= since;
	}
	return 0;
}

void flows_free(struct flows *flows)
{
	free(flows->of);
	*flows = (struct flows){0};
}

static unsigned long sum(const unsigned long *counts)
{
	unsigned long all = 0;

	for (int i = 0; i < FLOW_COUNT; i++)
		all += counts[i];
	return all;
}

static unsigned long answered(const unsigned long *counts)
{
	return counts[FLOW_REPLAY] + counts[FLOW_JOIN];
}

bool flow_jumps(const struct flow *flow)
{
	unsigned long late = sum(flow->late), late_answered = answered(flow->late);
	unsigned long before = sum(flow->writes) - late;
	unsigned long before_answered = answered(flow->writes) - late_answered;

	return late >= ENOUGH && before >= ENOUGH && late_answered * 2 >= late &&
	       late_answered * before >= JUMP * before_answered * late;
}
