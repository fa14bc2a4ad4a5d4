/* See follow.h. The log is looked at five times a second: it lies on file systems that tell nobody
 * of changes, and a person is not told faster than that. It is followed by name: when another file
 * stands there (rotated), the old one is read to its end first; when it got shorter (copied and
 * truncated), it is read from its beginning. One that is not there yet is waited for. The command
 * runs to its end before the next line is read, so that a slow one is never started twice at once.
 */
#include "cli/follow.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/line.h"
#include "report/scan.h"

struct tail {
	const struct follow *ask;
	FILE *log;       /* null: not there */
	struct buf rest; /* of a line whose end has not come */
};

static void rest_a_while(void)
{
	struct timespec t = {.tv_nsec = 200 * 1000 * 1000};

	nanosleep(&t, NULL);
}

/* --- the command --- */

static void feed(int fd, const char *line, size_t n)
{
	ssize_t written;

	while (n > 0) {
		written = write(fd, line, n);
		if (written < 0 && errno != EINTR)
			return; /* it does not want to know */
		line += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
}

static void tell(const char *command, const char *line, size_t n)
{
	int pipes[2], status = 0;
	pid_t pid;

	if (pipe(pipes) != 0) {
		cli_fail(0, "events", "--exec: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid == 0) {
		dup2(pipes[0], STDIN_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		signal(SIGPIPE, SIG_DFL);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(pipes[0]);
	if (pid > 0)
		feed(pipes[1], line, n);
	close(pipes[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		cli_fail(0, "events", "--exec: `%s` failed (wait status %d)", command, status);
}

/* --- lines --- */

static void take_line(const struct follow *ask, const char *text, size_t n)
{
	static struct line line;

	if (!line_read(text, n, &line)) {
		struct span whole = scan_untorn((struct span){text, n});

		cli_fail(0, "events", "%s: a line could not be read", ask->path);
		if (whole.n)
			take_line(ask, whole.p, whole.n);
		return;
	}
	if (ask->json)
		fwrite(text, 1, n, stdout);
	else
		line_print(&line);
	fflush(stdout);
	if (ask->command && line_wants_person(&line))
		tell(ask->command, text, n);
}

/* What was added since; a line without its end is kept for the next time. */
static void read_on(struct tail *tail)
{
	char chunk[8192], *end;
	size_t n, from = 0;

	clearerr(tail->log);
	while ((n = fread(chunk, 1, sizeof(chunk), tail->log)) > 0)
		buf_add(&tail->rest, chunk, n);
	while (from < tail->rest.n &&
	       (end = memchr(tail->rest.data + from, '\n', tail->rest.n - from))) {
		n = (size_t)(end + 1 - tail->rest.data) - from;
		take_line(tail->ask, tail->rest.data + from, n);
		from += n;
	}
	if (from) {
		memmove(tail->rest.data, tail->rest.data + from, tail->rest.n - from);
		tail->rest.n -= from;
	}
}

static bool is_another(FILE *log, const char *path)
{
	struct stat here, there;

	if (fstat(fileno(log), &here) != 0 || stat(path, &there) != 0)
		return false;
	return here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

static bool got_shorter(FILE *log)
{
	struct stat st;

	return fstat(fileno(log), &st) == 0 && st.st_size < ftell(log);
}

static void follow_name(struct tail *tail)
{
	if (got_shorter(tail->log)) {
		rewind(tail->log);
		buf_reset(&tail->rest);
	}
	read_on(tail);
	if (!is_another(tail->log, tail->ask->path))
		return;
	read_on(tail); /* what came between the look and the rotation */
	fclose(tail->log);
	tail->log = NULL;
	buf_reset(&tail->rest);
}

int cli_follow(const struct follow *follow)
{
	struct tail tail = {.ask = follow, .log = fopen(follow->path, "re")};

	if (!tail.log && errno != ENOENT)
		return cli_fail(CLI_CANNOT, "events", "%s: %s", follow->path, strerror(errno));
	if (tail.log)
		fseek(tail.log, 0, SEEK_END);
	signal(SIGPIPE, SIG_IGN);
	if (!follow->json)
		line_print_header();
	fflush(stdout);
	while (!ferror(stdout)) {
		if (!tail.log)
			tail.log = fopen(follow->path, "re");
		if (tail.log)
			follow_name(&tail);
		rest_a_while();
	}
	if (tail.log)
		fclose(tail.log);
	buf_free(&tail.rest);
	return CLI_FAILED;
}
