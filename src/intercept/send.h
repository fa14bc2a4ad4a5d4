/* One sending of a record: what the courier's callbacks and the call that started it share.
 *
 * Two parties hold it, the program's call and the attempt; each leaves once, in any order, and the
 * last to leave writes the event. The ledger is changed only under `lock`, so that a withdrawal by
 * the call and the gate on the driving thread meet in the ledger's word and nowhere else. */
#ifndef SENDONCE_INTERCEPT_SEND_H
#define SENDONCE_INTERCEPT_SEND_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "courier/courier.h"
#include "intercept/tally.h"
#include "verdict/verdict.h"

enum send_gate {
	GATE_NOT_SHUT,
	GATE_LOST,  /* somebody else has the record: look again */
	GATE_FAILED /* the ledger could not write it down: nothing may be sent */
};

/* A further send, after the gate was open, that was stopped. */
enum send_blocked {
	BLOCKED_NOT,
	BLOCKED_RESEND, /* libcurl's own, after a connection that died */
	BLOCKED_TAKEN   /* the record is somebody else's by now */
};

struct send {
	pthread_mutex_t lock;
	int parties;
	unsigned pid; /* a child of fork(2) must leave its parent's records alone */
	struct ledger *ledger;
	const struct rule *rule;
	size_t max_response; /* of an answer that is kept */
	size_t look;         /* of a body the rule may ask about (answers.body) */
	struct hold hold;
	struct stamp dated;  /* the first send, for a provider that is told of it; wall_us 0: the
	                        moment of the gate */
	bool resend;         /* an earlier wire send of this record is in doubt */
	bool gate_opened;    /* by this sending */
	enum send_gate gate; /* why it did not open, if it did not */
	enum send_blocked blocked;
	bool ended, silent;
	bool looped; /* for a program's multi */
	bool always; /* mode inject: the gate never says no. hold.id 0: there is no record */
	enum outcome_kind outcome;
	enum ledger_counter counter; /* counted when the gate opens */
	struct tally tally;          /* last, for the room its texts do not fill */
};

/* Null: out of memory. Both parties are in. `hold` null: nothing is kept of it, see `always`. */
struct send *send_new(struct ledger *ledger, const struct rule *rule, const struct hold *hold,
                      bool resend);
/* The callbacks the attempt is started with; their context is the send. */
extern const struct attempt_calls send_calls;

/* Take the write back if its gate has not opened: true, and nothing was or will be sent. */
bool send_withdraw(struct send *s);
/* The call's last word: what it returns to the program, and how many bytes of body that had. */
void send_leave(struct send *s, CURLcode code, int64_t bytes);
/* No event: the call goes on with another sending. */
void send_silence(struct send *s);
/* The attempt could not even be started: both parties leave. */
void send_drop(struct send *s);
enum send_gate send_gate(struct send *s);
/* It ended as done, kept or not. */
bool send_is_done(struct send *s);

#endif
