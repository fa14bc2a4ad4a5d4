/* `sendonce run -- CMD ARG...`: becomes CMD, with the environment that protects its writes.
 *
 * Policy and ledger are tried before anything starts, in the way the library will use them: a
 * command whose writes would all be refused had better not begin. There is no process in between
 * afterwards, so signals, terminal and exit code are the command's own. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/cli.h"
#include "cli/reported.h"
#include "policy/paths.h"

static const char help[] =
        "Usage: sendonce run [OPTION...] -- CMD [ARG...]\n"
        "\n"
        "Run a command with its HTTP writes protected.\n"
        "\n"
        "  --policy F     the policy (SENDONCE_POLICY; else " PATHS_POLICY_DEFAULT ")\n"
        "  --mode M       off, audit, inject, enforce or replay (SENDONCE_MODE; else the "
        "policy's)\n"
        "  --ledger F     the ledger (SENDONCE_LEDGER; else the policy's)\n"
        "  --scope S      whose books these are (SENDONCE_SCOPE)\n"
        "  --run R        the task's name, the same again when it is resumed; `new` makes one\n"
        "                 (SENDONCE_RUN)\n"
        "  --report F     when it has ended, write into F which writes were sent twice, in the "
        "form\n"
        "                 its name asks for (.html, .json, .xml for JUnit, else text), and three\n"
        "                 lines to standard error; see `sendonce report --help`\n"
        "  --summary      the three lines only\n"
        "  --fail-on K    exit 1 where the command exits 0 and one of these was found (as report)\n"
        "  --help         this text\n"
        "\n"
        "Exit code: the command's; 2 usage; 3 the policy or the ledger cannot be used, and the\n"
        "command was not started; 126 or 127 the command cannot be executed.\n";

/* --- options --- */

/* run-20261130T142047-1f2e3d4c */
static int set_new_run(void)
{
	uint8_t noise[4];
	char day[32], hex[9], name[64];
	time_t now = time(NULL);
	struct tm t;

	if (getrandom(noise, sizeof(noise), 0) != (ssize_t)sizeof(noise) || !gmtime_r(&now, &t))
		return cli_fail(CLI_CANNOT, "run", "no random bytes for a run id");
	hex_encode(hex, noise, sizeof(noise));
	strftime(day, sizeof(day), "%Y%m%dT%H%M%S", &t);
	snprintf(name, sizeof(name), "run-%s-%s", day, hex);
	return cli_set_env("SENDONCE_RUN", name) ? CLI_CANNOT : 0;
}

static int take_run(void *ctx, const char *value)
{
	(void)ctx;
	if (strcmp(value, "new") == 0)
		return set_new_run();
	return cli_set_env("SENDONCE_RUN", value) ? CLI_CANNOT : 0;
}

static int parse(int argc, char **argv, struct reported *ask, bool *done)
{
	const struct cli_option options[] = {
	        {.name = "policy", .kind = CLI_PATH, .env = "SENDONCE_POLICY"},
	        {.name = "ledger", .kind = CLI_PATH, .env = "SENDONCE_LEDGER"},
	        {.name = "mode", .kind = CLI_ENV, .env = "SENDONCE_MODE"},
	        {.name = "scope", .kind = CLI_ENV, .env = "SENDONCE_SCOPE"},
	        {.name = "run", .kind = CLI_CALL, .call = take_run},
	        {.name = "report", .kind = CLI_TEXT, .at = &ask->report},
	        {.name = "summary", .kind = CLI_FLAG, .at = &ask->summary},
	        {.name = "fail-on", .kind = CLI_TEXT, .at = &ask->fail_on},
	        {0}};
	/* the command's own options begin at its name, also without "--" */
	const struct cli_syntax syntax = {
	        .command = "run", .help = help, .options = options, .stop_at_operand = true};
	int rc = cli_parse(&syntax, argc, argv, done);

	if (rc == 0 && !*done && optind >= argc)
		return cli_usage("run", "no command given");
	return rc;
}

/* --- trying it --- */

/* The mode the command will run in, or -1 after a message. */
static int effective_mode(const struct policy *policy)
{
	const char *text = getenv("SENDONCE_MODE");
	int mode = text && *text ? policy_mode_parse(text)
	           : policy      ? (int)policy->mode
	                         : MODE_ENFORCE;

	if (mode < 0)
		cli_usage("run", "mode `%s`: it is off, audit, inject, enforce or replay", text);
	return mode;
}

static int try_ledger(const struct policy *policy)
{
	struct ledger_error error = {{0}};
	struct ledger_options options = {.size = policy->ledger_size,
	                                 .durable = policy->durability == DURABILITY_POWER,
	                                 .create = true,
	                                 .group = policy->ledger_group,
	                                 .set_aside = true};
	struct ledger *ledger;
	char path[4096];
	int rc = paths_ledger(policy, cli_env, NULL, path, sizeof(path), &options.make_folder);

	if (rc)
		return cli_fail(CLI_CANNOT, "run", "ledger path: %s %s", path, paths_error(rc));
	options.path = path;
	if (ledger_open(&options, &ledger, &error) != LEDGER_OK)
		return cli_fail(CLI_CANNOT, "run", "%s", error.text);
	ledger_close(ledger);
	return 0;
}

/* Who audits first has no rules yet: every write is then an unlisted one. */
static bool audits_without_policy(void)
{
	const char *mode = getenv("SENDONCE_MODE");

	return mode && strcmp(mode, "audit") == 0;
}

static int try_policy(void)
{
	struct policy *policy;
	char path[4096];
	bool named;
	int mode, rc = paths_policy(cli_env, NULL, path, sizeof(path), &named);

	if (rc)
		return cli_fail(CLI_CANNOT, "run", "SENDONCE_POLICY: %s %s", path, paths_error(rc));
	if (!named && access(path, F_OK) != 0)
		return audits_without_policy()
		               ? 0
		               : cli_fail(CLI_CANNOT, "run",
		                          "no policy: name one with --policy, or put it at %s",
		                          path);
	if (cli_check_policy(path, &policy) != POLICY_OK)
		return CLI_CANNOT;
	mode = effective_mode(policy);
	rc = mode < 0 ? CLI_USAGE : mode == MODE_OFF || mode == MODE_AUDIT ? 0 : try_ledger(policy);
	policy_free(policy);
	return rc;
}

int cli_run(int argc, char **argv)
{
	struct reported ask = {0};
	bool done = false;
	int rc = parse(argc, argv, &ask, &done);

	if (rc || done)
		return rc;
	rc = try_policy();
	if (rc == 0)
		rc = cli_set_preload("run");
	if (rc)
		return rc;
	if (ask.report || ask.summary || ask.fail_on)
		return cli_run_reported(argv + optind, &ask);
	return cli_execute(argv + optind);
}
