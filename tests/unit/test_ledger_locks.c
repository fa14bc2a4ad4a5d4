/* Locks whose holder died, with more than one who waits: the time between "it is abandoned" and
 * taking it is another's as well. Who lives and what time it is are told by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ledger/internal.h"

enum { SELF = 4, DEAD = 5, THIEF = 6, NOW_US = 1 << 30 };

static enum owner_life fake_life(unsigned slot);
static int64_t fake_clock(void);

#define owner_life(l, slot, nonce, now) ((void)(l), fake_life(slot))
#define owner_self(l)                   ((void)(l), (struct owner){SELF, 1})
#define clock_coarse_us()               fake_clock()
#include "ledger/shared.c"

static shared64 lock;
static bool seen_dead, thief_comes, dropped;
static int calls_since;

static uint64_t word_of_slot(unsigned slot)
{
	return lock_word((struct owner){slot, 1}, NOW_US);
}

static enum owner_life fake_life(unsigned slot)
{
	seen_dead = seen_dead || slot == DEAD;
	return slot == DEAD ? OWNER_DEAD : OWNER_ALIVE;
}

/* Asked right before each try. The first try after the holder was found dead comes too late. */
static int64_t fake_clock(void)
{
	if (seen_dead && thief_comes && !dropped) {
		if (calls_since++ == 0)
			lock = word_of_slot(THIEF);
		if (calls_since > 200) {
			lock = 0;
			dropped = true;
		}
	}
	return NOW_US;
}

static int fresh(void **state)
{
	(void)state;
	seen_dead = thief_comes = dropped = false;
	calls_since = 0;
	lock = word_of_slot(DEAD);
	return 0;
}

static void a_lock_of_the_dead_is_taken(void **state)
{
	uint64_t token = lock_take(NULL, &lock);

	(void)state;
	assert_true(seen_dead);
	assert_int_equal(token >> 1 & 0x3ff, SELF);
	assert_true(lock_held(&lock, token));
	lock_drop(&lock, token);
	assert_int_equal(lock, 0);
}

static void who_took_it_first_keeps_it(void **state)
{
	uint64_t token;

	(void)state;
	thief_comes = true;
	token = lock_take(NULL, &lock);
	assert_true(seen_dead);
	assert_true(dropped);
	assert_true(lock_held(&lock, token));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(a_lock_of_the_dead_is_taken, fresh),
	        cmocka_unit_test_setup(who_took_it_first_keeps_it, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
