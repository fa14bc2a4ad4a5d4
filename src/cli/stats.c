/* `sendonce stats`: the ledger's counters, and how many records there are in each state. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"

static const char help[] =
        "Usage: sendonce stats [OPTION...]\n"
        "\n"
        "What was executed, replayed, joined and refused since the ledger was made, and how many\n"
        "records it holds.\n"
        "\n" CLI_PLACE_HELP;

enum { STATES = REC_TOMBSTONE + 1 };
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

int cli_stats(int argc, char **argv)
{
	struct cli_common common;
	struct cli_place place;
	struct tally tally = {{0}, 0};
	struct ledger *ledger;
	int rc = cli_parse_common("stats", help, argc, argv, &common);

	if (rc || common.done)
		return rc;
	if (optind < argc)
		return cli_usage("stats", "takes no operand");
	rc = cli_find_place("stats", &place);
	if (rc)
		return rc;
	rc = cli_open_ledger("stats", &place, true, &ledger);
	if (rc == 0) {
		ledger_each(ledger, clock_now(), count_record, &tally);
		(common.json ? print_json : print_table)(ledger, &tally);
		ledger_close(ledger);
	}
	cli_free_place(&place);
	return rc;
}
