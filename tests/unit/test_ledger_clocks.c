/* Records before and after the wall clock jumped, by 25 hours forward and by 2 hours back, within a
 * boot and across boots: what a ledger really holds, and what the table makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "verdict/verdict.h"

#define SECOND INT64_C(1000000)
#define HOUR   (3600 * SECOND)

static char folder[] = "/tmp/sendonce-clocks-XXXXXX";
static char path[64];
static struct ledger *l;
static struct stamp then, now;

/* Ten seconds later, in truth. */
enum jump { FORWARD, BACK, FORWARD_BOOT, BACK_BOOT, JUMPS };
static const char *const jump_names[] = {"25 h forward", "2 h back", "25 h forward and a boot",
                                         "2 h back and a boot"};

static void jump_to(enum jump jump)
{
	bool back = jump == BACK || jump == BACK_BOOT;

	now = then;
	now.wall_us += 10 * SECOND + (back ? -2 : 25) * HOUR;
	now.boot_us += 10 * SECOND;
	if (jump >= FORWARD_BOOT) {
		now.boot ^= 0x5555;
		now.boot_us = 70 * SECOND;
	}
}

static void hash(uint8_t out[LEDGER_HASH], unsigned kind, unsigned n)
{
	memset(out, (int)kind, LEDGER_HASH);
	memcpy(out, &n, sizeof(n));
}

static int reserve_over(unsigned n, const struct record_view *over, struct stamp at, struct hold *h)
{
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH], place[LEDGER_HASH];
	struct record_new rec = {.content = content,
	                         .any_account = any,
	                         .place = place,
	                         .fingerprint = content,
	                         .wire_body = content,
	                         .settings = 7,
	                         .operation = "op",
	                         .key = "the-key",
	                         .generation = 1,
	                         .ttl_us = 24 * HOUR,
	                         .tombstone_us = 24 * HOUR};

	hash(content, 1, n);
	hash(any, 2, n);
	hash(place, 3, 0);
	return ledger_reserve(l, &rec, over, at, h);
}

static struct hold reserve(unsigned n, struct stamp at)
{
	struct hold h;

	assert_int_equal(reserve_over(n, NULL, at, &h), LEDGER_OK);
	return h;
}

static struct hold sent(unsigned n)
{
	struct hold h = reserve(n, then);

	assert_int_equal(ledger_gate(l, &h, then), LEDGER_OK);
	return h;
}

static struct record_view look(const struct hold *h)
{
	struct record_view v;

	ledger_look(l, h->id, now, &v);
	return v;
}

/* Each reservation sweeps a few places: laps around all of them, with one write that is taken back
 * and made again. */
static void sweep_all(unsigned n)
{
	struct hold h = reserve(n, now);
	struct record_view v;

	for (int i = 0; i < 60; i++) {
		assert_int_equal(ledger_withdraw(l, &h, now), LEDGER_OK);
		v = look(&h);
		assert_int_equal(reserve_over(n, &v, now, &h), LEDGER_OK);
	}
}

static struct verdict judge(const struct hold *h, const struct rule *rule)
{
	struct record_view v = look(h);
	struct asked asked = {.mode = MODE_ENFORCE,
	                      .fingerprint = v.fingerprint,
	                      .wire_body = v.wire_body,
	                      .settings = 7};

	v.hit = HIT_CONTENT;
	return verdict_decide(&v, rule, &asked, now);
}

static void check(enum jump jump, const char *what, int got, int want)
{
	if (got != want)
		fail_msg("%s: %s is %d and not %d", jump_names[jump], what, got, want);
}

static const struct {
	enum record_state done, freed, tombstone; /* after the sweep; REC_NONE: gone. A freed one is
	                                           * remembered from when it was freed. */
	enum verdict_kind doubt_dropped;          /* unknown_ttl 1 h, no deduplication */
	enum verdict_kind resend;                 /* key_ttl 24 h */
	enum verdict_kind replay;                 /* replay_for 10 min, no run known */
	bool lease;
} want[JUMPS] = {
        [FORWARD] = {REC_DONE, REC_FREED, REC_TOMBSTONE, VERDICT_REFUSE, VERDICT_REFUSE,
                     VERDICT_REPLAY, true},
        [BACK] = {REC_DONE, REC_FREED, REC_TOMBSTONE, VERDICT_REFUSE, VERDICT_RESEND,
                  VERDICT_REPLAY, true},
        [FORWARD_BOOT] = {REC_TOMBSTONE, REC_NONE, REC_NONE, VERDICT_EXECUTE, VERDICT_REFUSE,
                          VERDICT_EXECUTE, false},
        [BACK_BOOT] = {REC_DONE, REC_FREED, REC_TOMBSTONE, VERDICT_REFUSE, VERDICT_REFUSE,
                       VERDICT_REPLAY, false},
};

static struct rule plain_rule(void)
{
	return (struct rule){.operation = "op",
	                     .ttl = 24 * HOUR,
	                     .replay_for = 600 * SECOND,
	                     .unknown_ttl = -1,
	                     .on_unknown = UNKNOWN_AUTO};
}

static struct hold delivered(unsigned n)
{
	struct hold h = sent(n);
	struct ledger_answer a = {.status = 201, .blob = {"created", 7}};

	assert_int_equal(ledger_done(l, &h, &a, then), LEDGER_OK);
	assert_int_equal(ledger_delivered(l, h.id, 1, 0, then), LEDGER_OK);
	return h;
}

static struct hold doubtful(unsigned n)
{
	struct hold h = sent(n);

	assert_int_equal(ledger_unknown(l, &h, false, NULL, then), LEDGER_OK);
	return h;
}

static struct hold freed(unsigned n)
{
	struct hold h = sent(n);

	assert_int_equal(ledger_freed(l, &h, FREED_ANSWER, NULL, then), LEDGER_OK);
	return h;
}

/* One that was done 25 hours before, and is a tombstone since. */
static struct hold tombstone(unsigned n)
{
	struct stamp kept = then;
	struct hold h;

	then.wall_us -= 25 * HOUR;
	then.boot_us -= 25 * HOUR;
	h = delivered(n);
	then = now = kept;
	sweep_all(2000);
	assert_int_equal(look(&h).state, REC_TOMBSTONE);
	return h;
}

static void check_jump(enum jump jump)
{
	struct hold old = tombstone(1), answered = delivered(2), not_executed = freed(3);
	struct hold doubt = doubtful(4), under_way = sent(5);
	struct rule rule = plain_rule(), drops = plain_rule(), dedups = plain_rule();

	drops.unknown_ttl = HOUR;
	dedups.dedups = true;
	dedups.key_ttl = 24 * HOUR;
	jump_to(jump);
	check(jump, "the lease", look(&under_way).lease_fresh, want[jump].lease);
	check(jump, "the answer's verdict", (int)judge(&answered, &rule).kind,
	      (int)want[jump].replay);
	check(jump, "an old doubt's verdict", (int)judge(&doubt, &drops).kind,
	      (int)want[jump].doubt_dropped);
	check(jump, "a resend's verdict", (int)judge(&doubt, &dedups).kind, (int)want[jump].resend);
	sweep_all(1000);
	check(jump, "the answer", (int)look(&answered).state, (int)want[jump].done);
	check(jump, "the freed one", (int)look(&not_executed).state, (int)want[jump].freed);
	check(jump, "the tombstone", (int)look(&old).state, (int)want[jump].tombstone);
	check(jump, "the doubt", (int)look(&doubt).state, REC_UNKNOWN);
	check(jump, "what is under way", (int)look(&under_way).state, REC_SENT);
	check(jump, "its in-doubt verdict", judge(&under_way, &rule).kind == VERDICT_JOIN,
	      want[jump].lease);
}

/* A lease is renewed on the clock that does not jump. */
static void a_lease_outlives_a_jump(void **state)
{
	struct hold h, other;
	struct record_view v;

	(void)state;
	for (enum jump jump = FORWARD; jump <= BACK; jump++) {
		h = sent(10 + jump);
		jump_to(jump);
		v = look(&h);
		assert_int_equal(ledger_take(l, &v, now, &other), LEDGER_LOST);
		assert_int_equal(ledger_renew(l, &h, now), LEDGER_OK);
		now.boot_us += 14 * SECOND;
		assert_true(look(&h).lease_fresh);
		now.boot_us += 2 * SECOND;
		assert_false(look(&h).lease_fresh);
	}
}

/* The gate dates what it sends by both clocks: the first date of a generation stays. */
static void first_sent_survives_a_resend_after_a_jump(void **state)
{
	struct hold h = doubtful(20), again;
	struct record_view v;

	(void)state;
	jump_to(BACK);
	v = look(&h);
	assert_int_equal(ledger_take(l, &v, now, &again), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &again, now), LEDGER_OK);
	v = look(&h);
	assert_memory_equal(&v.first_sent, &then, sizeof(then));
}

/* Every insertion makes the lap longer: it must be finished all the same. */
static void a_ledger_that_grows_is_swept(void **state)
{
	enum { OLD = 1000, NEW = 1500 };
	static struct hold old[OLD];
	unsigned left = 0;

	(void)state;
	for (unsigned n = 0; n < OLD; n++)
		old[n] = freed(5000 + n);
	now = then;
	now.wall_us += 25 * HOUR;
	now.boot_us += 25 * HOUR;
	for (unsigned n = 0; n < NEW; n++)
		reserve(10000 + n, now);
	for (unsigned n = 0; n < OLD; n++)
		left += look(&old[n]).state == REC_FREED;
	assert_int_equal(left, 0);
}

static void forward(void **state)
{
	(void)state;
	check_jump(FORWARD);
}

static void back(void **state)
{
	(void)state;
	check_jump(BACK);
}

static void forward_and_a_boot(void **state)
{
	(void)state;
	check_jump(FORWARD_BOOT);
}

static void back_and_a_boot(void **state)
{
	(void)state;
	check_jump(BACK_BOOT);
}

static int set_up(void **state)
{
	struct ledger_options o = {
	        .path = path, .size = 16 << 20, .max_response = 4096, .create = true};
	struct ledger_error e;

	(void)state;
	unlink(path);
	/* A machine that has been up for ten days. */
	then = now = (struct stamp){INT64_C(1800000000) * SECOND, 240 * HOUR, 0x1234567890abcdef};
	return ledger_open(&o, &l, &e);
}

static int tear_down(void **state)
{
	int faults = ledger_verify(l, NULL, NULL);

	(void)state;
	ledger_close(l);
	return faults ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(forward, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(back, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(forward_and_a_boot, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(back_and_a_boot, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_ledger_that_grows_is_swept, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(a_lease_outlives_a_jump, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(first_sent_survives_a_resend_after_a_jump, set_up,
	                                        tear_down),
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
