/* `sendonce COMMAND ...`: finds the command and leaves everything else to it. */
#include <stdio.h>
#include <string.h>

#include "cli/check.h"
#include "cli/cli.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} commands[] = {
        {"run", cli_run, "start a command with sendonce around its HTTP writes"},
        {"check", cli_check, "read a policy and say what is wrong with it"},
        {"explain", cli_explain, "say what would become of a request, and why"},
        {"init", cli_init, "write a policy to begin with"},
        {"ledger", cli_ledger, "list, show, resolve, forget or verify what was written"},
        {"stats", cli_stats, "the ledger's counters"},
        {"events", cli_events, "the event log"},
        {"doctor", cli_doctor, "will a program, or is a process, be seen"},
        {"report", cli_report, "which writes were sent twice, from the event log"},
};
enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static void print_help(FILE *out)
{
	fputs("Usage: sendonce COMMAND [OPTION...]\n\n"
	      "HTTP writes of unmodified programs, once.\n\nCommands:\n",
	      out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
	fputs("\n`sendonce COMMAND --help` says more; --version prints the version.\n"
	      "Exit codes: 0 ok, 1 failed, 2 usage, 3 cannot use policy or ledger.\n",
	      out);
}

/* Data that did not reach its reader is a failure, whatever the command thought. */
static int finish(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	perror("sendonce: standard output");
	return code == CLI_OK ? CLI_FAILED : code;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		print_help(stdout);
		return finish(CLI_OK);
	}
	if (strcmp(name, "--version") == 0) {
		puts("sendonce " SENDONCE_VERSION);
		return finish(CLI_OK);
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return finish(commands[i].run(argc - 1, argv + 1));
	fprintf(stderr, "sendonce: there is no command `%s`\n\n", name);
	print_help(stderr);
	return CLI_USAGE;
}
