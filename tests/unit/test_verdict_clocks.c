/* verdict_decide and verdict_may_resend where time decides, and at the edges of their hashes and
 * limits: what the table's age classes cannot say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/verdict.h"

#define SECOND         ((int64_t)1000000)
#define HOUR           (3600 * SECOND)
#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

static const uint8_t print_asked[LEDGER_HASH] = {1, 2, 3}, body_asked[LEDGER_HASH] = {4, 5, 6};
static const struct stamp now = {1800000000 * SECOND, 500000 * SECOND, 7};

static struct record_view record;
static struct rule rule;
static struct asked asked;

static struct stamp ago(int64_t age)
{
	return (struct stamp){now.wall_us - age, now.boot_us - age, now.boot};
}

/* A plain doubt, or a plain done record, that each case then changes. */
static void set_plain(enum record_state state, bool dedups)
{
	memset(&record, 0, sizeof(record));
	memset(&rule, 0, sizeof(rule));
	memset(&asked, 0, sizeof(asked));
	memcpy(record.fingerprint, print_asked, LEDGER_HASH);
	memcpy(record.wire_body, body_asked, LEDGER_HASH);
	asked.fingerprint = print_asked;
	asked.wire_body = body_asked;
	rule.ttl = 24 * HOUR;
	rule.replay_for = 600 * SECOND;
	record.state = state;
	record.hit = HIT_CONTENT;
	asked.settings = record.settings;
	asked.run = 11;
	record.first_sent = ago(10 * SECOND);
	rule.dedups = dedups;
	rule.unknown_ttl = POLICY_NEVER;
}

static void assert_verdict(enum verdict_kind kind, enum verdict_reason reason)
{
	struct verdict got = verdict_decide(&record, &rule, &asked, now);

	assert_string_equal(verdict_kind_name(got.kind), verdict_kind_name(kind));
	assert_string_equal(verdict_reason_name(got.reason), verdict_reason_name(reason));
}

static void a_key_is_not_relied_on_in_its_last_minute(void **state)
{
	(void)state;
	set_plain(REC_UNKNOWN, true);
	rule.key_ttl = HOUR;
	record.first_sent = ago(HOUR - 60 * SECOND - 1);
	assert_verdict(VERDICT_RESEND, REASON_NONE);
	record.first_sent = ago(HOUR - 60 * SECOND);
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	rule.key_ttl = 30 * SECOND;
	record.first_sent = ago(0);
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
}

static void a_jump_of_the_wall_clock_resends_nothing_too_late(void **state)
{
	(void)state;
	set_plain(REC_UNKNOWN, true);
	rule.key_ttl = HOUR;
	record.first_sent.boot_us = now.boot_us - 2 * HOUR; /* set back: wall says 10 s */
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	record.first_sent = ago(10 * SECOND);
	record.first_sent.wall_us -= 2 * HOUR; /* set forward: wall says 2 h */
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	record.first_sent = ago(10 * SECOND);
	record.first_sent.wall_us = now.wall_us + HOUR; /* set back, still the same boot */
	assert_verdict(VERDICT_RESEND, REASON_NONE);
}

static void a_jump_of_the_wall_clock_expires_nothing(void **state)
{
	(void)state;
	set_plain(REC_DONE, false);
	record.answer_kept = true;
	record.ended = ago(HOUR);
	record.ended.wall_us -= 48 * HOUR;
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
	record.ended = ago(HOUR);
	record.ended.boot_us -= 48 * HOUR;
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
	record.ended.wall_us -= 48 * HOUR;
	assert_verdict(VERDICT_EXECUTE, REASON_NONE);
}

static void expiry_is_exact(void **state)
{
	(void)state;
	set_plain(REC_DONE, false);
	record.answer_kept = true;
	record.ended = ago(24 * HOUR);
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
	record.ended = ago(24 * HOUR + 1);
	assert_verdict(VERDICT_EXECUTE, REASON_NONE);
	record.first_delivered = ago(SECOND); /* delivered and undelivered alike */
	assert_verdict(VERDICT_EXECUTE, REASON_NONE);
	record.ended = (struct stamp){0}; /* never a date: never expires */
	record.first_delivered = (struct stamp){0};
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
}

static void after_a_reboot_the_wall_clock_counts(void **state)
{
	(void)state;
	set_plain(REC_UNKNOWN, true);
	rule.key_ttl = HOUR;
	record.first_sent = (struct stamp){now.wall_us - 10 * SECOND, 900000 * SECOND, 6};
	assert_verdict(VERDICT_RESEND, REASON_NONE);
	record.first_sent.wall_us = now.wall_us - HOUR;
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
}

static void a_send_in_the_future_resends_and_expires_nothing(void **state)
{
	const struct stamp ahead = {now.wall_us + 1, 1, 6};

	(void)state;
	set_plain(REC_UNKNOWN, true);
	rule.key_ttl = HOUR;
	record.first_sent = ahead;
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	set_plain(REC_UNKNOWN, false);
	rule.on_unknown = UNKNOWN_RESEND;
	record.first_sent = ahead;
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	rule.unknown_ttl = 0;
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	set_plain(REC_DONE, false);
	record.answer_kept = true;
	record.first_sent = ahead;
	record.ended = ago(48 * HOUR);
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
}

static void a_doubt_lasts_from_its_last_attempt(void **state)
{
	(void)state;
	set_plain(REC_UNKNOWN, false);
	rule.unknown_ttl = HOUR;
	record.first_sent = ago(HOUR);
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	record.first_sent = ago(HOUR + 1);
	assert_verdict(VERDICT_EXECUTE, REASON_NONE);
	record.ended = ago(HOUR);
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	record.ended = ago(HOUR + 1);
	assert_verdict(VERDICT_EXECUTE, REASON_NONE);
}

static void a_doubt_without_a_date_is_refused(void **state)
{
	(void)state;
	set_plain(REC_UNKNOWN, true);
	rule.key_ttl = INT64_MAX;
	rule.unknown_ttl = HOUR;
	record.first_sent = (struct stamp){0};
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
	rule.dedups = false;
	rule.on_unknown = UNKNOWN_RESEND;
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
}

static void the_gate_asks_the_same_rows(void **state)
{
	static const struct {
		bool dedups;
		enum rule_unknown on_unknown;
		int64_t age, unknown_ttl;
		bool same_body, may;
	} cases[] = {
	        {true, UNKNOWN_AUTO, SECOND, POLICY_NEVER, true, true},
	        {true, UNKNOWN_RESEND, SECOND, POLICY_NEVER, true, true},
	        {true, UNKNOWN_REFUSE, SECOND, POLICY_NEVER, true, false},
	        {true, UNKNOWN_AUTO, SECOND, POLICY_NEVER, false, false},
	        {true, UNKNOWN_AUTO, HOUR - 60 * SECOND - 1, POLICY_NEVER, true, true},
	        {true, UNKNOWN_AUTO, HOUR - 60 * SECOND, POLICY_NEVER, true, false},
	        {true, UNKNOWN_RESEND, HOUR - 60 * SECOND, POLICY_NEVER, true, false},
	        {true, UNKNOWN_AUTO, -SECOND, POLICY_NEVER, true, false},
	        {false, UNKNOWN_AUTO, SECOND, POLICY_NEVER, true, false},
	        {false, UNKNOWN_REFUSE, SECOND, POLICY_NEVER, true, false},
	        {false, UNKNOWN_RESEND, SECOND, POLICY_NEVER, true, true},
	        {false, UNKNOWN_RESEND, 9 * HOUR, POLICY_NEVER, true, true},
	        {false, UNKNOWN_RESEND, SECOND, POLICY_NEVER, false, false},
	        {false, UNKNOWN_RESEND, -SECOND, POLICY_NEVER, true, false},
	        {false, UNKNOWN_RESEND, HOUR, HOUR, true, true},
	        {false, UNKNOWN_RESEND, HOUR + 1, HOUR, true, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct rule r = {.dedups = cases[i].dedups,
		                 .on_unknown = cases[i].on_unknown,
		                 .unknown_ttl = cases[i].unknown_ttl,
		                 .key_ttl = HOUR};

		if (verdict_may_resend(&r, ago(cases[i].age), cases[i].same_body, now) !=
		    cases[i].may)
			fail_msg("case %zu", i);
	}
}

static void the_last_bytes_of_hashes_count(void **state)
{
	(void)state;
	set_plain(REC_UNKNOWN, true);
	rule.key_ttl = HOUR;
	record.fingerprint[LEDGER_HASH - 1] ^= 1;
	assert_verdict(VERDICT_REFUSE, REASON_KEY_CONFLICT);
	record.fingerprint[LEDGER_HASH - 1] ^= 1;
	assert_verdict(VERDICT_RESEND, REASON_NONE);
	record.wire_body[0] ^= 1;
	assert_verdict(VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME);
}

/* The first delivery counts, to the microsecond, and a clock set forward ends nothing early. */
static void an_answer_is_replayed_until_replay_for(void **state)
{
	(void)state;
	set_plain(REC_DONE, false);
	asked.run = 0;
	record.answer_kept = true;
	record.ended = ago(HOUR);
	record.first_delivered = ago(600 * SECOND);
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
	record.first_delivered = ago(600 * SECOND + 1);
	assert_verdict(VERDICT_EXECUTE, REASON_NONE);
	record.first_delivered = ago(SECOND);
	record.first_delivered.wall_us -= 2 * HOUR;
	assert_verdict(VERDICT_REPLAY, REASON_NONE);
}

static void names_are_those_of_the_documents(void **state)
{
	(void)state;
	assert_string_equal(verdict_kind_name(VERDICT_TAKE), "execute");
	assert_string_equal(verdict_kind_name(VERDICT_REFUSE), "refuse");
	assert_string_equal(verdict_kind_name((enum verdict_kind)99), "invalid");
	assert_string_equal(verdict_reason_name(REASON_NONE), "");
	assert_string_equal(verdict_reason_name(REASON_REDIRECTED_INTO_RULE),
	                    "redirected-into-rule");
	assert_string_equal(verdict_reason_name(REASON_COUNT), "invalid");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_key_is_not_relied_on_in_its_last_minute),
	        cmocka_unit_test(a_jump_of_the_wall_clock_resends_nothing_too_late),
	        cmocka_unit_test(a_jump_of_the_wall_clock_expires_nothing),
	        cmocka_unit_test(expiry_is_exact),
	        cmocka_unit_test(after_a_reboot_the_wall_clock_counts),
	        cmocka_unit_test(a_send_in_the_future_resends_and_expires_nothing),
	        cmocka_unit_test(a_doubt_lasts_from_its_last_attempt),
	        cmocka_unit_test(a_doubt_without_a_date_is_refused),
	        cmocka_unit_test(the_gate_asks_the_same_rows),
	        cmocka_unit_test(the_last_bytes_of_hashes_count),
	        cmocka_unit_test(an_answer_is_replayed_until_replay_for),
	        cmocka_unit_test(names_are_those_of_the_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
