/* `sendonce events`: the event log, as a table or line by line as it is.
 *
 * A line the scanner cannot read (a torn one on a full disk, a foreign one) is counted and told,
 * never guessed at. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/scan.h"

static const char help[] =
        "Usage: sendonce events [OPTION...]\n"
        "\n"
        "Print the event log: one line for the end of each write, each refusal and each warning.\n"
        "\n"
        "  --policy F   where the log's path is taken from (SENDONCE_POLICY)\n"
        "  --ledger F   the ledger the log is beside (SENDONCE_LEDGER)\n"
        "  --json       the lines as they are\n"
        "  --help       this text\n";

enum { FIELD_MAX = 512 };

enum {
	TIME,
	EVENT,
	OPERATION,
	KEY,
	VERDICT,
	REASON,
	OUTCOME,
	STATUS,
	WIRE_SENDS,
	PID,
	EXE,
	TEXT,
	FIELDS
};
struct line {
	char field[FIELDS][FIELD_MAX];
};

static int keep(void *ctx, const struct scan_member *member)
{
	static const char *const names[FIELDS] = {
	        [TIME] = "time",       [EVENT] = "event",     [OPERATION] = "operation",
	        [KEY] = "key",         [VERDICT] = "verdict", [REASON] = "reason",
	        [OUTCOME] = "outcome", [STATUS] = "status",   [WIRE_SENDS] = "wire_sends",
	        [PID] = "pid",         [EXE] = "exe",         [TEXT] = "text",
	};
	struct line *line = ctx;

	for (int i = 0; i < FIELDS; i++)
		if (span_is(member->name, names[i]))
			scan_unescape(member->value, line->field[i], FIELD_MAX);
	return 0;
}

static bool read_line(const char *text, size_t n, struct line *line)
{
	memset(line, 0, sizeof(*line));
	return scan_object((struct span){text, n}, keep, line) == 0;
}

static void print_header(void)
{
	printf("%-27s  %-11s  %-24s  %-8s  %-8s  %-20s  %-6s  %-5s  %s\n", "TIME", "EVENT",
	       "OPERATION", "KEY", "VERDICT", "OUTCOME", "STATUS", "SENDS", "WHO");
}

static void print_cell(const char *text, int width)
{
	cli_plain_text(stdout, *text ? text : "-", width);
	fputs("  ", stdout);
}

static void print_line(const struct line *line)
{
	const char *outcome = line->field[OUTCOME];

	print_cell(line->field[TIME], 27);
	print_cell(line->field[EVENT], 11);
	print_cell(line->field[OPERATION], 24);
	print_cell(line->field[KEY], 8);
	print_cell(line->field[VERDICT], 8);
	print_cell(*line->field[REASON] ? line->field[REASON] : outcome, 20);
	print_cell(line->field[STATUS], 6);
	print_cell(line->field[WIRE_SENDS], 5);
	cli_plain_text(stdout, line->field[EXE], 0);
	printf(" (pid %s)", *line->field[PID] ? line->field[PID] : "-");
	if (*line->field[TEXT]) {
		fputs("  ", stdout);
		cli_plain_text(stdout, line->field[TEXT], 0);
	}
	putchar('\n');
}

/* Returns how many lines could not be read. */
static unsigned long print_log(FILE *log, bool json)
{
	static struct line line;
	unsigned long damaged = 0;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;

	if (!json)
		print_header();
	while ((n = getline(&text, &room, log)) > 0) {
		if (!read_line(text, (size_t)n, &line))
			damaged++;
		else if (json)
			fputs(text, stdout);
		else
			print_line(&line);
	}
	free(text);
	return damaged;
}

static int open_and_print(const char *path, bool json)
{
	FILE *log = fopen(path, "re");
	unsigned long damaged;

	if (!log && errno == ENOENT)
		return cli_fail(
		        CLI_CANNOT, "events",
		        "%s: there is no event log here yet; name its ledger with --ledger or "
		        "--policy",
		        path);
	if (!log)
		return cli_fail(CLI_CANNOT, "events", "%s: %s", path, strerror(errno));
	damaged = print_log(log, json);
	fclose(log);
	if (damaged)
		return cli_fail(CLI_FAILED, "events",
		                "%s: %lu lines could not be read and are not shown", path, damaged);
	return CLI_OK;
}

int cli_events(int argc, char **argv)
{
	struct cli_common common;
	struct cli_place place;
	int rc;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--follow") == 0)
			return cli_usage("events", "--follow is not supported in this version");
	rc = cli_parse_common("events", help, argc, argv, &common);
	if (rc || common.done)
		return rc;
	if (optind < argc)
		return cli_usage("events", "takes no operand");
	rc = cli_find_place("events", &place);
	if (rc)
		return rc;
	if (!place.events[0])
		rc = cli_fail(CLI_CANNOT, "events",
		              "the ledger is in memory and the policy names no `events`: no event "
		              "is kept");
	else
		rc = open_and_print(place.events, common.json);
	cli_free_place(&place);
	return rc;
}
