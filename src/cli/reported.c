/* See reported.h. The command is a child here, not what this process becomes: somebody has to be
 * there when it has ended. SIGINT and SIGQUIT of a terminal reach the child by themselves; SIGTERM,
 * SIGHUP, SIGUSR1 and SIGUSR2 are passed on. Of the event log only what the command added is read:
 * from the size it had before and, where a run is named, the lines of that run. A log that was
 * rotated meanwhile is read whole, from the moment the command began. */
#include "cli/reported.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/report.h"

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* Where the log ended before the command began. */
struct before {
	int64_t began_us, size;
	dev_t device;
	ino_t inode;
};

int cli_execute(char **argv)
{
	int code;

	execvp(argv[0], argv);
	code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
	return cli_fail(code, "run", "%s: %s", argv[0], strerror(errno));
}

/* --- the command --- */

static volatile sig_atomic_t child;

static void pass_on(int signal)
{
	int saved = errno;

	if (child > 0)
		kill((pid_t)child, signal);
	errno = saved;
}

static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static const int ignored[] = {SIGINT, SIGQUIT};
enum { PASSED = sizeof(passed) / sizeof(*passed), IGNORED = sizeof(ignored) / sizeof(*ignored) };

/* The child begins with the signals as they were for us. */
static int start(char **argv, sigset_t *mask)
{
	struct sigaction old[IGNORED], act = {.sa_handler = SIG_IGN};
	pid_t pid;

	for (int i = 0; i < IGNORED; i++)
		sigaction(ignored[i], &act, &old[i]);
	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	for (int i = 0; i < IGNORED; i++)
		sigaction(ignored[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(cli_execute(argv));
}

/* Its wait status, or -1. A signal that comes before the child has a number waits in the mask. */
static int run_child(char **argv)
{
	struct sigaction act = {.sa_handler = pass_on};
	sigset_t block, mask;
	int status;

	sigemptyset(&block);
	for (int i = 0; i < PASSED; i++)
		sigaddset(&block, passed[i]);
	sigprocmask(SIG_BLOCK, &block, &mask);
	child = start(argv, &mask);
	if (child < 0)
		return -1;
	for (int i = 0; i < PASSED; i++)
		sigaction(passed[i], &act, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	while (waitpid((pid_t)child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	child = 0;
	return status;
}

static int end_as(int status)
{
	sigset_t one;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, WTERMSIG(status));
	fflush(NULL);
	raise(WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + WTERMSIG(status);
}

/* --- the log --- */

static struct before look_before(const char *path)
{
	struct before b = {.began_us = clock_now().wall_us};
	struct stat st;

	if (stat(path, &st) == 0) {
		b.size = st.st_size;
		b.device = st.st_dev;
		b.inode = st.st_ino;
	}
	return b;
}

static int read_since(struct log *log, const char *path, const struct before *b)
{
	struct stat st;
	int64_t from = 0;
	int rc;

	if (stat(path, &st) != 0 && errno == ENOENT)
		return log_add(log, (struct span){"", 0});
	if (st.st_dev == b->device && st.st_ino == b->inode && st.st_size >= b->size)
		from = b->size;
	rc = log_read_from(log, path, from);
	if (rc)
		return rc;
	log_keep(log, b->began_us, getenv("SENDONCE_RUN"));
	return log_sort(log);
}

static enum cli_report_form form_of(const char *path)
{
	struct span name = span_of(path);

	return span_ends_nocase(name, ".json")  ? CLI_REPORT_JSON
	       : span_ends_nocase(name, ".xml") ? CLI_REPORT_JUNIT
	       : span_ends_nocase(name, ".html") || span_ends_nocase(name, ".htm")
	               ? CLI_REPORT_HTML
	               : CLI_REPORT_TEXT;
}

static int say(const struct analysis *a, const struct reported *ask, unsigned mask,
               const char *source)
{
	struct report_view view = {.source = source,
	                           .fail_on = mask ? mask : CLI_REPORT_DEFAULT_MASK,
	                           .most = CLI_REPORT_PAGE_GROUPS};
	int rc = 0;

	if (ask->report)
		rc = cli_report_write("run", ask->report, form_of(ask->report), a, &view);
	report_summary(stderr, a, &view);
	return rc ? rc : analysis_has(a, mask) ? CLI_FAILED : CLI_OK;
}

static int report(const struct cli_place *place, const struct before *b, const struct reported *ask,
                  unsigned mask)
{
	struct cli_rules rules;
	struct log log = {0};
	struct analysis a = {0};
	int rc = read_since(&log, place->events, b);

	if (rc)
		return cli_log_failed("run", place->events, rc);
	if (cli_rules_load(&rules, place->policy) != 0 ||
	    analysis_make(&log, cli_rules_find, &rules, &a) != 0)
		rc = cli_fail(CLI_CANNOT, "run", "out of memory: no report");
	else
		rc = say(&a, ask, mask, place->events);
	cli_rules_free(&rules);
	analysis_free(&a);
	log_free(&log);
	return rc;
}

/* The report's file is tried before the command runs: an hour of tests is not lost to a typing
 * error. */
static int try_report(const struct reported *ask)
{
	FILE *file = ask->report ? fopen(ask->report, "ae") : NULL;

	if (!ask->report)
		return 0;
	if (!file)
		return cli_fail(CLI_CANNOT, "run", "%s: %s", ask->report, strerror(errno));
	fclose(file);
	return 0;
}

int cli_run_reported(char **argv, const struct reported *ask)
{
	struct cli_place place;
	struct before before;
	unsigned mask = 0;
	int status, reported, rc = ask->fail_on ? cli_finding_mask("run", ask->fail_on, &mask) : 0;

	if (rc == 0)
		rc = try_report(ask);
	if (rc == 0)
		rc = cli_find_place("run", &place);
	if (rc)
		return rc;
	before = look_before(place.events);
	status = run_child(argv);
	if (status < 0) {
		cli_free_place(&place);
		return cli_fail(CLI_CANNOT, "run", "%s: %s", argv[0], strerror(errno));
	}
	reported = report(&place, &before, ask, mask);
	cli_free_place(&place);
	rc = end_as(status);
	return rc ? rc : reported;
}
