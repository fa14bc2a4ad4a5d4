/* A disk that is full, at every page a ledger could be short of: an error each time, never a
 * signal, and what was there before is still there.
 *
 * The disk is a tmpfs of 1 MiB, filled up by a file beside the ledger. Pages that a ledger has not
 * used yet are taken away from it by punching holes, as on a file system that allocates at the
 * first store. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/events.h"
#include "ledger/internal.h"
#include "ledger/rebuild.h"

enum { PAGE = 4096, DISK = 1 << 20, SIZE = 256 * 1024 };

static char folder[64], path[96], filler[96], events[96];
static struct ledger_error error;
static bool mounted;

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sendonce-full-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	snprintf(filler, sizeof(filler), "%s/filler", folder);
	snprintf(events, sizeof(events), "%s/events", folder);
	mounted = mount("none", folder, "tmpfs", 0, "size=1m,mode=0700") == 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (mounted)
		umount2(folder, MNT_DETACH);
	return rmdir(folder);
}

static struct ledger *open_it(int64_t size)
{
	struct ledger_options o = {
	        .path = path, .size = size, .max_response = 4096, .create = true, .durable = true};
	struct ledger *l = NULL;

	return ledger_open(&o, &l, &error) == LEDGER_OK ? l : NULL;
}

static long pages_free(void)
{
	struct statfs fs;

	assert_int_equal(statfs(folder, &fs), 0);
	return (long)fs.f_bavail;
}

/* All but so many pages are taken. */
static void leave(long pages)
{
	int fd;

	unlink(filler);
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	if (pages_free() > pages)
		assert_int_equal(posix_fallocate(fd, 0, (pages_free() - pages) * PAGE), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0;
}

/* --- making one --- */

static void made_whole_or_not_at_all(void **state)
{
	long need = SIZE / PAGE;
	unsigned made = 0;

	(void)state;
	if (!mounted)
		skip();
	for (long pages = 0; pages < need + 4; pages++) {
		struct ledger *l;

		leave(pages);
		l = open_it(SIZE);
		if (l) {
			made++;
			ledger_close(l);
			unlink(path);
			continue;
		}
		assert_non_null(strstr(error.text, "free some space"));
		assert_false(is_there(path));
		assert_int_equal(pages_free(), pages); /* nothing is left over */
	}
	assert_true(made >= 3);
}

/* --- using one --- */

static int one_write(struct ledger *l, unsigned n, size_t answer_size)
{
	static char body[8192];
	struct ledger_answer answer = {.status = 201, .blob = {body, answer_size}};
	uint8_t hash[LEDGER_HASH] = {0};
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .place = hash,
	                         .own_key = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .operation = "orders.create",
	                         .key = "key",
	                         .generation = 1,
	                         .ttl_us = INT64_C(86400000000),
	                         .run = 1};
	struct hold hold;
	int rc;

	memcpy(hash, &n, sizeof(n));
	hash[31] = 1;
	rc = ledger_reserve(l, &rec, NULL, clock_now(), &hold);
	if (rc != LEDGER_OK)
		return rc;
	rc = ledger_gate(l, &hold, clock_now());
	if (rc == LEDGER_OK)
		rc = ledger_done(l, &hold, &answer, clock_now());
	if (rc == LEDGER_OK)
		rc = ledger_delivered(l, hold.id, 1, 1 + n % 9, clock_now());
	return rc;
}

/* Records, key cells and heap that were not used yet are given back to the disk. What is used all
 * over from the first write on was written when the file was made, and stays. */
static void punch_unused(void)
{
	static const char blank[PAGE];
	char page[PAGE];
	struct ledger *l = open_it(SIZE);
	long from = (long)l->fixed.records_at;
	int fd = open(path, O_RDWR);

	ledger_close(l);
	assert_true(fd >= 0);
	for (long at = from; pread(fd, page, PAGE, at) == PAGE; at += PAGE)
		if (memcmp(page, blank, PAGE) == 0)
			assert_int_equal(
			        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, PAGE),
			        0);
	close(fd);
}

/* Writes until something is missing: 0, or the number of the write that was not kept as told. */
static int use_up(void)
{
	struct ledger *l = open_it(SIZE);
	struct ledger_ids ids = {0};
	struct record_view view;
	uint8_t hash[LEDGER_HASH] = {0};
	unsigned n, told = 0;
	int rc = LEDGER_OK;

	if (!l)
		return 101;
	for (n = 1; n < 400 && rc == LEDGER_OK; n++) {
		rc = one_write(l, n, n % 5 ? 100 : 3000);
		told += rc == LEDGER_OK;
	}
	if (rc != LEDGER_FULL && rc != LEDGER_CANNOT)
		return 102;
	hash[31] = 1;
	ids.content = hash;
	for (n = 1; n <= told; n++) {
		memcpy(hash, &n, sizeof(n));
		if (ledger_find(l, &ids, clock_now(), &view) != LEDGER_OK || view.state != REC_DONE)
			return 103;
	}
	return ledger_verify(l, NULL, NULL) ? 104 : 0;
}

static void short_of_a_page_at_every_first_use(void **state)
{
	int status;

	(void)state;
	if (!mounted)
		skip();
	for (long pages = 0; pages < 60; pages++) {
		pid_t pid;
		struct ledger *l = open_it(SIZE);

		assert_non_null(l);
		ledger_close(l);
		punch_unused();
		leave(pages);
		pid = fork();
		if (pid == 0) {
			signal(SIGBUS, SIG_DFL); /* cmocka has a handler of its own */
			_exit(use_up());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status))
			fail_msg("%ld pages: signal %d", pages, WTERMSIG(status));
		if (WEXITSTATUS(status) != 0)
			fail_msg("%ld pages: %d", pages, WEXITSTATUS(status));
		unlink(filler);
		unlink(path);
	}
}

/* --- what else writes --- */

static void a_log_that_finds_no_room_is_lost_and_no_more(void **state)
{
	struct event event = event_make("write");

	(void)state;
	if (!mounted)
		skip();
	leave(0);
	errno = 4242;
	assert_int_equal(event_write(events, &event), -1);
	assert_int_equal(errno, 4242);
	leave(4);
	assert_int_equal(event_write(events, &event), 0);
	unlink(events);
}

static void no_room_to_resize_or_recover(void **state)
{
	struct ledger_options o = {.path = path, .size = 512 * 1024, .durable = true};
	struct rebuild_report report;
	struct ledger *l;

	(void)state;
	if (!mounted)
		skip();
	l = open_it(SIZE);
	assert_non_null(l);
	assert_int_equal(one_write(l, 1, 100), LEDGER_OK);
	for (long pages = 0; pages < 128; pages += 9) {
		leave(pages);
		assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_CANNOT);
		assert_non_null(strstr(error.text, "free some space"));
		assert_null(ledger_retired(l));
		assert_int_equal(one_write(l, 100 + (unsigned)pages, 100), LEDGER_OK);
	}
	leave(140);
	assert_int_equal(ledger_resize(&o, &report, &error), LEDGER_OK);
	ledger_close(l);
	unlink(report.old);
	unlink(path);
	/* a damaged one stays where it is, and is refused there */
	l = open_it(SIZE);
	assert_non_null(l);
	ledger_close(l);
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, offsetof(struct layout_fixed, secret)), 1);
	close(fd);
	leave(0);
	o.set_aside = true;
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_FOREIGN);
	assert_int_equal(ledger_recover(&o, &report, &error), LEDGER_CANNOT);
	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_FOREIGN);
	leave(100);
	assert_int_equal(ledger_recover(&o, &report, &error), LEDGER_OK);
	l = open_it(SIZE);
	assert_non_null(l);
	ledger_close(l);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(made_whole_or_not_at_all),
	        CASE(short_of_a_page_at_every_first_use),
	        CASE(a_log_that_finds_no_room_is_lost_and_no_more),
	        CASE(no_room_to_resize_or_recover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
