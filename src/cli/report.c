/* `sendonce report`: which writes of the event log were sent twice. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/report.h"

static const char help[] =
        "Usage: sendonce report [OPTION...] [LOG...]\n"
        "       sendonce report --compare BEFORE AFTER\n"
        "\n"
        "Which writes were sent twice, by which program, how far apart, and what enforce would "
        "have\n"
        "done. Without LOG the event log beside the ledger is read.\n"
        "\n"
        "  --policy F     whose rules the writes are judged by (SENDONCE_POLICY)\n"
        "  --ledger F     the ledger the log is beside (SENDONCE_LEDGER)\n"
        "  --json         one JSON object\n"
        "  --junit        JUnit's XML: a test case an operation, a failure a duplicate\n"
        "  --html         one page that works offline\n"
        "  --output F     into a file instead of standard output\n"
        "  --all          every group, not the twenty worst\n"
        "  --fail-on K    exit 1 when the log has one of these, separated by commas: duplicate,\n"
        "                 wire-duplicate, near-duplicate, conflict, fresh-key, unknown,\n"
        "                 unprotected\n"
        "  --compare      two logs side by side; --fail-on is then about what became more\n"
        "  --help         this text\n"
        "\n"
        "Exit code: 0; 1 --fail-on found something; 2 usage; 3 a file cannot be read or written.\n";

enum { GROUPS_SHOWN = 20 };

struct ask {
	bool json, junit, html, all, compare;
	const char *output, *fail_on;
	unsigned mask;
};

/* --- rules --- */

int cli_rules_load(struct cli_rules *out, const struct policy *policy)
{
	*out = (struct cli_rules){.policy = policy};
	return policy_defaults(&out->defaults) == POLICY_OK ? 0 : -1;
}

void cli_rules_free(struct cli_rules *rules)
{
	if (rules->defaults)
		policy_free(rules->defaults);
}

const struct rule *cli_rules_find(void *ctx, const char *operation)
{
	const struct cli_rules *rules = ctx;

	for (size_t i = 0; rules->policy && i < rules->policy->rule_count; i++)
		if (strcmp(rules->policy->rules[i].operation, operation) == 0)
			return &rules->policy->rules[i];
	return &rules->defaults->rules[0];
}

/* --- logs --- */

int cli_log_failed(const char *command, const char *path, int rc)
{
	if (rc == LOG_NOMEM)
		return cli_fail(CLI_CANNOT, command, "%s: out of memory", path);
	if (errno == ENOENT)
		return cli_fail(CLI_CANNOT, command,
		                "%s: there is no event log here yet; name its ledger with --ledger "
		                "or --policy",
		                path);
	return cli_fail(CLI_CANNOT, command, "%s: %s", path, strerror(errno));
}

static int read_logs(struct log *log, char **paths, int count)
{
	for (int i = 0; i < count; i++) {
		int rc = log_read(log, paths[i]);

		if (rc)
			return cli_log_failed("report", paths[i], rc);
	}
	return log_sort(log) == LOG_OK ? 0 : cli_log_failed("report", paths[0], LOG_NOMEM);
}

static int analyse(struct log *log, char **paths, int count, struct cli_rules *rules,
                   struct analysis *out)
{
	int rc = read_logs(log, paths, count);

	if (rc)
		return rc;
	if (analysis_make(log, cli_rules_find, rules, out) != 0)
		return cli_fail(CLI_CANNOT, "report", "out of memory");
	return 0;
}

/* --- output --- */

int cli_finding_mask(const char *command, const char *list, unsigned *mask)
{
	char text[256], *save = NULL;

	*mask = 0;
	if (strlen(list) >= sizeof(text))
		return cli_usage(command, "--fail-on is too long");
	strcpy(text, list);
	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		int i = 0;

		while (i < FIND_COUNT && strcmp(word, finding_name((enum finding)i)) != 0)
			i++;
		if (i == FIND_COUNT)
			return cli_usage(command, "--fail-on knows no `%s`", word);
		*mask |= 1u << i;
	}
	return *mask ? 0 : cli_usage(command, "--fail-on names nothing");
}

int cli_report_write(const char *command, const char *path, enum cli_report_form form,
                     const struct analysis *a, const struct report_view *view)
{
	FILE *out = path ? fopen(path, "we") : stdout;
	bool failed;

	if (!out)
		return cli_fail(CLI_CANNOT, command, "%s: %s", path, strerror(errno));
	switch (form) {
	case CLI_REPORT_TEXT:
		report_text(out, a, view);
		break;
	case CLI_REPORT_JSON:
		report_json(out, a, view);
		break;
	case CLI_REPORT_JUNIT:
		report_junit(out, a, view);
		break;
	case CLI_REPORT_HTML:
		report_html(out, a, view);
		break;
	}
	failed = fflush(out) != 0 || ferror(out);
	if (path && fclose(out) != 0)
		failed = true;
	if (failed)
		return cli_fail(CLI_CANNOT, command, "%s: %s", path ? path : "standard output",
		                strerror(errno));
	return 0;
}

static enum cli_report_form form_of(const struct ask *ask)
{
	return ask->json    ? CLI_REPORT_JSON
	       : ask->junit ? CLI_REPORT_JUNIT
	       : ask->html  ? CLI_REPORT_HTML
	                    : CLI_REPORT_TEXT;
}

static int report(const struct ask *ask, struct cli_rules *rules, char **paths, int count)
{
	struct report_view view = {
	        .source = paths[0],
	        .fail_on = ask->mask ? ask->mask : CLI_REPORT_DEFAULT_MASK,
	        .most = ask->all || form_of(ask) != CLI_REPORT_TEXT ? 0 : GROUPS_SHOWN};
	struct log log = {0};
	struct analysis a = {0};
	int rc = analyse(&log, paths, count, rules, &a);

	if (rc == 0 && form_of(ask) == CLI_REPORT_HTML)
		view.most = CLI_REPORT_PAGE_GROUPS;
	if (rc == 0)
		rc = cli_report_write("report", ask->output, form_of(ask), &a, &view);
	if (rc == 0 && analysis_has(&a, ask->mask))
		rc = CLI_FAILED;
	analysis_free(&a);
	log_free(&log);
	return rc;
}

static int compare(const struct ask *ask, struct cli_rules *rules, char **paths)
{
	struct log log[2] = {{0}, {0}};
	struct analysis a[2] = {{0}, {0}};
	int rc = analyse(&log[0], paths, 1, rules, &a[0]);

	if (rc == 0)
		rc = analyse(&log[1], paths + 1, 1, rules, &a[1]);
	if (rc == 0 && report_compare(stdout, &a[0], &a[1], ask->mask) > 0)
		rc = CLI_FAILED;
	for (int i = 0; i < 2; i++) {
		analysis_free(&a[i]);
		log_free(&log[i]);
	}
	return rc;
}

static int parse(int argc, char **argv, struct ask *ask, bool *done)
{
	const struct cli_option options[] = {
	        CLI_PLACE_OPTIONS(&ask->json),
	        {.name = "junit", .kind = CLI_FLAG, .at = &ask->junit},
	        {.name = "html", .kind = CLI_FLAG, .at = &ask->html},
	        {.name = "all", .kind = CLI_FLAG, .at = &ask->all},
	        {.name = "compare", .kind = CLI_FLAG, .at = &ask->compare},
	        {.name = "output", .kind = CLI_TEXT, .at = &ask->output},
	        {.name = "fail-on", .kind = CLI_TEXT, .at = &ask->fail_on},
	        {0}};
	const struct cli_syntax syntax = {.command = "report", .help = help, .options = options};
	int rc = cli_parse(&syntax, argc, argv, done);

	if (rc || *done)
		return rc;
	if (ask->json + ask->junit + ask->html > 1)
		return cli_usage("report", "--json, --junit and --html exclude each other");
	if (ask->compare && (ask->json || ask->junit || ask->html || ask->output))
		return cli_usage("report", "--compare prints a table only");
	if (ask->compare && argc - optind != 2)
		return cli_usage("report", "--compare takes two logs");
	return ask->fail_on ? cli_finding_mask("report", ask->fail_on, &ask->mask) : 0;
}

int cli_report(int argc, char **argv)
{
	struct ask ask = {0};
	struct cli_place place;
	struct cli_rules rules = {0};
	char *events[1];
	bool done = false;
	int rc = parse(argc, argv, &ask, &done);

	if (rc || done)
		return rc;
	rc = cli_find_place("report", &place);
	if (rc)
		return rc;
	events[0] = place.events;
	if (cli_rules_load(&rules, place.policy) != 0)
		rc = cli_fail(CLI_CANNOT, "report", "out of memory");
	else if (ask.compare)
		rc = compare(&ask, &rules, argv + optind);
	else if (optind < argc)
		rc = report(&ask, &rules, argv + optind, argc - optind);
	else
		rc = report(&ask, &rules, events, 1);
	cli_rules_free(&rules);
	cli_free_place(&place);
	return rc;
}
