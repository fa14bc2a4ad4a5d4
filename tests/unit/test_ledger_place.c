/* Where else a ledger may be: in a folder that several users share, and in no file at all. */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/events.h"
#include "ledger/ledger.h"

/* Users and a group that need not exist. */
enum { FIRST_USER = 41001, SECOND_USER = 41002, OTHER_USER = 41003, GROUP = 41010 };

static char folder[64], path[96], events[128];
static struct ledger_error error;

static struct ledger *open_shared(bool create)
{
	struct ledger_options o = {.path = path,
	                           .size = 256 * 1024,
	                           .max_response = 1024,
	                           .create = create,
	                           .group = true};
	struct ledger *l = NULL;

	return ledger_open(&o, &l, &error) == LEDGER_OK ? l : NULL;
}

/* Without `group`. */
static int open_private(void)
{
	struct ledger_options o = {.path = path, .size = 256 * 1024, .create = true};
	struct ledger *l = NULL;
	int rc = ledger_open(&o, &l, &error);

	ledger_close(l);
	return rc;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sendonce-place-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	snprintf(events, sizeof(events), "%s/events", folder);
	/* Root is the only one who can give a folder to a group he is not in. */
	if (geteuid() == 0 && chown(folder, FIRST_USER, GROUP) != 0)
		return 1;
	return chmod(folder, 02770);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(events);
	return rmdir(folder);
}

static void refused(const char *word)
{
	struct ledger *l = open_shared(true);

	assert_null(l);
	if (!strstr(error.text, word))
		fail_msg("\"%s\" does not say \"%s\"", error.text, word);
	assert_non_null(strstr(error.text, path));
}

static void a_shared_ledger_is_its_groups(void **state)
{
	struct ledger *l;
	struct stat st;

	(void)state;
	umask(077);
	l = open_shared(true);
	assert_non_null(l);
	ledger_close(l);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	if (geteuid() == 0)
		assert_int_equal(st.st_gid, GROUP);
}

static void a_folder_that_does_not_hand_on_its_group(void **state)
{
	(void)state;
	chmod(folder, 0770);
	refused("chmod 2770");
	assert_int_not_equal(access(path, F_OK), 0);
	chmod(folder, 02777);
	refused("chmod o-w");
}

static void open_to_the_group_only_then(void **state)
{
	(void)state;
	assert_int_equal(open_private(), LEDGER_OK);
	refused("chmod 660");
	chmod(path, 0666);
	refused("everybody");
	chmod(path, 0640);
	refused("chmod 660");
	chmod(path, 0660);
	ledger_close(open_shared(false));
	assert_string_equal(error.text, "");
	assert_int_equal(open_private(), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, "ledger.group: true"));
}

/* Runs `body` as that user and group; its result. */
static int as_user(uid_t user, gid_t group, int (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		umask(022);
		if (setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(user) != 0)
			_exit(100);
		_exit(body());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

static bool write_one(struct ledger *l, uint8_t seed)
{
	uint8_t hash[LEDGER_HASH];
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .generation = 1};
	struct hold hold;

	memset(hash, seed, sizeof(hash));
	return ledger_reserve(l, &rec, NULL, clock_now(), &hold) == LEDGER_OK &&
	       ledger_gate(l, &hold, clock_now()) == LEDGER_OK &&
	       ledger_unknown(l, &hold, false, NULL, clock_now()) == LEDGER_OK;
}

static int log_one(void)
{
	struct event event = event_make("write");

	event_log_shared(true);
	return event_write(events, &event);
}

static int first_user(void)
{
	struct ledger *l = open_shared(true);

	return l && write_one(l, 1) && log_one() == 0 ? 0 : 1;
}

static int second_user(void)
{
	uint8_t hash[LEDGER_HASH];
	struct ledger_ids ids = {.content = hash};
	struct record_view view;
	struct ledger *l = open_shared(true);

	memset(hash, 1, sizeof(hash));
	if (!l || ledger_find(l, &ids, clock_now(), &view) != LEDGER_OK)
		return 1;
	return view.state == REC_UNKNOWN && write_one(l, 2) && log_one() == 0 ? 0 : 2;
}

static int outsider(void)
{
	return open_shared(true) ? 1 : strstr(error.text, "Permission denied") ? 0 : 2;
}

/* In a folder he may search, with a ledger the kernel lets him open. */
static int outsider_by_owner(void)
{
	return open_shared(false) ? 1 : strstr(error.text, "is not in it") ? 0 : 2;
}

static void two_users_of_a_group_share_it(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(as_user(FIRST_USER, GROUP, first_user), 0);
	assert_int_equal(as_user(SECOND_USER, GROUP, second_user), 0);
	assert_int_equal(as_user(OTHER_USER, OTHER_USER, outsider), 0);
	chmod(folder, 02771);
	assert_int_equal(chown(path, OTHER_USER, GROUP), 0);
	assert_int_equal(as_user(OTHER_USER, OTHER_USER, outsider_by_owner), 0);
}

/* --- memory --- */

static struct ledger *open_memory(int64_t size)
{
	struct ledger_options o = {.path = LEDGER_MEMORY,
	                           .size = size,
	                           .max_response = 1024,
	                           .durable = true,
	                           .create = true};
	struct ledger *l = NULL;

	return ledger_open(&o, &l, &error) == LEDGER_OK ? l : NULL;
}

static bool has(struct ledger *l, uint8_t seed)
{
	uint8_t hash[LEDGER_HASH];
	struct ledger_ids ids = {.content = hash};
	struct record_view view;

	memset(hash, seed, sizeof(hash));
	return ledger_find(l, &ids, clock_now(), &view) == LEDGER_OK;
}

static void memory_is_shared_with_children_and_nobody_else(void **state)
{
	struct ledger *l, *other;
	int status;

	(void)state;
	assert_int_equal(chdir(folder), 0);
	l = open_memory(256 * 1024);
	other = open_memory(256 * 1024);
	assert_non_null(l);
	assert_non_null(other);
	assert_string_equal(ledger_path(l), LEDGER_MEMORY);
	assert_memory_not_equal(ledger_secret(l), ledger_secret(other), LEDGER_SECRET);
	assert_true(write_one(l, 1));
	if (fork() == 0)
		_exit(has(l, 1) && write_one(l, 2) ? 0 : 1);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_true(has(l, 2));
	assert_false(has(other, 1));
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	ledger_close(l);
	ledger_close(other);
	assert_int_not_equal(access("memory", F_OK), 0);
	assert_int_equal(chdir("/"), 0);
}

/* So much more than now, whatever a sanitizer took before. */
static void limit_address_space(rlim_t more)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	struct rlimit limit;

	if (!f || fscanf(f, "%lu", &pages) != 1)
		_exit(102);
	fclose(f);
	limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	setrlimit(RLIMIT_AS, &limit);
}

static void memory_has_limits_too(void **state)
{
	int status;

	(void)state;
	assert_null(open_memory(4096));
	assert_non_null(strstr(error.text, "ledger.size"));
	if (fork() == 0) {
		limit_address_space(16 << 20);
		_exit(open_memory(INT64_C(1) << 30) ||
		      !strstr(error.text, "make ledger.size smaller"));
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

/* A file that cannot be mapped is an error that names the limit, in a process that lives on. */
static void an_address_space_that_is_too_small(void **state)
{
	struct ledger_options o = {.path = path, .size = 64 << 20, .create = true};
	struct ledger *l = NULL;
	int status;

	(void)state;
	if (fork() == 0) {
		limit_address_space(16 << 20);
		_exit(ledger_open(&o, &l, &error) != LEDGER_CANNOT || l ||
		      !strstr(error.text, "ulimit -v"));
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	ledger_close(l);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_shared_ledger_is_its_groups),
	        CASE(a_folder_that_does_not_hand_on_its_group),
	        CASE(open_to_the_group_only_then),
	        CASE(two_users_of_a_group_share_it),
	        CASE(memory_is_shared_with_children_and_nobody_else),
	        CASE(memory_has_limits_too),
	        CASE(an_address_space_that_is_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
