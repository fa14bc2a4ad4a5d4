/* The entries of a .netrc, each case as libcurl 7.88's parsenetrc answers it. */
#include "request/netrc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct row {
	const char *text, *user_before, *password_before;
	int rc;
	const char *user, *password;
};

static const struct row rows[] = {
        {"machine h login a password b\n", NULL, NULL, 0, "a", "b"},
        {"machine H login a password b\n", NULL, NULL, 0, "a", "b"},
        {"machine other login a password b\n", NULL, NULL, 1, NULL, NULL},
        {"machine other login a password b\nmachine h login c password d\n", NULL, NULL, 0, "c",
         "d"},
        {"machine h\n\tlogin a\n\tpassword b\n", NULL, NULL, 0, "a", "b"},
        {"machine other login x password y\ndefault login a password b\n", NULL, NULL, 0, "a", "b"},
        {"# machine h login x password y\nmachine h login a password b # c\n", NULL, NULL, 0, "a",
         "b"},
        {"macdef m\nmachine h login x password y\n\nmachine h login a password b\n", NULL, NULL, 0,
         "a", "b"},
        {"machine h login \"a b\\\"c\\n\" password \"\\\\\"\n", NULL, NULL, 0, "a b\"c\n", "\\"},
        {"machine h login \"a password b\n", NULL, NULL, -1, NULL, NULL},
        {"machine h login \"a\\", NULL, NULL, -1, NULL, NULL},
        {"machine h login a password b\nmachine h login c password d\n", "c", NULL, 0, "c", "d"},
        {"machine h login a password b\n", "c", NULL, 0, "c", NULL},
        {"machine h login a password b\n", "c", "own", 1, "c", "own"},
        {"machine h password b\n", NULL, NULL, 0, NULL, "b"},
        {"machine h login a\n", NULL, NULL, 0, "a", NULL},
        {"", NULL, NULL, 1, NULL, NULL},
};

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void same(const char *got, const char *want)
{
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

static void test_entries(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[] = "/tmp/netrc-XXXXXX";
		char *user = copy(rows[i].user_before), *password = copy(rows[i].password_before);
		int fd = mkstemp(path);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, rows[i].text, strlen(rows[i].text)),
		                 (ssize_t)strlen(rows[i].text));
		close(fd);
		print_message("%s", rows[i].text);
		assert_int_equal(netrc_find(path, "h", &user, &password), rows[i].rc);
		same(user, rows[i].user);
		same(password, rows[i].password);
		free(user);
		free(password);
		unlink(path);
	}
}

static void test_no_file(void **state)
{
	char *user = NULL, *password = NULL;

	(void)state;
	assert_int_equal(netrc_find("/nonexistent/netrc", "h", &user, &password), 1);
	assert_null(user);
	assert_null(password);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_entries),
	        cmocka_unit_test(test_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
