/* Whoever takes room may die after each store: no two extents ever overlap, and the heap can always
 * be walked to its end.
 *
 * heap.c is included with stores that count; the one that is to be the last jumps out, and the
 * table lock is opened as for a dead holder. Its loads count as well: how far it walked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

static jmp_buf death;
static unsigned stores, last_store; /* 0: lives for ever */
static unsigned died_at;            /* for messages */
static unsigned loads;

static void may_die(void)
{
	if (last_store && ++stores == last_store)
		longjmp(death, 1);
}

#undef atomic_store_explicit
#define atomic_store_explicit(at, value, order) (may_die(), (void)(order), (void)(*(at) = (value)))
#undef atomic_load_explicit
#define atomic_load_explicit(at, order) (loads++, (void)(order), *(at))
#include "ledger/heap.c"

static char folder[] = "/tmp/sendonce-heap-XXXXXX";
static char path[64];

enum { BYTES = LAYOUT_UNIT, PARENT = 77, MOST = 4000 };

struct taken {
	uint64_t from, to;
};
static struct taken taken[MOST];
static size_t count;

static uint32_t take(struct ledger *l, uint64_t units, struct stamp now)
{
	return heap_take(l, units * BYTES - sizeof(struct layout_extent), EXTENT_ANSWER, PARENT,
	                 now);
}

static void note(uint64_t unit, uint64_t units)
{
	for (size_t i = 0; i < count; i++)
		if (unit < taken[i].to && taken[i].from < unit + units)
			fail_msg("after store %u: %llu and %llu overlap", died_at,
			         (unsigned long long)unit, (unsigned long long)taken[i].from);
	assert_true(count < MOST);
	taken[count++] = (struct taken){unit, unit + units};
}

/* Where small ones were, one large: the words of the small ones are still in there. */
static void prepare(struct ledger *l, struct stamp now)
{
	uint32_t small[6], large, wall;

	for (size_t i = 0; i < 6; i++)
		small[i] = take(l, 2, now);
	wall = take(l, 3, now);
	note(wall, 3);
	for (size_t i = 0; i < 6; i++)
		heap_give(l, small[i], PARENT);
	atomic_store(&l->header->heap_cursor, 1);
	large = take(l, 12, now);
	assert_int_equal(large, small[0]);
	heap_give(l, large, PARENT);
	atomic_store(&l->header->heap_cursor, 1);
}

/* False: it lived through it. */
static bool die_in(struct ledger *l, uint64_t units, unsigned store, struct stamp now)
{
	uint32_t unit;

	stores = 0;
	last_store = died_at = store;
	if (setjmp(death) == 0) {
		unit = take(l, units, now);
		last_store = 0;
		note(unit, units);
		return false;
	}
	last_store = 0;
	atomic_store(&l->header->table_lock, 0);
	return true;
}

/* Everything there is, in sizes that do not fit the holes. */
static void fill(struct ledger *l, struct stamp now)
{
	uint64_t unit = 1, word, units = 1;
	uint32_t at;

	while (units <= 5) {
		at = take(l, units, now);
		if (at)
			note(at, units);
		else
			units = units + 2;
	}
	while (heap_step(l, &unit, &word))
		;
	assert_int_equal(unit, atomic_load(&l->header->next_heap));
}

static struct ledger *open_new(void)
{
	struct ledger_options o = {
	        .path = path, .size = LAYOUT_MIN_SIZE, .max_response = 4096, .create = true};
	struct ledger_error e;
	struct ledger *l;

	unlink(path);
	count = 0;
	assert_int_equal(ledger_open(&o, &l, &e), LEDGER_OK);
	return l;
}

static void who_dies_while_taking_room_leaves_no_overlap(void **state)
{
	struct stamp now = clock_now();
	struct ledger *l;
	bool died = true;

	(void)state;
	for (unsigned store = 1; died; store++) {
		l = open_new();
		prepare(l, now);
		died = die_in(l, 3, store, now);
		fill(l, now);
		ledger_close(l);
		assert_true(store < 100);
	}
}

/* The same in the long walk through a heap that is used up. */
static void who_dies_in_a_full_heap_leaves_no_overlap(void **state)
{
	struct stamp now = clock_now();
	struct ledger *l;
	bool died = true;

	(void)state;
	for (unsigned store = 1; died; store++) {
		l = open_new();
		prepare(l, now);
		fill(l, now);
		for (size_t i = 0; i < count; i++)
			if (i % 7 != 6)
				heap_give(l, (uint32_t)taken[i].from, PARENT);
		for (size_t i = 0, kept = count; i < kept; i++)
			taken[i] = i % 7 != 6 ? (struct taken){0, 0} : taken[i];
		died = die_in(l, 4, store, now);
		fill(l, now);
		ledger_close(l);
		assert_true(store < 4000);
	}
}

static unsigned loads_of_a_take(struct ledger *l, uint64_t units, struct stamp now, bool fits)
{
	loads = 0;
	assert_true((take(l, units, now) != 0) == fits);
	return loads;
}

/* Every answer that does not fit would walk through everything, under the table lock. */
static void a_full_heap_is_not_walked_by_everybody(void **state)
{
	struct ledger_options o = {.path = path, .max_response = 4096};
	struct ledger_error e;
	struct stamp now = clock_now(), later = now;
	struct ledger *l = open_new(), *other;
	uint32_t far;

	(void)state;
	later.boot_us += 1000000;
	fill(l, now);
	far = (uint32_t)taken[count * 2 / 3].from;
	assert_true(loads_of_a_take(l, 1, later, false) > 500);
	for (unsigned i = 0; i < 20; i++)
		assert_true(loads_of_a_take(l, 1 + i % 3, later, false) < 100);
	/* what this process gives back is there at once */
	heap_give(l, far, PARENT);
	loads_of_a_take(l, 1, later, true);
	loads_of_a_take(l, 1, later, false);
	/* what another one does, a second later at most */
	assert_int_equal(ledger_open(&o, &other, &e), LEDGER_OK);
	heap_give(other, far, PARENT);
	later.boot_us += 1000000;
	loads_of_a_take(l, 1, later, true);
	ledger_close(other);
	ledger_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(who_dies_while_taking_room_leaves_no_overlap),
	        cmocka_unit_test(who_dies_in_a_full_heap_leaves_no_overlap),
	        cmocka_unit_test(a_full_heap_is_not_walked_by_everybody),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
