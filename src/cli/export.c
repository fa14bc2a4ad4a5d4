/* `sendonce ledger export`: records as JSON lines, for another machine or another day.
 *
 * The ledger is only read, and may be in use: each record is consistent in itself. The secret stays
 * here unless it is asked for; its fingerprint lets an import say that it has another one, under
 * which not one of these records would ever be found again. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/carried.h"
#include "cli/cli.h"

static const char help[] =
        "Usage: sendonce ledger export [OPTION...] > FILE\n"
        "\n"
        "Write every record, with its answer, as JSON lines.\n"
        "\n"
        "  --run R        only what this run asked for\n"
        "  --with-secret  put the ledger's secret into the output, for an import into a new\n"
        "                 ledger. Who reads it can make this ledger's keys\n" CLI_PLACE_HELP;

enum { READ_TRIES = 100 };

struct export
{
	bool json, with_secret, done;
	const char *run;
	uint64_t run_hash;
	struct ledger *ledger;
	unsigned long count, unread;
};

int carried_secret(const char *command, const uint8_t *ledger_secret, char room[CARRIED_SECRET_MAX],
                   struct span *out, bool *own)
{
	const char *path = getenv("SENDONCE_SECRET_FILE");
	FILE *file;
	size_t n;

	*own = !path || !*path;
	*out = (struct span){(const char *)ledger_secret, ledger_secret ? LEDGER_SECRET : 0};
	if (*own)
		return 0;
	file = fopen(path, "rbe");
	if (!file)
		return cli_fail(CLI_CANNOT, command, "SENDONCE_SECRET_FILE: %s: %s", path,
		                strerror(errno));
	n = fread(room, 1, CARRIED_SECRET_MAX, file);
	fclose(file);
	if (n < CARRIED_SECRET_MIN)
		return cli_fail(CLI_CANNOT, command,
		                "SENDONCE_SECRET_FILE: %s: shorter than %d bytes", path,
		                CARRIED_SECRET_MIN);
	*out = (struct span){room, n};
	return 0;
}

static int print_head(const struct export *e)
{
	static const char command[] = "ledger export";
	struct carried_head head = {.origin = carry_origin(e->ledger),
	                            .has_secret = e->with_secret};
	char room[CARRIED_SECRET_MAX];
	struct span secret;
	bool own;
	int rc = carried_secret(command, ledger_secret(e->ledger), room, &secret, &own);

	if (rc)
		return rc;
	if (e->with_secret && !own)
		return cli_fail(CLI_CANNOT, command,
		                "the secret in use is SENDONCE_SECRET_FILE: copy that file "
		                "instead of --with-secret");
	if (e->with_secret)
		fputs("sendonce ledger export: warning: the output holds the ledger's secret; who "
		      "reads it can make the keys of its writes\n",
		      stderr);
	carried_fingerprint(secret, head.secret);
	memcpy(head.secret_value, ledger_secret(e->ledger), LEDGER_SECRET);
	carried_print_head(stdout, &head, clock_now().wall_us);
	return 0;
}

static bool is_wanted(const struct export *e, const struct record_view *view)
{
	bool wanted = !e->run_hash;

	for (size_t i = 0; i < view->run_count && !wanted; i++)
		wanted = view->runs[i].run == e->run_hash;
	return wanted;
}

/* One that changes while it is read is read again. */
static int print_record(void *ctx, const struct record_view *seen)
{
	struct export *e = ctx;
	struct record_view view = *seen;
	struct ledger_record record = {0};
	int rc = LEDGER_LOST;

	for (int i = 0; i < READ_TRIES && rc == LEDGER_LOST; i++) {
		if (i && ledger_look(e->ledger, seen->id, clock_now(), &view) != LEDGER_OK)
			return 0;
		if (!is_wanted(e, &view))
			return 0;
		carry_free(&record);
		rc = carry_read(e->ledger, &view, &record);
	}
	if (rc == LEDGER_OK) {
		carried_print(stdout, &record);
		e->count++;
	} else {
		e->unread++;
	}
	carry_free(&record);
	return 0;
}

static int export(struct export *e)
{
	int rc = print_head(e);

	if (rc)
		return rc;
	ledger_each(e->ledger, clock_now(), print_record, e);
	if (e->unread)
		return cli_fail(CLI_FAILED, "ledger export",
		                "%lu records could not be read; `sendonce ledger verify` tells why",
		                e->unread);
	carried_print_end(stdout, e->count);
	return CLI_OK;
}

int cli_export(int argc, char **argv)
{
	static const char command[] = "ledger export";
	struct export e = {0};
	struct cli_place place;
	const struct cli_option options[] = {
	        {.name = "run", .kind = CLI_TEXT, .at = &e.run},
	        {.name = "with-secret", .kind = CLI_FLAG, .at = &e.with_secret},
	        CLI_PLACE_OPTIONS(&e.json),
	        {0}};
	const struct cli_syntax syntax = {.command = command, .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, &e.done);

	if (rc || e.done)
		return rc;
	if (optind < argc)
		return cli_usage(command, "takes no operand; it writes to standard output");
	e.run_hash = ledger_name_hash(span_of(e.run));
	rc = cli_find_place(command, &place);
	if (rc)
		return rc;
	rc = cli_open_ledger(command, &place, true, &e.ledger);
	cli_free_place(&place);
	if (rc)
		return rc;
	rc = export(&e);
	ledger_close(e.ledger);
	return rc;
}
