/* The ledger: one mapped file that remembers every write (section 9 of the design).
 *
 * Fixed size, allocated whole, mapped shared; no descriptor is kept, nothing here needs a thread,
 * a signal or an orderly end. Many processes and threads use it at once. A record's state, owner
 * and generation live in one 64-bit word, and every transition is one compare-and-swap of that
 * word: whoever holds the word it last installed is the owner, whoever loses the swap is told so
 * (LEDGER_LOST) and looks again. A half-done step is recognised and finished by whoever finds it.
 *
 * All functions keep errno and may be called by any thread. */
#ifndef SENDONCE_LEDGER_LEDGER_H
#define SENDONCE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"

enum ledger_code {
	LEDGER_OK = 0,
	LEDGER_NONE = -1,    /* no such record */
	LEDGER_LOST = -2,    /* somebody else was faster: look again */
	LEDGER_FULL = -3,    /* no room for a new record or an answer */
	LEDGER_CANNOT = -4,  /* the file cannot be used; see ledger_error.text */
	LEDGER_FOREIGN = -5, /* not a ledger, damaged, or of another version */
	LEDGER_TIMEOUT = -6,
	LEDGER_NOMEM = -7
};

struct ledger_error {
	char text[512]; /* names the path, what is wrong and what to do */
};

enum { LEDGER_HASH = 32, LEDGER_KEY_MAX = 255, LEDGER_RUNS = 8, LEDGER_SECRET = 32 };

/* Instead of a path: no file, a mapping shared with children forked later. */
#define LEDGER_MEMORY "memory"

struct ledger_options {
	const char *path;     /* absolute, or LEDGER_MEMORY */
	int64_t size;         /* bytes, used at creation only */
	int64_t max_response; /* bytes of one stored answer */
	bool durable;         /* power: flush before sent and before done are reported */
	bool create;          /* make it when it is missing */
	bool make_folder;     /* and its folder, 0700 (default path only) */
	bool read_only;       /* for the CLI: never writes, not even a repair */
	bool group;           /* 0660 in a setgid folder: a daemon's users share it */
	bool set_aside;       /* give a damaged file a name with the date, and refuse */
	/* At creation, for a ledger that goes on with another one's records; null, 0: of its own.
	 */
	const uint8_t *secret;
	int64_t made_us;
};

struct ledger;
int ledger_open(const struct ledger_options *options, struct ledger **out,
                struct ledger_error *error);
void ledger_close(struct ledger *ledger); /* unmaps; tests and CLI only, a host keeps it for ever */
/* 32 random bytes made at creation: the HMAC secret when the operator names none. */
const uint8_t *ledger_secret(const struct ledger *ledger);
const char *ledger_path(const struct ledger *ledger);
/* Why this mapping is no longer the ledger (it was resized, recovered or found damaged: "was ...");
 * null while it is. Nothing new is reserved in it then, LEDGER_CANNOT. */
const char *ledger_retired(const struct ledger *ledger);
/* What an operator should know about where the file lies (FUSE); null when there is nothing. */
const char *ledger_warning(const struct ledger *ledger);

/* --- records --- */

enum record_state {
	REC_NONE,
	REC_RESERVED, /* nothing left yet */
	REC_SENT,     /* bytes may have left */
	REC_UNKNOWN,  /* in doubt; has an owner only while it is being sent again */
	REC_DONE,     /* final answer */
	REC_FREED,    /* known not to have happened; remembered for its generation */
	REC_TOMBSTONE /* expired or freed and swept: id, generation and first_sent are left */
};

/* HIT_LOST: no record, but one may have been lost (ledger_find_lost). */
enum record_hit {
	HIT_NONE,
	HIT_OWN_KEY,
	HIT_CONTENT,
	HIT_ANY_ACCOUNT,
	HIT_OTHER_SETTINGS,
	HIT_LOST
};

/* UNKNOWABLE: other pid namespace or other boot; the lease alone decides. */
enum owner_life { OWNER_NONE, OWNER_ALIVE, OWNER_DEAD, OWNER_UNKNOWABLE };

/* How a record got to REC_FREED or REC_UNKNOWN: decides whether the next send is a new generation.
 */
enum freed_how {
	FREED_NOT,
	FREED_WITHDRAWN, /* before its gate */
	FREED_ANSWER,    /* by an answer that means "not executed" */
	FREED_STORED,    /* the same, and the provider stores that answer: next generation */
	FREED_RESOLVED   /* by the operator */
};

struct run_entry {
	uint64_t run;         /* hash of the run's name; never 0 */
	int64_t asked_us;     /* wall */
	int64_t delivered_us; /* wall; 0: asked and not yet answered */
};

/* Where the answer lies: for ledger_answer alone. */
struct record_answer {
	uint32_t at, size;
	uint64_t sum;
};

/* A copy of one record, consistent at the moment it was taken. */
struct record_view {
	uint64_t id;   /* where it is: stable while the record lives */
	uint64_t word; /* (state, owner, generation, attempt) as seen: what a transition compares */
	enum record_state state;
	enum record_hit hit;
	uint32_t generation; /* 1, 2, ... */
	bool ever_sent;      /* bytes of this generation may have left */
	bool in_doubt;       /* an earlier wire send of this generation never got an answer */
	enum owner_life owner;
	int owner_pid; /* 0 unless known */
	bool lease_fresh;
	enum freed_how freed;

	uint8_t content[LEDGER_HASH], any_account[LEDGER_HASH], place[LEDGER_HASH];
	uint8_t fingerprint[LEDGER_HASH], wire_body[LEDGER_HASH];
	uint64_t settings;
	char key[LEDGER_KEY_MAX + 1]; /* the key that is sent */
	char operation[64];           /* cut; for people */
	char exe[32];                 /* of the first sender; for people */
	uint8_t trace[16];            /* traceparent id, zeroes without one */

	struct stamp made, first_sent, ended, first_delivered; /* wall_us 0: not yet */
	int64_t ttl_us, tombstone_us; /* as the rule said when the record was last written */
	struct run_entry runs[LEDGER_RUNS];
	size_t run_count;
	uint32_t attempts, wire_sends;

	bool ended_by_curlcode; /* the attempt in doubt ended for its program with a CURLcode */
	bool answer_kept;       /* a stored answer can be read */
	bool answer_final; /* false: kept only for followers of this attempt (section 5, Join) */
	long status;       /* of the answer; 0: none */
	struct record_answer answer;
};

/* What identifies a write. `own_key` null: the program sent none. `any_account` or `place` null:
 * not looked for. */
struct ledger_ids {
	const uint8_t *content, *any_account, *own_key, *place;
	uint64_t settings;
	const char *operation;
};

/* The record for a write: by own key, then by content, then (only one that is not freed, not a
 * tombstone and not delivered) by content under another account, then one made under other settings
 * at the same place (likewise). LEDGER_NONE with view->hit HIT_NONE when there is none.
 * Takes no lock. */
int ledger_find(struct ledger *l, const struct ledger_ids *ids, struct stamp now,
                struct record_view *out);
/* Only what hinders a write that has a record of its own and is about to be made anew (freed,
 * expired, repeated): the last two of the above. */
int ledger_find_neighbour(struct ledger *l, const struct ledger_ids *ids, struct stamp now,
                          struct record_view *out);
/* Of the records with this content (each run that wrote it has one): the newest one that was
 * delivered to `run`; or, `run` 0, the one of the highest generation. */
int ledger_find_content(struct ledger *l, const uint8_t *content, uint64_t run, struct stamp now,
                        struct record_view *out);
/* Of the records with this content that `run` (not 0) asked for, in the order of their generations:
 * number `turn` (from 1) or, where there are fewer, the last one. *place is the number of the one
 * that is returned. LEDGER_NONE when the run asked for none. */
int ledger_find_turn(struct ledger *l, const uint8_t *content, uint64_t run, uint32_t turn,
                     struct stamp now, struct record_view *out, uint32_t *place);
/* A write of this operation for which a record would be made may be one whose record was lost to
 * damage and is not settled yet: `out` is then a doubt without a record, as old as the end of what
 * was lost. Else LEDGER_NONE. */
int ledger_find_lost(const struct ledger *l, const char *operation, struct record_view *out);
/* The same record again, by view->id; LEDGER_NONE when its place was given to another one. */
int ledger_look(struct ledger *l, uint64_t id, struct stamp now, struct record_view *out);

/* What a new generation is written with. */
struct record_new {
	const uint8_t *content, *any_account, *own_key, *place, *fingerprint, *wire_body;
	uint64_t settings;
	const char *operation, *key; /* key: text to be sent; "" for a carrier `none` */
	const uint8_t *trace;        /* 16 bytes or null */
	uint32_t generation;
	int64_t ttl_us, tombstone_us;
	uint64_t run; /* 0: not known */
	/* The account may be another name of one that is there: a record of the same content under
	 * another account that is not settled is then as good as one of ours. */
	bool opaque;
	/* A record of elsewhere that is brought in (carry.h): others with its content or key are
	 * not in its way, and its maker stays who it was. Null: a write of this process. */
	const struct ledger_record *copy_of;
};

/* Our own hold on a record: the word we installed last. Copy it freely within the process. */
struct hold {
	uint64_t id;
	uint64_t word;
};

/* Make it `reserved` with this process as the owner. `over` null: insert a new record, LEDGER_LOST
 * when another one for the same content (or own key) appeared meanwhile. Else re-use that record
 * (freed, expired, tombstone, or a done/unknown one that is to get its next generation). */
int ledger_reserve(struct ledger *l, const struct record_new *rec, const struct record_view *over,
                   struct stamp now, struct hold *out);
/* Take over a `reserved` record of a dead owner (same generation), or become the sender of an
 * `unknown` one (stays `unknown`, owned). A `sent` record of a dead owner is turned unknown first.
 */
int ledger_take(struct ledger *l, const struct record_view *view, struct stamp now,
                struct hold *out);
/* The gate: reserved -> sent, or owned unknown -> sent with first_sent unchanged. On the disk
 * before it returns (durable). wire_body is kept from the first send of the generation. */
int ledger_gate(struct ledger *l, struct hold *hold, struct stamp now);
/* The same; a first send is dated `first`, which is not after `now`: what the provider was told. */
int ledger_gate_dated(struct ledger *l, struct hold *hold, struct stamp first, struct stamp now);
/* A further wire send by the same hold (libcurl's own resend that was let through). */
int ledger_wire_send(struct ledger *l, struct hold *hold);
int ledger_renew(struct ledger *l, struct hold *hold, struct stamp now); /* lease, 15 s from now */

/* Before the gate: reserved -> freed(withdrawn), or owned unknown -> unknown without owner.
 * LEDGER_LOST when the gate (or anybody) was faster: then the write is not withdrawn. */
int ledger_withdraw(struct ledger *l, struct hold *hold, struct stamp now);

/* A complete answer, in whatever form the caller keeps it. */
struct ledger_answer {
	long status;
	struct span blob; /* empty: not kept */
	bool hash;        /* the blob is a hash of the body (store: meta): never played */
};

/* How an attempt ended. Accepted from sent or unknown whatever the owner, if the generation still
 * is hold's; the first final answer wins, LEDGER_LOST tells the others to play the stored one. */
int ledger_done(struct ledger *l, struct hold *hold, const struct ledger_answer *answer,
                struct stamp now);
/* `answer` (may be null) is kept until the lease ends for followers already attached. */
int ledger_unknown(struct ledger *l, struct hold *hold, bool ended_by_curlcode,
                   const struct ledger_answer *answer, struct stamp now);
int ledger_freed(struct ledger *l, struct hold *hold, enum freed_how how,
                 const struct ledger_answer *answer, struct stamp now);

/* The program's CURLcode ended a doubt, known only after ledger_unknown (or never: a deadline). */
int ledger_mark_curlcode(struct ledger *l, uint64_t id, uint32_t generation);

/* Runs: this run asked for the record / got its whole answer. `run` 0 counts as "unknown run". */
int ledger_asked(struct ledger *l, uint64_t id, uint32_t generation, uint64_t run,
                 struct stamp now);
int ledger_delivered(struct ledger *l, uint64_t id, uint32_t generation, uint64_t run,
                     struct stamp now);
/* Bind another own key to the record (joined to, resent for or answered from it). */
int ledger_bind_key(struct ledger *l, uint64_t id, const uint8_t *own_key);

/* Wait until the record's word is no longer `word`, at most timeout_us. Bounded slices inside;
 * tests the owner's life on each. LEDGER_OK, LEDGER_TIMEOUT. */
int ledger_wait(struct ledger *l, uint64_t id, uint64_t word, int64_t timeout_us);

/* The stored answer, copied into `blob`. LEDGER_NONE when none is kept or its generation is over.
 */
int ledger_answer(struct ledger *l, const struct record_view *view, struct buf *blob, long *status);
/* The hash that is kept in the place of an answer; LEDGER_NONE when there is none. */
int ledger_answer_hash(struct ledger *l, const struct record_view *view, uint8_t out[LEDGER_HASH]);

/* In a child that goes on with its parent's records while the parent waits for it: what the parent
 * owned is this process's. Nothing happens where the parent owned nothing. */
void ledger_adopt(struct ledger *l);

/* Mark every record this process owns as a write in doubt: exit_wait has ended. */
void ledger_abandon(struct ledger *l, struct hold *hold, struct stamp now);

/* --- counters in the header --- */
#define LEDGER_COUNTERS(X)                                                                         \
	X(executed)                                                                                \
	X(resent)                                                                                  \
	X(resent_blind)                                                                            \
	X(joined)                                                                                  \
	X(replayed)                                                                                \
	X(refused_unknown_outcome)                                                                 \
	X(refused_in_progress)                                                                     \
	X(refused_key_conflict)                                                                    \
	X(refused_answer_not_kept)                                                                 \
	X(refused_other)                                                                           \
	X(unknown)                                                                                 \
	X(withdrawn)                                                                               \
	X(wire_resends_blocked)                                                                    \
	X(in_place)                                                                                \
	X(unprotected)                                                                             \
	X(events_lost)                                                                             \
	X(in_place_ssl_ctx)                                                                        \
	X(in_place_socket)                                                                         \
	X(in_place_prereq)                                                                         \
	X(in_place_resolver)                                                                       \
	X(in_place_trailer)                                                                        \
	X(in_place_hsts)                                                                           \
	X(in_place_other)

enum ledger_counter {
#define LEDGER_COUNTER_NAME(name) COUNT_##name,
	LEDGER_COUNTERS(LEDGER_COUNTER_NAME) COUNT_COUNT
#undef LEDGER_COUNTER_NAME
};
void ledger_count(struct ledger *l, enum ledger_counter counter);
uint64_t ledger_counter(const struct ledger *l, enum ledger_counter counter);
const char *ledger_counter_name(enum ledger_counter counter);

/* --- for people --- */
typedef int ledger_visit(void *ctx, const struct record_view *view); /* non-zero stops */
int ledger_each(struct ledger *l, struct stamp now, ledger_visit *visit, void *ctx);
int ledger_resolve(struct ledger *l, const struct record_view *view, bool executed,
                   const struct ledger_answer *answer, struct stamp now);
int ledger_forget(struct ledger *l, const struct record_view *view, struct stamp now);
/* What `ledger recover` could not read, while nobody has settled it. */
enum { LEDGER_LOST_OPERATIONS = 96 };
struct ledger_lost {
	int64_t from_us;                             /* wall */
	struct stamp until;                          /* when it was recovered */
	bool every;                                  /* any operation may have been in use */
	uint64_t operations[LEDGER_LOST_OPERATIONS]; /* else these: hashes of their names */
	size_t count;
};
bool ledger_lost(const struct ledger *l, struct ledger_lost *out); /* false: nothing is */
int ledger_settle_lost(struct ledger *l); /* writes of that time may be sent from now on */
/* Reads everything; calls `damage` for each fault with its offset. Returns the number of faults. */
typedef void ledger_damage(void *ctx, uint64_t offset, const char *what);
int ledger_verify(struct ledger *l, ledger_damage *damage, void *ctx);
/* True when this process or any of `pids` owns or made a record: who may not resolve by itself. */
bool ledger_has_pid(struct ledger *l, const int *pids, size_t count);
/* True when run (hash) has asked for any record. */
bool ledger_has_run(struct ledger *l, uint64_t run);

const char *record_state_name(enum record_state state);
/* 64-bit hash of a run's or scope's name, never 0 for a non-empty one; 0 for an empty one. */
uint64_t ledger_name_hash(struct span name);

#endif
