/* What happens to a write: the "first match" table of the design, section 5, row by row.
 *
 * `rows` below is that table in its order. Each row has a small predicate, which sees the record,
 * the rule, the request and the time, and a verdict. The first predicate that holds decides.
 * Nothing here reads a clock, takes a lock or changes a record: between the look and the act the
 * record may change, and then the ledger's compare-and-swap sends the caller back here. */
#include "verdict/verdict.h"

#include <string.h>

/* How long before a provider forgets a key we stop to rely on its memory. */
static const int64_t KEY_TTL_MARGIN = 60 * (int64_t)1000000;

/* The record as the table names it. */
enum standing { IS_NONE, IS_RESERVED, IS_SENT, IS_UNKNOWN, IS_DONE, IS_FREED, IS_EXPIRED };

struct view {
	const struct record_view *record;
	const struct rule *rule;
	const struct asked *asked;
	struct stamp now;
	enum standing standing;
	const struct run_entry *mine; /* what the record knows of this run; null: nothing */
};

/* --- ages --- */

/* Across boots only the wall clock is left, and one that went backwards proves nothing about how
 * long ago a send was. */
static bool lies_ahead(struct stamp then, struct stamp now)
{
	return then.wall_us != 0 && clock_age_max(then, now) < 0;
}

static bool is_older(struct stamp then, struct stamp first_sent, int64_t limit, struct stamp now)
{
	if (limit < 0 || then.wall_us == 0 || lies_ahead(first_sent, now))
		return false;
	return clock_age_min(then, now) > limit;
}

/* A doubt begins with the first send and again with each attempt that ends without an answer. */
static bool doubt_is_over(const struct rule *rule, struct stamp first_sent, struct stamp ended,
                          struct stamp now)
{
	return is_older(first_sent, first_sent, rule->unknown_ttl, now) &&
	       (ended.wall_us == 0 || is_older(ended, first_sent, rule->unknown_ttl, now));
}

static bool provider_remembers(const struct rule *rule, struct stamp first_sent, struct stamp now)
{
	return rule->dedups && first_sent.wall_us != 0 && !lies_ahead(first_sent, now) &&
	       clock_age_max(first_sent, now) < rule->key_ttl - KEY_TTL_MARGIN;
}

static bool resends_blindly(const struct rule *rule, struct stamp first_sent, struct stamp now)
{
	return !rule->dedups && rule->on_unknown == UNKNOWN_RESEND && first_sent.wall_us != 0 &&
	       !lies_ahead(first_sent, now);
}

bool verdict_may_resend(const struct rule *rule, struct stamp first_sent, bool same_wire_body,
                        struct stamp now)
{
	struct stamp not_ended = {0};

	if (doubt_is_over(rule, first_sent, not_ended, now))
		return false;
	if (rule->on_unknown == UNKNOWN_REFUSE || !same_wire_body)
		return false;
	return provider_remembers(rule, first_sent, now) || resends_blindly(rule, first_sent, now);
}

bool verdict_may_ask_again(const struct rule *rule, struct stamp first_sent, struct stamp now)
{
	return provider_remembers(rule, first_sent, now);
}

/* --- what the rows ask --- */

static bool has_expired(const struct record_view *record, const struct rule *rule, struct stamp now)
{
	return is_older(record->ended, record->first_sent, rule->ttl, now);
}

static enum standing stand(const struct record_view *record, const struct rule *rule,
                           struct stamp now)
{
	switch (record->state) {
	case REC_RESERVED:
		return IS_RESERVED;
	case REC_SENT:
		return IS_SENT;
	case REC_UNKNOWN:
		return IS_UNKNOWN;
	case REC_DONE:
		return has_expired(record, rule, now) ? IS_EXPIRED : IS_DONE;
	case REC_FREED:
		return IS_FREED;
	case REC_TOMBSTONE:
		/* a freed write did not happen, however long ago that was */
		return record->freed == FREED_NOT ? IS_EXPIRED : IS_FREED;
	case REC_NONE:
		break;
	}
	return IS_NONE;
}

static const struct run_entry *find_run(const struct record_view *record, uint64_t run)
{
	for (size_t i = 0; run != 0 && i < record->run_count; i++)
		if (record->runs[i].run == run)
			return &record->runs[i];
	return NULL;
}

/* A record of this very write; the other hits are a neighbour's, and only hinder. */
static bool is_ours(const struct view *v)
{
	return v->record->hit == HIT_OWN_KEY || v->record->hit == HIT_CONTENT;
}

static bool is_delivered(const struct view *v)
{
	return v->record->first_delivered.wall_us != 0;
}

static bool is_undecided(const struct view *v)
{
	switch (v->standing) {
	case IS_RESERVED:
	case IS_SENT:
	case IS_UNKNOWN:
		return true;
	case IS_DONE:
		return !is_delivered(v);
	default:
		return false;
	}
}

enum match { MATCH_SAME, MATCH_OTHER, MATCH_NOT_KNOWN };

static bool same_print(const struct view *v)
{
	return memcmp(v->record->fingerprint, v->asked->fingerprint, LEDGER_HASH) == 0;
}

/* What it was written with was damaged, and none of it is shown: no fingerprint, no settings. */
static bool facts_are_gone(const struct view *v)
{
	static const uint8_t none[LEDGER_HASH];

	return memcmp(v->record->fingerprint, none, LEDGER_HASH) == 0 && !same_print(v);
}

/* A fingerprint that is gone does not differ. The record's content still tells, but for what the
 * rule's `must_match` adds to it. */
static enum match match(const struct view *v)
{
	if (same_print(v))
		return MATCH_SAME;
	if (!facts_are_gone(v) || (v->record->hit == HIT_OWN_KEY && v->asked->other_content))
		return MATCH_OTHER;
	return v->rule->must_match.count ? MATCH_NOT_KNOWN : MATCH_SAME;
}

static bool has_key_of_record(const struct view *v)
{
	return v->record->hit == HIT_OWN_KEY ||
	       (v->asked->has_own_key && v->asked->own_key_matches);
}

/* Somebody drives it: an owner who is gone is known by his death or, where that cannot be seen or
 * he sleeps, by the lease he did not renew. */
static bool is_driven(const struct view *v)
{
	return v->record->lease_fresh &&
	       (v->record->owner == OWNER_ALIVE || v->record->owner == OWNER_UNKNOWABLE);
}

static bool in_doubt(const struct view *v)
{
	return (v->standing == IS_UNKNOWN || v->standing == IS_SENT) && !is_driven(v);
}

static bool delivered_to_known_run(const struct view *v)
{
	for (size_t i = 0; i < v->record->run_count; i++)
		if (v->record->runs[i].delivered_us != 0)
			return true;
	return false;
}

static bool since_delivery(const struct view *v, int64_t limit)
{
	return is_older(v->record->first_delivered, v->record->first_sent, limit, v->now);
}

/* --- the rows: does it apply? --- */

static bool replay_mode_hit(const struct view *v)
{
	return v->asked->mode == MODE_REPLAY && v->record->state == REC_DONE && is_ours(v) &&
	       v->record->answer_kept && match(v) == MATCH_SAME;
}

static bool replay_mode(const struct view *v)
{
	return v->asked->mode == MODE_REPLAY;
}

static bool key_missing(const struct view *v)
{
	return v->rule->key_required && !v->asked->has_own_key;
}

static bool key_used_otherwise(const struct view *v)
{
	return is_ours(v) && v->standing != IS_NONE && v->standing != IS_FREED &&
	       v->standing != IS_EXPIRED && match(v) == MATCH_OTHER;
}

static bool other_account_undecided(const struct view *v)
{
	return v->record->hit == HIT_ANY_ACCOUNT && v->asked->account_opaque && is_undecided(v);
}

static bool other_settings_undecided(const struct view *v)
{
	bool other = is_ours(v) && !facts_are_gone(v) && v->record->settings != v->asked->settings;

	return (other || v->record->hit == HIT_OTHER_SETTINGS) && is_undecided(v);
}

static bool not_this_write(const struct view *v)
{
	return v->standing == IS_NONE || !is_ours(v);
}

/* No record, and one may have been lost: a doubt that no key resolves. */
static bool lost_dropped(const struct view *v)
{
	return v->record->hit == HIT_LOST &&
	       doubt_is_over(v->rule, v->record->first_sent, v->record->ended, v->now);
}

static bool lost(const struct view *v)
{
	return v->record->hit == HIT_LOST;
}

/* A doubt with an owner who drives is being sent again, and its gate has not opened yet. */
static bool under_way(const struct view *v)
{
	return (v->standing == IS_RESERVED || v->standing == IS_SENT ||
	        v->standing == IS_UNKNOWN) &&
	       is_driven(v);
}

/* What it will be answered may not be what this request would be. */
static bool under_way_not_known(const struct view *v)
{
	return under_way(v) && match(v) == MATCH_NOT_KNOWN;
}

static bool left_reserved(const struct view *v)
{
	return v->standing == IS_RESERVED;
}

static bool doubt_dropped(const struct view *v)
{
	return in_doubt(v) &&
	       doubt_is_over(v->rule, v->record->first_sent, v->record->ended, v->now);
}

static bool doubt_not_resendable(const struct view *v)
{
	return in_doubt(v) && (v->rule->on_unknown == UNKNOWN_REFUSE ||
	                       memcmp(v->record->wire_body, v->asked->wire_body, LEDGER_HASH) != 0);
}

static bool doubt_dedups(const struct view *v)
{
	return in_doubt(v) && provider_remembers(v->rule, v->record->first_sent, v->now);
}

static bool doubt_blind(const struct view *v)
{
	return in_doubt(v) && resends_blindly(v->rule, v->record->first_sent, v->now);
}

static bool freed_by_stored(const struct view *v)
{
	return v->standing == IS_FREED && v->record->freed == FREED_STORED;
}

static bool freed(const struct view *v)
{
	return v->standing == IS_FREED;
}

static bool expired_refuses(const struct view *v)
{
	return v->standing == IS_EXPIRED && v->rule->on_expired == EXPIRED_REFUSE;
}

static bool expired(const struct view *v)
{
	return v->standing == IS_EXPIRED;
}

static bool done_not_known(const struct view *v)
{
	return v->standing == IS_DONE && match(v) == MATCH_NOT_KNOWN;
}

static bool done_own_key(const struct view *v)
{
	return v->standing == IS_DONE && has_key_of_record(v);
}

static bool done_new_intent(const struct view *v)
{
	return v->standing == IS_DONE && is_delivered(v) && v->asked->has_own_key &&
	       v->rule->app_key == APP_KEY_TRUST;
}

static bool done_late(const struct view *v)
{
	return v->standing == IS_DONE && !is_delivered(v) && v->asked->run != 0 && !v->mine &&
	       v->record->run_count > 0;
}

static bool done_unanswered(const struct view *v)
{
	return v->standing == IS_DONE &&
	       (!is_delivered(v) || (v->mine && v->mine->delivered_us == 0));
}

static bool done_repeated_in_run(const struct view *v)
{
	if (v->standing != IS_DONE || !v->mine)
		return false;
	switch (v->rule->repeat) {
	case REPEAT_AFTER_ANSWER:
		return true;
	case REPEAT_WINDOW:
		return since_delivery(v, v->rule->window);
	case REPEAT_ORDINAL:
	case REPEAT_REPLAY:
		break;
	}
	return false;
}

/* Its record is kept: when the run is resumed, the call before this one asks for it again. */
static bool done_before_this_turn(const struct view *v)
{
	return v->standing == IS_DONE && v->mine && v->rule->repeat == REPEAT_ORDINAL &&
	       v->asked->ordinal_behind;
}

static bool done_same_run(const struct view *v)
{
	return v->standing == IS_DONE && v->mine;
}

static bool done_other_runs(const struct view *v)
{
	return v->standing == IS_DONE && v->asked->run != 0 && delivered_to_known_run(v);
}

static bool done_run_unknown_over(const struct view *v)
{
	return v->standing == IS_DONE && since_delivery(v, v->rule->replay_for);
}

static bool done_run_unknown(const struct view *v)
{
	return v->standing == IS_DONE;
}

/* --- the table --- */

#define REFUSE(why)                                                                                \
	{                                                                                          \
		.kind = VERDICT_REFUSE, .reason = REASON_##why                                     \
	}
#define NEXT_GENERATION                                                                            \
	{                                                                                          \
		.kind = VERDICT_EXECUTE, .next_generation = true                                   \
	}
#define REPLAY                                                                                     \
	{                                                                                          \
		.kind = VERDICT_REPLAY                                                             \
	}

static const struct row {
	bool (*applies)(const struct view *v);
	struct verdict then;
} rows[] = {
        {replay_mode_hit, REPLAY},
        {replay_mode, REFUSE(REPLAY_MISS)},
        {key_missing, REFUSE(KEY_REQUIRED)},
        {key_used_otherwise, REFUSE(KEY_CONFLICT)},
        {other_account_undecided,
         {.kind = VERDICT_REFUSE, .reason = REASON_UNKNOWN_OUTCOME, .generic_text = true}},
        {other_settings_undecided, REFUSE(SETTINGS_CHANGED)},
        {lost_dropped, {.kind = VERDICT_EXECUTE, .own_record = true, .doubt_dropped = true}},
        {lost, REFUSE(UNKNOWN_OUTCOME)},
        {not_this_write, {.kind = VERDICT_EXECUTE, .own_record = true}},
        {under_way_not_known, REFUSE(UNKNOWN_OUTCOME)},
        {under_way, {.kind = VERDICT_JOIN}},
        {left_reserved, {.kind = VERDICT_TAKE}},
        {doubt_dropped, {.kind = VERDICT_EXECUTE, .next_generation = true, .doubt_dropped = true}},
        {doubt_not_resendable, REFUSE(UNKNOWN_OUTCOME)},
        {doubt_dedups, {.kind = VERDICT_RESEND}},
        {doubt_blind, {.kind = VERDICT_RESEND, .blind = true}},
        {in_doubt, REFUSE(UNKNOWN_OUTCOME)},
        {freed_by_stored, NEXT_GENERATION},
        {freed, {.kind = VERDICT_EXECUTE}},
        {expired_refuses, REFUSE(EXPIRED)},
        {expired, NEXT_GENERATION},
        {done_not_known, REFUSE(ANSWER_NOT_KEPT)},
        {done_own_key, REPLAY},
        {done_new_intent, {.kind = VERDICT_EXECUTE, .own_record = true}},
        {done_late, {.kind = VERDICT_REPLAY, .replay_late = true}},
        {done_unanswered, REPLAY},
        {done_repeated_in_run, NEXT_GENERATION},
        {done_before_this_turn,
         {.kind = VERDICT_EXECUTE, .next_generation = true, .own_record = true}},
        {done_same_run, REPLAY},
        {done_other_runs, {.kind = VERDICT_EXECUTE, .next_generation = true, .own_record = true}},
        {done_run_unknown_over, NEXT_GENERATION},
        {done_run_unknown, REPLAY},
};

struct verdict verdict_decide(const struct record_view *record, const struct rule *rule,
                              const struct asked *asked, struct stamp now)
{
	struct view v = {.record = record, .rule = rule, .asked = asked, .now = now};
	const struct verdict not_kept = REFUSE(ANSWER_NOT_KEPT), doubt = REFUSE(UNKNOWN_OUTCOME);

	v.standing = stand(record, rule, now);
	v.mine = find_run(record, asked->run);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!rows[i].applies(&v))
			continue;
		if (rows[i].then.kind == VERDICT_REPLAY && !record->answer_kept)
			return not_kept;
		return rows[i].then;
	}
	return doubt; /* never reached: each standing has a last row without a condition */
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	static const char *const names[] = {
	        [VERDICT_EXECUTE] = "execute", [VERDICT_TAKE] = "execute",
	        [VERDICT_RESEND] = "resend",   [VERDICT_JOIN] = "join",
	        [VERDICT_REPLAY] = "replay",   [VERDICT_REFUSE] = "refuse",
	};

	if ((unsigned)kind >= sizeof(names) / sizeof(*names))
		return "invalid";
	return names[kind];
}

const char *verdict_reason_name(enum verdict_reason reason)
{
	static const char *const names[] = {
#define VERDICT_REASON_TEXT(id, text) [REASON_##id] = (text),
	        VERDICT_REASONS(VERDICT_REASON_TEXT)
#undef VERDICT_REASON_TEXT
	};

	if ((unsigned)reason >= REASON_COUNT)
		return "invalid";
	return names[reason];
}
