/* The situations verdict_decide can be asked about, as a tuple of small dimensions, and each of
 * their values as what it is given. Included by one test only. */
#ifndef SENDONCE_UNIT_VERDICT_SITUATION_H
#define SENDONCE_UNIT_VERDICT_SITUATION_H

#include <stdint.h>
#include <string.h>

#include "verdict/verdict.h"

#define SECOND ((int64_t)1000000)
#define HOUR   (3600 * SECOND)

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
/* Of the fingerprint. Gone with what the record was written with: then its content tells, or, where
 * the rule has a must_match, nothing does. */
enum { P_OTHER, P_SAME, P_GONE, P_GONE_MUST, P_GONE_OTHER };
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
        [PRINT] = 5,   [WIRE] = 2,     [EVER] = 2,   [OWNER] = 4,      [LEASE] = 2,
        [DEDUPS] = 2,  [KEPT] = 2,     [REPEAT] = 5, [ON_UNKNOWN] = 3, [ON_EXPIRED] = 2,
        [APP_KEY] = 2,
};

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

/* Settings are among what is gone. */
static void set_fingerprint(unsigned value)
{
	bool gone = value >= P_GONE;

	memcpy(record.fingerprint, print_asked, LEDGER_HASH);
	record.fingerprint[LEDGER_HASH - 1] = value == P_OTHER;
	if (gone)
		memset(record.fingerprint, 0, LEDGER_HASH);
	record.settings = gone ? 0 : 99;
	rule.must_match.count = value == P_GONE_MUST;
	asked.other_content = value == P_GONE_OTHER;
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
		asked.settings = value ? 99 : ~UINT64_C(99);
		return;
	case OPAQUE:
		asked.account_opaque = value;
		return;
	case PRINT:
		set_fingerprint(value);
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

#endif
