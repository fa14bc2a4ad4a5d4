/* One easy handle of the program inside a multi, where libcurl alone does not serve it: from
 * curl_multi_add_handle to the moment it is removed.
 *
 * Ours: a write goes from stage to stage (writing.h), one call of the program's loop at a time.
 * Native: libcurl performs the handle in the program's multi with our callbacks chained (in place,
 * audit, redirects); what comes of it may be ours again. */
#ifndef SENDONCE_INTERCEPT_PSEUDO_H
#define SENDONCE_INTERCEPT_PSEUDO_H

#include "courier/courier.h"
#include "intercept/decide.h"
#include "intercept/message.h"
#include "intercept/multi.h"
#include "intercept/watch.h"

struct writing;
struct audit;
struct redirect;

struct pseudo {
	struct pseudo *next, *prev; /* in the multi's list */
	struct multi *multi;
	struct shadow *shadow;
	struct decision decision;
	struct writing *w;   /* null before the first step, without one, and once it is over */
	struct audit *audit; /* or what else is chained */
	struct redirect *redirect; /* on its handle */
	bool native;               /* libcurl performs it now */
	bool inside;               /* it is in libcurl's multi, performing or done */
	bool over;                 /* its message was queued */
	bool waits;                /* `w` said STEP_WAIT */
	bool poked;                /* a pause ended */
	bool alone;                /* no thread looks after what it waits for */
	struct bell_note note;     /* left where it has to be looked at: queue.h */
	size_t place;              /* in the queue's heap, from 1; 0: nowhere */
	int64_t due_us;
	uint64_t number;       /* the later it was added the higher */
	bool counted, comes;   /* by the queue */
	struct attempt *heard; /* that `listener` is at */
	struct listener listener;
	struct watch watch; /* of a record that another process sends, while `watching` */
	bool watching;
	CURLMsg msg;
	struct message message;
};

/* Take a handle into the multi; it has been decided that libcurl alone does not serve it. What
 * curl_multi_add_handle returns. */
CURLMcode pseudo_add(struct multi *m, struct shadow *s, const struct decision *decision);
/* Take it out, wherever it is: before its gate the write is withdrawn, after it the courier goes
 * on. Frees. */
void pseudo_remove(struct pseudo *p);

/* What can be done now, in the program's own call; its callbacks run in here. */
void pseudo_step(struct pseudo *p);
/* libcurl's message about a native one. */
void pseudo_performed(struct pseudo *p, CURLcode code);

/* When there is something to do: 0 for at once, MULTI_NEVER for not until it is told. */
int64_t pseudo_due_us(const struct pseudo *p, int64_t now_us);
/* Not over, and not counted by libcurl. */
bool pseudo_is_ours(const struct pseudo *p);
/* Its message was queued. */
bool pseudo_is_over(const struct pseudo *p);
/* Its transfer has put nothing into ERRORBUFFER. */
bool pseudo_is_silent(const struct pseudo *p);
/* The program lets a paused transfer go on. */
void pseudo_poke(struct pseudo *p);

#endif
