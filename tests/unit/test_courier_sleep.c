/* A driver asleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "courier/inside.h"

#include "../../src/courier/sleep.c"

static int64_t asleep_us(struct courier *c, int wake, int ms)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	courier_sleep(c, wake, ms, false, PTHREAD_CANCEL_DISABLE);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from.tv_sec) * INT64_C(1000000) + (to.tv_nsec - from.tv_nsec) / 1000;
}

/* Between two crowds there is no CURLM; a driver that waits for a batch must not spin then. */
static void sleeps_at_rest(void **state)
{
	struct courier c = {.wake = {{.fd = -1}, {.fd = -1}}};
	int pair[2];

	(void)state;
	assert_int_equal(pthread_mutex_init(&c.lock, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(asleep_us(&c, pair[0], 60) >= 55000);
	assert_true(asleep_us(&c, -1, 60) >= 45000);
	assert_int_equal(write(pair[1], "", 1), 1);
	assert_true(asleep_us(&c, pair[0], 20000) < 10000000);
	close(pair[0]);
	close(pair[1]);
	pthread_mutex_destroy(&c.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sleeps_at_rest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
