/* `sendonce ledger import`: records of an export become records of this ledger.
 *
 * Each is compared with what is here (ledger/newer.c) and never takes the place of a newer state,
 * so that the same file may be imported twice, or after the programs have gone on. An import that
 * ends early has done a part, and is run again. What was told to this ledger is on the disk before
 * the command says so. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/carried.h"
#include "cli/cli.h"
#include "ledger/events.h"

static const char help[] =
        "Usage: sendonce ledger import FILE|- [OPTION...]\n"
        "\n"
        "Bring in what `ledger export` wrote. A state that is newer here stays. The ledger is "
        "made\n"
        "if there is none. Both must use one secret: SENDONCE_SECRET_FILE, or a new ledger here\n"
        "and an export --with-secret there.\n"
        "\n" CLI_PLACE_HELP "\n"
        "Exit code: 0 ok, 1 the file is cut or not an export, 2 usage, 3 cannot use the ledger.\n";

static const char command[] = "ledger import";

struct import {
	bool json, done;
	const char *name;
	struct cli_place place;
	struct ledger *ledger;
	struct carried_head head;
	unsigned long line, did[CARRY_INSERT + 1], records, promised;
	bool ended;
};

static int fail_line(const struct import *m, const char *why)
{
	return cli_fail(CLI_FAILED, command, "%s:%lu: %s", m->name, m->line, why);
}

/* --- the ledger it goes into --- */

static int fail_secret(const struct import *m, const char *ours)
{
	return cli_fail(
	        CLI_CANNOT, command,
	        "%s: was made under another secret (%.8s) than %s uses (%.8s), so its writes would "
	        "never be found here. Let both machines use one SENDONCE_SECRET_FILE, or export "
	        "--with-secret and import into a ledger that does not exist yet",
	        m->name, m->head.secret, m->place.ledger, ours);
}

/* There is no ledger yet: it may be made with the secret of the file. */
static int check_new(const struct import *m, bool own, struct span secret, bool *take_secret)
{
	char print[2 * CARRIED_PRINT + 1];

	*take_secret = own && m->head.has_secret;
	if (own && !m->head.has_secret)
		return fail_secret(m, "of its own, as every new one");
	if (*take_secret)
		secret = (struct span){(const char *)m->head.secret_value, LEDGER_SECRET};
	carried_fingerprint(secret, print);
	return strcmp(print, m->head.secret) == 0 ? 0 : fail_secret(m, print);
}

static int make_ledger(struct import *m)
{
	const struct policy *policy = m->place.policy;
	struct ledger_error error = {{0}};
	struct ledger_options options = {.path = m->place.ledger,
	                                 .size = policy ? policy->ledger_size : 32 << 20,
	                                 .durable = true,
	                                 .create = true,
	                                 .make_folder = m->place.ledger_default,
	                                 .group = policy && policy->ledger_group};
	char room[CARRIED_SECRET_MAX];
	struct span secret;
	bool own, take_secret;
	int rc = carried_secret(command, NULL, room, &secret, &own);

	if (rc == 0)
		rc = check_new(m, own, secret, &take_secret);
	if (rc)
		return rc;
	if (take_secret)
		options.secret = m->head.secret_value;
	if (ledger_open(&options, &m->ledger, &error) != LEDGER_OK)
		return cli_fail(CLI_CANNOT, command, "%s", error.text);
	return 0;
}

static int open_ledger(struct import *m)
{
	char room[CARRIED_SECRET_MAX], print[2 * CARRIED_PRINT + 1];
	struct span secret;
	bool own;
	int rc;

	if (cli_ledger_missing(&m->place))
		return make_ledger(m);
	rc = cli_open_ledger(command, &m->place, false, &m->ledger);
	if (rc == 0)
		rc = carried_secret(command, ledger_secret(m->ledger), room, &secret, &own);
	if (rc)
		return rc;
	carried_fingerprint(secret, print);
	return strcmp(print, m->head.secret) == 0 ? 0 : fail_secret(m, print);
}

static int write_log(const struct import *m)
{
	struct event event = event_make("import");
	char text[600];

	snprintf(text, sizeof(text), "from %.500s", m->name);
	event.run = getenv("SENDONCE_RUN");
	event.text = text;
	if (!m->place.events[0] || event_write(m->place.events, &event) == 0)
		return 0;
	return cli_fail(CLI_CANNOT, command, "%s: cannot be written, so nothing was changed",
	                m->place.events);
}

/* --- lines --- */

static int bring_in(struct import *m, const struct ledger_record *record)
{
	bool same = m->head.origin == carry_origin(m->ledger);
	enum carry_act did;
	int rc = LEDGER_LOST;

	for (int i = 0; i < 100 && rc == LEDGER_LOST; i++)
		rc = carry_in(m->ledger, record, same, clock_now(), &did);
	if (rc == LEDGER_OK) {
		m->did[did]++;
		m->records++;
		return 0;
	}
	if (rc == LEDGER_FULL)
		return cli_fail(CLI_CANNOT, command,
		                "%s:%lu: %s is full; `sendonce ledger resize` makes it larger",
		                m->name, m->line, m->place.ledger);
	return cli_fail(CLI_CANNOT, command, "%s:%lu: %s could not be changed (code %d)", m->name,
	                m->line, m->place.ledger, rc);
}

static int take_line(struct import *m, struct span line)
{
	struct ledger_record record = {0};
	struct carried_head head;
	const char *why = NULL;
	enum carried_line kind = carried_parse(line, &head, &record, &m->promised, &why);
	int rc = 0;

	if (kind == CARRIED_BAD)
		rc = fail_line(m, why);
	else if ((kind == CARRIED_HEAD) != (m->line == 1))
		rc = fail_line(m, m->line == 1 ? "this is no export: its first line says so"
		                               : "there is a second first line");
	else if (m->ended)
		rc = fail_line(m, "something follows the last line");
	else if (kind == CARRIED_HEAD) {
		m->head = head;
		rc = open_ledger(m);
		rc = rc ? rc : write_log(m);
	} else if (kind == CARRIED_RECORD)
		rc = bring_in(m, &record);
	else
		m->ended = true;
	carry_free(&record);
	return rc;
}

static int take_lines(struct import *m, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = getline(&line, &room, file)) >= 0) {
		m->line++;
		rc = take_line(m,
		               span_trim((struct span){line, (size_t)n - (line[n - 1] == '\n')}));
	}
	if (rc == 0 && ferror(file))
		rc = cli_fail(CLI_CANNOT, command, "%s: %s", m->name, strerror(errno));
	free(line);
	if (rc == 0 && (!m->ended || m->promised != m->records))
		rc = cli_fail(CLI_FAILED, command,
		              "%s: is cut: its last line is missing or counts more records; "
		              "%lu were brought in",
		              m->name, m->records);
	return rc;
}

/* --- the command --- */

static void print_result(const struct import *m)
{
	static const char *const names[] = {
	        [CARRY_KEEP] = "kept",
	        [CARRY_MERGE] = "merged",
	        [CARRY_TAKE] = "replaced",
	        [CARRY_INSERT] = "new",
	};

	if (m->json) {
		printf("{\"records\":%lu", m->records);
		for (int i = CARRY_KEEP; i <= CARRY_INSERT; i++)
			printf(",\"%s\":%lu", names[i], m->did[i]);
		puts("}");
		return;
	}
	fprintf(stderr, "%s: %lu records: %lu new, %lu replaced older ones, %lu merged, %lu kept\n",
	        m->place.ledger, m->records, m->did[CARRY_INSERT], m->did[CARRY_TAKE],
	        m->did[CARRY_MERGE], m->did[CARRY_KEEP]);
}

static int import(struct import *m)
{
	bool standard = strcmp(m->name, "-") == 0;
	FILE *file = standard ? stdin : fopen(m->name, "re");
	int rc;

	if (!file)
		return cli_fail(CLI_CANNOT, command, "%s: %s", m->name, strerror(errno));
	if (standard)
		m->name = "standard input";
	rc = take_lines(m, file);
	if (!standard)
		fclose(file);
	if (m->ledger && carry_flush(m->ledger) != LEDGER_OK && rc == 0)
		rc = cli_fail(CLI_CANNOT, command, "%s: the disk did not take it", m->place.ledger);
	if (rc == 0)
		print_result(m);
	ledger_close(m->ledger);
	return rc;
}

int cli_import(int argc, char **argv)
{
	static struct import m;
	const struct cli_option options[] = {CLI_PLACE_OPTIONS(&m.json), {0}};
	const struct cli_syntax syntax = {.command = command, .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, &m.done);

	if (rc || m.done)
		return rc;
	if (argc - optind != 1)
		return cli_usage(command, "give one FILE, or - for standard input");
	m.name = argv[optind];
	rc = cli_find_place(command, &m.place);
	if (rc)
		return rc;
	rc = import(&m);
	cli_free_place(&m.place);
	return rc;
}
