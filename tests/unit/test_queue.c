/* Who of a multi's transfers is looked at: those whose time has come and those the bell was rung
 * for, in the order they were added, whatever joins and leaves meanwhile. The transfers are
 * scripts; the queue and the bell are the real source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/pseudo.h"
#include "intercept/serve.h"

enum { MANY = 200 };

static int64_t time_us;
static struct multi multi;
static struct pseudo transfer[MANY];
static int64_t due_at[MANY];
static size_t stepped[4 * MANY], steps;
static void (*in_step)(size_t index);

static size_t index_of(const struct pseudo *p)
{
	return (size_t)(p - transfer);
}

static int64_t fake_due(const struct pseudo *p, int64_t at)
{
	int64_t when = p->over ? MULTI_NEVER : due_at[index_of(p)];

	return when <= at ? 0 : when;
}

static void fake_step(struct pseudo *p);

#define pseudo_due_us(p, n) fake_due(p, n)
#define pseudo_is_ours(p)   (!(p)->over)
#define pseudo_step(p)      fake_step(p)
#define serve_now_us()      time_us
#include "../../src/intercept/queue.c"

/* It has seen what there was; a script may do something else besides. */
static void fake_step(struct pseudo *p)
{
	assert_true(steps < sizeof stepped / sizeof *stepped);
	stepped[steps++] = index_of(p);
	due_at[index_of(p)] = time_us + 1000000;
	queue_settle(p);
	if (in_step)
		in_step(index_of(p));
}

static void join(size_t i, int64_t when)
{
	struct pseudo *p = &transfer[i];

	memset(p, 0, sizeof *p);
	p->multi = &multi;
	due_at[i] = when;
	assert_true(queue_join(&multi, p));
	queue_settle(p);
}

static void leave(size_t i)
{
	queue_leave(&transfer[i]);
	memset(&transfer[i], 0xee, sizeof transfer[i]); /* it is not looked at again */
}

static void news(size_t i)
{
	due_at[i] = 0;
	bell_tell(multi.bell, &transfer[i].note);
}

static int start(void **state)
{
	(void)state;
	memset(&multi, 0, sizeof multi);
	multi.bell = bell_new();
	time_us = 1000;
	steps = 0;
	in_step = NULL;
	return multi.bell ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	queue_free(&multi.queue);
	bell_unref(multi.bell);
	return 0;
}

static void expect(const size_t *wanted, size_t count)
{
	assert_int_equal(steps, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(stepped[i], wanted[i]);
	steps = 0;
}

static void test_times(void **state)
{
	(void)state;
	assert_int_equal(queue_due_us(&multi, time_us), MULTI_NEVER);
	join(0, 9000);
	join(1, 5000);
	join(2, 7000);
	assert_int_equal(queue_ours(&multi), 3);
	assert_int_equal(queue_due_us(&multi, time_us), 5000);
	queue_step(&multi);
	expect(NULL, 0);
	time_us = 7000;
	assert_true(queue_due_us(&multi, time_us) <= time_us);
	queue_step(&multi);
	expect((size_t[]){1, 2}, 2);
	assert_int_equal(queue_due_us(&multi, time_us), 9000);
}

static void test_notes_in_the_order_added(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		join(i, 50000);
	news(6);
	news(1);
	news(3);
	news(1);
	assert_int_equal(queue_due_us(&multi, time_us), time_us);
	queue_step(&multi);
	expect((size_t[]){1, 3, 6}, 3);
	queue_step(&multi);
	expect(NULL, 0);
	assert_int_equal(queue_due_us(&multi, time_us), 50000);
	news(1); /* and again */
	queue_step(&multi);
	expect((size_t[]){1}, 1);
}

/* A note that tells of what was seen already costs a look and no more. */
static void test_a_late_note(void **state)
{
	(void)state;
	join(0, 50000);
	bell_tell(multi.bell, &transfer[0].note);
	queue_step(&multi);
	expect(NULL, 0);
	assert_int_equal(queue_due_us(&multi, time_us), 50000);
}

static void test_over_is_not_counted(void **state)
{
	(void)state;
	join(0, 2000);
	join(1, 3000);
	transfer[0].over = true;
	queue_settle(&transfer[0]);
	assert_int_equal(queue_ours(&multi), 1);
	assert_int_equal(queue_due_us(&multi, time_us), 3000);
	leave(0);
	leave(1);
	assert_int_equal(queue_ours(&multi), 0);
	assert_int_equal(queue_due_us(&multi, time_us), MULTI_NEVER);
}

/* It leaves while its note lies with the bell, between others; over and over, so that what was left
 * behind would pile up. */
static void test_leaves_with_a_note(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		for (size_t i = 0; i < 8; i++)
			join(i, 50000);
		for (size_t i = 0; i < 8; i++)
			news(i);
		leave(4);
		leave(0);
		leave(7);
		if (round % 2) {
			queue_step(&multi);
			expect((size_t[]){1, 2, 3, 5, 6}, 5);
		}
		for (size_t i = 1; i < 7; i++)
			if (i != 4)
				leave(i);
	}
	queue_step(&multi);
	expect(NULL, 0);
}

static void gives_up_others(size_t index)
{
	if (index == 2)
		leave(5);
	if (index == 3)
		news(6), news(1);
}

/* A callback gives another handle up, and others are told of meanwhile: those come next time. */
static void test_leaves_in_a_step(void **state)
{
	(void)state;
	for (size_t i = 0; i < 8; i++)
		join(i, 0);
	in_step = gives_up_others;
	queue_step(&multi);
	expect((size_t[]){0, 1, 2, 3, 4, 6, 7}, 7);
	in_step = NULL;
	assert_int_equal(queue_due_us(&multi, time_us), time_us);
	queue_step(&multi);
	expect((size_t[]){1}, 1); /* 6 has seen it in its turn */
}

static void test_a_child_looks_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		join(i, 50000);
		transfer[i].next = i < 2 ? &transfer[i + 1] : NULL;
	}
	multi.first = &transfer[0];
	multi.forked = true;
	due_at[1] = 0; /* and no bell is rung */
	assert_int_equal(queue_due_us(&multi, time_us), 0);
	queue_step(&multi);
	expect((size_t[]){1}, 1);
}

/* Against a walk over all of them. */
static void test_any_order(void **state)
{
	bool in[MANY] = {false};

	(void)state;
	srand(4711);
	for (int turn = 0; turn < 20000; turn++) {
		size_t i = (size_t)rand() % MANY;
		int64_t nearest = MULTI_NEVER;

		if (!in[i]) {
			join(i, time_us + 1 + rand() % 5000);
			in[i] = true;
		} else if (rand() % 3 == 0) {
			leave(i);
			in[i] = false;
		} else {
			due_at[i] = time_us + 1 + rand() % 5000;
			queue_settle(&transfer[i]);
		}
		for (size_t k = 0; k < MANY; k++)
			if (in[k] && due_at[k] < nearest)
				nearest = due_at[k];
		assert_int_equal(queue_due_us(&multi, time_us), nearest);
		if (turn % 100 == 99) {
			time_us = nearest == MULTI_NEVER ? time_us : nearest;
			queue_step(&multi);
			assert_true(steps > 0);
			steps = 0;
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_times),
	        TEST(test_notes_in_the_order_added),
	        TEST(test_a_late_note),
	        TEST(test_over_is_not_counted),
	        TEST(test_leaves_with_a_note),
	        TEST(test_leaves_in_a_step),
	        TEST(test_a_child_looks_at_all),
	        TEST(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
