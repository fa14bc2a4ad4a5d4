/* Inside of the way of one write: shared by write.c (the loop), act.c (what a verdict does) and
 * refuse.c. */
#ifndef SENDONCE_INTERCEPT_WRITING_H
#define SENDONCE_INTERCEPT_WRITING_H

#include "identity/identity.h"
#include "intercept/gather.h"
#include "intercept/process.h"
#include "intercept/serve.h"
#include "intercept/shadow.h"
#include "intercept/tally.h"
#include "player/refusal.h"
#include "verdict/verdict.h"

struct writing {
	struct shadow *shadow;
	const struct process *process;
	const struct rule *rule; /* null only in write_refuse for a request no rule was asked for */
	struct ledger *ledger;   /* null when it cannot be used */
	struct gathered own;
	struct identity_in in;
	struct identity id;
	const struct request_target *target; /* where a redirect led; null: the program's own */
	struct serving serving;
	struct tally tally;
	/* The record, generation and attempt this call waits for in another process: a complete
	 * answer that is not final is for those who were attached when it came, and for nobody
	 * else. */
	uint64_t attached;
	uint32_t attached_generation, attached_attempt;
	/* A body that is not POSTFIELDS: fetch.h */
	struct payload *payload; /* null: in.body alone */
	curl_off_t body_size;    /* as announced; -1: it was not */
	char *body_type;         /* of a form */
	uint32_t turn; /* repeat: ordinal: which of the equal writes of its run; 0: not counted */
	bool behind;   /* and the run has not made as many */
	struct send *send; /* under way, with its attempt: what a jump leaves behind */
	struct attempt *attempt;
	bool unsent;          /* the sending ended before its gate */
	bool over;            /* `code` is set: the body's callback ended the call */
	const char *in_place; /* why this handle is served in place; null: it is not */
	bool lost;            /* a sending of this call found its gate taken */
	bool unplayed;        /* the real libcurl performed after all */
	CURLcode code;        /* what the call returns, once a step says STEP_DONE */
};

enum step {
	STEP_DONE, /* `code` is what the program gets */
	STEP_AGAIN /* the record changed under us: look again */
};

/* write.c */
/* The run that counts for this write; 0: not known. Where equal writes of a run are told apart, a
 * process without a run is one. */
uint64_t write_run(const struct writing *w);
/* The program got the whole answer of the record (0: it has none). */
void write_delivered(const struct writing *w, uint64_t record, uint32_t generation);
struct asked write_asked(const struct writing *w, const struct record_view *view);
/* The record of this write as it is now; a view of state REC_NONE where there is none. LEDGER_OK,
 * or why the ledger could not be asked. Needs `process`, `rule`, `ledger`, `in` and `id` only, as
 * write_judge does: the command line explains with them what a program would get. */
int write_find(struct writing *w, struct stamp now, struct record_view *view);
/* The verdict on it. `view` becomes the record the verdict is about, which may be another one.
 * `ledger` null, with a view of state REC_NONE: one that will be made, and knows nothing yet. */
struct verdict write_judge(struct writing *w, struct stamp now, struct record_view *view);

/* act.c */
/* The key a verdict that sends would send with, into KEY_TEXT_MAX + 1 bytes, and the generation it
 * belongs to. */
uint32_t act_key(const struct writing *w, const struct record_view *view, struct verdict verdict,
                 char *key);
enum step act_execute(struct writing *w, const struct record_view *view, struct verdict verdict);
enum step act_join(struct writing *w, const struct record_view *view);
enum step act_replay(struct writing *w, const struct record_view *view, struct verdict verdict);
/* The answer, not a final one, that the record this call was attached to got meanwhile. */
enum step act_attached(struct writing *w, const struct record_view *view);

/* refuse.c: play a refusal as an answer or as an error; sets code and writes the event. `view` may
 * be null. `lost`: this call's own send was lost or stopped. */
enum step refuse(struct writing *w, enum verdict_reason reason, const struct record_view *view,
                 bool generic, bool lost, const char *detail);

#endif
