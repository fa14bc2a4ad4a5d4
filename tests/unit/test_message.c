/* The queue of messages of one multi, and the bell that wakes its loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "courier/bell.h"
#include "intercept/message.h"
#include "unit/threads_here.h"

static void take(struct messages *q, CURLMsg *wanted, int wanted_left)
{
	int left = -1;

	assert_ptr_equal(message_take(q, &left), wanted);
	assert_int_equal(left, wanted_left);
}

static void test_in_order(void **state)
{
	struct messages q = {0};
	struct message m[3] = {{0}};
	CURLMsg msg[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		message_add(&q, &m[i], &msg[i]);
	take(&q, &msg[0], 2);
	take(&q, &msg[1], 1);
	message_add(&q, &m[0], &msg[0]);
	take(&q, &msg[2], 1);
	take(&q, &msg[0], 0);
	take(&q, NULL, 0);
}

/* A handle that is removed takes its message along, wherever that is; once more does no harm. */
static void test_dropped(void **state)
{
	(void)state;
	for (int which = 0; which < 3; which++) {
		struct messages q = {0};
		struct message m[4] = {{0}};
		CURLMsg msg[4];

		for (int i = 0; i < 3; i++)
			message_add(&q, &m[i], &msg[i]);
		message_drop(&m[which]);
		message_drop(&m[which]);
		message_add(&q, &m[3], &msg[3]);
		for (int i = 0, left = 2; i < 4; i++)
			if (i != which)
				take(&q, &msg[i], left--);
		take(&q, NULL, 0);
	}
}

static void test_added_again(void **state)
{
	struct messages q = {0};
	struct message m[2] = {{0}};
	CURLMsg msg[2];

	(void)state;
	message_add(&q, &m[0], &msg[0]);
	message_add(&q, &m[1], &msg[1]);
	message_add(&q, &m[0], &msg[0]); /* one message a handle: it goes to the end */
	take(&q, &msg[1], 1);
	take(&q, &msg[0], 0);
}

static void test_strangers(void **state)
{
	struct messages q = {0};
	CURLMsg msg[2] = {{.easy_handle = (CURL *)&q}, {.easy_handle = (CURL *)msg}};
	struct message *m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		m = calloc(1, sizeof(*m));
		m->stranger = true;
		message_add(&q, m, &msg[i]);
	}
	message_drop_of(&q, (CURL *)&q);
	take(&q, &msg[1], 0);
}

static int is_readable(const struct bell *b)
{
	struct pollfd p = {bell_fd(b), POLLIN, 0};

	return poll(&p, 1, 0);
}

static void test_bell(void **state)
{
	struct bell *b = bell_new();

	(void)state;
	assert_non_null(b);
	assert_true(bell_fd(b) > 2);
	assert_int_equal(is_readable(b), 0);
	for (int i = 0; i < 100000; i++) /* more than the pair could hold */
		bell_ring(b);
	assert_int_equal(is_readable(b), 1);
	bell_clear(b);
	assert_int_equal(is_readable(b), 0);
	bell_clear(b);
	bell_ring(b);
	assert_int_equal(is_readable(b), 1);
	bell_unref(b);
}

/* Closed by the program, and its number given to a file of its own: nothing is written into it. */
static void test_bell_taken(void **state)
{
	struct bell *b = bell_new();
	int fd = bell_fd(b), other[2];
	struct pollfd p;

	(void)state;
	assert_int_equal(pipe(other), 0);
	for (int i = fd; i <= fd + 1; i++)
		assert_int_equal(dup2(other[1], i), i);
	bell_ring(b);
	bell_clear(b);
	p = (struct pollfd){other[0], POLLIN, 0};
	assert_int_equal(poll(&p, 1, 0), 0);
	bell_unref(b);
	assert_int_equal(write(fd, "x", 1), 1); /* still the program's */
	assert_int_equal(poll(&p, 1, 0), 1);
}

enum { RINGS = 20000 };
static atomic_uint done;

static void *ringer(void *ctx)
{
	for (int i = 0; i < RINGS; i++) {
		atomic_fetch_add(&done, 1);
		bell_ring(ctx);
	}
	return NULL;
}

/* No ring is slept through: whoever looks after the bell finds everything before it in the end. */
static void test_bell_race(void **state)
{
	struct bell *b = bell_new();
	pthread_t thread[2];
	unsigned seen = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ringer, b), 0);
	while (seen < 2 * RINGS) {
		struct pollfd p = {bell_fd(b), POLLIN, 0};

		assert_int_equal(poll(&p, 1, 10000), 1);
		bell_clear(b);
		seen = atomic_load(&done);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	bell_unref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_in_order),    cmocka_unit_test(test_dropped),
	        cmocka_unit_test(test_added_again), cmocka_unit_test(test_strangers),
	        cmocka_unit_test(test_bell),        cmocka_unit_test(test_bell_taken),
	        cmocka_unit_test(test_bell_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
