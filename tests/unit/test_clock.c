/* The written form of a moment, against libc's calendar, and ages on two clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/clock.h"

static void by_libc(char *out, size_t room, int64_t wall_us)
{
	time_t seconds = (time_t)(wall_us / 1000000);
	struct tm t;

	gmtime_r(&seconds, &t);
	snprintf(out, room, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", t.tm_year + 1900, t.tm_mon + 1,
	         t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (int)(wall_us % 1000000));
}

static void check_against_libc(int64_t wall_us)
{
	char ours[32], theirs[64];

	clock_rfc3339(ours, sizeof(ours), wall_us);
	by_libc(theirs, sizeof(theirs), wall_us);
	assert_string_equal(ours, theirs);
}

/* A step of 23 hours meets each day of 8000 years, leap days and centuries. */
static void every_day_is_libcs(void **state)
{
	(void)state;
	for (int64_t us = 0; us <= INT64_C(253402300799999999); us += INT64_C(82861234567))
		check_against_libc(us);
	check_against_libc(INT64_C(253402300799999999));
}

static void known_moments(void **state)
{
	static const struct {
		int64_t us;
		const char *text;
	} rows[] = {
	        {0, "1970-01-01T00:00:00.000000Z"},
	        {INT64_C(951782400000001), "2000-02-29T00:00:00.000001Z"},
	        {INT64_C(951868799999999), "2000-02-29T23:59:59.999999Z"},
	        {INT64_C(4107542400000000), "2100-03-01T00:00:00.000000Z"},
	        {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"},
	        {-1, "1970-01-01T00:00:00.000000Z"},
	        {INT64_MIN, "1970-01-01T00:00:00.000000Z"},
	        {INT64_MAX, "9999-12-31T23:59:59.999999Z"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		clock_rfc3339(text, sizeof(text), rows[i].us);
		assert_string_equal(text, rows[i].text);
	}
}

static void too_little_room_gives_nothing(void **state)
{
	char text[32] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

	(void)state;
	clock_rfc3339(text, 27, 0);
	assert_string_equal(text, "");
	assert_int_equal(text[1], 'x');
	text[0] = 'y';
	clock_rfc3339(text, 0, 0);
	assert_int_equal(text[0], 'y');
	clock_rfc3339(text, 28, 0);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
}

static void ages(void **state)
{
	struct stamp then = {1000, 500, 7}, jumped = {9000, 600, 7}, back = {200, 600, 7};
	struct stamp rebooted = {3000, 10, 8}, unknown = {3000, 600, 0};

	(void)state;
	assert_int_equal(clock_age_min(then, jumped), 100);
	assert_int_equal(clock_age_max(then, jumped), 8000);
	assert_int_equal(clock_age_min(then, back), -800);
	assert_int_equal(clock_age_max(then, back), 100);
	assert_int_equal(clock_age_min(then, rebooted), 2000);
	assert_int_equal(clock_age_max(then, rebooted), 2000);
	assert_int_equal(clock_age_min(then, unknown), 2000);
	then.boot = 0;
	assert_int_equal(clock_age_min(then, unknown), 2000);
}

/* Moments that somebody wrote into a file. */
static void ages_that_fit_no_number(void **state)
{
	static const struct {
		int64_t from, to, span;
	} table[] = {
	        {0, 0, 0},
	        {INT64_MIN, INT64_MAX, INT64_MAX},
	        {INT64_MAX, INT64_MIN, INT64_MIN},
	        {INT64_MIN, 0, INT64_MAX},
	        {INT64_MIN, -1, INT64_MAX},
	        {INT64_MAX, -2, INT64_MIN},
	        {INT64_MAX, -1, INT64_MIN},
	        {1, INT64_MIN, INT64_MIN},
	        {-INT64_C(9221575962788972649), INT64_C(1796074110903090), INT64_MAX},
	};
	struct stamp then = {0, 0, 5}, now = {0, 0, 5};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		assert_true(clock_span(table[i].from, table[i].to) == table[i].span);
		then.wall_us = then.boot_us = table[i].from;
		now.wall_us = now.boot_us = table[i].to;
		assert_true(clock_age_min(then, now) == table[i].span);
		assert_true(clock_age_max(then, now) == table[i].span);
	}
}

static void numbers_are_written_as_printf_does(void **state)
{
	static const int64_t values[] = {0,  1,   -1,        9,         10,       -10,
	                                 99, 100, INT64_MAX, INT64_MIN, 123456789};
	struct buf ours = {0}, theirs = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		buf_add_number(&ours, values[i]);
		buf_printf(&theirs, "%lld", (long long)values[i]);
		assert_string_equal(ours.data, theirs.data);
	}
	buf_free(&ours);
	buf_free(&theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_day_is_libcs),
	        cmocka_unit_test(known_moments),
	        cmocka_unit_test(too_little_room_gives_nothing),
	        cmocka_unit_test(ages),
	        cmocka_unit_test(ages_that_fit_no_number),
	        cmocka_unit_test(numbers_are_written_as_printf_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
