/* Which shadow a handle has: also where two handles have one place, where threads hand handles to
 * each other and clean up those of others, and in a forked child. A handle is a number here, since
 * nothing is asked of libcurl; the table is the real source, with its locks counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/threads_here.h"

static __thread unsigned locked;

static int counted_lock(pthread_mutex_t *mutex);

#define pthread_mutex_lock counted_lock
#include "intercept/shadow.c"
#undef pthread_mutex_lock

enum { TABLE = 1 << PLACE_BITS, THREADS = 4, SEATS = 12, TURNS = 4000, MANY = 4 * TABLE };

static int counted_lock(pthread_mutex_t *mutex)
{
	locked++;
	return pthread_mutex_lock(mutex);
}

static CURL *handle_of(size_t number)
{
	return (CURL *)(uintptr_t)(0x10000 + number * 0x150);
}

/* The first number from `number` on whose handle has that place. */
static size_t number_at(size_t number, const struct place *place)
{
	while (place_of(handle_of(number)) != place)
		number++;
	return number;
}

static size_t neighbour(size_t number)
{
	return number_at(number + 1, place_of(handle_of(number)));
}

static void is_found_without_a_lock(void **state)
{
	struct shadow *s = shadow_new(handle_of(1), NULL);

	(void)state;
	locked = 0;
	for (int i = 0; i < 100; i++)
		assert_ptr_equal(shadow_find(handle_of(1)), s);
	assert_int_equal(locked, 0);
	shadow_drop(handle_of(1));
	assert_null(shadow_find(handle_of(1)));
}

static void nobodys_handle_has_none(void **state)
{
	size_t one = number_at(0, place_of(NULL));

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		assert_null(shadow_find(handle_of(i)));
	assert_null(shadow_find(NULL));
	shadow_new(handle_of(one), NULL);
	assert_null(shadow_find(NULL));
	shadow_drop(handle_of(one));
	assert_null(shadow_find(NULL)); /* a place that was left is no handle's */
	assert_null(shadow_find(handle_of(one)));
	assert_null(shadow_find(handle_of(neighbour(one))));
}

static void two_of_one_place(void **state)
{
	size_t one = 3, other = neighbour(one), third = neighbour(other);
	struct shadow *a = shadow_new(handle_of(one), NULL),
	              *b = shadow_new(handle_of(other), NULL);

	(void)state;
	assert_ptr_equal(shadow_find(handle_of(one)), a);
	assert_ptr_equal(shadow_find(handle_of(other)), b);
	locked = 0;
	assert_ptr_equal(shadow_find(handle_of(one)), a); /* nobody took its place */
	assert_int_equal(locked, 0);
	assert_null(shadow_find(handle_of(third)));
	shadow_drop(handle_of(one));
	assert_null(shadow_find(handle_of(one)));
	assert_ptr_equal(shadow_find(handle_of(other)), b);
	locked = 0;
	assert_ptr_equal(shadow_find(handle_of(other)), b); /* it has the place now */
	assert_int_equal(locked, 0);
	a = shadow_new(handle_of(one), NULL);
	shadow_drop(handle_of(other));
	assert_null(shadow_find(handle_of(other)));
	assert_ptr_equal(shadow_find(handle_of(one)), a);
	shadow_drop(handle_of(one));
}

/* libcurl may give an address again whose last handle it cleaned up behind our back. */
static void an_address_that_comes_back(void **state)
{
	static const struct flavour old, new;
	struct shadow *second;

	(void)state;
	shadow_new(handle_of(5), &old);
	second = shadow_new(handle_of(5), &new);
	assert_ptr_equal(shadow_find(handle_of(5)), second);
	assert_ptr_equal(second->flavour, &new);
	shadow_drop(handle_of(5));
	assert_null(shadow_find(handle_of(5)));
}

static void more_than_there_are_places(void **state)
{
	static struct shadow *made[MANY];

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		assert_non_null(made[i] = shadow_new(handle_of(i), NULL));
	for (size_t i = 0; i < MANY; i += 2) {
		shadow_drop(handle_of(i));
		made[i] = NULL;
	}
	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < MANY; i++)
			assert_ptr_equal(shadow_find(handle_of(i)), made[i]);
	for (size_t i = 1; i < MANY; i += 2)
		shadow_drop(handle_of(i));
	for (size_t i = 0; i < MANY; i++)
		assert_null(shadow_find(handle_of(i)));
}

/* A handle that any thread may use, but one at a time, as libcurl demands. Handles of some seats
 * have one place. */
struct seat {
	pthread_mutex_t turn;
	size_t number;
	struct shadow *shadow; /* null: there is no handle now */
};

static struct seat seats[SEATS];

static void make_seats(void)
{
	for (size_t i = 0; i < SEATS; i++) {
		pthread_mutex_init(&seats[i].turn, NULL);
		seats[i].number = i % 3 ? neighbour(seats[i - 1].number) : 100 + i;
	}
}

static void use_seat(struct seat *seat, unsigned dice)
{
	CURL *handle = handle_of(seat->number);

	assert_ptr_equal(shadow_find(handle), seat->shadow);
	if (dice % 4 == 0 && seat->shadow) {
		shadow_drop(handle);
		seat->shadow = NULL;
	} else if (dice % 4 == 1 && !seat->shadow) {
		seat->shadow = shadow_new(handle, NULL);
		seat->shadow->target.port = (unsigned)seat->number;
	}
	assert_ptr_equal(shadow_find(handle), seat->shadow);
	if (seat->shadow)
		assert_int_equal(seat->shadow->target.port, seat->number);
}

static void *use_seats(void *seed)
{
	unsigned dice = *(unsigned *)seed;
	struct seat *seat;

	for (int i = 0; i < TURNS; i++) {
		dice = dice * 1103515245 + 12345;
		seat = &seats[(dice >> 8) % SEATS];
		pthread_mutex_lock(&seat->turn);
		use_seat(seat, dice >> 16);
		pthread_mutex_unlock(&seat->turn);
	}
	return NULL;
}

static void threads_use_each_others(void **state)
{
	pthread_t thread[THREADS];
	unsigned seed[THREADS];

	(void)state;
	make_seats();
	for (unsigned i = 0; i < THREADS; i++) {
		seed[i] = i + 1;
		assert_int_equal(pthread_create(&thread[i], NULL, use_seats, &seed[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < SEATS; i++) {
		assert_ptr_equal(shadow_find(handle_of(seats[i].number)), seats[i].shadow);
		shadow_drop(handle_of(seats[i].number));
	}
}

static atomic_bool stop;

static void *make_and_drop(void *number)
{
	while (!atomic_load(&stop)) {
		shadow_new(handle_of(*(size_t *)number), NULL);
		shadow_drop(handle_of(*(size_t *)number));
	}
	return NULL;
}

/* 0 if it has what it had and can go on. */
static int child(struct shadow *s, size_t other)
{
	struct shadow *made;

	shadow_fork_done();
	if (shadow_find(handle_of(1)) != s)
		return 1;
	shadow_drop(handle_of(other)); /* whose thread is not here */
	made = shadow_new(handle_of(other), NULL);
	if (!made || shadow_find(handle_of(other)) != made)
		return 2;
	shadow_drop(handle_of(other));
	shadow_drop(handle_of(1));
	return shadow_find(handle_of(other)) || shadow_find(handle_of(1)) ? 3 : 0;
}

static void a_child_goes_on(void **state)
{
	struct shadow *s = shadow_new(handle_of(1), NULL);
	size_t other = neighbour(1);
	pthread_t thread;
	int status;
	pid_t pid;

	(void)state;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, make_and_drop, &other), 0);
	for (int i = 0; i < 30; i++) {
		shadow_fork_prepare();
		pid = fork();
		if (pid == 0)
			_exit(child(s, other));
		shadow_fork_done();
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	shadow_drop(handle_of(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(is_found_without_a_lock),
	        cmocka_unit_test(nobodys_handle_has_none),
	        cmocka_unit_test(two_of_one_place),
	        cmocka_unit_test(an_address_that_comes_back),
	        cmocka_unit_test(more_than_there_are_places),
	        cmocka_unit_test(threads_use_each_others),
	        cmocka_unit_test(a_child_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
