/* In which pieces a new ledger is written out: they are the pieces the kernel keeps it in, and what
 * a flush or a lookup costs hangs on them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static ssize_t pwrite_counted(int fd, const void *data, size_t n, off_t at);
static void *calloc_refusing(size_t count, size_t n);

#define pwrite pwrite_counted
#define calloc calloc_refusing
#include "ledger/create.c"
#undef pwrite
#undef calloc

enum { MIB = 1 << 20, PAGE = 4096 };

static char folder[64], path[96];
static struct {
	size_t pages, large, others, largest, fail_at;
	off_t end; /* of what was written in one go from the first byte */
	bool no_memory;
} seen;

static ssize_t pwrite_counted(int fd, const void *data, size_t n, off_t at)
{
	if (seen.fail_at && (size_t)at >= seen.fail_at) {
		errno = ENOSPC;
		return -1;
	}
	seen.pages += n == PAGE;
	seen.large += n == LAYOUT_LARGE;
	seen.others += n != PAGE && n != LAYOUT_LARGE;
	seen.largest = n > seen.largest ? n : seen.largest;
	if (at == seen.end)
		seen.end += (off_t)n;
	return pwrite(fd, data, n, at);
}

static void *calloc_refusing(size_t count, size_t n)
{
	return seen.no_memory ? NULL : calloc(count, n);
}

static int set_up(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	strcpy(folder, "/tmp/sendonce-create-XXXXXX");
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

static int create(int64_t size, bool durable, struct ledger_error *error)
{
	struct ledger_options o = {.path = path, .size = size, .durable = durable};

	return create_file(&o, error);
}

static void opens(void)
{
	struct ledger_options o = {.path = path, .read_only = true};
	struct ledger_error error;
	struct ledger *l;

	assert_int_equal(ledger_open(&o, &l, &error), LEDGER_OK);
	ledger_close(l);
}

static void power_keeps_single_pages(void **state)
{
	struct ledger_error error;

	(void)state;
	assert_int_equal(create(3 * MIB, true, &error), LEDGER_OK);
	assert_int_equal(seen.pages, 3 * MIB / PAGE);
	assert_int_equal(seen.largest, PAGE);
	assert_int_equal(seen.end, 3 * MIB);
	opens();
}

static void process_takes_large_pieces(void **state)
{
	struct ledger_error error;

	(void)state;
	assert_int_equal(create(8 * MIB, false, &error), LEDGER_OK);
	assert_int_equal(seen.large, 4);
	assert_int_equal(seen.pages, 0);
	assert_int_equal(seen.end, 8 * MIB);
	opens();
}

/* No piece reaches beyond the end: the file would be larger than its header says. */
static void the_last_piece_is_what_is_left(void **state)
{
	struct ledger_error error;
	struct stat st;

	(void)state;
	assert_int_equal(create(3 * MIB + PAGE, false, &error), LEDGER_OK);
	assert_int_equal(seen.large, 1);
	assert_int_equal(seen.end, 3 * MIB + PAGE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3 * MIB + PAGE);
	opens();
}

static void without_memory_for_a_piece_pages_do(void **state)
{
	struct ledger_error error;

	(void)state;
	seen.no_memory = true;
	assert_int_equal(create(3 * MIB, false, &error), LEDGER_OK);
	assert_int_equal(seen.pages, 3 * MIB / PAGE);
	assert_int_equal(seen.end, 3 * MIB);
	opens();
}

static void a_full_disk_in_a_large_piece_is_an_error(void **state)
{
	struct ledger_error error = {""};

	(void)state;
	seen.fail_at = 2 * MIB;
	assert_int_equal(create(8 * MIB, false, &error), LEDGER_CANNOT);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "free some space"));
	assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(power_keeps_single_pages, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(process_takes_large_pieces, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(the_last_piece_is_what_is_left, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(without_memory_for_a_piece_pages_do, set_up,
	                                        tear_down),
	        cmocka_unit_test_setup_teardown(a_full_disk_in_a_large_piece_is_an_error, set_up,
	                                        tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
