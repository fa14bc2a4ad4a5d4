/* `sendonce ledger` on records made here: what it shows, and whom it lets settle a doubt.
 *
 * The records are made by a process that is gone, unless a test wants to be a program above the
 * command itself. The command is the one built beside this test. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/ledger.h"

enum { OUTPUT_MAX = 16384 };

static char folder[64], ledger_file[128], events_file[160], command[512];
static char out[OUTPUT_MAX], err[OUTPUT_MAX];

/* --- running the command --- */

static void read_back(int fd, char *to)
{
	ssize_t n = pread(fd, to, OUTPUT_MAX - 1, 0);

	to[n > 0 ? n : 0] = '\0';
	close(fd);
}

static int temporary(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/outXXXXXX", folder);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

/* With `input` as its standard input. Its output is in `out` and `err`. */
static int cli_with(int input, const char *const *args)
{
	const char *argv[16] = {"sendonce", "ledger"};
	int out_fd = temporary(), err_fd = temporary(), status = 0;
	pid_t pid;

	for (size_t i = 0; args[i]; i++)
		argv[i + 2] = args[i];
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(input, 0);
		dup2(out_fd, 1);
		dup2(err_fd, 2);
		setenv("SENDONCE_LEDGER", ledger_file, 1);
		unsetenv("SENDONCE_POLICY");
		execv(command, (char *const *)(uintptr_t)argv);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	read_back(out_fd, out);
	read_back(err_fd, err);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int cli(const char *const *args)
{
	int nothing = open("/dev/null", O_RDONLY), rc = cli_with(nothing, args);

	close(nothing);
	return rc;
}
#define CLI(...) cli((const char *const[]){__VA_ARGS__, NULL})

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no `%s` in `%s`", part, text);
}

/* --- records --- */

static struct ledger *open_ledger(void)
{
	struct ledger_options options = {
	        .path = ledger_file, .size = 4 << 20, .max_response = 1 << 16, .create = true};
	struct ledger_error error = {{0}};
	struct ledger *l = NULL;

	if (ledger_open(&options, &l, &error) != LEDGER_OK) {
		fprintf(stderr, "%s\n", error.text);
		return NULL;
	}
	return l;
}

/* One that is `sent`, by this process. */
static bool send_one(struct ledger *l, uint8_t seed, const char *key, const char *run,
                     struct hold *hold)
{
	uint8_t content[LEDGER_HASH], place[LEDGER_HASH] = {9};
	struct record_new rec = {.content = content,
	                         .any_account = content,
	                         .place = place,
	                         .fingerprint = content,
	                         .wire_body = content,
	                         .settings = 5,
	                         .operation = "orders.create",
	                         .key = key,
	                         .generation = 1,
	                         .ttl_us = INT64_C(86400000000),
	                         .tombstone_us = INT64_C(86400000000),
	                         .run = ledger_name_hash(span_of(run))};

	memset(content, seed, sizeof(content));
	return ledger_reserve(l, &rec, NULL, clock_now(), hold) == LEDGER_OK &&
	       ledger_gate(l, hold, clock_now()) == LEDGER_OK;
}

/* done-..., doubt-..., and two that begin alike */
static bool make_records(void)
{
	struct ledger_answer answer = {.status = 201, .blob = span_of("kept")};
	struct ledger *l = open_ledger();
	struct hold hold;

	return l && send_one(l, 0xd1, "done-0001", "run-a", &hold) &&
	       ledger_done(l, &hold, &answer, clock_now()) == LEDGER_OK &&
	       send_one(l, 0xd2, "doubt-0001", "run-a", &hold) &&
	       ledger_unknown(l, &hold, false, NULL, clock_now()) == LEDGER_OK &&
	       send_one(l, 0xd3, "alike-0001", "run-b", &hold) &&
	       ledger_done(l, &hold, &answer, clock_now()) == LEDGER_OK &&
	       send_one(l, 0xd4, "alike-00012", "run-b", &hold) &&
	       ledger_unknown(l, &hold, false, NULL, clock_now()) == LEDGER_OK;
}

static int set_up(void **state)
{
	int status = 1;
	pid_t pid;

	(void)state;
	strcpy(folder, "/tmp/sendonce-cli-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(ledger_file, sizeof(ledger_file), "%s/ledger", folder);
	snprintf(events_file, sizeof(events_file), "%s.events.jsonl", ledger_file);
	unsetenv("SENDONCE_RUN");
	pid = fork();
	if (pid == 0)
		_exit(make_records() ? 0 : 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	return 0;
}

static int tear_down(void **state)
{
	char text[128];

	(void)state;
	snprintf(text, sizeof(text), "rm -rf %s", folder);
	return system(text);
}

static bool state_is(const char *key, const char *state)
{
	char part[64];

	assert_int_equal(CLI("show", key, "--json"), 0);
	snprintf(part, sizeof(part), "\"state\":\"%s\"", state);
	return strstr(out, part) != NULL;
}

static bool event_log_has(const char *part)
{
	int fd = open(events_file, O_RDONLY);
	char text[OUTPUT_MAX];

	if (fd < 0)
		return false;
	read_back(fd, text);
	return strstr(text, part) != NULL;
}

/* --- the tests --- */

static void list_shows_every_record(void **state)
{
	size_t lines = 0;

	(void)state;
	assert_int_equal(CLI("list"), 0);
	for (const char *p = out; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 5);
	assert_says(out, "in doubt   orders.create             doubt-00    1       -         1");
	assert_says(out, "done       orders.create             done-000    1     201         1");
	assert_string_equal(err, "");
	assert_int_equal(CLI("list", "--json"), 0);
	assert_says(out,
	            "\"key\":\"done-0001\",\"operation\":\"orders.create\",\"state\":\"done\","
	            "\"in_doubt\":false,\"generation\":1,\"status\":201,\"answer_kept\":true,");
	assert_says(out,
	            "\"state\":\"unknown\",\"in_doubt\":true,\"generation\":1,\"status\":null,");
}

static void a_key_is_found_by_its_beginning(void **state)
{
	(void)state;
	assert_int_equal(CLI("show", "done"), 0);
	assert_says(out, "key             done-0001\n");
	assert_int_equal(CLI("show", "d2d2"), 0);
	assert_says(out, "key             doubt-0001\n");
	assert_int_equal(CLI("show", "alike"), 1);
	assert_string_equal(out, "");
	assert_says(err, "alike-0001 ");
	assert_says(err, "alike-00012 ");
	assert_int_equal(CLI("show", "alike-0001"), 0); /* a whole key beats a longer one */
	assert_says(out, "key             alike-0001\n");
	assert_int_equal(CLI("show", "none"), 1);
	assert_int_equal(CLI("show", "don"), 2);
}

static void not_executed_wants_a_person(void **state)
{
	(void)state;
	assert_int_equal(CLI("resolve", "doubt", "--not-executed"), 1);
	assert_says(err, "terminal");
	assert_int_equal(CLI("resolve", "doubt", "--not-executed", "--operator", "ada"), 2);
	assert_int_equal(CLI("resolve", "doubt", "--not-executed", "--evidence", "x"), 2);
	assert_int_equal(
	        CLI("resolve", "doubt", "--not-executed", "--operator", "", "--evidence", ""), 1);
	assert_true(state_is("doubt", "unknown"));
	assert_false(event_log_has("resolve"));
}

static void a_run_does_not_settle_its_own_doubt(void **state)
{
	(void)state;
	setenv("SENDONCE_RUN", "run-a", 1);
	assert_int_equal(CLI("resolve", "doubt", "--not-executed"), 1);
	assert_says(err, "same run");
	setenv("SENDONCE_RUN", "run-z", 1);
	assert_int_equal(CLI("resolve", "doubt", "--not-executed"), 1);
	assert_says(err, "person at a terminal");
}

static void a_program_does_not_settle_its_own_doubt(void **state)
{
	struct ledger *l = open_ledger();
	struct hold hold;

	(void)state;
	assert_non_null(l);
	assert_true(send_one(l, 0xd9, "mine-0001", "", &hold));
	assert_int_equal(ledger_unknown(l, &hold, false, NULL, clock_now()), LEDGER_OK);
	assert_int_equal(CLI("resolve", "doubt", "--not-executed"), 1);
	assert_says(err, "a program above this command");
	assert_int_equal(CLI("forget", "doubt"), 1);
	assert_says(err, "a program above this command");
	assert_true(state_is("doubt", "unknown"));
	ledger_close(l);
}

static void an_operator_settles_it_and_it_is_logged(void **state)
{
	(void)state;
	assert_int_equal(CLI("resolve", "doubt", "--not-executed", "--operator", "ada",
	                     "--evidence", "not in the list"),
	                 0);
	assert_string_equal(out, "");
	assert_true(state_is("doubt", "freed"));
	assert_says(out, "\"freed\":\"resolved\"");
	assert_true(event_log_has("\"event\":\"resolve\""));
	assert_true(event_log_has("ada: not in the list"));
	assert_true(event_log_has("\"outcome\":\"not-executed\""));
	assert_int_equal(CLI("resolve", "doubt", "--executed"), 1);
	assert_says(err, "not in doubt");
}

static void what_cannot_be_logged_is_not_done(void **state)
{
	(void)state;
	assert_int_equal(mkdir(events_file, 0700), 0);
	assert_int_equal(CLI("resolve", "doubt", "--executed"), 3);
	assert_says(err, events_file);
	assert_int_equal(CLI("forget", "done-", "--operator", "ada", "--evidence", "x"), 3);
	assert_true(state_is("doubt", "unknown"));
	assert_true(state_is("done-", "done"));
}

static void a_person_at_a_terminal_is_asked(void **state)
{
	static const struct {
		const char *typed, *state;
		int rc;
	} cases[] = {{"no\n", "unknown", 1}, {"yesyes\n", "unknown", 1}, {"yes\n", "freed", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *const args[] = {"resolve", "doubt", "--not-executed", NULL};
		int terminal = posix_openpt(O_RDWR | O_NOCTTY), side;

		assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
		side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
		assert_true(side >= 0);
		assert_int_equal(write(terminal, cases[i].typed, strlen(cases[i].typed)),
		                 (ssize_t)strlen(cases[i].typed));
		assert_int_equal(cli_with(side, args), cases[i].rc);
		close(side);
		close(terminal);
		assert_true(state_is("doubt", cases[i].state));
	}
}

static void executed_needs_no_person_and_may_bring_the_answer(void **state)
{
	char path[128];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/answer", folder);
	assert_int_equal(CLI("resolve", "doubt", "--executed", "--answer", path), 3);
	assert_says(err, path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n\r\nhello", file);
	fclose(file);
	assert_int_equal(CLI("resolve", "doubt", "--executed", "--answer", path), 0);
	assert_true(state_is("doubt", "done"));
	assert_says(out, "\"status\":201,\"answer_kept\":true");
	assert_int_equal(CLI("resolve", "alike-00012", "--executed", "--json"), 0);
	assert_says(out, "\"state\":\"done\"");
	assert_says(out, "\"answer_kept\":false");
}

static void forget_drops_one(void **state)
{
	(void)state;
	assert_int_equal(CLI("forget", "done-"), 1);
	assert_true(state_is("done-", "done"));
	assert_int_equal(CLI("forget", "done-", "--operator", "ada", "--evidence", "test"), 0);
	assert_true(event_log_has("\"event\":\"forget\""));
	assert_true(state_is("doubt", "unknown"));
	assert_int_equal(CLI("show", "done-"), 1);
	assert_true(state_is("d1d1", "freed"));
	assert_says(out, "\"answer_kept\":false");
}

static void a_damaged_file_is_reported(void **state)
{
	FILE *file = fopen(ledger_file, "r+");
	long at = 0;
	int c;

	(void)state;
	assert_non_null(file);
	assert_int_equal(CLI("verify"), 0);
	assert_string_equal(out, "");
	/* the stored answer's text: find it and spoil it */
	for (int seen = 0; seen < 4 && (c = fgetc(file)) != EOF; at++)
		seen = c == "kept"[seen] ? seen + 1 : c == 'k';
	assert_int_equal(fseek(file, at - 4, SEEK_SET), 0);
	fputs("bent", file);
	fclose(file);
	assert_int_equal(CLI("verify"), 1);
	assert_says(out, "offset 0x");
	assert_int_equal(CLI("verify", "--json"), 1);
	assert_says(out, "{\"offset\":");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(list_shows_every_record, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_key_is_found_by_its_beginning, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(not_executed_wants_a_person, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_run_does_not_settle_its_own_doubt, set_up,
	                                        tear_down),
	        cmocka_unit_test_setup_teardown(a_program_does_not_settle_its_own_doubt, set_up,
	                                        tear_down),
	        cmocka_unit_test_setup_teardown(an_operator_settles_it_and_it_is_logged, set_up,
	                                        tear_down),
	        cmocka_unit_test_setup_teardown(what_cannot_be_logged_is_not_done, set_up,
	                                        tear_down),
	        cmocka_unit_test_setup_teardown(a_person_at_a_terminal_is_asked, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(executed_needs_no_person_and_may_bring_the_answer,
	                                        set_up, tear_down),
	        cmocka_unit_test_setup_teardown(forget_drops_one, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_damaged_file_is_reported, set_up, tear_down),
	};
	ssize_t n = readlink("/proc/self/exe", command, sizeof(command) - 32);

	if (n <= 0)
		return 1;
	command[n] = '\0';
	*strrchr(command, '/') = '\0';
	strcpy(strrchr(command, '/'), "/sendonce");
	if (access(command, X_OK) != 0) {
		fprintf(stderr, "%s is not built: `make all` first\n", command);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
