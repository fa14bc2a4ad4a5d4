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
#include "cli/follow.h"
#include "cli/line.h"
#include "report/scan.h"

static const char help[] =
        "Usage: sendonce events [OPTION...]\n"
        "\n"
        "Print the event log: one line for the end of each write, each refusal and each warning.\n"
        "\n"
        "  --policy F   where the log's path is taken from (SENDONCE_POLICY)\n"
        "  --ledger F   the ledger the log is beside (SENDONCE_LEDGER)\n"
        "  --json       the lines as they are\n"
        "  --follow     print what is added from now on, until interrupted; a log that is rotated\n"
        "               is followed by name\n"
        "  --exec CMD   with --follow: run CMD by the shell, the line on its standard input, for\n"
        "               each event that wants a person (in doubt, conflict, expired)\n"
        "  --help       this text\n";

/* Returns how many lines, or beginnings of lines, could not be read. */
static unsigned long print_line(struct span text, bool json)
{
	static struct line line;

	if (!line_read(text.p, text.n, &line)) {
		text = scan_untorn(text);
		return 1 + (text.n ? print_line(text, json) : 0);
	}
	if (json)
		fwrite(text.p, 1, text.n, stdout);
	else
		line_print(&line);
	return 0;
}

static unsigned long print_log(FILE *log, bool json)
{
	unsigned long damaged = 0;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;

	if (!json)
		line_print_header();
	while ((n = getline(&text, &room, log)) > 0)
		damaged += print_line((struct span){text, (size_t)n}, json);
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
	struct follow follow = {0};
	struct cli_place place;
	bool wanted = false, done;
	const struct cli_option options[] = {
	        CLI_PLACE_OPTIONS(&follow.json),
	        {.name = "follow", .kind = CLI_FLAG, .at = &wanted},
	        {.name = "exec", .kind = CLI_TEXT, .at = &follow.command},
	        {0}};
	const struct cli_syntax syntax = {.command = "events", .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, &done);

	if (rc || done)
		return rc;
	if (optind < argc)
		return cli_usage("events", "takes no operand");
	if (follow.command && !wanted)
		return cli_usage("events", "--exec goes with --follow");
	rc = cli_find_place("events", &place);
	if (rc)
		return rc;
	follow.path = place.events;
	rc = cli_check_events("events", &place);
	if (rc == 0)
		rc = wanted ? cli_follow(&follow) : open_and_print(place.events, follow.json);
	cli_free_place(&place);
	return rc;
}
