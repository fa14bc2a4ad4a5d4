/* A write that a full ledger refuses: how much is looked at before, and whether what is over is
 * found again all the same.
 *
 * sweep.c and place.c are included with reads that count. A ledger of another process is another
 * mapping of the same file, here as there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

static uint64_t records_read, groups_read;

static bool read_counted(const struct ledger *l, struct layout_record *rec, uint64_t *id,
                         uint64_t *word, struct bank *bank)
{
	records_read++;
	return record_read(l, rec, id, word, bank);
}

static uint64_t begin_counted(struct ledger *l, uint64_t group, struct stamp now)
{
	groups_read++;
	return due_begin(l, group, now);
}

static bool empty_counted(const struct ledger *l, uint64_t group)
{
	groups_read++;
	return due_has_empty(l, group);
}

static struct layout_record *at_counted(const struct ledger *l, uint64_t number)
{
	records_read++;
	return record_at(l, number);
}

#define record_read   read_counted
#define due_begin     begin_counted
#define due_has_empty empty_counted
#include "ledger/sweep.c"
#define record_at at_counted
#include "ledger/place.c"
#undef record_at
#undef record_read
#undef due_begin
#undef due_has_empty

#define SECOND INT64_C(1000000)
enum { TTL = 100, TOMBSTONE = 200, SIZE = 8 << 20 };

static char folder[] = "/tmp/sendonce-refused-XXXXXX";
static char path[64];
static struct ledger *l;
static struct stamp now;
static unsigned made, next; /* of the writes that fill it, and after them */

static struct ledger *open_it(void)
{
	struct ledger_options o = {
	        .path = path, .size = SIZE, .max_response = 4096, .create = true};
	struct ledger_error e;
	struct ledger *opened;

	return ledger_open(&o, &opened, &e) == LEDGER_OK ? opened : NULL;
}

static void later(int64_t us)
{
	now.wall_us += us;
	now.boot_us += us;
}

static int reserve(struct ledger *in, unsigned n, int64_t ttl_s, struct hold *hold)
{
	uint8_t hash[LEDGER_HASH] = {0};
	struct record_new rec = {.content = hash,
	                         .any_account = hash,
	                         .place = hash,
	                         .fingerprint = hash,
	                         .wire_body = hash,
	                         .operation = "op",
	                         .key = "key",
	                         .generation = 1,
	                         .ttl_us = ttl_s * SECOND,
	                         .tombstone_us = 2 * ttl_s * SECOND};

	memcpy(hash, &n, sizeof(n));
	hash[5] = (uint8_t)(n * 37);
	hash[31] = 1;
	return ledger_reserve(in, &rec, NULL, now, hold);
}

static int write_one(struct ledger *in, unsigned n, int64_t ttl_s)
{
	struct hold hold;
	int rc = reserve(in, n, ttl_s, &hold);

	if (rc == LEDGER_OK)
		rc = ledger_gate(in, &hold, now);
	return rc == LEDGER_OK ? ledger_done(in, &hold, NULL, now) : rc;
}

/* The one in the middle lives for a time of its own. */
static void fill(int64_t ttl_s, int64_t middle_ttl_s)
{
	uint64_t middle = l->fixed.record_count / 2;
	int rc = LEDGER_OK;

	for (made = 0; rc == LEDGER_OK; made++)
		rc = write_one(l, made, made == middle ? middle_ttl_s : ttl_s);
	assert_int_equal(rc, LEDGER_FULL);
	made--;
	assert_int_equal(made, l->fixed.record_count);
	next = made;
}

static int refused_or_not(struct ledger *in)
{
	records_read = groups_read = 0;
	return write_one(in, next++, TTL);
}

/* How many it takes until one is let in; 0: none of so many is. */
static unsigned writes_until_one_goes_in(unsigned most)
{
	for (unsigned i = 1; i <= most; i++)
		if (refused_or_not(l) == LEDGER_OK)
			return i;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	unlink(path);
	now = clock_now();
	l = open_it();
	return l ? 0 : -1;
}

static int tear_down(void **state)
{
	int faults = ledger_verify(l, NULL, NULL);

	(void)state;
	ledger_close(l);
	return faults ? -1 : 0;
}

/* Once a minute everything; else nothing but what the groups say. */
static void a_refusal_looks_at_little(void **state)
{
	struct ledger *other = open_it();
	uint64_t whole = 0, groups;

	(void)state;
	fill(1000000, 1000000);
	groups = (l->fixed.record_count + LAYOUT_GROUP - 1) / LAYOUT_GROUP;
	assert_true(groups > 200);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(refused_or_not(i % 2 ? l : other), LEDGER_FULL);
		assert_true(groups_read <= 4 * groups);
		assert_true(records_read <= 3 * l->fixed.record_count);
		whole += records_read >= l->fixed.record_count;
		if (records_read < l->fixed.record_count && records_read > 3 * 8 * LAYOUT_GROUP)
			fail_msg("%llu records at write %u", (unsigned long long)records_read, i);
		later(SECOND / 2);
	}
	/* 150 seconds, and the one that filled it */
	assert_in_range(whole, 2, 3);
	ledger_close(other);
}

/* One place, somewhere; the first write after its time finds it. */
static void what_is_over_is_found_at_once(void **state)
{
	(void)state;
	fill(1000000, TTL);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(refused_or_not(l), LEDGER_FULL);
	later((TTL + 1) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL); /* a tombstone from here on */
	later((2 * TTL + 1) * SECOND);
	assert_int_equal(writes_until_one_goes_in(1), 1);
	assert_true(records_read <= 4 * l->fixed.record_count);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
}

/* The same within the minute in which everything was looked at. */
static void also_while_nobody_looks_at_everything(void **state)
{
	(void)state;
	fill(1000000, TTL);
	later((TTL - 10) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	assert_true(records_read >= l->fixed.record_count);
	later(11 * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	assert_true(records_read < 200);
	later((2 * TTL - 10) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	assert_true(records_read >= l->fixed.record_count);
	later(11 * SECOND);
	assert_int_equal(writes_until_one_goes_in(1), 1);
	assert_true(records_read < 200);
}

/* All of it over at once: as many writes go in as there are places, and none is refused. */
static void all_of_it_is_used_again(void **state)
{
	(void)state;
	fill(TTL, TTL);
	later((TTL + 1) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	later((2 * TTL + 1) * SECOND);
	for (unsigned i = 0; i < l->fixed.record_count; i++)
		if (refused_or_not(l) != LEDGER_OK)
			fail_msg("refused after %u", i);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
}

/* Another process swept it, its notes are in the file. */
static void what_another_process_frees_is_found(void **state)
{
	struct ledger *other = open_it();

	(void)state;
	fill(1000000, TTL);
	later((TTL + 1) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	later((2 * TTL + 1) * SECOND);
	sweep_one(other, record_at(other, l->fixed.record_count / 2), now);
	assert_int_equal(writes_until_one_goes_in(1), 1);
	assert_true(records_read < 200);
	ledger_close(other);
}

static void forget_moments(void)
{
	struct layout_group *group = (struct layout_group *)(void *)(l->base + l->fixed.groups_at);

	for (uint64_t i = 0; i < l->fixed.group_count; i++)
		atomic_store(&group[i].due, 0);
}

/* A power loss took the moments: then the look at everything is what finds it, a minute later. */
static void moments_that_were_lost(void **state)
{
	(void)state;
	fill(1000000, TTL);
	later((TTL + 1) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	forget_moments();
	later((2 * TTL - 20) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL); /* and puts them right */
	later(21 * SECOND);
	assert_int_equal(writes_until_one_goes_in(1), 1);
	assert_true(records_read < 200);
	ledger_close(l);
	set_up(state);
	fill(1000000, TTL);
	later((TTL + 1) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	later((2 * TTL - 20) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	forget_moments();
	later(21 * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	later(40 * SECOND);
	assert_int_equal(writes_until_one_goes_in(1), 1);
}

/* Forward by a day while somebody looks, and back: the moments noted meanwhile are a day late. */
static void clocks_that_jump(void **state)
{
	int64_t jump = 25 * 3600 * SECOND;

	(void)state;
	fill(1000000, TTL);
	later((TTL + 1) * SECOND);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	later(TTL * SECOND);
	now.wall_us += jump;
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	now.wall_us -= jump;
	later((TTL + 2) * SECOND);
	assert_int_equal(writes_until_one_goes_in(1), 1);
	/* another boot, whose clock begins anew: not held back by the last look of the one before
	 */
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	now.boot ^= 5;
	now.boot_us = 3 * SECOND;
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	assert_true(records_read >= l->fixed.record_count);
}

/* Places a process took for itself and did not use are anybody's once all were taken. */
static void places_the_dead_took(void **state)
{
	struct ledger *other = open_it();
	unsigned in = 0;
	int rc;

	(void)state;
	for (unsigned i = 0; i < 70; i++)
		assert_int_equal(write_one(other, 1000000 + i, 1000000), LEDGER_OK);
	ledger_close(other);
	for (rc = LEDGER_OK; rc == LEDGER_OK; in++)
		rc = write_one(l, in, 1000000);
	assert_int_equal(in - 1 + 70, l->fixed.record_count);
}

/* A ledger that is too large for one look is looked at in parts, one a write. */
static void a_look_goes_on_where_it_ended(void **state)
{
	uint64_t groups, second;

	(void)state;
	fill(1000000, 1000000);
	groups = (l->fixed.record_count + LAYOUT_GROUP - 1) / LAYOUT_GROUP;
	later(100 * SECOND);
	second = (uint64_t)now.boot_us / SECOND;
	atomic_store(&l->header->looked, second << 32 | (groups - 2));
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	assert_in_range(records_read, LAYOUT_GROUP + 1, 200);
	assert_true(atomic_load(&l->header->looked) >> 32 == second);
	assert_true((atomic_load(&l->header->looked) & UINT32_MAX) >= groups);
	assert_int_equal(refused_or_not(l), LEDGER_FULL);
	assert_int_equal(records_read, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_refusal_looks_at_little),
	        CASE(what_is_over_is_found_at_once),
	        CASE(also_while_nobody_looks_at_everything),
	        CASE(all_of_it_is_used_again),
	        CASE(what_another_process_frees_is_found),
	        CASE(moments_that_were_lost),
	        CASE(clocks_that_jump),
	        CASE(places_the_dead_took),
	        CASE(a_look_goes_on_where_it_ended),
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
