/* The courier: sends a write upstream on a handle of its own, and outlives the program's timeout.
 *
 * One per flavour of libcurl, set of RESOLVE lines and multi with bounds, with one CURLM. There is
 * no thread of ours while somebody waits: the thread that waits for a tape drives the CURLM
 * (leader), others sleep until it reports (followers). A background thread exists only while an
 * attempt is in flight that is orphaned or that a program's loop listens to. No lock and no
 * leadership is held while program code runs, because no program code runs here: the handle gets
 * our callbacks only.
 *
 * The handle is built with curl_easy_init and the recorded options in the order they were set,
 * never with curl_easy_duphandle, which loses cookies and shares and double frees (7.88.1). */
#ifndef SENDONCE_COURIER_COURIER_H
#define SENDONCE_COURIER_COURIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/curlapi.h"
#include "base/options.h"
#include "base/payload.h"
#include "courier/bell.h"
#include "courier/lines.h"
#include "courier/tape.h"

/* One passing of the gate: right before the bytes of one wire send leave. */
struct gate_pass {
	unsigned number;   /* 1 for the first of this attempt */
	bool after_answer; /* a complete origin header block with 3xx, 401, 407 or 417 came since
	                      the last pass */
	const char *effective_url; /* what is about to be asked; may be null */
	bool same_authority;       /* scheme, host and port of the first pass */
};

/* Called by whichever thread drives, with no lock of the courier held, in this order: gate (once
 * per wire send), renew (every 5 s), ended (exactly once, before readers see the end of the tape),
 * release (exactly once, last). They run no program code and must not call the courier. */
struct attempt_calls {
	int (*gate)(void *ctx, const struct gate_pass *pass); /* 0: send; else abort the transfer */
	void (*renew)(void *ctx);
	/* May be null. An answer of that status has begun, or ended: is it one after which the same
	 * request is to be sent again, as long as somebody waits? It is not shown then. */
	bool (*again)(void *ctx, long status);
	void (*ended)(void *ctx, struct tape *tape, struct tape_end *end);
	void (*adopt)(
	        void *ctx); /* may be null. In a detached child: the record is this process's */
	void (*abandon)(void *ctx); /* exit_wait is over: mark the record before the process goes */
	void (*release)(void *ctx);
};

struct attempt;

enum body_kind {
	BODY_NONE,
	BODY_BYTES,  /* `body`, copied: POSTFIELDS */
	BODY_PAYLOAD /* `payload`, which is kept: sent in the pieces it was read in */
};

/* A courier's handle kept for the next write of the same program's handle, and what it was built
 * from. All zero is empty. */
struct courier_stay {
	CURL *easy; /* null: none */
	const struct flavour *fl;
	struct options built;
	CURLoption extra[4];
	size_t extra_count;
	bool no_stale_reuse;
};

/* What a program's multi allows itself. All zero: as libcurl has it. */
struct courier_bounds {
	uint64_t owner;   /* whose: the multi's number; 0: nobody's, and nothing is bounded */
	long host, total; /* connections to one host, and to all; 0: any number */
	long streams;     /* on one connection; 0: libcurl's own */
	bool apart;       /* one transfer a connection */
};

/* All borrowed for the call of attempt_start only, except `calls`' context. */
struct courier_plan {
	const struct flavour *flavour;
	const struct options *options; /* the program's, with its method state */
	struct span body;
	enum body_kind body_kind;
	struct payload *payload;
	curl_off_t body_size;  /* of the payload as the program announced it; -1: it did not */
	const char *body_type; /* the Content-Type libcurl wrote for a form; null: not a form */
	const char *url; /* instead of the program's own, which it parses the same; null: none */
	const char *request_target; /* likewise, of REQUEST_TARGET */
	struct header_edit edit;    /* the key's header and what else is changed */
	bool no_stale_reuse;        /* MAXAGE_CONN 2 s (FRESH_CONNECT before 7.65) */
	struct curl_slist *cookies; /* the program's jar, as COOKIELIST lines; may be null */
	const struct option *
	        extra; /* proxy, netrc file ... read from the environment on the program's thread */
	size_t extra_count;
	/* PROXY of http and of https, for where a redirect leads to the other one; null: one for
	 * both, or none. */
	const char *proxy[2];
	const char *preface;          /* verbose text before libcurl's own; null: none */
	struct courier_stay *stay;    /* of the program's handle; null: keep none */
	struct courier_bounds bounds; /* of the multi it is in */
	size_t keep;          /* bytes of body kept for late readers and the ledger: max_response */
	int64_t linger_us;    /* how long it goes on once nobody waits */
	int64_t exit_wait_us; /* how long an exit waits for it */
	bool detaches;        /* a process that exits hands it to a child instead */
	struct attempt_calls calls;
	void *ctx;
	/* May be null. Called once by attempt_start when the attempt is whole and nobody can drive
	 * it yet: the moment to attach to its tape and to tell others of it. COURIER_CLOSED may
	 * still follow. */
	void (*ready)(void *ctx, struct attempt *a);
};

enum {
	COURIER_OK = 0,
	COURIER_NOMEM = -1,
	COURIER_CANNOT = -2, /* an option it cannot carry, or no courier to be had */
	COURIER_CLOSED = -3  /* courier_at_exit is through: the process is ending */
};

/* Null, or the name of the first recorded option that keeps this handle from the courier
 * (SSL_CTX_FUNCTION, OPENSOCKETFUNCTION, ...): "in place" or unprotected. */
const char *courier_refuses(const struct options *options);

/* Build the handle and hand it to the CURLM; nothing is sent before somebody drives. The caller
 * owns one reference. On failure `release` is not called and the context stays the caller's. */
int attempt_start(const struct courier_plan *plan, struct attempt **out);
/* Around the attempts that this thread starts in one turn of a program's loop: the driver is woken
 * for all of them at the end. A wait ends it too. */
void courier_batch_begin(void);
void courier_batch_end(void);
struct tape *attempt_tape(struct attempt *a); /* borrowed */
struct attempt *attempt_ref(struct attempt *a);
void attempt_unref(struct attempt *a);

/* Drive, or wait for whoever drives, until something new is on the tape, the phase changed, or
 * `until_us` (CLOCK_MONOTONIC) has passed. "New" is what came after this thread's last wait for it:
 * a wait may return at once for what was read meanwhile. Blocks SIGPIPE while it drives. After
 * courier_at_exit it returns at once; every tape has ended. */
void attempt_wait(struct attempt *a, int64_t until_us);

/* A number that changes with what is on the tape, the phase and the end. To be read before those
 * are looked at: then another number later means that there is more to see. */
unsigned attempt_news(const struct attempt *a);

/* A program's loop that is woken when attempt_news has changed. The caller's memory until
 * attempt_unlisten. As long as anybody listens, a background thread drives. */
struct listener {
	struct listener *next;
	struct bell *bell;
	struct bell_note *note; /* what it finds with the bell */
	bool phases;            /* rung also when the phase alone has changed */
};
/* False: there can be no thread, and the loop must drive it itself, by attempt_wait. */
bool attempt_listen(struct attempt *a, struct listener *l);
void attempt_unlisten(struct attempt *a, struct listener *l);
/* A listener has read on: a sender that waits for that may go on. */
void attempt_played(struct attempt *a);

/* Before its tape's info is read: what libcurl knows by now is there then. In a crowd nobody takes
 * a look at a transfer under way that nobody asks for. Waits for the driver, not for long. */
void attempt_look(struct attempt *a);

struct attempt_phase {
	bool resolved, connected, gated, ended;
	bool queued; /* it may be waiting for others of its multi, and does not connect yet */
	curl_off_t uploaded;
};
void attempt_phase(struct attempt *a, struct attempt_phase *out);

/* Nobody waits any more: a background thread drives it on for linger_us. Before the gate the caller
 * has withdrawn the record first and uses attempt_cancel. */
void attempt_orphan(struct attempt *a);
/* Take it off the CURLM; its tape ends `stopped`. */
void attempt_cancel(struct attempt *a);
/* The same, without waiting until it has happened: a background thread does it. */
void attempt_drop(struct attempt *a);

/* An answer on `easy` said "in progress": after how many microseconds the same request is to be
 * sent again, which was sent again `asked` times before. */
int64_t courier_again_pause(const struct flavour *fl, CURL *easy, unsigned asked);

/* The attempt's handle, if it may stay and has ended well. */
void courier_stay_back(struct attempt *a, struct courier_stay *stay);
void courier_stay_free(struct courier_stay *stay);

/* Whether a handle with these options has a cookie engine. */
bool courier_has_cookies(const struct options *options);
/* The cookies it started with and those it left behind, as COOKIELIST lines; null: none. Borrowed
 * from the attempt. False: it has not ended, or had no engine. */
bool attempt_cookies(struct attempt *a, const struct curl_slist **before,
                     const struct curl_slist **after);

/* A program has cleaned up a multi whose writes were sent here: connections at rest are closed.
 * `owner` as in its bounds. */
void courier_let_go(const struct flavour *flavour, uint64_t owner);

/* Process life: exit hands to a child what `detaches`, waits for the other orphans (bounded by each
 * one's exit_wait_us; `abandon` for the rest) and then keeps the loop lock for ever. Fork:
 * prepare/parent/child around fork(2); in the child every attempt's tape ends with an error and
 * sockets are closed without a TLS goodbye. */
void courier_at_exit(void);
void courier_fork_prepare(void);
void courier_fork_parent(void);
void courier_fork_child(void);

#endif
