/* The two tables of section 5 of the design, as pure functions.
 *
 * No clock, no file, no libcurl: everything they look at is an argument, so that the tests can walk
 * the whole product of inputs and compare it with the table written down as data. */
#ifndef SENDONCE_VERDICT_VERDICT_H
#define SENDONCE_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

enum verdict_kind {
	VERDICT_EXECUTE, /* reserve, then send */
	VERDICT_TAKE,    /* take over a `reserved` record: same generation */
	VERDICT_RESEND,  /* send an in-doubt record again with its key */
	VERDICT_JOIN,
	VERDICT_REPLAY,
	VERDICT_REFUSE
};

#define VERDICT_REASONS(X)                                                                         \
	X(NONE, "")                                                                                \
	X(REPLAY_MISS, "replay-miss")                                                              \
	X(KEY_REQUIRED, "key-required")                                                            \
	X(KEY_CONFLICT, "key-conflict")                                                            \
	X(KEY_INVALID, "key-invalid")                                                              \
	X(UNKNOWN_OUTCOME, "unknown-outcome")                                                      \
	X(SETTINGS_CHANGED, "settings-changed")                                                    \
	X(EXPIRED, "expired")                                                                      \
	X(ANSWER_NOT_KEPT, "answer-not-kept")                                                      \
	X(IN_PROGRESS, "in-progress")                                                              \
	X(LEDGER_FULL, "ledger-full")                                                              \
	X(LEDGER_UNAVAILABLE, "ledger-unavailable")                                                \
	X(POLICY_INVALID, "policy-invalid")                                                        \
	X(CORE_MISSING, "core-missing")                                                            \
	X(BODY_TOO_LARGE, "body-too-large")                                                        \
	X(UNLISTED, "unlisted")                                                                    \
	X(REDIRECTED_INTO_RULE, "redirected-into-rule")

enum verdict_reason {
#define VERDICT_REASON_ID(id, text) REASON_##id,
	VERDICT_REASONS(VERDICT_REASON_ID) REASON_COUNT
#undef VERDICT_REASON_ID
};
const char *verdict_kind_name(enum verdict_kind kind);
const char *verdict_reason_name(enum verdict_reason reason);

/* The request as the table sees it. */
struct asked {
	enum policy_mode mode;
	bool has_own_key;
	bool own_key_matches; /* the record's sent key or one bound to it is this request's own key
	                       */
	bool other_content;   /* the record was found by this request's own key, and is of another
	                         content */
	bool account_opaque;
	const uint8_t *fingerprint, *wire_body; /* 32 bytes each */
	uint64_t settings;
	uint64_t run; /* 0: not known. Where repeat is not `replay` and no run is known, the process
	               */
	/* repeat ordinal: the record is an earlier generation of this run than the one this call
	 * means (1 + the process's delivered calls); there is no such one yet, and it is made as a
	 * record of its own, since a resumed run asks for each in turn */
	bool ordinal_behind;
};

struct verdict {
	enum verdict_kind kind;
	enum verdict_reason reason;
	bool next_generation; /* execute: record->generation + 1 over the same record */
	bool own_record;      /* execute: a new record beside the one found, or there is none */
	bool generic_text;    /* refuse: tell nothing about the other account's write */
	bool doubt_dropped;   /* execute: also an event */
	bool replay_late;     /* replay: also an event */
	bool blind;           /* resend: counted resent_blind */
};

/* `record` with state REC_NONE when there is none. */
struct verdict verdict_decide(const struct record_view *record, const struct rule *rule,
                              const struct asked *asked, struct stamp now);

/* Would the table's in-doubt rows say resend at this instant? For the gate (section 6). */
bool verdict_may_resend(const struct rule *rule, struct stamp first_sent, bool same_wire_body,
                        struct stamp now);

/* Does the provider still know the key? For an answer that says "in progress". */
bool verdict_may_ask_again(const struct rule *rule, struct stamp first_sent, struct stamp now);

enum outcome_kind {
	OUTCOME_NOT_EXECUTED, /* the gate never opened */
	OUTCOME_IN_PROGRESS,  /* ask again with the same key while someone waits */
	OUTCOME_DONE_NOT_KEPT,
	OUTCOME_DONE,
	OUTCOME_FREED,
	OUTCOME_FREED_STORED, /* freed, and the provider stores that answer: next generation */
	OUTCOME_UNKNOWN
};
const char *outcome_kind_name(enum outcome_kind kind);

/* How an attempt ended. */
struct ending {
	bool gate_opened;
	bool complete; /* the whole answer came (CURLE_OK, or an error that only the player would
	                  make) */
	long status;   /* 0 when none came */
	long seen_at;  /* 302 or 303: the write's own answer, `status` is of what came after it */
	bool earlier_in_doubt;  /* an earlier wire send of this record never got its answer */
	bool provider_replayed; /* the answer is marked as the provider's own replay
	                           (Idempotent-Replayed: true) */
	bool body_matches;      /* answers.body; true when the rule has none */
};

enum outcome_kind verdict_outcome(const struct ending *ending, const struct rule *rule);

#endif
