/* The event log: the line's shape, and that nothing a program put into a name can break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/events.h"

static char folder[] = "/tmp/sendonce-events-XXXXXX";
static char path[64];

static const char *line_of(const struct event *e)
{
	static struct buf out;
	struct stamp at = {1764511511000001, 0, 0};

	buf_reset(&out);
	event_format(&out, e, at);
	return out.data;
}

static void empty_fields_are_left_out(void **state)
{
	struct event e = event_make("write");
	char want[256];

	(void)state;
	snprintf(want, sizeof(want),
	         "{\"time\":\"2025-11-30T14:05:11.000001Z\",\"event\":\"write\",\"pid\":%d,"
	         "\"exe\":\"test_events\"}\n",
	         (int)getpid());
	assert_string_equal(line_of(&e), want);
}

static void every_field_has_its_place_and_length(void **state)
{
	struct event e = event_make("write");
	uint8_t fingerprint[32] = {0xab, 0xcd}, trace[16] = {0x01};
	uint8_t identity[32] = {0x12}, own_key[32] = {0x34};
	const char *line;

	(void)state;
	e.run = "r";
	e.key = "0123456789abcdef";
	e.fingerprint = fingerprint;
	e.trace = trace;
	e.identity = identity;
	e.own_key = own_key;
	e.parts = "{\"/a\":\"n01234567\"}";
	e.record = 0x100000002;
	e.status = 0;
	e.generation = 3;
	e.text = "t";
	line = line_of(&e);
	assert_non_null(strstr(line, "\"run\":\"r\""));
	assert_non_null(strstr(line, "\"key\":\"01234567\""));
	assert_non_null(strstr(line, "\"fingerprint\":\"abcd000000000000\""));
	assert_non_null(strstr(line, "\"record\":\"0000000100000002\""));
	assert_non_null(strstr(line, "\"generation\":3"));
	assert_non_null(strstr(line, "\"status\":0"));
	assert_non_null(strstr(line, "\"identity\":\"1200000000000000\""));
	assert_non_null(strstr(line, "\"own_key\":\"3400000000000000\""));
	assert_non_null(strstr(line, "\"parts\":{\"/a\":\"n01234567\"}"));
	assert_non_null(strstr(line, "\"trace\":\"01000000000000000000000000000000\""));
	assert_null(strstr(line, "curlcode"));
}

static void names_are_escaped(void **state)
{
	static const struct {
		const char *in, *out;
	} table[] = {
	        {"a\"b\\c", "\"a\\\"b\\\\c\""},
	        {"line\nbreak\r\t\x01\x7f", "\"line\\u000abreak\\u000d\\u0009\\u0001\\u007f\""},
	        {"\xc3\xa9", "\"\xc3\xa9\""},
	        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
	        {"\xff\xfe", "\"\\ufffd\\ufffd\""},
	        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},
	        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
	        {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
	        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
	        {"", "\"\""},
	};
	struct event e = event_make("write");

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		char want[128];
		e.run = table[i].in;
		snprintf(want, sizeof(want), "\"run\":%s,\"pid\"", table[i].out);
		assert_non_null(strstr(line_of(&e), want));
	}
}

enum { WRITERS = 64, LINES_EACH = 3125 };

static size_t whole_lines(const char *name)
{
	char line[1024];
	size_t lines = 0;
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		size_t n = strlen(line);
		assert_true(n > 600 && line[0] == '{' && strcmp(line + n - 2, "}\n") == 0);
		lines++;
	}
	fclose(f);
	return lines;
}

/* 200,000 events of 64 processes, and the log is rotated under them: none is torn, none is lost. */
static void lines_of_many_processes_never_mix(void **state)
{
	struct event e = event_make("write");
	char text[600], rotated[512];

	(void)state;
	snprintf(rotated, sizeof(rotated), "%s.1", path);
	unlink(path);
	unlink(rotated);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	e.text = text;
	for (int i = 0; i < WRITERS; i++) {
		if (fork() == 0) {
			for (int k = 0; k < LINES_EACH; k++)
				if (event_write(path, &e) != 0)
					_exit(1);
			_exit(0);
		}
	}
	usleep(300 * 1000);
	assert_int_equal(rename(path, rotated), 0);
	for (int status; wait(&status) > 0;)
		assert_int_equal(status, 0);
	assert_int_equal(whole_lines(rotated) + whole_lines(path), WRITERS * LINES_EACH);
	unlink(rotated);
}

static void file_is_private_and_errno_kept(void **state)
{
	struct event e = event_make("write");
	struct stat st;
	mode_t old = umask(0);

	(void)state;
	unlink(path);
	errno = 4242;
	assert_int_equal(event_write(path, &e), 0);
	assert_int_equal(event_write("/nonexistent/folder/log", &e), -1);
	assert_int_equal(errno, 4242);
	umask(old);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void closed_standard_streams_stay_closed(void **state)
{
	struct event e = event_make("write");
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		if (event_write(path, &e) != 0)
			_exit(1);
		for (int fd = 0; fd < 20; fd++) {
			if (fd < 3 && fcntl(fd, F_GETFD) != -1)
				_exit(2);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void symbolic_link_is_not_followed(void **state)
{
	struct event e = event_make("write");
	char link[80];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(event_write(link, &e), -1);
	unlink(link);
}

static bool xfsz_in(int (*get)(sigset_t *))
{
	sigset_t set;

	return get(&set) == 0 && sigismember(&set, SIGXFSZ) == 1;
}

static int thread_mask(sigset_t *set)
{
	return pthread_sigmask(SIG_BLOCK, NULL, set);
}

/* In a child: a log that may not grow. Its exit code says what went wrong, 0 nothing. */
static int write_over_the_limit(bool has_one_pending)
{
	struct rlimit none = {0, RLIM_INFINITY};
	struct event e = event_make("write");
	sigset_t set;

	signal(SIGXFSZ, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	if (has_one_pending && (pthread_sigmask(SIG_BLOCK, &set, NULL) || raise(SIGXFSZ)))
		return 1;
	if (setrlimit(RLIMIT_FSIZE, &none) != 0)
		return 2;
	errno = 4242;
	if (event_write(path, &e) != -1 || errno != 4242)
		return 3;
	if (xfsz_in(thread_mask) != has_one_pending || xfsz_in(sigpending) != has_one_pending)
		return 4;
	return 0;
}

static void limit_of_file_sizes_ends_no_program(void **state)
{
	(void)state;
	for (int pending = 0; pending < 2; pending++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(write_over_the_limit(pending));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(empty_fields_are_left_out),
	        cmocka_unit_test(every_field_has_its_place_and_length),
	        cmocka_unit_test(names_are_escaped),
	        cmocka_unit_test(lines_of_many_processes_never_mix),
	        cmocka_unit_test(file_is_private_and_errno_kept),
	        cmocka_unit_test(closed_standard_streams_stay_closed),
	        cmocka_unit_test(symbolic_link_is_not_followed),
	        cmocka_unit_test(limit_of_file_sizes_ends_no_program),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/events", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
