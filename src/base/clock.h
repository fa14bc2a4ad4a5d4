/* The two clocks everything is dated by, and the boot they belong to. */
#ifndef SENDONCE_BASE_CLOCK_H
#define SENDONCE_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One moment on both clocks. Within one boot the two are compared, so that a jump of the wall
 * clock neither expires nor keeps anything; across boots only the wall clock is left. */
struct stamp {
	int64_t wall_us; /* CLOCK_REALTIME, microseconds since 1970; 0: never */
	int64_t boot_us; /* CLOCK_BOOTTIME, microseconds */
	uint64_t boot;   /* first 8 bytes of the boot id */
};

struct stamp clock_now(void);
int64_t clock_boot_us(void);
uint64_t clock_boot_id(void);
/* CLOCK_MONOTONIC as of the last tick: for how long something has been held, to some milliseconds,
 * at a quarter of the price. Stands still while the machine sleeps, as holders do. */
int64_t clock_coarse_us(void);

/* How long it is from one moment to another, of a file maybe: what does not fit is the nearest that
 * does. */
int64_t clock_span(int64_t from, int64_t to);

/* Age of `then` at `now`, microseconds: the smaller of both clocks within one boot (when
 * something is about to expire), the larger (when a provider's memory is judged). Across boots
 * the wall clock alone. Negative: `then` lies in the future. */
int64_t clock_age_min(struct stamp then, struct stamp now);
int64_t clock_age_max(struct stamp then, struct stamp now);

/* RFC 3339, UTC, microseconds: 2026-11-30T14:05:11.000001Z. `out` has room for 32. From the year
 * 1970 to 9999; what lies outside is shown as the nearest of them. */
void clock_rfc3339(char *out, size_t room, int64_t wall_us);

#endif
