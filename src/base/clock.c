#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
static uint64_t boot_id(void)
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

struct stamp clock_now(void)
{
	return (struct stamp){read_clock(CLOCK_REALTIME), read_clock(CLOCK_BOOTTIME), boot_id()};
}

static bool same_boot(struct stamp a, struct stamp b)
{
	return a.boot != 0 && a.boot == b.boot;
}

int64_t clock_age_min(struct stamp then, struct stamp now)
{
	int64_t wall = now.wall_us - then.wall_us, boot = now.boot_us - then.boot_us;

	return same_boot(then, now) && boot < wall ? boot : wall;
}

int64_t clock_age_max(struct stamp then, struct stamp now)
{
	int64_t wall = now.wall_us - then.wall_us, boot = now.boot_us - then.boot_us;

	return same_boot(then, now) && boot > wall ? boot : wall;
}

void clock_rfc3339(char *out, size_t room, int64_t wall_us)
{
	time_t seconds = (time_t)(wall_us / 1000000);
	struct tm t;

	gmtime_r(&seconds, &t);
	snprintf(out, room, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", t.tm_year + 1900, t.tm_mon + 1,
	         t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (int)(wall_us % 1000000));
}
