/* `sendonce check`: exit codes and where its lines go. */
#include "policy_test.h"

#include <stdio.h>
#include <unistd.h>

#include "../../src/cli/options.c"
#include "../../src/cli/place.c"
#include "../../src/cli/show.c"
/* last: its `help` would shadow a parameter of the others */
#include "../../src/cli/check.c"

static char out_text[8192], err_text[8192];

static void read_back(FILE *f, char *text, size_t room)
{
	size_t n;

	rewind(f);
	n = fread(text, 1, room - 1, f);
	text[n] = '\0';
	fclose(f);
}

/* Run with stdout and stderr in files; gives the exit code. */
static int run(const char *a, const char *b)
{
	const char *argv[] = {"check", a, b, NULL};
	FILE *out = tmpfile(), *err = tmpfile();
	int saved_out = dup(1), saved_err = dup(2), rc;

	fflush(NULL);
	dup2(fileno(out), 1);
	dup2(fileno(err), 2);
	rc = cli_check(a ? b ? 3 : 2 : 1, (char **)(uintptr_t)argv);
	fflush(NULL);
	dup2(saved_out, 1);
	dup2(saved_err, 2);
	close(saved_out);
	close(saved_err);
	read_back(out, out_text, sizeof(out_text));
	read_back(err, err_text, sizeof(err_text));
	return rc;
}

static char path[] = "/tmp/sendonce-check-XXXXXX";

static void write_policy(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	unsetenv("SENDONCE_SCOPE");
	setenv("SENDONCE_LEDGER", "/tmp/sendonce-check-none", 1);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void test_good(void **state)
{
	(void)state;
	write_policy("version: 1\nscope: \"${SENDONCE_SCOPE}\"\nwrites:\n"
	             "  - {operation: a, match: POST http://h/p, identity: {account: none}}\n");
	assert_int_equal(run(path, NULL), 0);
	assert_non_null(strstr(err_text, ": no scope:"));
	assert_non_null(strstr(out_text, ": good, rules: 1, warnings: 1\n"));
	setenv("SENDONCE_SCOPE", "acme", 1);
	assert_int_equal(run(path, NULL), 0);
	assert_string_equal(err_text, "");
	assert_non_null(strstr(out_text, ": good, rules: 1, warnings: 0\n"));
	unsetenv("SENDONCE_SCOPE");
}

static void test_json(void **state)
{
	(void)state;
	write_policy("version: 1\n");
	assert_int_equal(run("--json", path), 0);
	assert_string_equal(err_text, "");
	assert_ptr_equal(strstr(out_text, "{\"level\":\"warning\",\"file\":\"/tmp/"), out_text);
	assert_non_null(strstr(out_text, "\n{\"level\":\"result\",\"file\":\"/tmp/"));
	assert_non_null(strstr(out_text, ",\"rules\":0,\"warnings\":2}\n"));
	write_policy("version: 1\nmode: 'a\"b\\c'\n");
	assert_int_equal(run(path, "--json"), 1);
	assert_string_equal(err_text, "");
	assert_non_null(strstr(out_text, "{\"level\":\"error\",\"file\":\"/tmp/"));
	assert_non_null(strstr(out_text, ",\"line\":2,\"column\":7,\"text\":"));
	assert_non_null(strstr(out_text, "`mode: a\\\"b\\\\c` is none"));
}

static void test_invalid(void **state)
{
	char first[128];

	(void)state;
	write_policy("version: 1\nmdoe: off\n");
	snprintf(first, sizeof(first), "%s:2:1: unknown key `mdoe` (did you mean `mode`?)\n", path);
	assert_int_equal(run(path, NULL), 1);
	assert_string_equal(err_text, first);
	assert_string_equal(out_text, "");
}

static void test_unreadable(void **state)
{
	(void)state;
	assert_int_equal(run("/tmp/sendonce-no-such-file", NULL), 3);
	assert_string_equal(err_text, "/tmp/sendonce-no-such-file: there is no such policy file\n");
	assert_int_equal(run("/tmp", NULL), 3);
	assert_string_equal(out_text, "");
}

static void test_unusable_ledger(void **state)
{
	char text[256], ledger[] = "/tmp/sendonce-check-ledger-XXXXXX";
	int fd = mkstemp(ledger);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "not a ledger", 12), 12);
	close(fd);
	snprintf(text, sizeof(text), "version: 1\nscope: a\nledger: {path: %s}\n", ledger);
	write_policy(text);
	unsetenv("SENDONCE_LEDGER");
	assert_int_equal(run(path, NULL), 3);
	assert_non_null(strstr(err_text, ledger));
	assert_string_equal(out_text, "");
	unlink(ledger);
	assert_int_equal(run(path, NULL), 0);
}

static void test_usage(void **state)
{
	(void)state;
	assert_int_equal(run(NULL, NULL), 2);
	assert_string_equal(out_text, "");
	assert_int_equal(run(path, path), 2);
	assert_int_equal(run("--nonsense", path), 2);
	assert_int_equal(run("--help", NULL), 0);
	assert_non_null(strstr(out_text, "Usage: sendonce check"));
	assert_string_equal(err_text, "");
}

static void test_for_run(void **state)
{
	struct policy *policy;

	(void)state;
	write_policy("version: 1\nmode: off\n");
	assert_int_equal(cli_check_policy(path, &policy), 0);
	assert_int_equal(policy->mode, MODE_OFF);
	policy_free(policy);
	write_policy("version: 3\n");
	assert_int_equal(cli_check_policy(path, &policy), POLICY_INVALID);
	assert_null(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_good),
	        cmocka_unit_test(test_json),
	        cmocka_unit_test(test_invalid),
	        cmocka_unit_test(test_unreadable),
	        cmocka_unit_test(test_unusable_ledger),
	        cmocka_unit_test(test_usage),
	        cmocka_unit_test(test_for_run),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
