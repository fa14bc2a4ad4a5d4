/* `sendonce check POLICY`: errors and warnings of a policy before it meets a request.
 *
 * The first error is one line, `file:line:column: what`, as editors and CI logs understand it;
 * warnings follow the same form and do not change the exit code. With --json each of them, and the
 * result, is one object a line on stdout. The ledger the policy means is opened for reading, if
 * there is one. */
#include "cli/check.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "identity/identity.h"
#include "ledger/ledger.h"
#include "policy/paths.h"

static const char help[] =
        "Usage: sendonce check [OPTION...] POLICY\n"
        "\n"
        "Read a policy and say what is wrong with it, and what is allowed but surprising.\n"
        "\n"
        "  --ledger[=F]   also list the writes in doubt of its ledger, or of F, that were made\n"
        "                 under other identity settings: they hinder new ones (settings-changed)\n"
        "  --json         one object a line on stdout\n"
        "  --help         this text\n"
        "\n"
        "Exit code: 0 the policy is good, 1 it is invalid or --ledger found something, 2 usage,\n"
        "3 it, or its ledger, cannot be used.\n";

int cli_check_policy(const char *path, struct policy **out)
{
	struct policy_error error;
	int rc = policy_load(path, cli_env, NULL, out, &error);

	if (rc)
		fprintf(stderr, "%s\n", error.text);
	return rc;
}

/* The file an error is in, which may be an included one: its text begins with the place. */
static void find_file(const char *path, const struct policy_error *error, char *out, size_t room)
{
	char place[32];
	const char *end;

	snprintf(place, sizeof(place), ":%d:%d: ", error->line, error->column);
	end = error->line > 0 ? strstr(error->text, place) : NULL;
	if (end)
		snprintf(out, room, "%.*s", (int)(end - error->text), error->text);
	else
		snprintf(out, room, "%s", path);
}

static void print_json_error(const char *path, const struct policy_error *error)
{
	char file[sizeof(error->text)];

	find_file(path, error, file, sizeof(file));
	printf("{\"level\":\"error\",\"file\":");
	cli_json_text(stdout, file);
	printf(",\"line\":%d,\"column\":%d,\"text\":", error->line, error->column);
	cli_json_text(stdout, error->text);
	printf("}\n");
}

struct warnings {
	bool json;
	unsigned long count;
};

static void print_warning(void *ctx, const struct policy_warning *warning)
{
	struct warnings *w = ctx;

	w->count++;
	if (!w->json) {
		fprintf(stderr, "%s\n", warning->text);
		return;
	}
	printf("{\"level\":\"warning\",\"file\":");
	cli_json_text(stdout, warning->file);
	printf(",\"line\":%d,\"column\":%d,\"text\":", warning->line, warning->column);
	cli_json_text(stdout, warning->text);
	printf("}\n");
}

static void print_result(const char *path, const struct policy *policy, const struct warnings *w)
{
	if (!w->json) {
		printf("%s: good, rules: %zu, warnings: %lu\n", path, policy->rule_count, w->count);
		return;
	}
	printf("{\"level\":\"result\",\"file\":");
	cli_json_text(stdout, path);
	printf(",\"rules\":%zu,\"warnings\":%lu}\n", policy->rule_count, w->count);
}

/* An error without a line is about the file, not about what it says. */
static int exit_code(int rc, const struct policy_error *error)
{
	return rc == POLICY_INVALID && error->line > 0 ? CLI_FAILED : CLI_CANNOT;
}

/* --- the ledger --- */

/* The records of a ledger, seen with a policy. */
struct looking {
	const struct policy *policy;
	bool json;
	unsigned long in_doubt, short_lived; /* of records the policy would treat otherwise */
};

/* Rules of one operation may have several settings; the record was made under one of them. */
static bool is_settled_by(const struct policy *policy, const struct record_view *record)
{
	uint64_t settings;

	for (size_t i = 0; i < policy->rule_count; i++)
		if (identity_settings(&policy->rules[i], &settings) == IDENTITY_OK &&
		    settings == record->settings)
			return true;
	return false;
}

static const struct rule *rule_of_record(const struct policy *policy,
                                         const struct record_view *record)
{
	for (size_t i = 0; i < policy->rule_count; i++)
		if (strncmp(policy->rules[i].operation, record->operation,
		            sizeof(record->operation) - 1) == 0)
			return &policy->rules[i];
	return NULL;
}

static bool is_forgotten_early(const struct policy *policy, const struct record_view *record)
{
	const struct rule *rule = rule_of_record(policy, record);

	return rule && record->state != REC_NONE && rule->key_ttl > record->tombstone_us &&
	       rule->key_ttl > record->ttl_us;
}

static int look_at(void *ctx, const struct record_view *record)
{
	struct looking *l = ctx;

	l->short_lived += is_forgotten_early(l->policy, record);
	if (!cli_in_doubt(record) || is_settled_by(l->policy, record))
		return 0;
	l->in_doubt++;
	(l->json ? cli_record_json : cli_record_line)(stdout, record);
	return 0;
}

static void tell_ledger(const struct looking *l, const char *path)
{
	if (l->in_doubt)
		fprintf(stderr,
		        "%s: %lu writes in doubt were made under other identity settings; until "
		        "they are resolved (sendonce ledger resolve), writes of the same account "
		        "and target are refused\n",
		        path, l->in_doubt);
	if (l->short_lived)
		fprintf(stderr,
		        "%s: %lu records will be forgotten before provider.key_ttl of this policy "
		        "is over: they were written when it was shorter\n",
		        path, l->short_lived);
}

static int look_through(const struct policy *policy, struct ledger *ledger, bool json)
{
	struct looking l = {policy, json, 0, 0};

	ledger_each(ledger, clock_now(), look_at, &l);
	tell_ledger(&l, ledger_path(ledger));
	return l.in_doubt || l.short_lived ? CLI_FAILED : CLI_OK;
}

/* What is wanted of the command line. */
struct wanted {
	bool json;
	const char *ledger; /* null: not asked for; "": the policy's */
};

static int find_ledger(const struct policy *policy, const struct wanted *wanted, char *path,
                       size_t room)
{
	bool is_default;
	int rc = wanted->ledger && *wanted->ledger ? cli_set_path("SENDONCE_LEDGER", wanted->ledger)
	                                           : 0;

	if (rc)
		return CLI_CANNOT;
	rc = paths_ledger(policy, cli_env, NULL, path, room, &is_default);
	return rc ? cli_fail(CLI_CANNOT, "check", "ledger path: %s %s", path, paths_error(rc)) : 0;
}

/* A ledger that is there has to be usable; one that is not is made by the first program that
 * writes. */
static int try_ledger(const struct policy *policy, const struct wanted *wanted)
{
	struct ledger_error error = {{0}};
	struct ledger_options options = {.read_only = true};
	struct ledger *ledger;
	char path[4096];
	int rc = find_ledger(policy, wanted, path, sizeof(path));

	if (rc)
		return rc;
	options.path = path;
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return wanted->ledger && *wanted->ledger
		               ? cli_fail(CLI_CANNOT, "check", "%s: there is no ledger here", path)
		               : CLI_OK;
	if (ledger_open(&options, &ledger, &error) != LEDGER_OK)
		return cli_fail(CLI_CANNOT, "check", "%s", error.text);
	if (wanted->ledger)
		rc = look_through(policy, ledger, wanted->json);
	ledger_close(ledger);
	return rc;
}

static int check(const char *path, const struct wanted *wanted)
{
	struct warnings w = {wanted->json, 0};
	struct policy_error error;
	struct policy *policy;
	int rc = policy_load(path, cli_env, NULL, &policy, &error);

	if (rc) {
		if (wanted->json)
			print_json_error(path, &error);
		else
			fprintf(stderr, "%s\n", error.text);
		return exit_code(rc, &error);
	}
	policy_lint(policy, print_warning, &w);
	rc = try_ledger(policy, wanted);
	if (rc != CLI_CANNOT)
		print_result(path, policy, &w);
	policy_free(policy);
	return rc;
}

int cli_check(int argc, char **argv)
{
	struct wanted wanted = {0};
	bool done;
	const struct cli_option options[] = {
	        {.name = "json", .kind = CLI_FLAG, .at = &wanted.json},
	        {.name = "ledger", .kind = CLI_MAYBE, .at = &wanted.ledger},
	        {0}};
	const struct cli_syntax syntax = {.command = "check", .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, &done);

	if (rc || done)
		return rc;
	if (argc - optind != 1)
		return cli_usage("check", "give one policy file");
	return check(argv[optind], &wanted);
}
