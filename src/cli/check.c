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
#include "ledger/ledger.h"
#include "policy/paths.h"

static const char help[] =
        "Usage: sendonce check [--json] POLICY\n"
        "\n"
        "Read a policy and say what is wrong with it, and what is allowed but surprising.\n"
        "\n"
        "  --json   one object a line on stdout\n"
        "  --help   this text\n"
        "\n"
        "Exit code: 0 the policy is good, 1 it is invalid, 2 usage,\n"
        "3 it, or its ledger, cannot be used.\n";

int cli_check_policy(const char *path, struct policy **out)
{
	struct policy_error error;
	int rc = policy_load(path, cli_env, NULL, out, &error);

	if (rc)
		fprintf(stderr, "%s\n", error.text);
	return rc;
}

static void print_json_error(const char *path, const struct policy_error *error)
{
	printf("{\"level\":\"error\",\"file\":");
	cli_json_text(stdout, path);
	printf(",\"line\":%d,\"column\":%d,\"text\":", error->line, error->column);
	cli_json_text(stdout, error->text);
	printf("}\n");
}

struct warnings {
	bool json;
	unsigned long count;
};

static void print_warning(void *ctx, const char *text)
{
	struct warnings *w = ctx;

	w->count++;
	if (!w->json) {
		fprintf(stderr, "%s\n", text);
		return;
	}
	printf("{\"level\":\"warning\",\"text\":");
	cli_json_text(stdout, text);
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

/* A ledger that is there has to be usable; one that is not is made by the first program that
 * writes. */
static int try_ledger(const struct policy *policy)
{
	struct ledger_error error = {{0}};
	struct ledger_options options = {.read_only = true, .group = policy->ledger_group};
	struct ledger *ledger;
	char path[4096];
	bool is_default;
	int rc = paths_ledger(policy, cli_env, NULL, path, sizeof(path), &is_default);

	if (rc) {
		fprintf(stderr, "sendonce check: ledger path: %s %s\n", path, paths_error(rc));
		return CLI_CANNOT;
	}
	options.path = path;
	if (strcmp(path, LEDGER_MEMORY) == 0 || (access(path, F_OK) != 0 && errno == ENOENT))
		return CLI_OK;
	if (ledger_open(&options, &ledger, &error) != LEDGER_OK) {
		fprintf(stderr, "sendonce check: %s\n", error.text);
		return CLI_CANNOT;
	}
	ledger_close(ledger);
	return CLI_OK;
}

static int check(const char *path, bool json)
{
	struct warnings w = {json, 0};
	struct policy_error error;
	struct policy *policy;
	int rc = policy_load(path, cli_env, NULL, &policy, &error);

	if (rc) {
		if (json)
			print_json_error(path, &error);
		else
			fprintf(stderr, "%s\n", error.text);
		return exit_code(rc, &error);
	}
	policy_lint(policy, print_warning, &w);
	rc = try_ledger(policy);
	if (rc == 0)
		print_result(path, policy, &w);
	policy_free(policy);
	return rc;
}

int cli_check(int argc, char **argv)
{
	bool json = false, done;
	const struct cli_option options[] = {{.name = "json", .kind = CLI_FLAG, .at = &json}, {0}};
	const struct cli_syntax syntax = {.command = "check", .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, &done);

	if (rc || done)
		return rc;
	if (argc - optind != 1)
		return cli_usage("check", "give one policy file");
	return check(argv[optind], json);
}
