/* A copy-on-write file system that has no room for an overwrite: an error, never a signal.
 *
 * Such a file system is made up: before each call every page of the mapping is made read-only, as
 * the kernel does when it has written a page out, and only MADV_POPULATE_WRITE makes pages writable
 * again, as long as there is room. A store to a page that was not asked for is then a signal here
 * too, on whichever path it happens. The source is included for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/vfs.h>

static long room; /* pages the file system still has */

static int fake_fstatfs(int fd, struct statfs *out)
{
	int rc = fstatfs(fd, out);

	out->f_type = 0x9123683e; /* btrfs */
	return rc;
}

/* Pages that are writable already cost nothing; which those are nobody can ask, so each costs. */
static int fake_madvise(void *at, size_t n, int advice)
{
	if (advice != 23)
		return 0;
	if (room < (long)(n / 4096)) {
		errno = EFAULT;
		return -1;
	}
	room -= (long)(n / 4096);
	return mprotect(at, n, PROT_READ | PROT_WRITE);
}

#define fstatfs fake_fstatfs
#define madvise fake_madvise
#include "../../src/ledger/file.c"
#undef fstatfs
#undef madvise

#include <signal.h>
#include <sys/wait.h>

enum { SIZE = 256 * 1024, PLENTY = 1000000 };

static char folder[64], path[96];
static struct ledger_error error;

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sendonce-cow-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static struct ledger *open_it(void)
{
	struct ledger_options o = {
	        .path = path, .size = SIZE, .max_response = 8192, .create = true};
	struct ledger *l = NULL;

	room = PLENTY;
	return ledger_open(&o, &l, &error) == LEDGER_OK ? l : NULL;
}

/* The kernel has written everything out: from here on there is room for so many pages. */
static void written_out(struct ledger *l, long pages)
{
	mprotect(l->base, l->size, PROT_READ);
	room = pages;
}

/* All that a program does with a write, each step with so much room. 0, or the step that gave an
 * error; a step after it is still tried, as programs do. */
static int life(struct ledger *l, unsigned n, long pages)
{
	static char body[4096];
	struct ledger_answer answer = {.status = 201, .blob = {body, n % 2 ? 100 : 3000}};
	uint8_t hash[LEDGER_HASH] = {(uint8_t)n, 1}, key[LEDGER_HASH] = {(uint8_t)n, 2};
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .place = hash,
	                         .own_key = n % 3 ? key : NULL,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .operation = "orders.create",
	                         .key = "key",
	                         .generation = 1,
	                         .run = 1};
	struct ledger_ids ids = {.content = hash, .own_key = key};
	struct record_view view;
	struct hold hold = {0};
	struct stamp now = clock_now();
	int bad = 0, rc;

#define STEP(number, call)                                                                         \
	do {                                                                                       \
		written_out(l, pages);                                                             \
		rc = call;                                                                         \
		if (rc != LEDGER_OK && !bad)                                                       \
			bad = number;                                                              \
	} while (0)
	STEP(1, ledger_reserve(l, &rec, NULL, now, &hold));
	STEP(2, ledger_renew(l, &hold, now));
	STEP(3, ledger_gate(l, &hold, now));
	STEP(4, ledger_wire_send(l, &hold));
	if (n % 4 == 3)
		STEP(5, ledger_unknown(l, &hold, true, &answer, now));
	else
		STEP(6, ledger_done(l, &hold, &answer, now));
	for (uint64_t run = 1; run < 6; run++)
		STEP(7, ledger_delivered(l, hold.id, 1, run, now));
	key[5] = 9;
	STEP(8, ledger_bind_key(l, hold.id, key));
	written_out(l, pages);
	ledger_count(l, COUNT_replayed);
	written_out(l, pages);
	ledger_wait(l, hold.id, 0, 0);
	written_out(l, 0); /* looking takes no room */
	ledger_find(l, &ids, now, &view);
#undef STEP
	return bad;
}

static int all_of_it(long pages)
{
	struct ledger *l = open_it();
	struct stamp later = clock_now();
	int bad = 0, rc;

	if (!l)
		return 100;
	for (unsigned n = 1; n < 12; n++) {
		rc = life(l, n, pages);
		bad = bad ? bad : rc;
	}
	/* everything expires: the sweep, and places and room that are used again */
	later.wall_us += 1000000;
	later.boot_us += 1000000;
	for (int i = 0; i < 4; i++) {
		written_out(l, pages);
		sweep_some(l, 1000, later);
		later.wall_us += 1000000;
		later.boot_us += 1000000;
	}
	for (unsigned n = 20; n < 26; n++)
		life(l, n, pages);
	written_out(l, pages);
	ledger_settle_lost(l);
	written_out(l, 0);
	return ledger_verify(l, NULL, NULL) ? 99 : bad;
}

static int in_a_child(long pages)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		_exit(all_of_it(pages));
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status))
		fail_msg("room for %ld pages: signal %d", pages, WTERMSIG(status));
	unlink(path);
	return WEXITSTATUS(status);
}

/* With room every store is one that was asked for: this alone finds a forgotten one. */
static void nothing_is_stored_that_was_not_asked_for(void **state)
{
	(void)state;
	assert_int_equal(in_a_child(PLENTY), 0);
}

static void without_room_it_is_an_error(void **state)
{
	unsigned errors = 0;
	int rc;

	(void)state;
	for (long pages = 0; pages < 90; pages += pages < 24 ? 1 : 7) {
		rc = in_a_child(pages);
		if (rc == 99 || rc == 100)
			fail_msg("room for %ld pages: %d", pages, rc);
		errors += rc != 0;
	}
	assert_true(errors > 10);
}

static void another_file_system_is_not_asked_each_time(void **state)
{
	struct ledger *l = open_it();
	long before;

	(void)state;
	assert_true(l->populate);
	l->populate = false;
	before = room;
	assert_true(file_ready(l, l->base, SIZE));
	assert_int_equal(room, before);
	ledger_close(l);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(nothing_is_stored_that_was_not_asked_for),
	        CASE(without_room_it_is_an_error),
	        CASE(another_file_system_is_not_asked_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
