/* `sendonce events`: the event log, as a table or line by line as it is.
 *
 * The lines are read with a small scanner for flat JSON objects, which is what the log consists of.
 * A line it cannot read (a torn one on a full disk, a foreign one) is counted and told, never
 * guessed at. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

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

static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* The text of an escape at p (after the backslash); only what fits a byte is decoded. */
static const char *take_escape(const char *p, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = *p ? strchr(from, *p) : NULL;
	unsigned code;

	*out = '?';
	if (at) {
		*out = to[at - from];
		return p + 1;
	}
	if (*p != 'u' || sscanf(p + 1, "%4x", &code) != 1 || strlen(p) < 5)
		return NULL;
	if (code >= 0x20 && code < 0x7f)
		*out = (char)code;
	return p + 5;
}

/* A string that begins at p with its quote; null when it does not end. */
static const char *take_string(const char *p, char *out, size_t room)
{
	size_t n = 0;
	char c;

	for (p++; *p != '"';) {
		c = *p;
		if (c == '\0')
			return NULL;
		p = c == '\\' ? take_escape(p + 1, &c) : p + 1;
		if (!p)
			return NULL;
		if (n + 1 < room)
			out[n++] = c;
	}
	out[n] = '\0';
	return p + 1;
}

static const char *take_word(const char *p, char *out, size_t room)
{
	size_t n = strcspn(p, ",} \t\r\n");

	if (n == 0 || n >= room || *p == '{' || *p == '[')
		return NULL;
	memcpy(out, p, n);
	out[n] = '\0';
	return p + n;
}

/* One `"name": value` at p. */
static const char *take_member(const char *p, char *name, char *value)
{
	p = skip_space(p);
	if (*p != '"')
		return NULL;
	p = take_string(p, name, FIELD_MAX);
	if (!p)
		return NULL;
	p = skip_space(p);
	if (*p != ':')
		return NULL;
	p = skip_space(p + 1);
	return *p == '"' ? take_string(p, value, FIELD_MAX) : take_word(p, value, FIELD_MAX);
}

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

static void keep(struct line *line, const char *name, const char *value)
{
	static const char *const names[FIELDS] = {
	        [TIME] = "time",       [EVENT] = "event",     [OPERATION] = "operation",
	        [KEY] = "key",         [VERDICT] = "verdict", [REASON] = "reason",
	        [OUTCOME] = "outcome", [STATUS] = "status",   [WIRE_SENDS] = "wire_sends",
	        [PID] = "pid",         [EXE] = "exe",         [TEXT] = "text",
	};

	for (int i = 0; i < FIELDS; i++)
		if (strcmp(name, names[i]) == 0)
			snprintf(line->field[i], FIELD_MAX, "%s", value);
}

static bool read_line(const char *p, struct line *line)
{
	char name[FIELD_MAX], value[FIELD_MAX];

	memset(line, 0, sizeof(*line));
	p = skip_space(p);
	if (*p++ != '{')
		return false;
	do {
		p = take_member(p, name, value);
		if (!p)
			return false;
		keep(line, name, value);
		p = skip_space(p);
	} while (*p++ == ',');
	return p[-1] == '}' && *skip_space(p) == '\0';
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

	if (!json)
		print_header();
	while (getline(&text, &room, log) > 0) {
		if (!read_line(text, &line))
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
