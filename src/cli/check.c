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
#include <stdlib.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "policy/paths.h"

enum { EXIT_GOOD = 0, EXIT_INVALID = 1, EXIT_USAGE = 2, EXIT_UNUSABLE = 3 };

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

static const char *env_look_up(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

int cli_check_policy(const char *path, struct policy **out)
{
	struct policy_error error;
	int rc = policy_load(path, env_look_up, NULL, out, &error);

	if (rc)
		fprintf(stderr, "%s\n", error.text);
	return rc;
}

static void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ' || c == 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_json_error(const char *path, const struct policy_error *error)
{
	printf("{\"level\":\"error\",\"file\":");
	print_json_text(path);
	printf(",\"line\":%d,\"column\":%d,\"text\":", error->line, error->column);
	print_json_text(error->text);
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
	print_json_text(text);
	printf("}\n");
}

static void print_result(const char *path, const struct policy *policy, const struct warnings *w)
{
	if (!w->json) {
		printf("%s: good, rules: %zu, warnings: %lu\n", path, policy->rule_count, w->count);
		return;
	}
	printf("{\"level\":\"result\",\"file\":");
	print_json_text(path);
	printf(",\"rules\":%zu,\"warnings\":%lu}\n", policy->rule_count, w->count);
}

/* An error without a line is about the file, not about what it says. */
static int exit_code(int rc, const struct policy_error *error)
{
	return rc == POLICY_INVALID && error->line > 0 ? EXIT_INVALID : EXIT_UNUSABLE;
}

/* A ledger that is there has to be usable; one that is not is made by the first program that
 * writes. */
static int try_ledger(const struct policy *policy)
{
	struct ledger_error error = {{0}};
	struct ledger_options options = {.read_only = true};
	struct ledger *ledger;
	char path[4096];
	bool is_default;
	int rc = paths_ledger(policy, env_look_up, NULL, path, sizeof(path), &is_default);

	if (rc) {
		fprintf(stderr, "sendonce check: ledger path: %s %s\n", path, paths_error(rc));
		return EXIT_UNUSABLE;
	}
	options.path = path;
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return EXIT_GOOD;
	if (ledger_open(&options, &ledger, &error) != LEDGER_OK) {
		fprintf(stderr, "sendonce check: %s\n", error.text);
		return EXIT_UNUSABLE;
	}
	ledger_close(ledger);
	return EXIT_GOOD;
}

static int check(const char *path, bool json)
{
	struct warnings w = {json, 0};
	struct policy_error error;
	struct policy *policy;
	int rc = policy_load(path, env_look_up, NULL, &policy, &error);

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
	static const struct option options[] = {
	        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool json = false;
	int option;

	optind = 0; /* the command line was already walked once, up to the command's name */
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(help, stdout);
			return EXIT_GOOD;
		}
		if (option != 'j') {
			fputs(help, stderr);
			return EXIT_USAGE;
		}
		json = true;
	}
	if (argc - optind != 1) {
		fprintf(stderr, "sendonce check: give one policy file\n%s", help);
		return EXIT_USAGE;
	}
	return check(argv[optind], json);
}
