/* The policy: which requests are writes, and what is known about each.
 *
 * A policy is read once, checked whole, and never changed afterwards; every pointer in it lives as
 * long as the policy. The schema and its defaults are section 3 of the design, repeated in
 * docs/policy.md. Anything the file says that this version does not act on is an error
 * ("not supported in this version"), never ignored. */
#ifndef SENDONCE_POLICY_POLICY_H
#define SENDONCE_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum policy_mode { MODE_OFF, MODE_AUDIT, MODE_INJECT, MODE_ENFORCE, MODE_REPLAY };
enum policy_reads { READS_PASS, READS_REFUSE };
enum policy_unlisted { UNLISTED_PASS, UNLISTED_AUDIT, UNLISTED_REFUSE };
enum policy_durability { DURABILITY_POWER, DURABILITY_PROCESS };
enum key_carrier { CARRIER_HEADER, CARRIER_QUERY, CARRIER_JSON, CARRIER_NONE };
enum key_format { FORMAT_UUID, FORMAT_UUID_NODASH, FORMAT_HEX, FORMAT_SF_STRING };
enum key_app { APP_KEY_TRUST, APP_KEY_ALIAS };
enum rule_repeat { REPEAT_REPLAY, REPEAT_AFTER_ANSWER, REPEAT_ORDINAL, REPEAT_WINDOW };
enum rule_expired { EXPIRED_EXECUTE, EXPIRED_REFUSE };
enum rule_unknown { UNKNOWN_AUTO, UNKNOWN_RESEND, UNKNOWN_REFUSE };
enum rule_exit { EXIT_WAIT, EXIT_DETACH };
enum rule_oversize { OVERSIZE_REFUSE, OVERSIZE_PASS };
enum rule_store { STORE_FULL, STORE_META };
enum rule_refuse { REFUSE_AUTO, REFUSE_RESPONSE, REFUSE_ERROR };
enum account_kind { ACCOUNT_AUTO, ACCOUNT_NONE, ACCOUNT_LIST };

struct text_list {
	char **item;
	size_t count;
};

/* HTTP statuses 100-599, one bit each. */
struct status_set {
	uint64_t bits[8];
};
bool status_set_has(const struct status_set *set, long status);

/* One condition of `when` or `answers.body` on a part of a request or an answer. */
enum predicate_part { PART_JSON, PART_FORM, PART_QUERY, PART_HEADER };
enum predicate_test {
	TEST_IS,      /* one of `values`; * in a value is any text */
	TEST_ABSENT,  /* not there */
	TEST_PRESENT, /* there, whatever it is */
	TEST_EMPTY,   /* not there, or null, "", [] or {} */
	TEST_GRAPHQL  /* a GraphQL document with an operation of the one kind in `values` */
};
struct predicate {
	enum predicate_part part;
	char *name; /* of a JSON pointer * is every member or element */
	enum predicate_test test;
	struct text_list values;
};
struct predicate_list {
	struct predicate *item; /* all must hold */
	size_t count;
};

struct matcher; /* a compiled `match` */

enum { POLICY_NEVER = -1, POLICY_AUTO = -1 };
enum { POLICY_NAME_MAX = 255 }; /* bytes of scope, run and step, ${} expanded */

/* All durations are microseconds. */
struct rule {
	char *operation;
	char *match_text; /* as written, for messages */
	char *path_text;  /* the pattern's path, for events */
	struct matcher *matcher;
	struct predicate_list when;
	int line, column; /* in its file, 1-based */
	const char *file;

	bool dedups;
	int64_t key_ttl;
	struct status_set stores;

	enum key_carrier carrier;
	char *carrier_name; /* header or query name, JSON pointer */
	enum key_format format;
	char *first_sent; /* the header that repeats the time of the first send; null: none */
	enum key_app app_key;
	bool key_required;
	char *key_id; /* hashed as the operation; the operation itself unless set */

	char *target; /* null: auto */
	struct text_list fields, ignore, must_match;
	enum account_kind account;
	struct text_list account_from; /* "header:NAME", "env:NAME" */

	enum rule_repeat repeat;
	int64_t window;
	int64_t replay_for;
	struct status_set final, not_executed, already_done, in_progress;
	struct text_list echo;      /* JSON pointers: copied from the request into a replay */
	struct predicate_list body; /* of a final answer: all must hold */
	int64_t ttl;
	enum rule_expired on_expired;
	enum rule_unknown on_unknown;
	int64_t unknown_ttl; /* POLICY_NEVER */
	int64_t linger;
	enum rule_exit exit;
	int64_t exit_wait;   /* POLICY_AUTO: 0 if dedups, else 5 s; see rule_exit_wait */
	int64_t max_request; /* bytes */
	enum rule_oversize oversize;
	enum rule_store store;
	enum rule_refuse refuse_as;

	/* identity_settings of this rule; 0: not computed. For whoever loads a policy once and then
	 * asks for many identities. */
	uint64_t settings;
};

int64_t rule_exit_wait(const struct rule *rule);

/* A name that comes from a header of each request. */
struct policy_source {
	char *header; /* null: it does not */
	bool strip;   /* and the header is not sent */
};

struct policy {
	char *path; /* the file it was read from */
	enum policy_mode mode;
	char *scope; /* after ${} expansion; null: unset */
	char *run;
	char *step;
	struct policy_source scope_from, run_from, step_from;
	enum policy_unlisted unlisted;
	enum policy_reads replay_reads;
	char *ledger_path; /* null: the default path; "memory": nothing on disk */
	enum policy_durability durability;
	int64_t ledger_size;  /* bytes */
	int64_t max_response; /* bytes */
	bool ledger_group;    /* the ledger is 0660 */
	char *events_path;    /* null: beside the ledger */
	struct rule *rules;   /* the first match wins: the file's own, then the included ones */
	size_t rule_count;
	bool has_writes;          /* the file has the key, be it an empty list */
	struct rule_index *index; /* of the rules: index.h */
	struct text_list files;   /* that were included, in the order they were read */
};

enum { POLICY_OK = 0, POLICY_MISSING = -1, POLICY_INVALID = -2, POLICY_NOMEM = -3 };

/* What is wrong and where. `text` is the whole line for a person:
 * "policy.yaml:12:5: unknown key `repeet` (did you mean `repeat`?)". */
struct policy_error {
	char text[1024];
	int line, column; /* 0 when it is not about a place in the file */
};

/* Looks up an environment variable for ${NAME}; null when unset. */
typedef const char *policy_env(void *ctx, const char *name);

/* Read, expand and check the file. POLICY_OK: *out is the caller's, freed by policy_free. Else a
 * negative value and `error` is filled in. Opens the file O_CLOEXEC and closes it again. */
int policy_load(const char *path, policy_env *env, void *ctx, struct policy **out,
                struct policy_error *error);
/* The same from memory; `path` is only used in messages. For tests and fuzzing. */
int policy_parse(const char *path, const char *text, size_t n, policy_env *env, void *ctx,
                 struct policy **out, struct policy_error *error);
/* A policy of one rule, which names every write and leaves the schema's defaults as they are: what
 * unlisted writes are compared by. POLICY_OK or POLICY_NOMEM; freed by policy_free. */
int policy_defaults(struct policy **out);
/* One without rules: scope and run from the environment, mode audit. */
int policy_empty(policy_env *env, void *ctx, struct policy **out);
void policy_free(struct policy *policy);

/* What a request is matched by. Scheme and host are compared without case; port is the effective
 * one; path is the request target without the query, as it will be sent. */
struct policy_target {
	struct span method;
	struct span scheme;
	struct span host;
	unsigned port;
	struct span path;
};

/* The first rule whose `match` names the request, or null. Whether its `when` holds is for the
 * caller, who knows the rest of the request, to say (predicates_hold), and then to go on with the
 * next one that matches after it. */
const struct rule *policy_match(const struct policy *policy, const struct policy_target *target);
const struct rule *policy_match_after(const struct policy *policy,
                                      const struct policy_target *target, const struct rule *rule);

/* Things `sendonce check` warns of; calls `report` once for each. The texts live as long as the
 * call. */
struct policy_warning {
	const char *text; /* the whole line for a person: "policy.yaml:12:5: ..." */
	const char *file;
	int line, column; /* 0: about the policy as a whole */
};
typedef void policy_report(void *ctx, const struct policy_warning *warning);
void policy_lint(const struct policy *policy, policy_report *report, void *ctx);

const char *policy_mode_name(enum policy_mode mode);
/* -1 when there is no such mode */
int policy_mode_parse(const char *text);

#endif
