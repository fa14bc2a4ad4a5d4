/* Records carried from one ledger into another: nothing of what they mean is lost, and nothing
 * newer is overwritten. The table of docs/ledger-format.md is `rows` below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ledger/carry.h"
#include "ledger/internal.h"

static char folder[64], from_path[96], to_path[96];
static struct ledger *from, *to;
static struct ledger_error error;

static struct ledger *open_at(const char *path)
{
	struct ledger_options o = {
	        .path = path, .size = 512 * 1024, .max_response = 1 << 16, .create = true};
	struct ledger *l = NULL;

	if (ledger_open(&o, &l, &error) != LEDGER_OK)
		fail_msg("%s", error.text);
	return l;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sendonce-carry-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(from_path, sizeof(from_path), "%s/from", folder);
	snprintf(to_path, sizeof(to_path), "%s/to", folder);
	from = open_at(from_path);
	to = open_at(to_path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ledger_close(from);
	ledger_close(to);
	unlink(from_path);
	unlink(to_path);
	return rmdir(folder);
}

/* --- records --- */

static uint8_t hashes[5][LEDGER_HASH];

static int make(struct ledger *l, uint8_t seed, const char *key, uint32_t generation,
                struct hold *hold)
{
	static const uint8_t trace[16] = "0123456789abcde";
	struct record_new rec = {.content = hashes[0],
	                         .any_account = hashes[1],
	                         .place = hashes[2],
	                         .fingerprint = hashes[3],
	                         .wire_body = hashes[4],
	                         .settings = 77,
	                         .operation = "orders.create",
	                         .key = key,
	                         .trace = trace,
	                         .generation = generation,
	                         .ttl_us = INT64_C(1000000) * 3600,
	                         .tombstone_us = INT64_C(1000000) * 7200,
	                         .run = 11};

	for (int i = 0; i < 5; i++)
		memset(hashes[i], seed + i, LEDGER_HASH);
	return ledger_reserve(l, &rec, NULL, clock_now(), hold);
}

/* What is told of it, without where it is. */
static void assert_same(const struct record_view *a, const struct record_view *b)
{
	struct record_view x = *a, y = *b;

	x.id = y.id = x.word = y.word = 0;
	x.hit = y.hit = HIT_NONE;
	x.owner = y.owner = OWNER_NONE;
	x.owner_pid = y.owner_pid = 0;
	x.lease_fresh = y.lease_fresh = false;
	x.answer = y.answer = (struct record_answer){0};
	assert_memory_equal(&x, &y, sizeof(x));
}

static void look_up(struct ledger *l, struct record_view *out)
{
	struct ledger_ids ids = {.content = hashes[0]};

	memset(out, 0, sizeof(*out));
	assert_int_equal(ledger_find(l, &ids, clock_now(), out), LEDGER_OK);
}

static void carry(struct ledger *a, struct ledger *b, bool same, enum carry_act expected)
{
	struct record_view view;
	struct ledger_record record = {0};
	enum carry_act did;

	look_up(a, &view);
	assert_int_equal(carry_read(a, &view, &record), LEDGER_OK);
	assert_int_equal(carry_in(b, &record, same, clock_now(), &did), LEDGER_OK);
	assert_int_equal(did, expected);
	carry_free(&record);
}

static void all_of_a_done_record_comes_over(void **state)
{
	uint8_t key[2][LEDGER_HASH] = {{1}, {2}};
	struct ledger_answer answer = {.status = 201,
	                               .blob = span_of("the answer, 27 bytes of it")};
	struct ledger_ids ids = {.content = key[1], .own_key = key[1]};
	struct record_view theirs, ours;
	struct buf blob = {0};
	struct hold hold;
	long status;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 7, &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(from, &hold, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_wire_send(from, &hold), LEDGER_OK);
	assert_int_equal(ledger_done(from, &hold, &answer, clock_now()), LEDGER_OK);
	for (uint64_t run = 11; run < 15; run++)
		assert_int_equal(ledger_delivered(from, hold.id, 7, run, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_asked(from, hold.id, 7, 99, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_bind_key(from, hold.id, key[0]), LEDGER_OK);
	assert_int_equal(ledger_bind_key(from, hold.id, key[1]), LEDGER_OK);
	look_up(from, &theirs);
	carry(from, to, false, CARRY_INSERT);
	look_up(to, &ours);
	assert_same(&theirs, &ours);
	assert_int_equal(ours.wire_sends, 2);
	assert_int_equal(ours.run_count, 5);
	assert_int_equal(ledger_answer(to, &ours, &blob, &status), LEDGER_OK);
	assert_int_equal(status, 201);
	assert_true(span_equal(span_buf(&blob), answer.blob));
	buf_free(&blob);
	assert_int_equal(ledger_find(to, &ids, clock_now(), &ours), LEDGER_OK);
	assert_int_equal(ours.hit, HIT_OWN_KEY);
	assert_int_equal(ledger_verify(to, NULL, NULL), 0);
}

/* Who made it is not whoever carried it. */
static void the_maker_stays_the_maker(void **state)
{
	int pid = 0, status;
	struct hold hold;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(make(from, 1, "key-1", 1, &hold) == LEDGER_OK &&
		                      ledger_gate(from, &hold, clock_now()) == LEDGER_OK &&
		                      ledger_unknown(from, &hold, true, NULL, clock_now()) ==
		                              LEDGER_OK
		              ? 0
		              : 1);
	memset(hashes[0], 1, LEDGER_HASH);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	carry(from, to, false, CARRY_INSERT);
	assert_false(ledger_has_pid(to, NULL, 0));
	assert_true(ledger_has_pid(to, &pid, 1));
}

static void doubts_and_generations_come_over(void **state)
{
	struct record_view theirs, ours;
	struct hold hold;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 3, &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(from, &hold, clock_now()), LEDGER_OK);
	/* it is being sent: elsewhere nobody sends it */
	carry(from, to, false, CARRY_INSERT);
	look_up(to, &ours);
	assert_int_equal(ours.state, REC_UNKNOWN);
	assert_true(ours.in_doubt && ours.ever_sent);
	assert_int_equal(ours.owner, OWNER_NONE);
	assert_int_equal(ledger_unknown(from, &hold, true, NULL, clock_now()), LEDGER_OK);
	look_up(from, &theirs);
	assert_int_equal(ledger_forget(to, &ours, clock_now()), LEDGER_OK);
	carry(from, to, false, CARRY_KEEP);
	assert_int_equal(ledger_forget(from, &theirs, clock_now()), LEDGER_OK);
	look_up(from, &theirs);
	assert_int_equal(theirs.state, REC_FREED);
	assert_int_equal(theirs.generation, 3);
}

static void what_never_left_is_freed(void **state)
{
	struct record_view ours;
	struct hold hold;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 4, &hold), LEDGER_OK);
	carry(from, to, false, CARRY_INSERT);
	look_up(to, &ours);
	assert_int_equal(ours.state, REC_FREED);
	assert_int_equal(ours.freed, FREED_WITHDRAWN);
	assert_int_equal(ours.generation, 4);
	assert_false(ours.ever_sent);
}

static void tombstones_come_over(void **state)
{
	struct stamp later = clock_now();
	struct record_view theirs, ours;
	struct hold hold;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 5, &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(from, &hold, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_done(from, &hold, NULL, clock_now()), LEDGER_OK);
	later.wall_us += INT64_C(1000000) * 3601;
	later.boot_us += INT64_C(1000000) * 3601;
	sweep_some(from, 10, later);
	look_up(from, &theirs);
	assert_int_equal(theirs.state, REC_TOMBSTONE);
	carry(from, to, false, CARRY_INSERT);
	look_up(to, &ours);
	assert_same(&theirs, &ours);
	assert_int_equal(ledger_verify(to, NULL, NULL), 0);
	carry(from, to, false, CARRY_KEEP);
}

/* An answer of theirs, runs and keys of both. */
static void two_of_one_write_become_one(void **state)
{
	struct ledger_answer answer = {.status = 201, .blob = span_of("kept")};
	struct record_view ours;
	struct hold hold;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 1, &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(from, &hold, clock_now()), LEDGER_OK);
	carry(from, to, false, CARRY_INSERT);
	look_up(to, &ours);
	assert_int_equal(ledger_resolve(to, &ours, true, NULL, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_delivered(to, ours.id, 1, 22, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_done(from, &hold, &answer, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_delivered(from, hold.id, 1, 11, clock_now()), LEDGER_OK);
	carry(from, to, false, CARRY_MERGE);
	look_up(to, &ours);
	assert_true(ours.answer_kept && ours.answer_final);
	assert_int_equal(ours.status, 201);
	assert_int_equal(ours.run_count, 2);
	assert_true(ours.runs[0].delivered_us && ours.runs[1].delivered_us);
}

static void one_that_is_being_sent_is_left_alone(void **state)
{
	struct record_view before, after;
	struct hold hold, mine;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 1, &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(from, &hold, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_done(from, &hold, NULL, clock_now()), LEDGER_OK);
	assert_int_equal(make(to, 1, "key-1", 1, &mine), LEDGER_OK);
	look_up(to, &before);
	carry(from, to, false, CARRY_KEEP);
	look_up(to, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ledger_gate(to, &mine, clock_now()), LEDGER_OK);
}

static void a_full_ledger_says_so_and_keeps_what_it_has(void **state)
{
	struct record_view view;
	struct ledger_record record = {0};
	struct hold hold;
	int rc = LEDGER_OK;

	(void)state;
	assert_int_equal(make(from, 1, "key-1", 1, &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(from, &hold, clock_now()), LEDGER_OK);
	look_up(from, &view);
	assert_int_equal(carry_read(from, &view, &record), LEDGER_OK);
	for (unsigned i = 0; i < 100000 && rc == LEDGER_OK; i++) {
		memcpy(record.view.content, &i, sizeof(i));
		record.view.content[31] = 0x77;
		rc = carry_put(to, &record, NULL, clock_now());
	}
	assert_int_equal(rc, LEDGER_FULL);
	assert_int_equal(ledger_verify(to, NULL, NULL), 0);
	carry_free(&record);
}

/* --- the table --- */

enum { SAME = 1, APART_ = 0 };

struct case_of {
	enum record_state state;
	enum freed_how freed;
	uint32_t generation;
	int64_t made;
	uint32_t attempts;
	uint64_t run;
	const char *key;
	bool driven;
};

/* What is left out: generation 1, made 100, one attempt, run 1, key "k". */
#define W(...)                                                                                     \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define NO_RUN     UINT64_MAX
#define RESERVED_  .state = REC_RESERVED
#define SENT_      .state = REC_SENT
#define UNKNOWN_   .state = REC_UNKNOWN
#define DONE_      .state = REC_DONE
#define FREED_     .state = REC_FREED, .freed = FREED_RESOLVED
#define TOMB_      .state = REC_TOMBSTONE
#define TOMB_FREED .state = REC_TOMBSTONE, .freed = FREED_ANSWER

static const struct row {
	struct case_of theirs, ours;
	int same; /* one ledger: SAME; else APART_; -1: either */
	enum carry_act act;
} rows[] = {
        /* nothing of ours */
        {W(DONE_), {0}, -1, CARRY_INSERT},
        {W(RESERVED_), {0}, -1, CARRY_INSERT},
        {W(TOMB_), {0}, -1, CARRY_INSERT},
        /* theirs was executed: that is never taken back */
        {W(DONE_), W(RESERVED_), -1, CARRY_TAKE},
        {W(DONE_), W(SENT_), -1, CARRY_TAKE},
        {W(DONE_), W(UNKNOWN_), -1, CARRY_TAKE},
        {W(DONE_), W(UNKNOWN_, .attempts = 5, .made = 900), -1, CARRY_TAKE},
        {W(DONE_), W(FREED_), -1, CARRY_TAKE},
        {W(DONE_), W(FREED_, .made = 900), -1, CARRY_TAKE},
        {W(DONE_), W(DONE_), -1, CARRY_MERGE},
        {W(DONE_), W(TOMB_), -1, CARRY_KEEP},
        {W(DONE_), W(TOMB_FREED), -1, CARRY_TAKE},
        {W(TOMB_), W(RESERVED_), -1, CARRY_TAKE},
        {W(TOMB_), W(SENT_), -1, CARRY_TAKE},
        {W(TOMB_), W(UNKNOWN_), -1, CARRY_TAKE},
        {W(TOMB_), W(FREED_), -1, CARRY_TAKE},
        {W(TOMB_), W(DONE_), -1, CARRY_KEEP},
        {W(TOMB_), W(TOMB_), -1, CARRY_KEEP},
        /* theirs is in doubt */
        {W(UNKNOWN_), W(RESERVED_), -1, CARRY_TAKE},
        {W(SENT_), W(SENT_), -1, CARRY_MERGE},
        {W(UNKNOWN_), W(SENT_), -1, CARRY_MERGE},
        {W(UNKNOWN_, .attempts = 2), W(UNKNOWN_), -1, CARRY_TAKE},
        {W(UNKNOWN_), W(UNKNOWN_, .attempts = 2), -1, CARRY_MERGE},
        {W(UNKNOWN_), W(DONE_), -1, CARRY_MERGE},
        {W(UNKNOWN_, .attempts = 9, .made = 900), W(DONE_), -1, CARRY_MERGE},
        {W(UNKNOWN_), W(TOMB_), -1, CARRY_KEEP},
        {W(UNKNOWN_), W(FREED_), -1, CARRY_KEEP},
        {W(UNKNOWN_, .attempts = 2), W(FREED_), -1, CARRY_TAKE},
        {W(UNKNOWN_), W(TOMB_FREED), -1, CARRY_KEEP},
        {W(UNKNOWN_, .made = 200), W(FREED_), SAME, CARRY_TAKE},
        {W(UNKNOWN_, .made = 50), W(FREED_), SAME, CARRY_KEEP},
        {W(UNKNOWN_, .made = 50), W(FREED_), APART_, CARRY_TAKE},
        {W(SENT_, .made = 50), W(FREED_), APART_, CARRY_TAKE},
        /* theirs did not happen */
        {W(FREED_), W(RESERVED_), -1, CARRY_KEEP},
        {W(FREED_), W(SENT_), -1, CARRY_TAKE},
        {W(FREED_), W(UNKNOWN_), -1, CARRY_TAKE},
        {W(FREED_), W(UNKNOWN_, .attempts = 2), -1, CARRY_KEEP},
        {W(FREED_, .made = 200), W(UNKNOWN_), SAME, CARRY_TAKE},
        {W(FREED_, .made = 50), W(UNKNOWN_), SAME, CARRY_KEEP},
        {W(FREED_, .made = 200), W(UNKNOWN_), APART_, CARRY_KEEP},
        {W(TOMB_FREED), W(UNKNOWN_), -1, CARRY_TAKE},
        {W(TOMB_FREED, .made = 50), W(UNKNOWN_), -1, CARRY_KEEP},
        {W(FREED_), W(DONE_), -1, CARRY_KEEP},
        {W(FREED_), W(TOMB_), -1, CARRY_KEEP},
        {W(FREED_), W(FREED_), -1, CARRY_KEEP},
        {W(FREED_, .made = 200), W(FREED_), SAME, CARRY_TAKE},
        /* theirs never left */
        {W(RESERVED_), W(SENT_), -1, CARRY_KEEP},
        {W(RESERVED_), W(FREED_), -1, CARRY_KEEP},
        {W(RESERVED_), W(DONE_), -1, CARRY_KEEP},
        /* ours is being sent */
        {W(DONE_), W(SENT_, .driven = true), -1, CARRY_KEEP},
        {W(UNKNOWN_, .attempts = 2), W(SENT_, .driven = true), -1, CARRY_KEEP},
        {W(DONE_, .generation = 2), W(SENT_, .driven = true), -1, CARRY_INSERT},
        /* an earlier generation of the same run: what is here came of it */
        {W(DONE_), W(DONE_, .generation = 2), -1, CARRY_KEEP},
        {W(UNKNOWN_), W(DONE_, .generation = 2), -1, CARRY_KEEP},
        {W(FREED_), W(RESERVED_, .generation = 2), -1, CARRY_KEEP},
        /* one of another run, or of no run that is known */
        {W(DONE_, .run = 2), W(DONE_, .generation = 2), APART_, CARRY_INSERT},
        {W(UNKNOWN_, .run = 2), W(DONE_, .generation = 2), APART_, CARRY_INSERT},
        {W(UNKNOWN_, .run = 2), W(DONE_, .generation = 2), SAME, CARRY_KEEP},
        {W(FREED_, .run = 2), W(DONE_, .generation = 2), -1, CARRY_KEEP},
        {W(DONE_, .run = NO_RUN), W(DONE_, .generation = 2, .run = NO_RUN), -1, CARRY_KEEP},
        {W(UNKNOWN_, .run = NO_RUN), W(DONE_, .generation = 2, .run = NO_RUN), APART_,
         CARRY_INSERT},
        /* a later generation */
        {W(DONE_, .generation = 2), W(DONE_), -1, CARRY_TAKE},
        {W(DONE_, .generation = 2), W(UNKNOWN_), -1, CARRY_TAKE},
        {W(DONE_, .generation = 2), W(TOMB_, .run = NO_RUN), -1, CARRY_INSERT},
        {W(DONE_, .generation = 2, .run = NO_RUN), W(TOMB_, .run = NO_RUN), -1, CARRY_TAKE},
        {W(DONE_, .generation = 2, .run = 2), W(DONE_), -1, CARRY_INSERT},
        {W(DONE_, .generation = 2, .run = NO_RUN), W(UNKNOWN_, .run = NO_RUN), -1, CARRY_INSERT},
        {W(RESERVED_, .generation = 2), W(DONE_), -1, CARRY_INSERT},
        /* another key of the program's own: another write */
        {W(DONE_, .key = "other"), W(DONE_), -1, CARRY_INSERT},
        {W(UNKNOWN_, .key = "other"), W(DONE_), -1, CARRY_INSERT},
};

static struct record_view view_of(const struct case_of *c)
{
	int64_t made = c->made ? c->made : 100;
	uint64_t run = c->run ? c->run : 1;
	struct record_view v = {.state = c->state,
	                        .freed = c->freed,
	                        .generation = c->generation ? c->generation : 1,
	                        .attempts = c->attempts ? c->attempts : c->state != REC_RESERVED,
	                        .made = {made, made, 1},
	                        .run_count = run != NO_RUN,
	                        .runs = {{run, 1, 0}},
	                        .owner = c->driven ? OWNER_ALIVE : OWNER_NONE,
	                        .lease_fresh = c->driven};

	/* a tombstone has no key any more */
	if (c->state != REC_TOMBSTONE)
		strcpy(v.key, c->key ? c->key : "k");
	return v;
}

static void each_row_of_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct record_view theirs = view_of(&rows[i].theirs), ours = view_of(&rows[i].ours);
		bool none = rows[i].ours.state == REC_NONE;

		for (int same = 0; same < 2; same++) {
			enum carry_act act = carry_decide(&theirs, none ? NULL : &ours, same);

			if ((rows[i].same == -1 || rows[i].same == same) && act != rows[i].act)
				fail_msg("row %zu, same %d: %d, not %d", i, same, (int)act,
				         (int)rows[i].act);
		}
	}
}

/* Whatever is imported, in whatever order and however often: what was executed stays executed, and
 * what is newest does not depend on the order within one ledger's history. */
static void no_import_takes_back_an_execution(void **state)
{
	static const enum record_state states[] = {REC_RESERVED, REC_SENT,  REC_UNKNOWN,
	                                           REC_DONE,     REC_FREED, REC_TOMBSTONE};

	(void)state;
	for (int n = 0; n < 6 * 3 * 3 * 2; n++) {
		struct case_of c = W(.state = states[n % 6], .made = 50 + n / 6 % 3 * 50,
		                     .attempts = (uint32_t)(n / 18 % 3));
		struct case_of done = W(DONE_);
		struct record_view theirs = view_of(&c), ours = view_of(&done);
		enum carry_act act = carry_decide(&theirs, &ours, n / 54);

		assert_true(act == CARRY_KEEP || act == CARRY_MERGE);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(all_of_a_done_record_comes_over),
	        CASE(the_maker_stays_the_maker),
	        CASE(doubts_and_generations_come_over),
	        CASE(what_never_left_is_freed),
	        CASE(tombstones_come_over),
	        CASE(two_of_one_write_become_one),
	        CASE(one_that_is_being_sent_is_left_alone),
	        CASE(a_full_ledger_says_so_and_keeps_what_it_has),
	        cmocka_unit_test(each_row_of_the_table),
	        cmocka_unit_test(no_import_takes_back_an_execution),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
