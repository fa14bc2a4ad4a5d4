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

#include "verdict/verdict.h"

#define SECOND         ((int64_t)1000000)
#define HOUR           (3600 * SECOND)
#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

enum dimension {
	MODE,
	REQUIRED,
	OWN,
	HIT,
	STATE,
	WHO,
	SINCE,
	AGE,
	SETTINGS,
	OPAQUE,
	PRINT,
	WIRE,
	EVER,
	OWNER,
	LEASE,
	DEDUPS,
	ON_UNKNOWN,
	ON_EXPIRED,
	KEPT,
	REPEAT,
	APP_KEY,
	DIMENSIONS
};

/* The values of each, in the order of their bits. */
enum { ENFORCE, REPLAYING, INJECT };
enum { NO, YES };
enum { NO_KEY, OTHER_KEY, ITS_KEY };
enum { H_NONE, H_OWN, H_CONTENT, H_ACCOUNT, H_SETTINGS };
enum {
	S_NONE,
	S_RESERVED,
	S_SENT,
	S_UNKNOWN,
	S_DONE,
	S_EXPIRED,
	S_TOMB,
	S_WITHDRAWN,
	S_ANSWERED,
	S_STORED,
	S_RESOLVED,
	S_TOMB_WITHDRAWN,
	S_TOMB_STORED
};
/* To whom it was delivered (N: nobody), seen from the run that asks now. */
enum {
	N_THIS_RUN_UNKNOWN,
	N_ASKED,
	N_OTHER_ASKED,
	N_OTHER_UNKNOWN,
	D_THIS_RUN_UNKNOWN,
	D_OTHER_UNKNOWN,
	D_BOTH_UNKNOWN,
	D_ME,
	D_ME_AND_OTHER,
	D_OTHER_ME_ASKED,
	D_OTHER,
	D_OTHERS
};
enum { AFTER_30S, AFTER_300S, AFTER_900S }; /* window 60 s, replay_for 600 s */
enum { YOUNG, PAST_KEY, PAST_DOUBT, OLD_NEVER_DROPPED, AHEAD };
enum { O_NONE, O_ALIVE, O_DEAD, O_UNKNOWABLE };
enum { FRESH, STALE };
enum { U_AUTO, U_RESEND, U_REFUSE };
enum { E_EXECUTE, E_REFUSE };
enum { R_REPLAY, R_AFTER, R_WINDOW, R_ORDINAL, R_ORDINAL_BEHIND };
enum { TRUST, ALIAS };

static const unsigned sizes[DIMENSIONS] = {
        [MODE] = 3,    [REQUIRED] = 2, [OWN] = 3,    [HIT] = 5,        [STATE] = 13,
        [WHO] = 12,    [SINCE] = 3,    [AGE] = 5,    [SETTINGS] = 2,   [OPAQUE] = 2,
        [PRINT] = 2,   [WIRE] = 2,     [EVER] = 2,   [OWNER] = 4,      [LEASE] = 2,
        [DEDUPS] = 2,  [KEPT] = 2,     [REPEAT] = 5, [ON_UNKNOWN] = 3, [ON_EXPIRED] = 2,
        [APP_KEY] = 2,
};

#define B(value)      (1u << (value))
#define OURS          (B(H_OWN) | B(H_CONTENT))
#define IN_FLIGHT     (B(S_RESERVED) | B(S_SENT) | B(S_UNKNOWN))
#define DOUBT         (B(S_SENT) | B(S_UNKNOWN))
#define NOBODY        (B(N_THIS_RUN_UNKNOWN) | B(N_ASKED) | B(N_OTHER_ASKED) | B(N_OTHER_UNKNOWN))
#define SOMEBODY      (0xfffu & ~NOBODY)
#define TO_ME         (B(D_ME) | B(D_ME_AND_OTHER))
#define A_RUN_UNKNOWN (B(D_THIS_RUN_UNKNOWN) | B(D_OTHER_UNKNOWN) | B(D_BOTH_UNKNOWN))
#define FREED_SAME    (B(S_WITHDRAWN) | B(S_ANSWERED) | B(S_RESOLVED) | B(S_TOMB_WITHDRAWN))

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
            [KEPT] = B(YES), [PRINT] = B(YES)),
         GIVES(REPLAY)},
        {IS([MODE] = B(REPLAYING)), NO_BECAUSE(REPLAY_MISS)},
        /* any | `required`, no own key */
        {IS([REQUIRED] = B(YES), [OWN] = B(NO_KEY)), NO_BECAUSE(KEY_REQUIRED)},
        /* reserved, sent, unknown, done | fingerprint differs */
        {IS([HIT] = OURS, [STATE] = IN_FLIGHT | B(S_DONE), [PRINT] = B(NO)),
         NO_BECAUSE(KEY_CONFLICT)},
        /* not freed, undelivered | hit only without account, opaque */
        {IS([HIT] = B(H_ACCOUNT), [OPAQUE] = B(YES), [STATE] = IN_FLIGHT),
         .verdict = {VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME, .generic_text = true}},
        {IS([HIT] = B(H_ACCOUNT), [OPAQUE] = B(YES), [STATE] = B(S_DONE), [WHO] = NOBODY),
         .verdict = {VERDICT_REFUSE, REASON_UNKNOWN_OUTCOME, .generic_text = true}},
        /* not freed, undelivered | other settings, same scope, account, target */
        {IS([HIT] = OURS, [SETTINGS] = B(NO), [STATE] = IN_FLIGHT), NO_BECAUSE(SETTINGS_CHANGED)},
        {IS([HIT] = OURS, [SETTINGS] = B(NO), [STATE] = B(S_DONE), [WHO] = NOBODY),
         NO_BECAUSE(SETTINGS_CHANGED)},
        {IS([HIT] = B(H_SETTINGS), [STATE] = IN_FLIGHT), NO_BECAUSE(SETTINGS_CHANGED)},
        {IS([HIT] = B(H_SETTINGS), [STATE] = B(S_DONE), [WHO] = NOBODY),
         NO_BECAUSE(SETTINGS_CHANGED)},
        /* a neighbour's record that does not hinder is none */
        {IS([HIT] = B(H_NONE) | B(H_ACCOUNT) | B(H_SETTINGS)), GIVES(EXECUTE, .own_record = true)},
        /* reserved, sent | lease fresh and owner not known dead */
        {IS([STATE] = B(S_RESERVED) | B(S_SENT), [LEASE] = B(FRESH),
            [OWNER] = B(O_ALIVE) | B(O_UNKNOWABLE)),
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
         GIVES(EXECUTE, .next_generation = true)},
        /* done | both runs known, delivered only to others */
        {IS([STATE] = B(S_DONE), [WHO] = B(D_OTHER) | B(D_OTHERS)),
         GIVES(EXECUTE, .next_generation = true)},
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

/* --- a situation as what verdict_decide is given --- */

static const uint8_t print_asked[LEDGER_HASH] = {1, 2, 3}, body_asked[LEDGER_HASH] = {4, 5, 6};
static const struct stamp now = {1800000000 * SECOND, 500000 * SECOND, 7};

static struct record_view record;
static struct rule rule;
static struct asked asked;
static unsigned digit[DIMENSIONS];

static struct stamp ago(int64_t age)
{
	return (struct stamp){now.wall_us - age, now.boot_us - age, now.boot};
}

static void set_state(unsigned value)
{
	static const struct {
		enum record_state state;
		enum freed_how freed;
		int64_t ended;
	} as[] = {
	        [S_NONE] = {REC_NONE, FREED_NOT, 0},
	        [S_RESERVED] = {REC_RESERVED, FREED_NOT, 0},
	        [S_SENT] = {REC_SENT, FREED_NOT, 0},
	        [S_UNKNOWN] = {REC_UNKNOWN, FREED_NOT, 0},
	        [S_DONE] = {REC_DONE, FREED_NOT, HOUR},
	        [S_EXPIRED] = {REC_DONE, FREED_NOT, 25 * HOUR},
	        [S_TOMB] = {REC_TOMBSTONE, FREED_NOT, HOUR},
	        [S_WITHDRAWN] = {REC_FREED, FREED_WITHDRAWN, 30 * HOUR},
	        [S_ANSWERED] = {REC_FREED, FREED_ANSWER, HOUR},
	        [S_STORED] = {REC_FREED, FREED_STORED, HOUR},
	        [S_RESOLVED] = {REC_FREED, FREED_RESOLVED, HOUR},
	        [S_TOMB_WITHDRAWN] = {REC_TOMBSTONE, FREED_WITHDRAWN, HOUR},
	        [S_TOMB_STORED] = {REC_TOMBSTONE, FREED_STORED, HOUR},
	};

	record.state = as[value].state;
	record.freed = as[value].freed;
	record.ended = as[value].ended ? ago(as[value].ended) : (struct stamp){0};
}

static void set_who(unsigned value)
{
	/* the run that asks now is 11 */
	static const struct {
		uint64_t run;
		size_t count;
		struct run_entry entry[3];
		bool delivered;
	} as[] = {
	        [N_THIS_RUN_UNKNOWN] = {0, 1, {{21, 5, 0}}, false},
	        [N_ASKED] = {11, 2, {{21, 5, 0}, {11, 6, 0}}, false},
	        [N_OTHER_ASKED] = {11, 1, {{21, 5, 0}}, false},
	        [N_OTHER_UNKNOWN] = {11, 0, {{0}}, false},
	        [D_THIS_RUN_UNKNOWN] = {0, 1, {{21, 5, 9}}, true},
	        [D_OTHER_UNKNOWN] = {11, 0, {{0}}, true},
	        [D_BOTH_UNKNOWN] = {0, 0, {{0}}, true},
	        [D_ME] = {11, 1, {{11, 5, 9}}, true},
	        [D_ME_AND_OTHER] = {11, 2, {{21, 5, 9}, {11, 6, 9}}, true},
	        [D_OTHER_ME_ASKED] = {11, 2, {{21, 5, 9}, {11, 6, 0}}, true},
	        [D_OTHER] = {11, 1, {{21, 5, 9}}, true},
	        [D_OTHERS] = {11, 3, {{21, 5, 9}, {31, 5, 0}, {41, 6, 9}}, true},
	};

	asked.run = as[value].run;
	record.run_count = as[value].count;
	memcpy(record.runs, as[value].entry, sizeof(as[value].entry));
	record.first_delivered.wall_us = as[value].delivered;
}

/* Comes after set_who: only what was delivered has a date. */
static void set_since(unsigned value)
{
	static const int64_t age[] = {30 * SECOND, 300 * SECOND, 900 * SECOND};

	if (record.first_delivered.wall_us)
		record.first_delivered = ago(age[value]);
}

static void set_age(unsigned value)
{
	rule.unknown_ttl = value == OLD_NEVER_DROPPED ? POLICY_NEVER : 2 * HOUR;
	record.first_sent = ago(value == YOUNG ? 10 * SECOND : value == PAST_KEY ? HOUR : 3 * HOUR);
	if (value == AHEAD)
		record.first_sent = (struct stamp){now.wall_us + 5 * SECOND, 1, 6};
}

static void set_request(unsigned dimension, unsigned value)
{
	static const enum policy_mode modes[] = {MODE_ENFORCE, MODE_REPLAY, MODE_INJECT};

	switch (dimension) {
	case MODE:
		asked.mode = modes[value];
		return;
	case OWN:
		asked.has_own_key = value != NO_KEY;
		asked.own_key_matches = value == ITS_KEY;
		return;
	case SETTINGS:
		asked.settings = value ? record.settings : ~record.settings;
		return;
	case OPAQUE:
		asked.account_opaque = value;
		return;
	case PRINT:
		record.fingerprint[LEDGER_HASH - 1] = !value;
		return;
	case WIRE:
		record.wire_body[LEDGER_HASH - 1] = !value;
		return;
	}
}

static void set_rule(unsigned dimension, unsigned value)
{
	static const enum rule_unknown on_unknown[] = {UNKNOWN_AUTO, UNKNOWN_RESEND,
	                                               UNKNOWN_REFUSE};
	static const enum rule_repeat repeat[] = {REPEAT_REPLAY, REPEAT_AFTER_ANSWER, REPEAT_WINDOW,
	                                          REPEAT_ORDINAL, REPEAT_ORDINAL};

	switch (dimension) {
	case REQUIRED:
		rule.key_required = value;
		return;
	case DEDUPS:
		rule.dedups = value;
		return;
	case ON_UNKNOWN:
		rule.on_unknown = on_unknown[value];
		return;
	case ON_EXPIRED:
		rule.on_expired = value == E_EXECUTE ? EXPIRED_EXECUTE : EXPIRED_REFUSE;
		return;
	case REPEAT:
		rule.repeat = repeat[value];
		asked.ordinal_behind = value == R_ORDINAL_BEHIND;
		return;
	case APP_KEY:
		rule.app_key = value == TRUST ? APP_KEY_TRUST : APP_KEY_ALIAS;
		return;
	}
}

static void set_value(unsigned dimension, unsigned value)
{
	static const enum record_hit hits[] = {HIT_NONE, HIT_OWN_KEY, HIT_CONTENT, HIT_ANY_ACCOUNT,
	                                       HIT_OTHER_SETTINGS};
	static const enum owner_life lives[] = {OWNER_NONE, OWNER_ALIVE, OWNER_DEAD,
	                                        OWNER_UNKNOWABLE};

	digit[dimension] = value;
	switch (dimension) {
	case HIT:
		record.hit = hits[value];
		return;
	case STATE:
		set_state(value);
		return;
	case WHO:
		set_who(value);
		return;
	case SINCE:
		set_since(value);
		return;
	case AGE:
		set_age(value);
		return;
	case EVER:
		record.ever_sent = value;
		return;
	case OWNER:
		record.owner = lives[value];
		return;
	case LEASE:
		record.lease_fresh = value == FRESH;
		return;
	case KEPT:
		record.answer_kept = value;
		return;
	default:
		set_request(dimension, value);
		set_rule(dimension, value);
	}
}

static void set_ground(void)
{
	memset(&record, 0, sizeof(record));
	memset(&rule, 0, sizeof(rule));
	memset(&asked, 0, sizeof(asked));
	record.settings = 99;
	record.generation = 3;
	record.made = ago(4 * HOUR);
	memcpy(record.fingerprint, print_asked, LEDGER_HASH);
	memcpy(record.wire_body, body_asked, LEDGER_HASH);
	asked.fingerprint = print_asked;
	asked.wire_body = body_asked;
	rule.key_ttl = HOUR + 30 * SECOND;
	rule.ttl = 24 * HOUR;
	rule.window = 60 * SECOND;
	rule.replay_for = 600 * SECOND;
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
		if ((dimension == HIT || dimension == STATE || dimension == AGE) &&
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
	        [ON_EXPIRED] = B(E_REFUSE),
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
		if (can_be(HIT) && can_be(STATE) && can_be(AGE + 1))
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

/* --- clocks, one case each --- */

/* A plain doubt, or a plain done record, that each case then changes. */
static void set_plain(enum record_state state, bool dedups)
{
	set_ground();
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
	        cmocka_unit_test_setup(a_sample_of_everything_is_as_the_table_says, set_up),
	        cmocka_unit_test(every_row_was_reached),
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
	        cmocka_unit_test(names_are_those_of_the_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
