/* Who may say that a write did not happen.
 *
 * A program that was refused because its write is in doubt, above all one that is driven by a
 * model, will look for the command that lets it go on. So the claim needs a person: one who sits at
 * a terminal and whose shell was not started by a program with records in this ledger (nor belongs
 * to the run of one), or one who gives a name and what he saw, both of which go into the log.
 *
 * This stops a program that takes the way of least resistance. It is no access control: whoever may
 * write the file may do anything. */
#include "cli/person.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { ANCESTORS_MAX = 64 };

/* Its parent, or 0. The program's name in the second field may hold anything, also brackets. */
static int parent_of(int pid)
{
	char path[64], text[512];
	const char *after;
	ssize_t n;
	int fd, parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	after = strrchr(text, ')');
	if (!after || sscanf(after + 1, " %*c %d", &parent) != 1)
		return 0;
	return parent;
}

static size_t list_ancestors(int *pids, size_t room)
{
	size_t count = 0;

	for (int pid = getppid(); pid > 0 && count < room; pid = parent_of(pid))
		pids[count++] = pid;
	return count;
}

static bool is_involved(struct ledger *ledger, const char *run)
{
	int pids[ANCESTORS_MAX];
	size_t count = list_ancestors(pids, ANCESTORS_MAX);

	if (ledger_has_pid(ledger, pids, count))
		return true;
	return run && *run && ledger_has_run(ledger, ledger_name_hash(span_of(run)));
}

static int ask(const char *command, const char *question)
{
	char answer[16] = "";

	fprintf(stderr, "%s\nType `yes` to go on: ", question);
	fflush(stderr);
	if (fgets(answer, sizeof(answer), stdin) && strcmp(answer, "yes\n") == 0)
		return 0;
	return cli_fail(CLI_FAILED, command, "nothing was changed");
}

int person_require(const char *command, struct ledger *ledger, const struct person *person,
                   const char *run, const char *question)
{
	bool has_operator = person->name && *person->name;
	bool has_evidence = person->evidence && *person->evidence;

	if (has_operator != has_evidence)
		return cli_usage(command, "--operator NAME and --evidence TEXT go together");
	if (has_operator)
		return 0;
	if (is_involved(ledger, run))
		return cli_fail(
		        CLI_FAILED, command,
		        "refused: a program above this command, or one of the same run, has "
		        "writes in this ledger. An operator who has looked at the "
		        "provider gives --operator NAME --evidence TEXT");
	if (!isatty(STDIN_FILENO))
		return cli_fail(CLI_FAILED, command,
		                "refused: this needs a person at a terminal, or --operator NAME "
		                "--evidence TEXT (what was seen at the provider)");
	return ask(command, question);
}
