/* `sendonce doctor`: will a program, or is a process, seen by sendonce? */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/diagnose.h"
#include "cli/tried.h"

static const char help[] =
        "Usage: sendonce doctor [OPTION...] CMD...\n"
        "       sendonce doctor --run CMD [ARG...]\n"
        "       sendonce doctor --pid N | --all\n"
        "\n"
        "Says of each program whether its HTTP writes are protected, and why: `protected`,\n"
        "`partly` or `not`. Without --run nothing is started: it looks at ELF files and /proc.\n"
        "\n"
        "  --run     run CMD against a local server and see what arrives; {url} in an ARG is the\n"
        "            server's. curl, php, python3, ruby, perl, wget and busybox need no ARG\n"
        "  --pid N   a running process\n"
        "  --all     every process that has a libcurl, or sendonce\n"
        "  --json    one object a line\n"
        "  --help    this text\n"
        "\n"
        "Exit code: 0 all are protected, 1 some are not, 2 usage, 3 something cannot be looked "
        "at.\n";

struct ask {
	bool run, all, json;
	const char *pid;
};

static void print_json(const struct diagnosis *d, int pid)
{
	fputs("{\"name\":", stdout);
	cli_json_text(stdout, d->name);
	if (pid)
		printf(",\"pid\":%d", pid);
	printf(",\"sight\":\"%s\",\"why\":", sight_name(d->sight));
	cli_json_text(stdout, d->why);
	if (*d->advice) {
		fputs(",\"advice\":", stdout);
		cli_json_text(stdout, d->advice);
	}
	puts("}");
}

static void print_text(const struct diagnosis *d, int pid)
{
	cli_plain_text(stdout, d->name, 0);
	if (pid)
		printf(" (%d)", pid);
	printf(": %s: ", sight_name(d->sight));
	cli_plain_text(stdout, d->why, 0);
	putchar('\n');
	if (*d->advice) {
		fputs("  ", stdout);
		cli_plain_text(stdout, d->advice, 0);
		putchar('\n');
	}
}

static int print(const struct ask *ask, const struct diagnosis *d, int pid)
{
	if (ask->json)
		print_json(d, pid);
	else
		print_text(d, pid);
	return d->sight == SIGHT_PROTECTED ? CLI_OK : CLI_FAILED;
}

static int look_at_commands(const struct ask *ask, char **commands, int count)
{
	struct diagnosis d;
	int rc = CLI_OK;

	for (int i = 0; i < count; i++) {
		if (diagnose_command(commands[i], &d) != 0)
			return cli_fail(CLI_CANNOT, "doctor", "%s: %s", commands[i],
			                strerror(errno));
		if (print(ask, &d, 0) != CLI_OK)
			rc = CLI_FAILED;
	}
	return rc;
}

static int look_at_process(const struct ask *ask)
{
	struct diagnosis d;
	char *end;
	long pid = strtol(ask->pid, &end, 10);
	bool concerned;

	if (*end || pid < 1 || pid > INT_MAX)
		return cli_usage("doctor", "--pid wants a number, not `%s`", ask->pid);
	if (diagnose_process((pid_t)pid, &d, &concerned) != 0)
		return cli_fail(CLI_CANNOT, "doctor", "process %ld: %s", pid, strerror(errno));
	return print(ask, &d, (int)pid);
}

/* Of a process that ends meanwhile, or is the kernel's, nothing is said; one that may not be looked
 * at is counted. */
static int look_at_all(const struct ask *ask)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct diagnosis d;
	int rc = CLI_OK, hidden = 0;
	bool concerned;

	if (!proc)
		return cli_fail(CLI_CANNOT, "doctor", "/proc: %s", strerror(errno));
	while ((entry = readdir(proc))) {
		int pid = isdigit((unsigned char)*entry->d_name) ? atoi(entry->d_name) : 0;

		if (!pid || pid == getpid())
			continue;
		if (diagnose_process(pid, &d, &concerned) != 0)
			hidden += errno == EACCES || errno == EPERM;
		else if (concerned && print(ask, &d, pid) != CLI_OK && d.sight == SIGHT_NOT)
			rc = CLI_FAILED;
	}
	closedir(proc);
	if (hidden)
		return cli_fail(CLI_CANNOT, "doctor",
		                "%d processes of other users cannot be looked at; be root", hidden);
	return rc;
}

static int try_command(const struct ask *ask, char **argv)
{
	struct diagnosis d;
	int rc;

	if (diagnose_command(argv[0], &d) != 0)
		return cli_fail(CLI_CANNOT, "doctor", "%s: %s", argv[0], strerror(errno));
	rc = cli_try(argv, &d);
	return rc ? rc : print(ask, &d, 0);
}

int cli_doctor(int argc, char **argv)
{
	struct ask ask = {0};
	const struct cli_option options[] = {{.name = "run", .kind = CLI_FLAG, .at = &ask.run},
	                                     {.name = "all", .kind = CLI_FLAG, .at = &ask.all},
	                                     {.name = "json", .kind = CLI_FLAG, .at = &ask.json},
	                                     {.name = "pid", .kind = CLI_TEXT, .at = &ask.pid},
	                                     {0}};
	const struct cli_syntax syntax = {
	        .command = "doctor", .help = help, .options = options, .stop_at_operand = true};
	bool done;
	int rc = cli_parse(&syntax, argc, argv, &done);

	if (rc || done)
		return rc;
	if (ask.run + ask.all + (ask.pid != NULL) > 1)
		return cli_usage("doctor", "--run, --pid and --all exclude each other");
	if ((ask.all || ask.pid) != (optind == argc))
		return cli_usage("doctor",
		                 optind == argc ? "no command given" : "takes no operand then");
	if (ask.all)
		return look_at_all(&ask);
	if (ask.pid)
		return look_at_process(&ask);
	return ask.run ? try_command(&ask, argv + optind)
	               : look_at_commands(&ask, argv + optind, argc - optind);
}
