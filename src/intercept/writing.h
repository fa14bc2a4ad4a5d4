/* Inside of the way of one write: shared by write.c (the way), fetch.c (the body), act.c, sending.c
 * and join.c (what a verdict does), refuse.c and inplace.c.
 *
 * A write goes from stage to stage. A stage does what can be done without waiting, says what comes
 * next (w->stage) and how it goes on; nobody here waits. Who called curl_easy_perform waits between
 * two stages, a program's multi comes back when its own loop does. */
#ifndef SENDONCE_INTERCEPT_WRITING_H
#define SENDONCE_INTERCEPT_WRITING_H

#include "identity/identity.h"
#include "intercept/gather.h"
#include "intercept/process.h"
#include "intercept/serve.h"
#include "intercept/shadow.h"
#include "intercept/tally.h"
#include "player/refusal.h"
#include "request/body.h"
#include "verdict/verdict.h"

struct writing;
struct inplace;
struct lent;
struct redirect;

enum step {
	STEP_DONE,  /* `code` is what the program gets */
	STEP_AGAIN, /* go on with w->stage now */
	STEP_WAIT,  /* go on with w->stage when w->wait is over */
	STEP_NATIVE /* libcurl performs the program's own handle first; its code: native_code */
};

typedef enum step stage_fn(struct writing *w);

enum wait_kind {
	WAIT_TIME,    /* nothing but time, or the end of a pause */
	WAIT_ATTEMPT, /* `attempt` has other news than `news` */
	WAIT_RECORD   /* `record` has another word than `word` */
};

struct wait {
	enum wait_kind kind;
	struct attempt *attempt;
	unsigned news;
	uint64_t record, word;
	int64_t until_us; /* CLOCK_MONOTONIC: at the latest */
};

struct writing {
	stage_fn *stage;
	stage_fn *after;  /* the stage that follows when a tape was served, or its rest awaited */
	struct wait wait; /* STEP_WAIT: for what */
	bool looped;      /* in a program's multi, which comes back by itself */
	CURLcode native_code;
	struct shadow *shadow;
	const struct process *process;
	const struct rule *rule; /* null only in write_refuse for a request no rule was asked for */
	struct ledger *ledger;   /* null when it cannot be used */
	struct identity_in in;
	struct identity id;
	struct record_view view; /* what the verdict was about */
	struct verdict verdict;
	struct buf led_to; /* the URL a redirect led to; empty: the program's own is meant */
	struct serving serving;
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
	struct body_source source;
	struct rendering *rendering; /* of a form, while it is rendered */
	struct lent *lent;           /* what libcurl reads the rest of a body through */
	struct redirect *redirect;   /* watches the handle meanwhile */
	unsigned resumed;            /* see playing: when the body's callback paused */
	struct send *send;           /* own sending under way; what a jump leaves behind */
	struct attempt *attempt;     /* of it, or of the one that was joined */
	struct inplace *inplace;     /* or on the program's handle */
	enum serve_how how;          /* how the tape was served */
	int64_t rest_until_us;
	enum verdict_reason refused;
	const char *refused_detail;
	bool open;            /* which rule it is says the body: choose.h */
	bool unsent;          /* the sending ended before its gate */
	const char *in_place; /* why this handle is served in place; null: it is not */
	bool lost;            /* a sending of this call found its gate taken */
	bool unplayed;        /* the real libcurl performed after all */
	CURLcode code;        /* what the call returns, once a step says STEP_DONE */
	/* Last, for the room their texts do not fill: a thousand of these are in flight at once.
	 * `own` is cleared up to its room. */
	struct gathered own;
	struct ledger_error error; /* why a refusal; its text may be empty */
	struct tally tally;
};

/* write.c */
/* Stages, until it is done or has to wait. */
enum step write_step(struct writing *w);
/* After STEP_DONE: what the call returns. Frees. */
CURLcode write_end(struct writing *w);
/* The program gave its handle up in the middle: no callback runs any more. Frees. */
void write_abandon(struct writing *w);
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
/* Stages: the body is there; look for the record, and act. */
enum step write_identified(struct writing *w);
enum step write_look(struct writing *w);
/* The write cannot be looked up; w->error may say more. */
enum step write_failed(struct writing *w, enum verdict_reason reason);
/* What it is from now on: the refusal of what a redirect led to. */
void write_redirected(struct writing *w, const struct rule *rule, const char *method,
                      const struct request_target *target);

/* serving, in write.c: play `tape` (attached; not taken over), then go on with `after`, which finds
 * w->how. */
enum step write_play(struct writing *w, struct tape *tape, struct attempt *attempt,
                     stage_fn *after);
enum step write_wait(struct writing *w, struct wait wait);
enum { WRITE_PAUSED_US = 20000 }; /* how long who waits sleeps at once while nothing can be fed */

/* act.c */
/* The key a verdict that sends would send with, into KEY_TEXT_MAX + 1 bytes, and the generation it
 * belongs to. */
uint32_t act_key(const struct writing *w, const struct record_view *view, struct verdict verdict,
                 char *key);
enum step act_execute(struct writing *w, const struct record_view *view, struct verdict verdict);

/* sending.c: the attempt's way to the program. Takes `send` and `attempt`. */
enum step sending_play(struct writing *w, struct send *send, struct attempt *attempt);
/* FAILONERROR ends the playing at the headers: wait a moment for the rest, then go on. */
enum step sending_await_rest(struct writing *w, stage_fn *after);
/* The program gave the handle up in the middle. */
void sending_abandon(struct writing *w);

/* join.c */
bool is_delivery(CURLcode code);
enum step act_join(struct writing *w, const struct record_view *view);
enum step act_replay(struct writing *w, const struct record_view *view);
/* The answer, not a final one, that the record this call was attached to got meanwhile. */
enum step act_attached(struct writing *w, const struct record_view *view);
/* A record that this call did not make is one that its run asked for, and its own key means. */
void act_asked(struct writing *w, const struct record_view *view);

/* refuse.c: play a refusal as an answer or as an error; sets code and writes the event. `view` may
 * be null. `lost`: this call's own send was lost or stopped. `detail` lives as long as w. */
enum step refuse(struct writing *w, enum verdict_reason reason, const struct record_view *view,
                 bool generic, bool lost, const char *detail);

#endif
