/* `sendonce explain`: what sendonce would make of a request, before a program makes it.
 *
 * The request is read as the curl tool would be called, turned into the options a program would
 * have set, and from there on it goes the way of a program's write: the same target, rule,
 * identity, search in the ledger, verdict and key (request/, identity/, intercept/write.c). The
 * ledger is opened for reading; nothing is sent, stored or logged. */
#include "cli/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "policy/paths.h"

static const char help[] =
        "Usage: sendonce explain [OPTION...] [-X METHOD] URL [-H LINE] [-d DATA] ...\n"
        "       sendonce explain [OPTION...] -- curl ...\n"
        "       sendonce explain [OPTION...] --diff REQUEST --next REQUEST\n"
        "\n"
        "Show what would become of a request: the rule that names it and why the others do not,\n"
        "the parts that make it this write and no other, its key, the record there is, and the\n"
        "verdict. The request is written as for the curl tool. Nothing is sent.\n"
        "\n"
        "  --policy F   the policy (SENDONCE_POLICY; else " PATHS_POLICY_DEFAULT ")\n"
        "  --ledger F   the ledger (SENDONCE_LEDGER; else the policy's)\n"
        "  --mode M     SENDONCE_MODE\n"
        "  --scope S    SENDONCE_SCOPE\n"
        "  --run R      SENDONCE_RUN\n"
        "  --diff       which part makes two requests different\n"
        "  --json       one object a line\n"
        "  --help       this text\n"
        "\n"
        "These come first; the rest is curl's. Credentials are never shown, values of fields that\n"
        "are named like a secret neither: hmac:... is the same for the same value.\n"
        "\n"
        "Exit code: 0 explained, or the same write; 1 not the same; 2 usage; 3 the policy or the\n"
        "ledger cannot be used.\n";

/* --- what all requests share --- */

static const struct flavour *no_flavour(const void *caller)
{
	(void)caller;
	return NULL;
}

/* The names of the environment reach the library's code the way the preload gives them. */
static void link_process(void)
{
	static struct preload_api api = {.abi = CORELINK_ABI, .flavour_of_caller = no_flavour};
	static const char *const names[ENV_COUNT] = {
#define EXPLAIN_ENV(name) #name,
	        CORELINK_ENV(EXPLAIN_ENV)
#undef EXPLAIN_ENV
	};

	for (int i = 0; i < ENV_COUNT; i++)
		api.env[i] = getenv(names[i]);
	process_link(&api);
}

static int set_mode(struct explaining *all)
{
	const char *text = getenv("SENDONCE_MODE");
	struct process *p = &all->process;
	int mode = text && *text ? policy_mode_parse(text) : (int)p->policy->mode;

	if (mode < 0)
		return cli_fail(CLI_CANNOT, all->command, "SENDONCE_MODE: `%s` is not a mode",
		                text);
	p->acting = (enum policy_mode)mode;
	p->mode = policy_mode_name(p->acting);
	p->state = mode == MODE_OFF ? PROCESS_OFF : mode == MODE_AUDIT ? PROCESS_AUDIT : PROCESS_ON;
	return 0;
}

static int load_policy(struct explaining *all)
{
	struct policy_error error;
	char path[4096];
	bool named;
	int rc = paths_policy(cli_env, NULL, path, sizeof(path), &named);

	if (rc)
		return cli_fail(CLI_CANNOT, all->command, "SENDONCE_POLICY: %s %s", path,
		                paths_error(rc));
	if (policy_load(path, cli_env, NULL, &all->process.policy, &error) != POLICY_OK)
		return cli_fail(CLI_CANNOT, all->command, "%s%s", error.text,
		                named ? "" : "; name one with --policy");
	rc = set_mode(all);
	if (rc == 0)
		process_names(&all->process);
	return rc;
}

/* One that is not there yet is made by the first write. */
static int open_ledger(struct explaining *all)
{
	struct ledger_error error = {{0}};
	struct ledger_options options = {.read_only = true};
	char path[4096];
	bool is_default;
	int rc = paths_ledger(all->process.policy, cli_env, NULL, path, sizeof(path), &is_default);

	if (rc)
		return cli_fail(CLI_CANNOT, all->command, "ledger path: %s %s", path,
		                paths_error(rc));
	options.path = path;
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return 0;
	if (ledger_open(&options, &all->ledger, &error) == LEDGER_OK)
		return 0;
	all->ledger_broken = true;
	snprintf(all->ledger_text, sizeof(all->ledger_text), "%s", error.text);
	return 0;
}

static int begin(struct explaining *all)
{
	const char *file = getenv("SENDONCE_SECRET_FILE");
	int rc;

	link_process();
	rc = load_policy(all);
	if (rc == 0)
		rc = open_ledger(all);
	if (rc == 0)
		rc = libcurl_open(all->command, &all->lib);
	all->has_secret = all->ledger || (file && *file);
	return rc;
}

static void end(struct explaining *all)
{
	if (all->ledger)
		ledger_close(all->ledger);
	if (all->process.policy)
		policy_free(all->process.policy);
}

/* --- the command line --- */

static const char *const valued[] = {"policy", "ledger", "mode", "scope", "run"};
static const char *const flags[] = {"diff", "json", "help"};

/* How many of the arguments, the command's name included, are our own. */
static int count_own(int argc, char **argv)
{
	int i = 1;

	while (i < argc) {
		size_t n = strcspn(argv[i] + (strncmp(argv[i], "--", 2) == 0 ? 2 : 0), "=");
		const char *name = argv[i] + 2;
		int takes = 0;

		if (strcmp(argv[i], "-h") == 0)
			takes = 1;
		if (strncmp(argv[i], "--", 2) != 0 && takes == 0)
			return i;
		for (size_t k = 0; k < sizeof(flags) / sizeof(*flags) && !takes; k++)
			takes = strlen(flags[k]) == n && strncmp(name, flags[k], n) == 0;
		for (size_t k = 0; k < sizeof(valued) / sizeof(*valued) && !takes; k++)
			if (strlen(valued[k]) == n && strncmp(name, valued[k], n) == 0)
				takes = name[n] == '=' ? 1 : 2;
		if (takes == 0)
			return i;
		i += takes;
	}
	return i < argc ? i : argc;
}

static int explain_one(const struct explaining *all, int argc, char **argv, bool json)
{
	struct explained *e = calloc(1, sizeof(*e));
	int n = e ? explain_request(all, argc, argv, e) : -CLI_CANNOT;

	if (n >= 0 && n < argc)
		n = -cli_usage(all->command, "%s: two requests go with --diff", argv[n]);
	if (n >= 0)
		(json ? explain_show_json : explain_show_text)(all, e);
	if (e)
		explain_free(all, e);
	free(e);
	return n < 0 ? -n : CLI_OK;
}

static int explain_two(const struct explaining *all, int argc, char **argv, bool json)
{
	struct explained *e = calloc(2, sizeof(*e));
	int rc = CLI_CANNOT, n = e ? explain_request(all, argc, argv, &e[0]) : -CLI_CANNOT, more;

	if (n < 0) {
		rc = -n;
	} else if (n >= argc) {
		rc = cli_usage(all->command, "--diff wants two requests, with --next between them");
	} else {
		more = explain_request(all, argc - n - 1, argv + n + 1, &e[1]);
		rc = more < 0              ? -more
		     : more < argc - n - 1 ? cli_usage(all->command, "--diff wants two requests")
		     : explain_compare(all, &e[0], &e[1], json) ? CLI_OK
		                                                : CLI_FAILED;
	}
	for (int i = 0; e && i < 2; i++)
		explain_free(all, &e[i]);
	free(e);
	return rc;
}

int cli_explain(int argc, char **argv)
{
	static struct explaining all = {.command = "explain"};
	bool json = false, diff = false, done;
	const struct cli_option options[] = {
	        CLI_PLACE_OPTIONS(&json),
	        {.name = "mode", .kind = CLI_ENV, .env = "SENDONCE_MODE"},
	        {.name = "scope", .kind = CLI_ENV, .env = "SENDONCE_SCOPE"},
	        {.name = "run", .kind = CLI_ENV, .env = "SENDONCE_RUN"},
	        {.name = "diff", .kind = CLI_FLAG, .at = &diff},
	        {0}};
	const struct cli_syntax syntax = {
	        .command = all.command, .help = help, .options = options, .stop_at_operand = true};
	int own = count_own(argc, argv), rc = cli_parse(&syntax, own, argv, &done);

	if (rc || done)
		return rc;
	if (own < argc && strcmp(argv[own], "--") == 0)
		own++;
	if (own == argc)
		return cli_usage(all.command,
		                 "give a request: -X POST URL -d DATA, or a curl command");
	rc = begin(&all);
	if (rc == 0)
		rc = (diff ? explain_two : explain_one)(&all, argc - own, argv + own, json);
	end(&all);
	return rc;
}
