#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The end of the year 9999. */
#define LAST_US INT64_C(253402300799999999)

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t) != 0)
		return 0;
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static uint64_t parse_boot_id(const char *text)
{
	uint64_t value = 0;
	int digits = 0;

	for (; *text && digits < 16; text++) {
		const char *hex = "0123456789abcdef";
		const char *at = strchr(hex, *text);
		if (!at)
			continue;
		value = value << 4 | (uint64_t)(at - hex);
		digits++;
	}
	return value;
}

/* Read once: it cannot change under a running process (a checkpoint restored elsewhere keeps the
 * old one, and is then treated as the other boot that it is). 0 where /proc is not mounted. */
uint64_t clock_boot_id(void)
{
	static _Atomic uint64_t known;
	uint64_t value = atomic_load_explicit(&known, memory_order_relaxed);
	char text[64];
	ssize_t n;
	int fd, saved = errno;

	if (value)
		return value;
	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (n > 0) {
			text[n] = '\0';
			value = parse_boot_id(text);
		}
	}
	errno = saved;
	/* Relaxed: every thread reads the same file and stores the same value. */
	atomic_store_explicit(&known, value, memory_order_relaxed);
	return value;
}

int64_t clock_boot_us(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_coarse_us(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

struct stamp clock_now(void)
{
	return (struct stamp){read_clock(CLOCK_REALTIME), read_clock(CLOCK_BOOTTIME),
	                      clock_boot_id()};
}

static bool same_boot(struct stamp a, struct stamp b)
{
	return a.boot != 0 && a.boot == b.boot;
}

int64_t clock_span(int64_t from, int64_t to)
{
	int64_t span;

	if (__builtin_sub_overflow(to, from, &span))
		return to < from ? INT64_MIN : INT64_MAX;
	return span;
}

int64_t clock_age_min(struct stamp then, struct stamp now)
{
	int64_t wall = clock_span(then.wall_us, now.wall_us);
	int64_t boot = clock_span(then.boot_us, now.boot_us);

	return same_boot(then, now) && boot < wall ? boot : wall;
}

int64_t clock_age_max(struct stamp then, struct stamp now)
{
	int64_t wall = clock_span(then.wall_us, now.wall_us);
	int64_t boot = clock_span(then.boot_us, now.boot_us);

	return same_boot(then, now) && boot > wall ? boot : wall;
}

/* Days since 1970 as a date of the Gregorian calendar: years are counted from March, so that the
 * day that comes and goes is the last one of a year, in eras of 400 years. */
static void date_of(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
	int64_t since = days + 719468, era = since / 146097, rest = since % 146097;
	int64_t y = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
	int64_t of_year = rest - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;

	*day = of_year - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = era * 400 + y + (*month <= 2);
}

static char *put_digits(char *to, int64_t value, int digits, char after)
{
	for (int i = digits - 1; i >= 0; i--, value /= 10)
		to[i] = (char)('0' + value % 10);
	to[digits] = after;
	return to + digits + 1;
}

/* By hand: gmtime_r takes a lock that a fork may have left held, and printf is slow beside it. */
void clock_rfc3339(char *out, size_t room, int64_t wall_us)
{
	int64_t us = wall_us < 0 ? 0 : wall_us > LAST_US ? LAST_US : wall_us;
	int64_t second = us / 1000000 % 86400, year, month, day;

	if (room < sizeof("2026-11-30T14:05:11.000001Z")) {
		if (room)
			*out = '\0';
		return;
	}
	date_of(us / 1000000 / 86400, &year, &month, &day);
	out = put_digits(out, year, 4, '-');
	out = put_digits(out, month, 2, '-');
	out = put_digits(out, day, 2, 'T');
	out = put_digits(out, second / 3600, 2, ':');
	out = put_digits(out, second / 60 % 60, 2, ':');
	out = put_digits(out, second % 60, 2, '.');
	*put_digits(out, us % 1000000, 6, 'Z') = '\0';
}
