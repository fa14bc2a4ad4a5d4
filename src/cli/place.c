/* Messages, the environment, and the way to policy and ledger: what every command begins with.
 *
 * An option that has an environment variable is put into this process's environment at once. So
 * there is one order of precedence, the one the library itself follows (policy/paths.c). */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/events.h"
#include "policy/paths.h"

int cli_usage(const char *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "sendonce %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; see `sendonce %s --help`\n", command);
	return CLI_USAGE;
}

int cli_fail(int code, const char *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "sendonce %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

const char *cli_env(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

int cli_set_env(const char *name, const char *value)
{
	if (setenv(name, value, 1) == 0)
		return 0;
	fprintf(stderr, "sendonce: %s: %s\n", name, strerror(errno));
	return -1;
}

int cli_set_path(const char *name, const char *path)
{
	char here[4096], whole[8192];

	if (*path == '/' || *path == '\0' || strcmp(path, LEDGER_MEMORY) == 0)
		return cli_set_env(name, path);
	if (!getcwd(here, sizeof(here))) {
		fprintf(stderr, "sendonce: this directory has no path: %s\n", strerror(errno));
		return -1;
	}
	snprintf(whole, sizeof(whole), "%s/%s", here, path);
	return cli_set_env(name, whole);
}

/* The policy only tells where the ledger is here: with SENDONCE_LEDGER nobody asks it. */
static int read_policy(const char *command, struct cli_place *place)
{
	const char *ledger = getenv("SENDONCE_LEDGER");
	struct policy_error error;
	char path[4096];
	bool named;
	int rc = paths_policy(cli_env, NULL, path, sizeof(path), &named);

	if (rc)
		return cli_fail(CLI_CANNOT, command, "SENDONCE_POLICY: %s %s", path,
		                paths_error(rc));
	rc = policy_load(path, cli_env, NULL, &place->policy, &error);
	if (rc == POLICY_OK)
		return 0;
	place->policy = NULL;
	if ((rc == POLICY_MISSING && !named) || (ledger && *ledger))
		return 0;
	return cli_fail(CLI_CANNOT, command, "%s", error.text);
}

int cli_find_place(const char *command, struct cli_place *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = read_policy(command, out);
	if (rc)
		return rc;
	rc = paths_ledger(out->policy, cli_env, NULL, out->ledger, sizeof(out->ledger),
	                  &out->ledger_default);
	if (rc == 0)
		rc = paths_events(out->policy, cli_env, NULL, out->events, sizeof(out->events));
	if (rc == PATHS_NOWHERE)
		rc = 0;
	if (rc == 0) {
		event_log_shared(out->policy && out->policy->ledger_group);
		return 0;
	}
	cli_free_place(out);
	return cli_fail(CLI_CANNOT, command, "ledger path: %s %s", out->ledger, paths_error(rc));
}

void cli_free_place(struct cli_place *place)
{
	if (place->policy)
		policy_free(place->policy);
	place->policy = NULL;
}

bool cli_ledger_missing(const struct cli_place *place)
{
	return strcmp(place->ledger, LEDGER_MEMORY) != 0 && access(place->ledger, F_OK) != 0 &&
	       errno == ENOENT;
}

int cli_check_events(const char *command, const struct cli_place *place)
{
	if (place->events[0])
		return 0;
	return cli_fail(
	        CLI_CANNOT, command,
	        "the ledger is in memory and the policy names no `events`: no event is kept");
}

int cli_check_file(const char *command, const struct cli_place *place)
{
	if (strcmp(place->ledger, LEDGER_MEMORY) == 0)
		return cli_fail(CLI_CANNOT, command,
		                "ledger.path is `memory`: the ledger is inside the programs that "
		                "use it and ends with them, so there is no file to look at; name a "
		                "file in the policy to keep one");
	if (cli_ledger_missing(place))
		return cli_fail(CLI_CANNOT, command,
		                "%s: there is no ledger here yet; name another with --ledger or "
		                "--policy",
		                place->ledger);
	return 0;
}

int cli_open_ledger(const char *command, const struct cli_place *place, bool read_only,
                    struct ledger **out)
{
	struct ledger_options options = {.path = place->ledger,
	                                 .read_only = read_only,
	                                 .durable = true,
	                                 .group = place->policy && place->policy->ledger_group};
	struct ledger_error error = {{0}};
	int rc = cli_check_file(command, place);

	if (rc)
		return rc;
	if (ledger_open(&options, out, &error) == LEDGER_OK)
		return 0;
	return cli_fail(CLI_CANNOT, command, "%s", error.text);
}

void cli_tell_lost(const struct ledger *ledger)
{
	struct ledger_lost lost;
	char from[32], until[32];

	if (!ledger_lost(ledger, &lost))
		return;
	clock_rfc3339(from, sizeof(from), lost.from_us);
	clock_rfc3339(until, sizeof(until), lost.until.wall_us);
	fprintf(stderr,
	        "records of the time from %s to %s were lost to damage: writes without a record "
	        "are "
	        "refused as in doubt, until `sendonce ledger resolve lost-range`\n",
	        from, until);
}
