/* `sendonce ledger resize` and `recover`: another file for the ledger, the old one kept beside it.
 *
 * Neither leads to a second execution: what a recovery could not read stays in doubt until somebody
 * settles it with `resolve lost-range`. Both are in the event log before they are done. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "ledger/events.h"
#include "ledger/rebuild.h"
#include "policy/values.h"

static const char resize_help[] =
        "Usage: sendonce ledger resize SIZE [OPTION...]\n"
        "\n"
        "Give the ledger another size, 256KiB to 64GiB, while no program is sending. Programs "
        "that\n"
        "have it open refuse writes until they are started again. The old file is kept.\n"
        "\n" CLI_PLACE_HELP;

static const char recover_help[] =
        "Usage: sendonce ledger recover [OPTION...]\n"
        "\n"
        "Make a new ledger of what a damaged one still says, and keep the damaged one. Where\n"
        "records were lost, writes without a record are refused as in doubt until `sendonce\n"
        "ledger resolve lost-range`.\n"
        "\n" CLI_PLACE_HELP "\n"
        "Exit code: 0 ok, or there was no damage; 2 usage, 3 it could not be done.\n";

struct task {
	const char *command, *verb;
	bool json, done;
	struct cli_place place;
	struct ledger_options options;
	struct rebuild_report report;
};

static int write_log(const struct task *t, const char *text)
{
	struct event event = event_make(t->verb);

	event.run = getenv("SENDONCE_RUN");
	event.text = text;
	if (event_write(t->place.events, &event) == 0)
		return 0;
	return cli_fail(CLI_CANNOT, t->command, "%s: cannot be written, so nothing was changed",
	                t->place.events);
}

static int find(struct task *t)
{
	const struct policy *policy;
	int rc = cli_find_place(t->command, &t->place);

	if (rc)
		return rc;
	policy = t->place.policy;
	rc = cli_check_file(t->command, &t->place);
	t->options.path = t->place.ledger;
	t->options.durable = true;
	t->options.group = policy && policy->ledger_group;
	if (!t->options.size)
		t->options.size = policy ? policy->ledger_size : 32 << 20;
	return rc;
}

static void print_json(const struct task *t)
{
	const struct rebuild_report *r = &t->report;

	printf("{\"records\":%" PRIu64 ",\"unreadable\":%" PRIu64
	       ",\"lost_range\":%s,\"size\":%" PRId64 ",\"old\":",
	       r->records, r->unreadable, r->lost ? "true" : "false", r->size);
	cli_json_text(stdout, r->old[0] ? r->old : NULL);
	puts("}");
}

static void print_plain(const struct task *t)
{
	const struct rebuild_report *r = &t->report;

	fprintf(stderr, "%s: %" PRIu64 " records, %" PRId64 " bytes; the old file is %s\n",
	        t->place.ledger, r->records, r->size, r->old);
	if (r->secret_lost)
		fprintf(stderr, "its secret could not be read: unless SENDONCE_SECRET_FILE is "
		                "used, no write "
		                "of before will be recognised\n");
	if (r->lost)
		fprintf(stderr,
		        "%" PRIu64
		        " places could not be read: writes without a record are refused as "
		        "in doubt. When you have looked at the providers: sendonce ledger resolve "
		        "lost-range --not-executed\n",
		        r->unreadable);
}

static int finish(struct task *t, int code, const struct ledger_error *error)
{
	if (code == LEDGER_NONE) {
		fprintf(stderr, "%s: no damage; nothing was done\n", t->place.ledger);
		return CLI_OK;
	}
	if (code != LEDGER_OK)
		return cli_fail(CLI_CANNOT, t->command, "%s", error->text);
	(t->json ? print_json : print_plain)(t);
	return CLI_OK;
}

static int perform(struct task *t, const char *help, int operands, int argc, char **argv)
{
	const struct cli_option options[] = {CLI_PLACE_OPTIONS(&t->json), {0}};
	const struct cli_syntax syntax = {.command = t->command, .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, &t->done);
	const char *wrong = NULL;

	if (rc || t->done)
		return rc;
	if (argc - optind != operands)
		return cli_usage(t->command, operands ? "give one SIZE" : "takes no operand");
	if (operands)
		wrong = value_size(span_of(argv[optind]), &t->options.size);
	if (wrong)
		return cli_usage(t->command, "SIZE `%s` %s", argv[optind], wrong);
	return find(t);
}

int cli_resize(int argc, char **argv)
{
	static struct task t = {.command = "ledger resize", .verb = "resize"};
	struct ledger_error error = {{0}};
	char text[64];
	int rc = perform(&t, resize_help, 1, argc, argv);

	snprintf(text, sizeof(text), "to %" PRId64 " bytes", t.options.size);
	if (rc == 0 && !t.done)
		rc = write_log(&t, text);
	if (rc == 0 && !t.done)
		rc = finish(&t, ledger_resize(&t.options, &t.report, &error), &error);
	cli_free_place(&t.place);
	return rc;
}

int cli_recover(int argc, char **argv)
{
	static struct task t = {.command = "ledger recover", .verb = "recover"};
	struct ledger_error error = {{0}};
	int rc = perform(&t, recover_help, 0, argc, argv);

	if (rc == 0 && !t.done)
		rc = write_log(&t, "begun");
	if (rc == 0 && !t.done)
		rc = finish(&t, ledger_recover(&t.options, &t.report, &error), &error);
	cli_free_place(&t.place);
	return rc;
}
