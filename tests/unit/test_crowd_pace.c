/* How long a driver lets the news of a crowd gather: by how many there are and how fast it comes.
 * The clock and the nap are the test's; crowd.c is the real source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "courier/inside.h"

static int64_t time_us, napped_us;

static int64_t fake_now(void)
{
	return time_us;
}

static int fake_nap(const struct timespec *t, struct timespec *left)
{
	(void)left;
	napped_us = t->tv_nsec / 1000;
	time_us += napped_us;
	return 0;
}

#define courier_now     fake_now
#define nanosleep(t, l) fake_nap(t, l)
#include "../../src/courier/crowd.c"

/* A piece of news every `every_us`, until the pace is known; the nap of then. */
static int64_t steady(struct courier *c, unsigned crowd, int64_t every_us, int ms)
{
	int64_t last = time_us;

	c->crowd = crowd;
	for (int turn = 0; turn < 40; turn++) {
		int64_t next = last + every_us;

		if (time_us < next)
			time_us = next;
		c->pace.fresh = (unsigned)((time_us - last) / every_us);
		last += every_us * c->pace.fresh;
		napped_us = 0;
		bool waited = crowd_gather(c, ms);
		assert_int_equal(waited, napped_us > 0);
	}
	return napped_us;
}

static void by_number_and_pace(void **state)
{
	static const struct {
		const char *name;
		unsigned crowd;
		int64_t every_us;
		int ms;
		int64_t least, most;
	} table[] = {
	        {"a thousand, fast: an eighth of them", 1000, 20, 1000, 2300, 2700},
	        {"a thousand, half a second each", 1000, 500, 1000, 32000, 32000},
	        {"a hundred are answered sooner", 100, 500, 1000, 5000, 6400},
	        {"just a crowd", CROWD, 100, 1000, 300, 500},
	        {"no crowd", CROWD - 1, 100, 1000, 0, 0},
	        {"hardly any news: at once", 1000, 40000, 1000, 0, 0},
	        {"a hundred, hardly any news", 100, 10000, 1000, 0, 0},
	        {"something is due before", 1000, 500, 32, 0, 0},
	        {"and just after", 1000, 500, 33, 32000, 32000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct courier c = {.pace = {.woke_us = time_us}};
		int64_t us = steady(&c, table[i].crowd, table[i].every_us, table[i].ms);

		if (us < table[i].least || us > table[i].most)
			fail_msg("%s: %d us", table[i].name, (int)us);
	}
}

/* Nothing is known, and no time has passed either. */
static void begins_without_waiting(void **state)
{
	struct courier c = {.crowd = 1000, .pace = {.woke_us = time_us}};

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_false(crowd_gather(&c, 1000));
	c.pace.fresh = 1000; /* all at once: there is nothing left to wait for */
	assert_false(crowd_gather(&c, 1000));
}

/* What was fast long ago is forgotten. */
static void forgets(void **state)
{
	struct courier c = {.pace = {.woke_us = time_us}};
	int turns = 0;

	(void)state;
	assert_true(steady(&c, 1000, 100, 1000) > 0);
	do
		time_us += 100000;
	while (++turns < 40 && crowd_gather(&c, 1000));
	assert_in_range(turns, 2, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(by_number_and_pace),
	        cmocka_unit_test(begins_without_waiting),
	        cmocka_unit_test(forgets),
	};

	time_us = 1000000000;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
