/* Which path wins, and that a bad one is an error and not a reason to try the next place. */
#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/paths.h"

enum { PAIRS = 6 };
struct variables {
	const char *pair[PAIRS][2];
};

static const char *from_table(void *ctx, const char *name)
{
	const struct variables *v = ctx;

	for (size_t i = 0; i < PAIRS && v->pair[i][0]; i++)
		if (strcmp(v->pair[i][0], name) == 0)
			return v->pair[i][1];
	return NULL;
}

static void ledger_takes_first_that_is_named(void **state)
{
	static const struct {
		const char *policy_path;
		struct variables env;
		int rc;
		const char *out;
		bool is_default;
	} rows[] = {
	        {"/p/l", {{{"SENDONCE_LEDGER", "/e/l"}, {"HOME", "/h"}}}, PATHS_OK, "/e/l", false},
	        {"/p/l", {{{"HOME", "/h"}, {"XDG_STATE_HOME", "/x"}}}, PATHS_OK, "/p/l", false},
	        {"/p/l", {{{"SENDONCE_LEDGER", ""}}}, PATHS_OK, "/p/l", false},
	        {NULL,
	         {{{"HOME", "/h"}, {"XDG_STATE_HOME", "/x"}}},
	         PATHS_OK,
	         "/x/sendonce/ledger",
	         true},
	        {NULL, {{{"HOME", "/h"}}}, PATHS_OK, "/h/.local/state/sendonce/ledger", true},
	        {NULL,
	         {{{"HOME", "/h"}, {"XDG_STATE_HOME", ""}}},
	         PATHS_OK,
	         "/h/.local/state/sendonce/ledger",
	         true},
	        {"/p/l", {{{"SENDONCE_LEDGER", "l"}}}, PATHS_RELATIVE, "l", false},
	        {"memory", {{{"HOME", "/h"}}}, PATHS_OK, "memory", false},
	        {"/p/l", {{{"SENDONCE_LEDGER", "memory"}}}, PATHS_OK, "memory", false},
	        {"memory", {{{"SENDONCE_LEDGER", "/e/l"}}}, PATHS_OK, "/e/l", false},
	        {"p/l", {{{"HOME", "/h"}}}, PATHS_RELATIVE, "p/l", false},
	        {NULL,
	         {{{"XDG_STATE_HOME", "x"}, {"HOME", "/h"}}},
	         PATHS_RELATIVE,
	         "x/sendonce/ledger",
	         true},
	        {NULL, {{{"HOME", "h"}}}, PATHS_RELATIVE, "h/.local/state/sendonce/ledger", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy policy = {.ledger_path = (char *)(uintptr_t)rows[i].policy_path};
		char out[256] = "";
		bool is_default = !rows[i].is_default;
		int rc = paths_ledger(&policy, from_table, (void *)(uintptr_t)&rows[i].env, out,
		                      sizeof(out), &is_default);

		if (rc != rows[i].rc || strcmp(out, rows[i].out) ||
		    is_default != rows[i].is_default)
			fail_msg("row %zu: rc %d, %s, default %d", i, rc, out, is_default);
	}
}

static void ledger_of_a_user_without_HOME_is_in_the_passwd_home(void **state)
{
	struct passwd *me = getpwuid(geteuid());
	struct variables none = {0};
	char out[512], expected[512] = "";
	bool is_default;

	(void)state;
	assert_non_null(me);
	strncat(expected, me->pw_dir, 400);
	strcat(expected, "/.local/state/sendonce/ledger");
	errno = 77;
	assert_int_equal(paths_ledger(NULL, from_table, &none, out, sizeof(out), &is_default), 0);
	assert_int_equal(errno, 77);
	assert_string_equal(out, expected);
	assert_true(is_default);
}

static void events_are_beside_the_ledger_unless_named(void **state)
{
	struct variables env = {{{"SENDONCE_LEDGER", "/e/l"}}};
	struct variables relative = {{{"SENDONCE_LEDGER", "l"}}};
	struct variables memory = {{{"SENDONCE_LEDGER", "memory"}}};
	char named_path[] = "/p/events", bad_path[] = "events";
	struct policy named = {.events_path = named_path}, plain = {0},
	              bad = {.events_path = bad_path};
	char out[64];

	(void)state;
	assert_int_equal(paths_events(&plain, from_table, &env, out, sizeof(out)), 0);
	assert_string_equal(out, "/e/l.events.jsonl");
	assert_int_equal(paths_events(NULL, from_table, &env, out, sizeof(out)), 0);
	assert_string_equal(out, "/e/l.events.jsonl");
	assert_int_equal(paths_events(&plain, from_table, &memory, out, sizeof(out)),
	                 PATHS_NOWHERE);
	assert_int_equal(paths_events(&named, from_table, &memory, out, sizeof(out)), 0);
	assert_int_equal(paths_events(&named, from_table, &env, out, sizeof(out)), 0);
	assert_string_equal(out, "/p/events");
	assert_int_equal(paths_events(&plain, from_table, &relative, out, sizeof(out)),
	                 PATHS_RELATIVE);
	assert_int_equal(paths_events(&bad, from_table, &env, out, sizeof(out)), PATHS_RELATIVE);
}

static void policy_is_named_or_the_default(void **state)
{
	struct variables none = {0}, env = {{{"SENDONCE_POLICY", "/a/p"}}},
	                 bad = {{{"SENDONCE_POLICY", "p"}}};
	char out[64];
	bool named;

	(void)state;
	assert_int_equal(paths_policy(from_table, &none, out, sizeof(out), &named), 0);
	assert_string_equal(out, PATHS_POLICY_DEFAULT);
	assert_false(named);
	assert_int_equal(paths_policy(from_table, &env, out, sizeof(out), &named), 0);
	assert_string_equal(out, "/a/p");
	assert_true(named);
	assert_int_equal(paths_policy(from_table, &bad, out, sizeof(out), &named), PATHS_RELATIVE);
	assert_true(named);
}

static void a_path_that_does_not_fit_is_an_error(void **state)
{
	struct variables env = {{{"SENDONCE_LEDGER", "/0123456789"}}};
	char out[24];
	bool is_default;

	(void)state;
	assert_int_equal(paths_ledger(NULL, from_table, &env, out, 12, &is_default), 0);
	assert_int_equal(paths_ledger(NULL, from_table, &env, out, 11, &is_default),
	                 PATHS_TOO_LONG);
	assert_int_equal(paths_events(NULL, from_table, &env, out, 24), PATHS_TOO_LONG);
	assert_true(strlen(paths_error(PATHS_TOO_LONG)) > 0);
	assert_string_not_equal(paths_error(PATHS_TOO_LONG), paths_error(PATHS_RELATIVE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ledger_takes_first_that_is_named),
	        cmocka_unit_test(ledger_of_a_user_without_HOME_is_in_the_passwd_home),
	        cmocka_unit_test(events_are_beside_the_ledger_unless_named),
	        cmocka_unit_test(policy_is_named_or_the_default),
	        cmocka_unit_test(a_path_that_does_not_fit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
