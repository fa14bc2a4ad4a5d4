/* Serving a tape to the program, step by step: what lies under an intercepted perform, whether that
 * waits between two steps itself or is called again by the program's own loop. */
#ifndef SENDONCE_INTERCEPT_SERVE_H
#define SENDONCE_INTERCEPT_SERVE_H

#include "courier/courier.h"
#include "intercept/shadow.h"

/* One call's playing, over however many tapes it takes. */
struct serving {
	struct shadow *shadow;
	struct player player;
	struct playing playing;
	bool fed;  /* something of an answer reached the program: no other tape may be played now */
	bool made; /* no transfer filled this tape: it holds no lines for VERBOSE */
	/* the tape under way, null between two */
	struct tape *tape;
	struct attempt *attempt; /* drives it; null: the tape is complete */
	struct tape_cursor cursor;
	unsigned news;       /* of the attempt, when the tape was last looked at */
	struct tape_end end; /* SERVE_ENDED: how */
	CURLcode code;       /* SERVE_EARLY: what the call is to return */
};

void serve_start(struct serving *v, struct shadow *s);
/* Ends the playing; what getinfo answers from now on is the tape's last snapshot. */
void serve_stop(struct serving *v);

enum serve_how {
	SERVE_WAITS, /* call again when there is news, or *patience_us have passed */
	SERVE_ENDED, /* the tape ended and was fed whole; its end is still to be played */
	SERVE_EARLY  /* the program's side ended it: deadline, abort, a callback's refusal */
};

/* Begin with `tape`, to which the caller has attached; a reference of its own is taken. `attempt`
 * (borrowed) drives it, or is null for a tape that is complete. */
void serve_begin(struct serving *v, struct tape *tape, struct attempt *attempt);
/* Feed what is there. Unless it waits, the tape is detached and given up. */
enum serve_how serve_step(struct serving *v, int64_t *patience_us);
/* Nobody listens any more: give the tape up without a callback. */
void serve_drop(struct serving *v);

/* Play the end; the code the program gets. */
CURLcode serve_end(struct serving *v);

/* While nothing can be fed: progress, deadlines. *patience_us: until when nothing needs to be done.
 */
CURLcode serve_tick(struct serving *v, bool gated, int64_t *patience_us);

/* TOTAL_TIME is the call's own, whoever sends. */
void serve_time(const struct player *player, struct info *info);

/* What getinfo says before a transfer has told anything. The caller's; null: no memory. */
struct info *serve_early_info(const struct shadow *s);

/* What getinfo answers from now on; texts it gave before stay valid. Takes `info`, may be null. */
void serve_keep(struct shadow *s, struct info *info);

int64_t serve_now_us(void); /* CLOCK_MONOTONIC */

#endif
