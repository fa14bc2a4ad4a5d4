/* The report as JUnit's XML: a test case an operation, which fails when it has findings that count.
 * There is no one schema: what is required by the strictest (windyroad's JUnit.xsd) is there, and
 * nothing that Jenkins' junit-10.xsd does not know. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "report/print.h"

/* Bytes XML 1.0 cannot hold, and what is not UTF-8, become '?'. */
static void print_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f ? '?'
			                                                                  : *text,
			      out);
		}
	}
}

static unsigned long failures_of(const struct op_counts *op, unsigned mask)
{
	unsigned long sum = 0;

	for (int i = 0; i < FIND_COUNT; i++)
		sum += mask >> i & 1 ? op->found[i] : 0;
	return sum;
}

/* What the event did not have is left out. */
static void print_number(FILE *out, const char *name, int32_t number)
{
	if (number >= 0)
		fprintf(out, "%s %" PRId32 ", ", name, number);
}

static void print_attempts(FILE *out, const struct analysis *a, const struct group *g)
{
	char text[128];

	for (uint32_t at = report_next(a, g, NO_ENTRY); at != NO_ENTRY;
	     at = report_next(a, g, at)) {
		const struct entry *e = &a->log->entry[at];

		report_time(e->began_us, text, sizeof(text));
		fprintf(out, "%s ", text);
		print_escaped(out, log_text(a->log, e->exe));
		fprintf(out, " (%" PRId32 ") ", e->pid);
		print_number(out, "status", e->status);
		print_number(out, "curl code", e->curlcode);
		fprintf(out, "sent %d: ", e->wire_sends < 0 ? 0 : e->wire_sends);
		fputs(report_findings(a->of[at].found, text, sizeof(text)), out);
		if (a->of[at].cause)
			fprintf(out, " (%s)", cause_name((enum cause)a->of[at].cause));
		fputc('\n', out);
	}
	fputc('\n', out);
}

static void print_failure(FILE *out, const struct analysis *a, const struct op_counts *op,
                          const struct report_view *view)
{
	const char *comma = "", *type = "duplicate";
	size_t shown = 0;

	fputs("<failure message=\"", out);
	for (int i = FIND_COUNT; i-- > 0;)
		if (view->fail_on >> i & 1 && op->found[i])
			type = finding_name((enum finding)i);
	for (int i = 0; i < FIND_COUNT; i++) {
		if (!(view->fail_on >> i & 1) || !op->found[i])
			continue;
		fprintf(out, "%s%s %lu", comma, finding_name((enum finding)i), op->found[i]);
		comma = ", ";
	}
	fprintf(out, "\" type=\"%s\">", type);
	for (size_t i = 0; i < a->group_count && (!view->most || shown < view->most); i++) {
		if (!(a->group[i].found & view->fail_on) ||
		    !op_counts_hold(op, &a->log->entry[a->group[i].first]))
			continue;
		print_attempts(out, a, &a->group[i]);
		shown++;
	}
	fputs("</failure>", out);
}

/* The schema wants the time without a zone: UTC. */
static void print_origin(FILE *out, const struct analysis *a)
{
	char when[32], host[256] = "localhost";

	report_time(a->from_us, when, sizeof(when));
	if (gethostname(host, sizeof(host) - 1) != 0 || !*host)
		snprintf(host, sizeof(host), "localhost");
	fprintf(out, "package=\"sendonce\" id=\"0\" timestamp=\"%.19s\" hostname=\"", when);
	print_escaped(out, host);
	fputs("\">\n<properties/>\n", out);
}

void report_junit(FILE *out, const struct analysis *a, const struct report_view *view)
{
	unsigned long failed = 0;
	double seconds = (double)(a->to_us - a->from_us) / 1e6;
	char name[1024];

	for (size_t i = 0; i < a->op_count; i++)
		failed += failures_of(&a->op[i], view->fail_on) > 0;
	fprintf(out,
	        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	        "<testsuites>\n<testsuite name=\"sendonce\" tests=\"%zu\" failures=\"%lu\" "
	        "errors=\"0\" skipped=\"0\" time=\"%.3f\" ",
	        a->op_count, failed, seconds);
	print_origin(out, a);
	for (size_t i = 0; i < a->op_count; i++) {
		fputs("<testcase classname=\"sendonce\" name=\"", out);
		print_escaped(out, report_op_name(a->log, &a->op[i], name, sizeof(name)));
		fputs("\" time=\"0.000\">", out);
		if (failures_of(&a->op[i], view->fail_on))
			print_failure(out, a, &a->op[i], view);
		fputs("</testcase>\n", out);
	}
	fputs("<system-out/>\n<system-err/>\n</testsuite>\n</testsuites>\n", out);
}
