/* See reported.h. The command is a child here, not what this process becomes: somebody has to be
 * there when it has ended. SIGINT and SIGQUIT of a terminal reach the child by themselves; SIGTERM,
 * SIGHUP, SIGUSR1 and SIGUSR2 are passed on. Of the event log only what the command added is read:
 * from the size it had before and, where a run is named, the lines of that run. The log is open
 * meanwhile, so that one that is rotated once is read on both sides; of a second rotation, or where
 * it is copied and cut, what lies between is not seen. */
#include "cli/reported.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/report.h"
#include "ledger/events.h"

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* Where the log ended before the command began. */
struct before {
	int fd; /* -1: there was no log */
	int64_t size;
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
	struct before b = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	struct stat st;

	if (b.fd >= 0 && fstat(b.fd, &st) == 0)
		b.size = st.st_size;
	return b;
}

/* What was added to the log there was. One that is shorter now was cut: all of it is new. */
static int read_old(struct log *log, const struct before *b)
{
	struct stat st;

	if (b->fd < 0)
		return LOG_OK;
	if (fstat(b->fd, &st) != 0)
		return LOG_CANNOT;
	return log_read_open(log, b->fd, st.st_size >= b->size ? b->size : 0);
}

/* Whether the path leads to another file now, all of which is new. */
static bool is_another(const char *path, const struct before *b)
{
	struct stat now, then;

	if (stat(path, &now) != 0)
		return errno != ENOENT;
	return b->fd < 0 || fstat(b->fd, &then) != 0 || then.st_dev != now.st_dev ||
	       then.st_ino != now.st_ino;
}

/* The name the command's writes have in the log; null where each may have another. */
static const char *run_of(const struct policy *policy)
{
	if (!policy)
		return getenv("SENDONCE_RUN");
	return policy->run_from.header ? NULL : policy->run;
}

static int read_since(struct log *log, const struct cli_place *place, const struct before *b)
{
	int rc = log_add(log, (struct span){"", 0});

	if (rc == LOG_OK)
		rc = read_old(log, b);
	if (rc == LOG_OK && is_another(place->events, b))
		rc = log_read(log, place->events);
	if (rc)
		return rc;
	log_keep_run(log, run_of(place->policy));
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
	int rc = read_since(&log, place, b);

	if (rc)
		return cli_log_failed("run", place->events, rc);
	if (cli_rules_load(&rules, place->policy) != 0 ||
	    analysis_make(&log, cli_rules_find, &rules, &a) != 0)
		rc = cli_fail(CLI_CANNOT, "run", "out of memory: no report");
	else
		rc = say(&a, ask, mask, place->events);
	if (log.lost && rc != CLI_CANNOT)
		rc = cli_fail(CLI_CANNOT, "run",
		              "%s: %lu events were lost, and what was sent twice with them",
		              place->events, log.lost);
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

/* So is the log: one that takes no lines would say that nothing was sent twice. Its default folder
 * may not be there yet; the library makes it. */
static int try_log(const struct cli_place *place)
{
	bool made = place->ledger_default && !(place->policy && place->policy->events_path);

	if (!place->events[0])
		return cli_fail(CLI_CANNOT, "run",
		                "there is no event log to report from: name one by `events`");
	if (event_log_try(place->events) == 0 || (errno == ENOENT && made))
		return 0;
	return cli_fail(CLI_CANNOT, "run", "%s: the event log cannot be written: %s", place->events,
	                errno == ELOOP ? "it is a symbolic link" : strerror(errno));
}

/* Ends as the command did, also by its signal. */
static int run_and_report(char **argv, struct cli_place *place, const struct reported *ask,
                          unsigned mask)
{
	struct before before = look_before(place->events);
	int status = run_child(argv), rc;

	if (status < 0)
		rc = cli_fail(CLI_CANNOT, "run", "%s: %s", argv[0], strerror(errno));
	else
		rc = report(place, &before, ask, mask);
	if (status >= 0 && event_log_is_full(place->events))
		rc = cli_fail(
		        rc ? rc : CLI_CANNOT, "run",
		        "%s: the disk is full: events may be missing, and what was sent twice "
		        "with them",
		        place->events);
	if (before.fd >= 0)
		close(before.fd);
	if (status < 0)
		return rc;
	status = end_as(status);
	return status ? status : rc;
}

int cli_run_reported(char **argv, const struct reported *ask)
{
	struct cli_place place;
	unsigned mask = 0;
	int rc = ask->fail_on ? cli_finding_mask("run", ask->fail_on, &mask) : 0;

	if (rc == 0)
		rc = try_report(ask);
	if (rc == 0)
		rc = cli_find_place("run", &place);
	if (rc)
		return rc;
	rc = try_log(&place);
	if (rc == 0)
		rc = run_and_report(argv, &place, ask, mask);
	cli_free_place(&place);
	return rc;
}
