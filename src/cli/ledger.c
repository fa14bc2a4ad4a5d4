/* `sendonce ledger ...`: what was written, and what to do about it.
 *
 * What is in this file opens the ledger for reading only, so that looking never
 * changes what a program sees, and works while programs use it. */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"

#define VERBS "list, show, resolve, forget, verify, export, import, resize or recover"

static const char help[] =
        "Usage: sendonce ledger list|verify [OPTION...]\n"
        "       sendonce ledger show KEY [OPTION...]\n"
        "       sendonce ledger resolve KEY --executed [--answer F] [OPTION...]\n"
        "       sendonce ledger resolve KEY --not-executed [OPTION...]\n"
        "       sendonce ledger forget KEY [OPTION...]\n"
        "       sendonce ledger export [--run R] [--with-secret] [OPTION...] > FILE\n"
        "       sendonce ledger import FILE [OPTION...]\n"
        "       sendonce ledger resize SIZE [OPTION...]\n"
        "       sendonce ledger recover [OPTION...]\n"
        "\n"
        "  list      one line a write, in the order of the file\n"
        "  show      all that is known about one\n"
        "  resolve   settle a doubt, after a look at the provider's own list\n"
        "  forget    drop a record: the same write will be sent again\n"
        "  verify    read everything and report damage\n"
        "  export    records as JSON lines; --run only those of one run\n"
        "  import    bring them into another ledger; what is newer there stays\n"
        "  resize    another size, while no program is sending\n"
        "  recover   a new ledger of what a damaged one still says\n"
        "\n"
        "KEY is the beginning, four characters or more, of a write's key or content id.\n"
        "\n" CLI_PLACE_HELP "\n"
        "Exit code: 0 ok, 1 no such record or damage, 2 usage, 3 cannot use the ledger.\n";

/* Parse, find and open; `operands` is how many there must be. */
static int begin(const char *command, int argc, char **argv, int operands,
                 struct cli_common *common, struct ledger **ledger)
{
	struct cli_place place;
	int rc = cli_parse_common(command, help, argc, argv, common);

	if (rc || common->done)
		return rc;
	if (argc - optind != operands)
		return cli_usage(command, operands ? "give one KEY" : "takes no operand");
	rc = cli_find_place(command, &place);
	if (rc)
		return rc;
	rc = cli_open_ledger(command, &place, true, ledger);
	cli_free_place(&place);
	return rc;
}

/* --- list --- */

static int print_json(void *ctx, const struct record_view *record)
{
	cli_record_json(ctx, record);
	return 0;
}

static int print_line(void *ctx, const struct record_view *record)
{
	cli_record_line(ctx, record);
	return 0;
}

static int list(int argc, char **argv)
{
	struct cli_common common;
	struct ledger *ledger;
	int rc = begin("ledger list", argc, argv, 0, &common, &ledger);

	if (rc || common.done)
		return rc;
	if (!common.json)
		cli_record_header(stdout);
	ledger_each(ledger, clock_now(), common.json ? print_json : print_line, stdout);
	cli_tell_lost(ledger);
	ledger_close(ledger);
	return CLI_OK;
}

/* --- show --- */

static int show(int argc, char **argv)
{
	static const char command[] = "ledger show";
	struct cli_common common;
	struct record_view record;
	struct ledger *ledger;
	int rc = begin(command, argc, argv, 1, &common, &ledger);

	if (rc || common.done)
		return rc;
	rc = cli_find_record(command, ledger, argv[optind], &record);
	if (rc == 0)
		cli_record_show(stdout, ledger, &record, common.json);
	ledger_close(ledger);
	return rc;
}

/* --- verify --- */

static void print_damage(void *ctx, uint64_t offset, const char *what)
{
	const bool *json = ctx;

	if (!*json) {
		printf("offset 0x%" PRIx64 ": %s\n", offset, what);
		return;
	}
	printf("{\"offset\":%" PRIu64 ",\"what\":", offset);
	cli_json_text(stdout, what);
	puts("}");
}

static int verify(int argc, char **argv)
{
	struct cli_common common;
	struct ledger *ledger;
	int faults, rc = begin("ledger verify", argc, argv, 0, &common, &ledger);

	if (rc || common.done)
		return rc;
	faults = ledger_verify(ledger, print_damage, &common.json);
	if (faults)
		fprintf(stderr,
		        "sendonce ledger verify: %s: %d faults; keep a copy of the file before "
		        "anything else is done with it\n",
		        ledger_path(ledger), faults);
	else
		fprintf(stderr, "%s: no damage\n", ledger_path(ledger));
	ledger_close(ledger);
	return faults ? CLI_FAILED : CLI_OK;
}

int cli_ledger(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {{"list", list},         {"show", show},         {"resolve", cli_resolve},
	             {"forget", cli_forget}, {"verify", verify},     {"export", cli_export},
	             {"import", cli_import}, {"resize", cli_resize}, {"recover", cli_recover}};

	if (argc < 2)
		return cli_usage("ledger", "say what to do: " VERBS);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(help, stdout);
		return CLI_OK;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	return cli_usage("ledger", "cannot `%s`: it is " VERBS, argv[1]);
}
