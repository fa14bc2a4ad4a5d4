/* The report for a terminal: the summary first, then the operations, the worst first, then each
 * group with its attempts on a time line. Names come out of a log that anybody may have written:
 * control bytes are not printed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/near.h"
#include "report/print.h"

enum { NAME_MAX_SHOWN = 200 };

/* Printable, cut or padded to `width` (0: as it is). */
static void print_plain(FILE *out, const char *text, int width)
{
	int n = 0;

	for (; *text && (width == 0 || n < width); text++, n++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
	for (; n < width; n++)
		fputc(' ', out);
}

static void print_counts(FILE *out, const struct analysis *a)
{
	bool any = false;

	for (int i = 0; i < FIND_COUNT; i++) {
		if (!a->all.found[i])
			continue;
		fprintf(out, "%s%s %lu", any ? ", " : "", finding_name((enum finding)i),
		        a->all.found[i]);
		any = true;
	}
	fprintf(out, any ? "\n" : "nothing was sent twice\n");
}

static void print_span(FILE *out, const struct analysis *a)
{
	char from[32], to[32];

	if (!a->from_us)
		return;
	report_time(a->from_us, from, sizeof(from));
	report_time(a->to_us, to, sizeof(to));
	fprintf(out, ", %.19sZ to %.19sZ", from, to);
}

void report_summary(FILE *out, const struct analysis *a, const struct report_view *view)
{
	fprintf(out, "sendonce: %lu writes, sent %lu times", a->all.writes, a->all.wire_sends);
	if (a->all.prevented)
		fprintf(out, ", %lu answered or refused instead of sent", a->all.prevented);
	print_span(out, a);
	fprintf(out, "\nsendonce: ");
	print_counts(out, a);
	fprintf(out, "sendonce: log %s", view->source ? view->source : "-");
	if (a->log->damaged)
		fprintf(out, ", %lu lines of it could not be read", a->log->damaged);
	if (a->log->lost)
		fprintf(out, ", %lu events were lost: the disk had no room for them", a->log->lost);
	if (a->log->others)
		fprintf(out, ", %lu lines of other runs left out", a->log->others);
	fputc('\n', out);
}

static void print_operations(FILE *out, const struct analysis *a)
{
	char name[NAME_MAX_SHOWN];

	if (!a->op_count)
		return;
	fprintf(out, "\n%-36s %7s %7s %5s %5s %5s %8s %9s %7s %11s %9s\n", "OPERATION", "WRITES",
	        "SENDS", "DUP", "WIRE", "NEAR", "CONFLICT", "FRESH-KEY", "UNKNOWN", "UNPROTECTED",
	        "PREVENTED");
	for (size_t i = 0; i < a->op_count; i++) {
		const struct op_counts *op = &a->op[i];

		print_plain(out, report_op_name(a->log, op, name, sizeof(name)), 36);
		fprintf(out, " %7lu %7lu %5lu %5lu %5lu %8lu %9lu %7lu %11lu %9lu\n", op->writes,
		        op->wire_sends, op->found[FIND_DUPLICATE], op->found[FIND_WIRE_DUPLICATE],
		        op->found[FIND_NEAR_DUPLICATE], op->found[FIND_CONFLICT],
		        op->found[FIND_FRESH_KEY], op->found[FIND_UNKNOWN],
		        op->found[FIND_UNPROTECTED], op->prevented);
	}
}

/* --- groups --- */

static void print_end(FILE *out, const struct entry *e)
{
	if (e->status > 0)
		fprintf(out, "  %3d", e->status);
	else
		fprintf(out, "    -");
	if (e->curlcode > 0)
		fprintf(out, " (%d)", e->curlcode);
	fprintf(out, "  %-13s",
	        e->outcome >= 0 ? outcome_kind_name((enum outcome_kind)e->outcome) : "-");
	fprintf(out, " sent %d", e->wire_sends > 0 ? e->wire_sends : 0);
}

static void print_judgement(FILE *out, const struct analysis *a, uint32_t at)
{
	const struct judged *j = &a->of[at];
	char text[128];

	if (j->found)
		fprintf(out, "  %s", report_findings(j->found, text, sizeof(text)));
	if (j->cause)
		fprintf(out, " (%s)", cause_name((enum cause)j->cause));
	report_verdict(a, at, text, sizeof(text));
	if (*text)
		fprintf(out, "; enforce: %s", text);
	fputc('\n', out);
}

static void print_attempt(FILE *out, const struct analysis *a, uint32_t at, int64_t from_us)
{
	const struct entry *e = &a->log->entry[at];
	double after = (double)(e->began_us - from_us) / 1e6;
	char who[64];

	snprintf(who, sizeof(who), "%.32s (%" PRId32 ")", log_text(a->log, e->exe), e->pid);
	fprintf(out, "  %+10.3fs  ", after);
	print_plain(out, who, 24);
	print_end(out, e);
	print_judgement(out, a, at);
}

static void print_differences(FILE *out, const struct analysis *a, const struct group *g)
{
	struct buf text = {0};

	near_differences(a->log, &a->log->entry[a->of[g->first].before], &a->log->entry[g->first],
	                 &text);
	if (text.n && !text.failed) {
		fprintf(out, "  they differ in: ");
		print_plain(out, text.data, 0);
		fputc('\n', out);
	}
	buf_free(&text);
}

static void print_group(FILE *out, const struct analysis *a, const struct group *g)
{
	uint32_t at = report_next(a, g, NO_ENTRY);
	const struct entry *first = &a->log->entry[at];
	char name[NAME_MAX_SHOWN], found[128];

	fputc('\n', out);
	print_plain(out, report_entry_op(a->log, first, name, sizeof(name)), 0);
	fprintf(out, ": %s, %" PRIu32 " %s\n", report_findings(g->found, found, sizeof(found)),
	        g->attempts, g->attempts == 1 ? "attempt" : "attempts");
	for (; at != NO_ENTRY; at = report_next(a, g, at))
		print_attempt(out, a, at, first->began_us);
	if (g->near)
		print_differences(out, a, g);
}

void report_text(FILE *out, const struct analysis *a, const struct report_view *view)
{
	size_t shown = view->most && view->most < a->group_count ? view->most : a->group_count;

	report_summary(out, a, view);
	print_operations(out, a);
	for (size_t i = 0; i < shown; i++)
		print_group(out, a, &a->group[i]);
	if (shown < a->group_count)
		fprintf(out, "\n%zu more groups are not shown; --all shows them\n",
		        a->group_count - shown);
}
