/* verdict_decide against the table of the design, which stands here as data.
 *
 * A situation is a tuple of small dimensions. A row of the table is a set of allowed values for
 * each of them; the first row that allows all of a situation's values gives the verdict. Both a
 * situation and a row are one 128-bit set (a bit for each value of each dimension), so that
 * millions of situations take seconds: everything a record in flight can look like, everything one
 * that has ended can look like, and a sample of every other combination. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/verdict_situation.h"
#include "verdict/verdict.h"

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

#define B(value)      (1u << (value))
#define OURS          (B(H_OWN) | B(H_CONTENT))
#define IN_FLIGHT     (B(S_RESERVED) | B(S_SENT) | B(S_UNKNOWN))
#define DOUBT         (B(S_SENT) | B(S_UNKNOWN))
#define NOBODY        (B(N_THIS_RUN_UNKNOWN) | B(N_ASKED) | B(N_OTHER_ASKED) | B(N_OTHER_UNKNOWN))
#define SOMEBODY      (0xfffu & ~NOBODY)
#define TO_ME         (B(D_ME) | B(D_ME_AND_OTHER))
#define A_RUN_UNKNOWN (B(D_THIS_RUN_UNKNOWN) | B(D_OTHER_UNKNOWN) | B(D_BOTH_UNKNOWN))
#define FREED_SAME    (B(S_WITHDRAWN) | B(S_ANSWERED) | B(S_RESOLVED) | B(S_TOMB_WITHDRAWN))

#define KNOWN (B(P_OTHER) | B(P_SAME))
#define GONE  (B(P_GONE) | B(P_GONE_MUST) | B(P_GONE_OTHER))
#define EQUAL (B(P_SAME) | B(P_GONE))

#define IS(...)          .allowed = {__VA_ARGS__}
#define GIVES(what, ...) .verdict = {.kind = VERDICT_##what, __VA_ARGS__}
#define NO_BECAUSE(why)  .verdict = {.kind = VERDICT_REFUSE, .reason = REASON_##why}

/* A dimension that a row does not name may have any value. */
static const struct {
	unsigned allowed[DIMENSIONS];
	struct verdict verdict;
} table[] = {
        /* any | mode replay */
        {IS([MODE] = B(REPLAYING), [HIT] = OURS, [STATE] = B(S_DONE) | B(S_EXPIRED),
            [KEPT] = B(YES), [PRINT] = EQUAL),
         GIVES(REPLAY)},
        {IS([MODE] = B(REPLAYING)), NO_BECAUSE(REPLAY_MISS)},
        /* any | `required`, no own key */
        {IS([REQUIRED] = B(YES), [OWN] = B(NO_KEY)), NO_BECAUSE(KEY_REQUIRED)},
        /* reserved, sent, unknown, done | fingerprint differs */
        {IS([HIT] = OURS, [STATE] = IN_FLIGHT | B(S_DONE), [PRINT] = B(P_OTHER) | B(P_GONE_OTHER)),
         NO_BECAUSE(KEY_CONFLICT)},
        /* not freed, undelivered | hit only without account, opaque */
        {IS([HIT] = B(H_ACCOUNT), [OPAQUE] = B(YES), [STATE] = IN_FLIGHT),
         .verdict = {VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME, .generic_text = true}},
        {IS([HIT] = B(H_ACCOUNT), [OPAQUE] = B(YES), [STATE] = B(S_DONE), [WHO] = NOBODY),
         .verdict = {VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME, .generic_text = true}},
        /* not freed, undelivered | other settings, same scope, account, target */
        {IS([HIT] = OURS, [SETTINGS] = B(NO), [STATE] = IN_FLIGHT, [PRINT] = KNOWN),
         NO_BECAUSE(SETTINGS_CHANGED)},
        {IS([HIT] = OURS, [SETTINGS] = B(NO), [STATE] = B(S_DONE), [WHO] = NOBODY, [PRINT] = KNOWN),
         NO_BECAUSE(SETTINGS_CHANGED)},
        {IS([HIT] = B(H_SETTINGS), [STATE] = IN_FLIGHT), NO_BECAUSE(SETTINGS_CHANGED)},
        {IS([HIT] = B(H_SETTINGS), [STATE] = B(S_DONE), [WHO] = NOBODY),
         NO_BECAUSE(SETTINGS_CHANGED)},
        /* a neighbour's record that does not hinder is none */
        {IS([HIT] = B(H_NONE) | B(H_ACCOUNT) | B(H_SETTINGS)), GIVES(EXECUTE, .own_record = true)},
        /* nobody knows whether `must_match` differs: no answer is shared */
        {IS([STATE] = IN_FLIGHT, [LEASE] = B(FRESH), [OWNER] = B(O_ALIVE) | B(O_UNKNOWABLE),
            [PRINT] = B(P_GONE_MUST)),
         NO_BECAUSE(UNKNOWN_OUTCOME)},
        /* reserved, sent, unknown that is being sent again | lease fresh, owner not known dead */
        {IS([STATE] = IN_FLIGHT, [LEASE] = B(FRESH), [OWNER] = B(O_ALIVE) | B(O_UNKNOWABLE)),
         GIVES(JOIN)},
        /* reserved | otherwise */
        {IS([STATE] = B(S_RESERVED)), GIVES(TAKE)},
        /* in doubt, which is what is left of `sent` here */
        {IS([STATE] = DOUBT, [AGE] = B(PAST_DOUBT)),
         GIVES(EXECUTE, .next_generation = true, .doubt_dropped = true)},
        {IS([STATE] = DOUBT, [ON_UNKNOWN] = B(U_REFUSE)), NO_BECAUSE(UNKNOWN_OUTCOME)},
        {IS([STATE] = DOUBT, [WIRE] = B(NO)), NO_BECAUSE(UNKNOWN_OUTCOME)},
        {IS([STATE] = DOUBT, [DEDUPS] = B(YES), [AGE] = B(YOUNG),
            [ON_UNKNOWN] = B(U_AUTO) | B(U_RESEND)),
         GIVES(RESEND)},
        {IS([STATE] = DOUBT, [DEDUPS] = B(NO), [ON_UNKNOWN] = B(U_RESEND),
            [AGE] = B(YOUNG) | B(PAST_KEY) | B(OLD_NEVER_DROPPED)),
         GIVES(RESEND, .blind = true)},
        {IS([STATE] = DOUBT), NO_BECAUSE(UNKNOWN_OUTCOME)},
        /* none, freed */
        {IS([STATE] = B(S_STORED) | B(S_TOMB_STORED)), GIVES(EXECUTE, .next_generation = true)},
        {IS([STATE] = FREED_SAME), GIVES(EXECUTE)},
        /* expired or its tombstone */
        {IS([STATE] = B(S_EXPIRED) | B(S_TOMB), [ON_EXPIRED] = B(E_REFUSE)), NO_BECAUSE(EXPIRED)},
        {IS([STATE] = B(S_EXPIRED) | B(S_TOMB)), GIVES(EXECUTE, .next_generation = true)},
        /* the same: it was executed, and what came back may be another request's */
        {IS([STATE] = B(S_DONE), [PRINT] = B(P_GONE_MUST)), NO_BECAUSE(ANSWER_NOT_KEPT)},
        /* done | hit by own key */
        {IS([STATE] = B(S_DONE), [OWN] = B(ITS_KEY)), GIVES(REPLAY)},
        /* done, delivered | another own key, `trust` */
        {IS([STATE] = B(S_DONE), [WHO] = SOMEBODY, [OWN] = B(OTHER_KEY), [APP_KEY] = B(TRUST)),
         GIVES(EXECUTE, .own_record = true)},
        /* done | delivered to nobody, or this run asked and was not answered */
        {IS([STATE] = B(S_DONE), [WHO] = B(N_OTHER_ASKED)), GIVES(REPLAY, .replay_late = true)},
        {IS([STATE] = B(S_DONE), [WHO] = NOBODY | B(D_OTHER_ME_ASKED)), GIVES(REPLAY)},
        /* done | this run known, delivered to it */
        {IS([STATE] = B(S_DONE), [WHO] = TO_ME, [REPEAT] = B(R_REPLAY)), GIVES(REPLAY)},
        {IS([STATE] = B(S_DONE), [WHO] = TO_ME, [REPEAT] = B(R_AFTER)),
         GIVES(EXECUTE, .next_generation = true)},
        {IS([STATE] = B(S_DONE), [WHO] = TO_ME, [REPEAT] = B(R_WINDOW), [SINCE] = B(AFTER_30S)),
         GIVES(REPLAY)},
        {IS([STATE] = B(S_DONE), [WHO] = TO_ME, [REPEAT] = B(R_WINDOW)),
         GIVES(EXECUTE, .next_generation = true)},
        {IS([STATE] = B(S_DONE), [WHO] = TO_ME, [REPEAT] = B(R_ORDINAL)), GIVES(REPLAY)},
        {IS([STATE] = B(S_DONE), [WHO] = TO_ME, [REPEAT] = B(R_ORDINAL_BEHIND)),
         GIVES(EXECUTE, .next_generation = true, .own_record = true)},
        /* done | both runs known, delivered only to others */
        {IS([STATE] = B(S_DONE), [WHO] = B(D_OTHER) | B(D_OTHERS)),
         GIVES(EXECUTE, .next_generation = true, .own_record = true)},
        /* done | a run unknown on either side */
        {IS([STATE] = B(S_DONE), [WHO] = A_RUN_UNKNOWN, [SINCE] = B(AFTER_30S) | B(AFTER_300S)),
         GIVES(REPLAY)},
        {IS([STATE] = B(S_DONE), [WHO] = A_RUN_UNKNOWN), GIVES(EXECUTE, .next_generation = true)},
};

/* --- the interpreter --- */

typedef unsigned __int128 bits;

static unsigned first_bit[DIMENSIONS];
static bits allowed[COUNT_OF(table)];
static unsigned long reached[COUNT_OF(table)];

static void compile_table(void)
{
	unsigned next = 0;

	for (unsigned d = 0; d < DIMENSIONS; d++) {
		first_bit[d] = next;
		next += sizes[d];
	}
	assert_true(next <= 128);
	for (size_t r = 0; r < COUNT_OF(table); r++) {
		allowed[r] = 0;
		for (unsigned d = 0; d < DIMENSIONS; d++) {
			unsigned set = table[r].allowed[d];

			allowed[r] |= (bits)(set ? set : B(sizes[d]) - 1) << first_bit[d];
		}
	}
}

static struct verdict look_up(bits situation, bool kept, size_t *row)
{
	struct verdict not_kept = {VERDICT_REFUSE, REASON_ANSWER_NOT_KEPT, .blind = false};

	for (size_t r = 0; r < COUNT_OF(table); r++) {
		if (situation & ~allowed[r])
			continue;
		*row = r;
		if (table[r].verdict.kind == VERDICT_REPLAY && !kept)
			return not_kept;
		return table[r].verdict;
	}
	fail_msg("no row of the table holds");
	return not_kept;
}

/* --- walking --- */

/* What cannot be: asked before the expensive dimensions are walked. */
static bool can_be(unsigned after)
{
	bool ahead = after > AGE && digit[AGE] == AHEAD;

	if (after == HIT)
		return digit[HIT] == H_OWN ? digit[OWN] == ITS_KEY
		                           : digit[HIT] == H_CONTENT || digit[OWN] != ITS_KEY;
	if (after == STATE)
		return (digit[HIT] == H_NONE) == (digit[STATE] == S_NONE);
	if (after == PRINT)
		return digit[PRINT] != P_GONE_OTHER || digit[HIT] == H_OWN;
	/* what ended or was delivered long ago was not sent first in the future */
	return !ahead || (digit[STATE] != S_EXPIRED && digit[SINCE] == AFTER_30S);
}

static unsigned long situations;

static const char *describe(void)
{
	static char text[256];
	size_t used = 0;

	for (unsigned d = 0; d < DIMENSIONS; d++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%u:%u ", d, digit[d]);
	return text;
}

static bool same_verdict(struct verdict a, struct verdict b)
{
	return a.kind == b.kind && a.reason == b.reason && a.next_generation == b.next_generation &&
	       a.own_record == b.own_record && a.generic_text == b.generic_text &&
	       a.doubt_dropped == b.doubt_dropped && a.replay_late == b.replay_late &&
	       a.blind == b.blind;
}

static void compare(bits situation)
{
	size_t row = 0;
	struct verdict want = look_up(situation, digit[KEPT] == YES, &row);
	struct verdict got = verdict_decide(&record, &rule, &asked, now);

	situations++;
	reached[row]++;
	if (!same_verdict(want, got))
		fail_msg("row %zu: want %s %s, got %s %s next %d own %d; %s", row,
		         verdict_kind_name(want.kind), verdict_reason_name(want.reason),
		         verdict_kind_name(got.kind), verdict_reason_name(got.reason),
		         got.next_generation, got.own_record, describe());
}

static void walk(const unsigned *values, unsigned dimension, bits situation)
{
	if (dimension == DIMENSIONS) {
		compare(situation);
		return;
	}
	for (unsigned value = 0; value < sizes[dimension]; value++) {
		unsigned set = values[dimension];

		if (set && !(set & B(value)))
			continue;
		set_value(dimension, value);
		if ((dimension == HIT || dimension == STATE || dimension == AGE ||
		     dimension == PRINT) &&
		    !can_be(dimension == AGE ? AGE + 1 : dimension))
			continue;
		walk(values, dimension + 1, situation | (bits)1 << (first_bit[dimension] + value));
	}
}

/* --- the tests --- */

static void in_flight_is_as_the_table_says(void **state)
{
	static const unsigned values[DIMENSIONS] = {
	        [STATE] = IN_FLIGHT,        [WHO] = NOBODY,
	        [SINCE] = B(AFTER_30S),     [REPEAT] = B(R_REPLAY),
	        [ON_EXPIRED] = B(E_REFUSE), [PRINT] = KNOWN,
	};

	(void)state;
	walk(values, 0, 0);
}

static void ended_is_as_the_table_says(void **state)
{
	static const unsigned values[DIMENSIONS] = {
	        [STATE] = 0x1fffu & ~IN_FLIGHT,
	        [AGE] = B(PAST_KEY) | B(AHEAD),
	        [OWNER] = B(O_NONE),
	        [LEASE] = B(STALE),
	        [WIRE] = B(YES),
	        [DEDUPS] = B(NO),
	        [ON_UNKNOWN] = B(U_AUTO),
	        [PRINT] = KNOWN,
	};

	(void)state;
	walk(values, 0, 0);
}

/* Nothing is left of what it was written with: neither of the settings nor of the body. */
static void damaged_is_as_the_table_says(void **state)
{
	static const unsigned values[DIMENSIONS] = {
	        [PRINT] = GONE,     [SETTINGS] = B(NO),
	        [WIRE] = B(NO),     [OPAQUE] = B(NO),
	        [EVER] = B(YES),    [AGE] = B(YOUNG) | B(PAST_DOUBT),
	        [REQUIRED] = B(NO), [SINCE] = B(AFTER_30S) | B(AFTER_900S),
	};

	(void)state;
	walk(values, 0, 0);
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Whatever a dimension should have no say in, it has none. */
static void a_sample_of_everything_is_as_the_table_says(void **state)
{
	uint64_t seed = 20261130;

	(void)state;
	for (unsigned long n = 0; n < 4000000; n++) {
		bits situation = 0;

		for (unsigned d = 0; d < DIMENSIONS; d++) {
			unsigned value = next_random(&seed) % sizes[d];

			set_value(d, value);
			situation |= (bits)1 << (first_bit[d] + value);
		}
		if (can_be(HIT) && can_be(STATE) && can_be(PRINT) && can_be(AGE + 1))
			compare(situation);
	}
}

static void every_row_was_reached(void **state)
{
	(void)state;
	for (size_t r = 0; r < COUNT_OF(table); r++)
		if (reached[r] == 0)
			fail_msg("row %zu of the table was never reached", r);
	print_message("%lu situations, %zu rows\n", situations, COUNT_OF(table));
	assert_true(situations > 20000000);
}

static int set_up(void **state)
{
	(void)state;
	set_ground();
	compile_table();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(in_flight_is_as_the_table_says, set_up),
	        cmocka_unit_test_setup(ended_is_as_the_table_says, set_up),
	        cmocka_unit_test_setup(damaged_is_as_the_table_says, set_up),
	        cmocka_unit_test_setup(a_sample_of_everything_is_as_the_table_says, set_up),
	        cmocka_unit_test(every_row_was_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
