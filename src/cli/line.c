/* See line.h. */
#include "cli/line.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/scan.h"

static int keep(void *ctx, const struct scan_member *member)
{
	static const char *const names[LINE_FIELDS] = {
	        [LINE_TIME] = "time",
	        [LINE_EVENT] = "event",
	        [LINE_OPERATION] = "operation",
	        [LINE_KEY] = "key",
	        [LINE_VERDICT] = "verdict",
	        [LINE_REASON] = "reason",
	        [LINE_OUTCOME] = "outcome",
	        [LINE_STATUS] = "status",
	        [LINE_WIRE_SENDS] = "wire_sends",
	        [LINE_PID] = "pid",
	        [LINE_EXE] = "exe",
	        [LINE_TEXT] = "text",
	};
	struct line *line = ctx;

	for (int i = 0; i < LINE_FIELDS; i++)
		if (span_is(member->name, names[i]))
			scan_unescape(member->value, line->field[i], LINE_FIELD_MAX);
	return 0;
}

bool line_read(const char *text, size_t n, struct line *line)
{
	memset(line, 0, sizeof(*line));
	return scan_object((struct span){text, n}, keep, line) == 0;
}

void line_print_header(void)
{
	printf("%-27s  %-11s  %-24s  %-8s  %-8s  %-20s  %-6s  %-5s  %s\n", "TIME", "EVENT",
	       "OPERATION", "KEY", "VERDICT", "OUTCOME", "STATUS", "SENDS", "WHO");
}

static void print_cell(const char *text, int width)
{
	cli_plain_text(stdout, *text ? text : "-", width);
	fputs("  ", stdout);
}

void line_print(const struct line *line)
{
	const char *outcome = line->field[LINE_OUTCOME];

	print_cell(line->field[LINE_TIME], 27);
	print_cell(line->field[LINE_EVENT], 11);
	print_cell(line->field[LINE_OPERATION], 24);
	print_cell(line->field[LINE_KEY], 8);
	print_cell(line->field[LINE_VERDICT], 8);
	print_cell(*line->field[LINE_REASON] ? line->field[LINE_REASON] : outcome, 20);
	print_cell(line->field[LINE_STATUS], 6);
	print_cell(line->field[LINE_WIRE_SENDS], 5);
	cli_plain_text(stdout, line->field[LINE_EXE], 0);
	printf(" (pid %s)", *line->field[LINE_PID] ? line->field[LINE_PID] : "-");
	if (*line->field[LINE_TEXT]) {
		fputs("  ", stdout);
		cli_plain_text(stdout, line->field[LINE_TEXT], 0);
	}
	putchar('\n');
}

/* In doubt, a conflict, an expired write that is not repeated: none of them passes by itself. */
bool line_wants_person(const struct line *line)
{
	static const char *const reasons[] = {
	        "unknown-outcome", "key-conflict",       "expired",    "settings-changed",
	        "answer-not-kept", "ledger-unavailable", "ledger-full"};
	static const char *const events[] = {"doubt-dropped"};

	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		if (strcmp(line->field[LINE_EVENT], events[i]) == 0)
			return true;
	if (strcmp(line->field[LINE_EVENT], "refusal") == 0)
		for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
			if (strcmp(line->field[LINE_REASON], reasons[i]) == 0)
				return true;
	return strcmp(line->field[LINE_EVENT], "write") == 0 &&
	       strcmp(line->field[LINE_OUTCOME], "unknown") == 0;
}
