/* What text, JSON, JUnit and HTML call things by: one place, so that they agree. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/print.h"

static const char *name_of(const struct log *log, uint32_t operation, uint32_t method,
                           uint32_t host, uint32_t path, char *out, size_t room)
{
	if (operation)
		snprintf(out, room, "%s", log_text(log, operation));
	else
		snprintf(out, room, "%s %s%s", log_text(log, method), log_text(log, host),
		         log_text(log, path));
	return out;
}

const char *report_op_name(const struct log *log, const struct op_counts *op, char *out,
                           size_t room)
{
	return name_of(log, op->operation, op->method, op->host, op->path, out, room);
}

const char *report_entry_op(const struct log *log, const struct entry *e, char *out, size_t room)
{
	return name_of(log, e->operation, e->method, e->host, e->path, out, room);
}

const char *report_findings(unsigned found, char *out, size_t room)
{
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; i < FIND_COUNT && n < room; i++)
		if (found >> i & 1)
			n += (size_t)snprintf(out + n, room - n, "%s%s", n ? ", " : "",
			                      finding_name((enum finding)i));
	return out;
}

const char *report_verdict(const struct analysis *a, uint32_t at, char *out, size_t room)
{
	const struct judged *j = &a->of[at];
	const char *reason = log_text(a->log, a->log->entry[at].reason);

	out[0] = '\0';
	if (j->verdict < 0)
		return out;
	if (a->log->entry[at].kind != ENTRY_REFUSAL)
		reason = verdict_reason_name((enum verdict_reason)j->reason);
	snprintf(out, room, "%s%s%s", verdict_kind_name((enum verdict_kind)j->verdict),
	         j->verdict == VERDICT_REFUSE && *reason ? " " : "",
	         j->verdict == VERDICT_REFUSE ? reason : "");
	return out;
}

/* Near duplicates are a pair: the later one, which says what it repeats, and that one before it. */
uint32_t report_next(const struct analysis *a, const struct group *g, uint32_t at)
{
	if (!g->near)
		return at == NO_ENTRY ? g->first : a->of[at].next;
	if (at == NO_ENTRY)
		return a->of[g->first].before;
	return at == g->first ? NO_ENTRY : g->first;
}

void report_time(int64_t wall_us, char *out, size_t room)
{
	clock_rfc3339(out, room, wall_us);
}
