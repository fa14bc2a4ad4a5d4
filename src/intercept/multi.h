/* What we know of each multi handle of the program: which of its transfers are ours, the one queue
 * of messages, and what its loop was told to wait for.
 *
 * A multi is left alone until the first handle is added that libcurl does not serve by itself: it
 * is *managed* from then on. Looked up by pointer under a short lock; used without one, as libcurl
 * lets only one thread use a multi at a time. */
#ifndef SENDONCE_INTERCEPT_MULTI_H
#define SENDONCE_INTERCEPT_MULTI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/curlapi.h"
#include "courier/bell.h"
#include "courier/courier.h"
#include "intercept/message.h"
#include "intercept/multi_late.h"
#include "intercept/queue.h"

#include <uthash.h>

#define MULTI_NEVER INT64_MAX

struct pseudo;

/* curl_notify_callback of libcurl 8.17. */
typedef void multi_notify_fn(CURLM *multi, unsigned notification, CURL *easy, void *ctx);

struct multi {
	CURLM *handle; /* the key */
	const struct flavour *flavour;
	uint64_t serial; /* never given twice, unlike the address */
	bool managed;
	bool busy;      /* inside one of its calls: what its callbacks ask for is refused */
	bool dead;      /* a callback of the loop said -1 */
	bool forked;    /* it is the parent's */
	bool by_events; /* its loop calls for descriptors and timers */
	curl_socket_callback socket;
	void *socket_data;
	curl_multi_timer_callback timer;
	void *timer_data;
	multi_notify_fn *notify;
	void *notify_data;
	unsigned notify_wanted; /* a bit each */
	bool notifying;         /* that callback is running */

	unsigned round;   /* how often the loop has come by, also while it is not managed */
	struct late late; /* those whose options have changed */

	struct courier_bounds bounds; /* of its connections, for the courier */

	struct pseudo *first, *last; /* in the order they were added */
	struct messages messages;
	struct queue queue;

	struct bell *bell; /* null: none yet, or none can be made */
	bool shown;        /* the program watches the bell's descriptor */
	CURL *shown_for;   /* the handle it was last said to be for */
	void *assigned;    /* curl_multi_assign on it */
	/* CLOCK_MONOTONIC; MULTI_NEVER: not */
	int64_t native_due_us; /* when libcurl wants to be called; one-shot */
	int64_t told_due_us;   /* what TIMERFUNCTION was last told */
	UT_hash_handle hh;
};

/* A multi that libcurl just made; wipes a stale one at the same address. */
void multi_new(CURLM *handle, const struct flavour *flavour);
struct multi *multi_find(CURLM *handle); /* null: not made through us */
/* The same, made if it is not there; null: no memory. */
struct multi *multi_get(CURLM *handle, const struct flavour *flavour);
/* The libcurl of a call on it, by what is known of it or by who calls; null: there is none.
 * *managed: the multi, if it is one that is managed. */
const struct flavour *multi_flavour(CURLM *handle, struct multi **managed, const void *caller);
/* Its handles and messages are gone already. */
void multi_drop(CURLM *handle);
/* Whether the multi with this serial is still there. */
bool multi_lives(CURLM *handle, uint64_t serial);

void multi_fork_prepare(void);
void multi_fork_parent(void);
void multi_fork_child(void);

#endif
