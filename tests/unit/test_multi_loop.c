/* What a program's loop is told: the sooner of libcurl's time and ours, once and not again; the
 * bell's descriptor, while something is in flight; the number of running handles; one queue. The
 * transfers and libcurl are scripts; the loop's bookkeeping is the real source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/pseudo.h"
#include "intercept/serve.h"
#include "intercept/shadow.h"

enum { LOOPS = 2 };

static int64_t time_us;
static int64_t due_at[LOOPS];
static struct pseudo transfer[LOOPS];
static struct shadow shadow[LOOPS], plain;
static unsigned stepped[LOOPS], performed;
static CURLcode performed_code;

static size_t index_of(const struct pseudo *one)
{
	return (size_t)(one - transfer);
}

static bool fake_is_ours(const struct pseudo *one)
{
	return !one->over && !one->native;
}

static int64_t fake_due(const struct pseudo *one)
{
	int64_t when = due_at[index_of(one)];

	return fake_is_ours(one) ? (when <= time_us ? 0 : when) : MULTI_NEVER;
}

static int64_t fake_nearest(void)
{
	int64_t one = fake_due(&transfer[0]), other = fake_due(&transfer[1]);

	return one < other ? one : other;
}

static unsigned fake_count(void)
{
	return (unsigned)fake_is_ours(&transfer[0]) + (unsigned)fake_is_ours(&transfer[1]);
}

static void fake_steps(void)
{
	for (int i = 0; i < LOOPS; i++)
		if (fake_due(&transfer[i]) == 0)
			stepped[i]++;
}

static void fake_performed(struct pseudo *one, CURLcode code)
{
	performed++;
	performed_code = code;
	one->native = false;
	one->over = true;
}

static struct shadow *fake_find(const CURL *handle)
{
	for (int i = 0; i < LOOPS; i++)
		if (handle == shadow[i].handle)
			return &shadow[i];
	return handle == plain.handle ? &plain : NULL;
}

#define serve_now_us()         time_us
#define queue_due_us(q, n)     ((void)(q), (void)(n), fake_nearest())
#define queue_ours(q)          ((void)(q), fake_count())
#define queue_step(q)          fake_steps()
#define pseudo_is_ours(q)      fake_is_ours(q)
#define pseudo_performed(q, c) fake_performed(q, c)
#define shadow_find(h)         fake_find(h)
#include "../../src/intercept/multi_loop.c"

/* --- libcurl --- */

static long real_timeout = -1;
static curl_multi_timer_callback real_timer;
static void *real_timer_data;
static CURLMsg real_msg[3];
static int real_left;

static CURLMcode fake_setopt(CURLM *m, CURLMoption option, uintptr_t word)
{
	(void)m;
	if (option == CURLMOPT_TIMERFUNCTION)
		real_timer = (curl_multi_timer_callback)word;
	if (option == CURLMOPT_TIMERDATA)
		real_timer_data = (void *)word;
	return CURLM_OK;
}

static CURLMcode fake_timeout(CURLM *m, long *ms)
{
	(void)m;
	*ms = real_timeout;
	return CURLM_OK;
}

static CURLMsg *fake_read(CURLM *m, int *left)
{
	(void)m;
	*left = 0;
	return real_left ? &real_msg[--real_left] : NULL;
}

/* --- the program --- */

static unsigned timers, sockets;
static long timer_said;
static int timer_answer, socket_fd, socket_what;
static void *socket_assigned;

static int on_program_timer(CURLM *m, long ms, void *ctx)
{
	(void)m;
	assert_ptr_equal(ctx, &timers);
	timers++;
	timer_said = ms;
	return timer_answer;
}

static int on_program_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned)
{
	(void)easy;
	assert_ptr_equal(ctx, &sockets);
	sockets++;
	socket_fd = fd;
	socket_what = what;
	socket_assigned = assigned;
	return 0;
}

static struct flavour flavour;
static struct multi multi;

static int start(void **state)
{
	(void)state;
	flavour.fn[FN_multi_setopt] = (void (*)(void))fake_setopt;
	flavour.fn[FN_multi_timeout] = (void (*)(void))fake_timeout;
	flavour.fn[FN_multi_info_read] = (void (*)(void))fake_read;
	memset(&multi, 0, sizeof(multi));
	memset(transfer, 0, sizeof(transfer));
	memset(shadow, 0, sizeof(shadow));
	memset(stepped, 0, sizeof(stepped));
	multi.flavour = &flavour;
	multi.native_due_us = multi.told_due_us = MULTI_NEVER;
	multi.timer = on_program_timer;
	multi.timer_data = &timers;
	multi.socket = on_program_socket;
	multi.socket_data = &sockets;
	multi.first = &transfer[0];
	multi.last = &transfer[1];
	transfer[0].next = &transfer[1];
	for (int i = 0; i < LOOPS; i++) {
		shadow[i].handle = (CURL *)&shadow[i];
		shadow[i].pseudo = &transfer[i];
		transfer[i].shadow = &shadow[i];
		due_at[i] = 50000000;
	}
	plain.handle = (CURL *)&plain;
	multi.bell = bell_new();
	time_us = 1000000;
	timers = sockets = performed = 0;
	timer_answer = 0;
	real_timeout = -1;
	real_left = 0;
	loop_manage(&multi);
	return multi.bell ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	bell_unref(multi.bell);
	return 0;
}

static void tell(unsigned calls, long ms)
{
	unsigned before = timers;

	assert_int_equal(loop_tell(&multi, false), CURLM_OK);
	assert_int_equal(timers - before, calls);
	if (calls)
		assert_int_equal(timer_said, ms);
}

static void test_ours_is_told_once(void **state)
{
	(void)state;
	due_at[0] = time_us + 200000;
	tell(1, 200);
	time_us += 50000;
	tell(0, 0); /* the same moment, though fewer milliseconds away */
	due_at[1] = time_us + 20500;
	tell(1, 21); /* rounded up: who comes too early has nothing to do */
	due_at[1] = 50000000;
	tell(1, 150);
	transfer[0].over = transfer[1].over = true;
	tell(1, -1);
	tell(0, 0);
}

static void test_what_is_ready_is_told_once(void **state)
{
	(void)state;
	due_at[0] = 0;
	tell(1, 0);
	time_us += 3000;
	tell(0, 0); /* it has not come back yet */
	loop_timer_fired(&multi);
	due_at[0] = time_us + 5000;
	tell(1, 5);
}

static void test_libcurls_timer_is_one_shot(void **state)
{
	(void)state;
	multi.busy = true;
	assert_int_equal(real_timer(NULL, 30, real_timer_data), 0);
	multi.busy = false;
	assert_int_equal(timers, 0); /* told at the end of the call, not from inside */
	tell(1, 30);
	time_us += 30000;
	loop_timer_fired(&multi);
	tell(1, 48970); /* ours; libcurl's is gone until it says so again */
	assert_int_equal(real_timer(NULL, 10, real_timer_data),
	                 0); /* outside of any call of ours */
	assert_int_equal(timer_said, 10);
	assert_int_equal(real_timer(NULL, -1, real_timer_data), 0);
	assert_int_equal(timer_said, 48970);
}

/* The multi is taken over while a timer of libcurl's is running. */
static void test_libcurls_timer_is_taken_over(void **state)
{
	(void)state;
	multi.managed = false;
	real_timeout = 7;
	loop_manage(&multi);
	tell(1, 7);
}

static void test_timer_says_no(void **state)
{
	(void)state;
	timer_answer = -1;
	due_at[0] = 0;
	assert_int_equal(loop_tell(&multi, true), CURLM_ABORTED_BY_CALLBACK);
	assert_int_equal(loop_tell(&multi, true), CURLM_OK); /* dead: nothing is told any more */
	assert_int_equal(timers, 1);
}

static void test_timeouts(void **state)
{
	(void)state;
	assert_int_equal(loop_timeout_ms(&multi), 49000);
	due_at[1] = time_us + 1;
	assert_int_equal(loop_timeout_ms(&multi), 1);
	due_at[0] = 0;
	assert_int_equal(loop_timeout_ms(&multi), 0);
	transfer[0].over = transfer[1].native = true;
	assert_int_equal(loop_timeout_ms(&multi), -1);
	assert_int_equal(loop_sooner_ms(-1, 5), 5);
	assert_int_equal(loop_sooner_ms(5, -1), 5);
	assert_int_equal(loop_sooner_ms(-1, -1), -1);
	assert_int_equal(loop_sooner_ms(7, 5), 5);
}

static void test_the_bell_is_shown(void **state)
{
	(void)state;
	assert_int_equal(loop_tell(&multi, false), CURLM_OK);
	assert_int_equal(sockets, 0); /* not from add_handle */
	assert_int_equal(loop_tell(&multi, true), CURLM_OK);
	assert_int_equal(sockets, 1);
	assert_int_equal(socket_fd, bell_fd(multi.bell));
	assert_int_equal(socket_what, CURL_POLL_IN);
	assert_null(socket_assigned);
	multi.assigned = &multi;
	assert_int_equal(loop_tell(&multi, true), CURLM_OK);
	assert_int_equal(sockets, 1);
	transfer[0].over = transfer[1].over = true;
	assert_int_equal(loop_fd(&multi), -1);
	assert_int_equal(loop_tell(&multi, false), CURLM_OK); /* from anywhere */
	assert_int_equal(sockets, 2);
	assert_int_equal(socket_what, CURL_POLL_REMOVE);
	assert_ptr_equal(socket_assigned, &multi);
	assert_null(multi.assigned);
	transfer[0].over = false;
	assert_int_equal(loop_tell(&multi, true), CURLM_OK);
	assert_int_equal(sockets, 3);
	assert_null(socket_assigned);
}

static void test_one_time_around(void **state)
{
	int running = 4, left;

	(void)state;
	due_at[0] = 0;
	bell_ring(multi.bell);
	loop_begin(&multi);
	assert_int_equal(stepped[0], 1);
	assert_int_equal(stepped[1], 0);
	transfer[1].native = true;
	real_msg[1] = (CURLMsg){CURLMSG_DONE, plain.handle, {.result = CURLE_OK}};
	real_msg[0] = (CURLMsg){CURLMSG_DONE, shadow[1].handle, {.result = CURLE_GOT_NOTHING}};
	real_left = 2;
	loop_end(&multi, &running);
	assert_int_equal(running, 5); /* libcurl's four and the one of ours that is not over */
	assert_int_equal(performed, 1);
	assert_int_equal(performed_code, CURLE_GOT_NOTHING);
	assert_ptr_equal(message_take(&multi.messages, &left), &real_msg[1]);
	assert_int_equal(left, 0);
}

/* What ended before the multi was taken over and was not read yet. */
static void test_older_messages(void **state)
{
	int left;

	(void)state;
	multi.managed = false;
	real_msg[0] = (CURLMsg){CURLMSG_DONE, plain.handle, {.result = CURLE_OK}};
	real_left = 1;
	loop_manage(&multi);
	assert_ptr_equal(message_take(&multi.messages, &left), &real_msg[0]);
}

/* A handle that libcurl made for itself. */
static void test_a_stranger(void **state)
{
	int running = 0, left;

	(void)state;
	real_msg[0] = (CURLMsg){CURLMSG_DONE, (CURL *)&running, {.result = CURLE_OK}};
	real_left = 1;
	loop_end(&multi, &running);
	assert_ptr_equal(message_take(&multi.messages, &left), &real_msg[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_ours_is_told_once),
	        TEST(test_what_is_ready_is_told_once),
	        TEST(test_libcurls_timer_is_one_shot),
	        TEST(test_libcurls_timer_is_taken_over),
	        TEST(test_timer_says_no),
	        TEST(test_timeouts),
	        TEST(test_the_bell_is_shown),
	        TEST(test_one_time_around),
	        TEST(test_older_messages),
	        TEST(test_a_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
