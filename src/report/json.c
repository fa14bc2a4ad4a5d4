/* The report as one JSON object; the page's data too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ledger/events.h"
#include "report/near.h"
#include "report/print.h"

/* '<' is written as an escape, so that the text may stand inside a page's script element. */
static void print_text(FILE *out, const char *text)
{
	struct buf b = {0};

	event_add_string(&b, span_of(text));
	if (b.failed)
		fputs("\"\"", out);
	for (size_t i = 0; !b.failed && i < b.n; i++) {
		if (b.data[i] == '<')
			fputs("\\u003c", out);
		else
			fputc(b.data[i], out);
	}
	buf_free(&b);
}

static void print_member(FILE *out, const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(out, ",\"%s\":", name);
	print_text(out, text);
}

static void print_found(FILE *out, const struct op_counts *op)
{
	for (int i = 0; i < FIND_COUNT; i++)
		fprintf(out, ",\"%s\":%lu", finding_name((enum finding)i), op->found[i]);
}

static void print_counts(FILE *out, const struct op_counts *op)
{
	fprintf(out, "\"writes\":%lu,\"wire_sends\":%lu,\"prevented\":%lu", op->writes,
	        op->wire_sends, op->prevented);
	print_found(out, op);
}

static void print_bits(FILE *out, unsigned found)
{
	bool any = false;

	fputc('[', out);
	for (int i = 0; i < FIND_COUNT; i++) {
		if (!(found >> i & 1))
			continue;
		fprintf(out, "%s\"%s\"", any ? "," : "", finding_name((enum finding)i));
		any = true;
	}
	fputc(']', out);
}

static void print_operations(FILE *out, const struct analysis *a)
{
	char name[1024];

	fputs(",\n\"operations\":[", out);
	for (size_t i = 0; i < a->op_count; i++) {
		fputs(i ? ",\n{\"operation\":" : "\n{\"operation\":", out);
		print_text(out, report_op_name(a->log, &a->op[i], name, sizeof(name)));
		fprintf(out, ",\"listed\":%s,", a->op[i].operation ? "true" : "false");
		print_counts(out, &a->op[i]);
		fputc('}', out);
	}
	fputs("]", out);
}

static void print_numbers(FILE *out, const struct entry *e)
{
	fprintf(out, ",\"ms\":%" PRId64 ",\"pid\":%" PRId32, (e->ended_us - e->began_us) / 1000,
	        e->pid);
	if (e->status >= 0)
		fprintf(out, ",\"status\":%d", e->status);
	if (e->curlcode >= 0)
		fprintf(out, ",\"curlcode\":%" PRId32, e->curlcode);
	if (e->wire_sends >= 0)
		fprintf(out, ",\"wire_sends\":%d", e->wire_sends);
	if (e->outcome >= 0)
		fprintf(out, ",\"outcome\":\"%s\"",
		        outcome_kind_name((enum outcome_kind)e->outcome));
}

static void print_attempt(FILE *out, const struct analysis *a, uint32_t at)
{
	const struct entry *e = &a->log->entry[at];
	char text[128];

	report_time(e->began_us, text, sizeof(text));
	fprintf(out, "{\"time\":\"%s\"", text);
	print_numbers(out, e);
	print_member(out, "exe", log_text(a->log, e->exe));
	print_member(out, "run", log_text(a->log, e->run));
	print_member(out, "key", log_text(a->log, e->key));
	print_member(out, "reason", log_text(a->log, e->reason));
	print_member(out, "cause", cause_name((enum cause)a->of[at].cause));
	print_member(out, "enforce", report_verdict(a, at, text, sizeof(text)));
	fputs(",\"found\":", out);
	print_bits(out, a->of[at].found);
	fputc('}', out);
}

static void print_differences(FILE *out, const struct analysis *a, const struct group *g)
{
	struct buf text = {0};

	near_differences(a->log, &a->log->entry[a->of[g->first].before], &a->log->entry[g->first],
	                 &text);
	if (text.n && !text.failed)
		print_member(out, "differs", text.data);
	buf_free(&text);
}

static void print_group(FILE *out, const struct analysis *a, const struct group *g)
{
	const char *comma = "";
	char name[1024];

	fputs("{\"operation\":", out);
	print_text(out, report_entry_op(a->log, &a->log->entry[g->first], name, sizeof(name)));
	if (a->log->entry[g->first].identity && !g->near)
		fprintf(out, ",\"identity\":\"%016" PRIx64 "\"", a->log->entry[g->first].identity);
	fputs(",\"found\":", out);
	print_bits(out, g->found);
	if (g->near)
		print_differences(out, a, g);
	fputs(",\"attempts\":[", out);
	for (uint32_t at = report_next(a, g, NO_ENTRY); at != NO_ENTRY;
	     at = report_next(a, g, at)) {
		fputs(comma, out);
		print_attempt(out, a, at);
		comma = ",\n";
	}
	fputs("]}", out);
}

void report_json(FILE *out, const struct analysis *a, const struct report_view *view)
{
	size_t shown = view->most && view->most < a->group_count ? view->most : a->group_count;
	char from[32], to[32];

	report_time(a->from_us, from, sizeof(from));
	report_time(a->to_us, to, sizeof(to));
	fputs("{\"version\":1,\"source\":", out);
	print_text(out, view->source ? view->source : "");
	fprintf(out,
	        ",\"from\":\"%s\",\"to\":\"%s\",\"damaged_lines\":%lu,\"lost_events\":%lu,"
	        "\n\"summary\":{",
	        from, to, a->log->damaged, a->log->lost);
	print_counts(out, &a->all);
	fputc('}', out);
	print_operations(out, a);
	fprintf(out, ",\n\"groups_not_shown\":%zu,\n\"groups\":[", a->group_count - shown);
	for (size_t i = 0; i < shown; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_group(out, a, &a->group[i]);
	}
	fputs("]}\n", out);
}
