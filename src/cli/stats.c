/* `sendonce stats`: the ledger's counters, and how many records there are in each state. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/prometheus.h"

static const char help[] =
        "Usage: sendonce stats [OPTION...]\n"
        "\n"
        "What was executed, replayed, joined and refused since the ledger was made, and how many\n"
        "records it holds.\n"
        "\n" CLI_PLACE_HELP
        "  --prometheus the text format of a textfile collector, with writes by operation from\n"
        "               the event log\n";

enum { STATES = REC_TOMBSTONE + 1, HINT_WRITES = 100 };
struct ask {
	bool json, prometheus;
};
struct tally {
	unsigned long state[STATES], in_doubt;
};

static int count_record(void *ctx, const struct record_view *record)
{
	struct tally *tally = ctx;

	if ((unsigned)record->state < STATES)
		tally->state[record->state]++;
	tally->in_doubt += cli_in_doubt(record);
	return 0;
}

static void print_json(const struct ledger *ledger, const struct tally *tally)
{
	putchar('{');
	for (int i = 0; i < COUNT_COUNT; i++)
		printf("\"%s\":%" PRIu64 ",", ledger_counter_name((enum ledger_counter)i),
		       ledger_counter(ledger, (enum ledger_counter)i));
	printf("\"records\":{");
	for (int i = REC_RESERVED; i < STATES; i++)
		printf("\"%s\":%lu,", record_state_name((enum record_state)i), tally->state[i]);
	printf("\"in_doubt\":%lu}}\n", tally->in_doubt);
}

static void print_table(const struct ledger *ledger, const struct tally *tally)
{
	for (int i = 0; i < COUNT_COUNT; i++)
		printf("%-26s %10" PRIu64 "\n", ledger_counter_name((enum ledger_counter)i),
		       ledger_counter(ledger, (enum ledger_counter)i));
	for (int i = REC_RESERVED; i < STATES; i++)
		printf("records %-18s %10lu\n", record_state_name((enum record_state)i),
		       tally->state[i]);
	printf("%-26s %10lu\n", "records in doubt", tally->in_doubt);
}

/* --- hints --- */

/* A ledger that never answers anything guards nothing: either nobody retries, or two tries never
 * look the same. */
static void hint_at_keys(const struct ledger *ledger)
{
	uint64_t answered = ledger_counter(ledger, COUNT_replayed) +
	                    ledger_counter(ledger, COUNT_joined) +
	                    ledger_counter(ledger, COUNT_resent);

	if (ledger_counter(ledger, COUNT_executed) < HINT_WRITES || answered)
		return;
	printf("hint: %" PRIu64 " writes were executed and none was ever answered from the "
	       "ledger. If programs do\n"
	       "      retry here, their tries differ in something: `sendonce explain --diff` of "
	       "two "
	       "of them says in what.\n",
	       ledger_counter(ledger, COUNT_executed));
}

static void hint_at_retries(const struct log *log, const struct flows *flows)
{
	for (size_t i = 0; i < flows->count; i++) {
		if (!flow_jumps(&flows->of[i]))
			continue;
		fputs("hint: of the newest writes of ", stdout);
		cli_plain_text(stdout, log_text(log, flows->of[i].operation), 0);
		puts(" more than half were answered from the ledger, three\n"
		     "      times the share of before: something retries too much.");
	}
}

/* A log that is not there, or not readable, has no counts: the ledger's are shown all the same. */
static int read_flows(const char *path, struct log *log, struct flows *flows)
{
	if (log_read(log, path) == LOG_NOMEM || log_add(log, (struct span){"", 0}) == LOG_NOMEM ||
	    log_sort(log) != LOG_OK || flows_make(log, flows) != 0)
		return cli_fail(CLI_CANNOT, "stats", "out of memory");
	return 0;
}

static int show(struct ledger *ledger, const struct ask *ask, const struct cli_place *place)
{
	struct tally tally = {{0}, 0};
	struct log log = {0};
	struct flows flows = {0};
	int rc = ask->json ? 0 : read_flows(place->events, &log, &flows);

	if (rc == 0 && ask->prometheus) {
		if (cli_prometheus(ledger, &log, &flows) != 0)
			rc = cli_fail(CLI_CANNOT, "stats", "out of memory");
	} else if (rc == 0) {
		ledger_each(ledger, clock_now(), count_record, &tally);
		(ask->json ? print_json : print_table)(ledger, &tally);
		if (!ask->json) {
			hint_at_keys(ledger);
			hint_at_retries(&log, &flows);
		}
	}
	flows_free(&flows);
	log_free(&log);
	return rc;
}

int cli_stats(int argc, char **argv)
{
	struct ask ask = {0};
	const struct cli_option options[] = {
	        CLI_PLACE_OPTIONS(&ask.json),
	        {.name = "prometheus", .kind = CLI_FLAG, .at = &ask.prometheus},
	        {0}};
	const struct cli_syntax syntax = {.command = "stats", .help = help, .options = options};
	struct cli_place place;
	struct ledger *ledger;
	bool done;
	int rc = cli_parse(&syntax, argc, argv, &done);

	if (rc || done)
		return rc;
	if (optind < argc)
		return cli_usage("stats", "takes no operand");
	if (ask.json && ask.prometheus)
		return cli_usage("stats", "--json and --prometheus exclude each other");
	rc = cli_find_place("stats", &place);
	if (rc)
		return rc;
	rc = cli_open_ledger("stats", &place, true, &ledger);
	if (rc == 0) {
		rc = show(ledger, &ask, &place);
		ledger_close(ledger);
	}
	cli_free_place(&place);
	return rc;
}
