/* The two rows for a write whose record may have been lost to damage: refused as in doubt, until
 * the rule's own unknown_ttl says that it no longer hinders. No key helps: which one it had is
 * lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/verdict.h"

static const int64_t HOUR = INT64_C(3600000000);

static struct verdict decide(struct rule rule, struct asked asked, int64_t age)
{
	static const uint8_t zeroes[LEDGER_HASH];
	struct stamp now = {100 * HOUR, 50 * HOUR, 7};
	struct stamp then = {now.wall_us - age, now.boot_us - age, 7};
	struct record_view lost = {.state = REC_UNKNOWN,
	                           .hit = HIT_LOST,
	                           .generation = 1,
	                           .in_doubt = true,
	                           .first_sent = then,
	                           .ended = then};

	asked.fingerprint = asked.wire_body = zeroes;
	return verdict_decide(&lost, &rule, &asked, now);
}

static const struct rule plain = {.ttl = 24 * INT64_C(3600000000), .unknown_ttl = POLICY_NEVER};

static void refused_as_in_doubt(void **state)
{
	struct rule dedups = plain, blind = plain;
	const struct rule *rules[] = {&plain, &dedups, &blind};

	(void)state;
	dedups.dedups = true;
	dedups.key_ttl = 48 * HOUR;
	blind.on_unknown = UNKNOWN_RESEND;
	for (size_t i = 0; i < 3; i++) {
		for (int own = 0; own < 2; own++) {
			struct asked asked = {.mode = MODE_ENFORCE, .has_own_key = own, .run = 5};
			struct verdict v = decide(*rules[i], asked, HOUR);

			assert_int_equal(v.kind, VERDICT_REFUSE);
			assert_int_equal(v.reason, REASON_UNKNOWN_OUTCOME);
			assert_false(v.generic_text);
		}
	}
}

static void until_a_doubt_no_longer_hinders(void **state)
{
	struct asked asked = {.mode = MODE_ENFORCE};
	struct rule rule = plain;
	struct verdict v;

	(void)state;
	rule.unknown_ttl = HOUR;
	v = decide(rule, asked, HOUR - 1);
	assert_int_equal(v.kind, VERDICT_REFUSE);
	v = decide(rule, asked, HOUR + 1);
	assert_int_equal(v.kind, VERDICT_EXECUTE);
	assert_true(v.own_record && v.doubt_dropped);
	assert_false(v.next_generation);
	/* one that lies in the future proves nothing about how long ago it was */
	v = decide(rule, asked, -2 * HOUR);
	assert_int_equal(v.kind, VERDICT_REFUSE);
}

static void rows_before_it_go_first(void **state)
{
	struct asked asked = {.mode = MODE_REPLAY};
	struct rule rule = plain;

	(void)state;
	assert_int_equal(decide(rule, asked, HOUR).reason, REASON_REPLAY_MISS);
	rule.key_required = true;
	asked.mode = MODE_ENFORCE;
	assert_int_equal(decide(rule, asked, HOUR).reason, REASON_KEY_REQUIRED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(refused_as_in_doubt),
	        cmocka_unit_test(until_a_doubt_no_longer_hinders),
	        cmocka_unit_test(rows_before_it_go_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
