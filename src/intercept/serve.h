/* Serving a tape to the program: the loop that lies under an intercepted perform. */
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
};

void serve_start(struct serving *v, struct shadow *s);
/* Ends the playing; what getinfo answers from now on is the tape's last snapshot. */
void serve_stop(struct serving *v);

enum serve_how {
	SERVE_ENDED, /* the tape ended and was fed whole; its end is still to be played */
	SERVE_EARLY  /* the program's side ended it: deadline, abort, a callback's refusal */
};

/* Feed `tape`, to which the caller has attached, to the player until it ends, and detach. `attempt`
 * drives it, or is null for a tape that is complete. SERVE_EARLY: *code is what the call is to
 * return. SERVE_ENDED: *end says how. */
enum serve_how serve_tape(struct serving *v, struct tape *tape, struct attempt *attempt,
                          struct tape_end *end, CURLcode *code);

/* Play the end; the code the program gets. */
CURLcode serve_end(struct serving *v, const struct tape_end *end);

/* While nothing can be fed: progress, deadlines. *patience_us: until when nothing needs to be done.
 */
CURLcode serve_tick(struct serving *v, bool gated, int64_t *patience_us);

/* TOTAL_TIME is the call's own, whoever sends. */
void serve_time(const struct player *player, struct info *info);

/* What getinfo answers from now on; texts it gave before stay valid. Takes `info`, may be null. */
void serve_keep(struct shadow *s, struct info *info);

int64_t serve_now_us(void); /* CLOCK_MONOTONIC */

#endif
