/* What the files of this room share: the courier, its attempts, and who may touch what.
 *
 * `lock` guards the list, the counters and the leadership. A field marked "driver" is touched only
 * by the thread that holds the leadership (`driven`), without the lock; taking and leaving the
 * leadership under the lock passes those fields on. */
#ifndef SENDONCE_COURIER_INSIDE_H
#define SENDONCE_COURIER_INSIDE_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/fd.h"
#include "courier/bell.h"
#include "courier/courier.h"
#include "courier/passes.h"

enum {
	COURIER_POOL = 4,
	COURIER_CONNECTIONS = 32,
	RENEW_US = 5000000,
	RESOLVED = 1,
	CONNECTED = 2,
	GATED = 4,
	STARTED = 8 /* it has a place and looks up a name; not told where nobody waits for places */
};
#define NEVER_US INT64_MAX

enum attempt_state { ATTEMPT_QUEUED, ATTEMPT_FLYING, ATTEMPT_ENDED };
enum {
	WORK_ADD = 1,
	WORK_CANCEL = 2,
	WORK_UNPAUSE = 4,
	WORK_RENEW = 8,
	WORK_ABANDON = 16,
	WORK_AGAIN = 32,
	WORK_LOOK = 64
};

enum { ATTEMPT_ROOM = 320 };

struct attempt {
	atomic_uint refs;
	uint64_t id; /* never given twice, unlike the address */
	struct courier *courier;
	struct tape *tape;
	CURL *easy;

	/* made by build.c, constant afterwards */
	struct attempt_calls calls;
	void *ctx;
	char *body, *url;    /* in `room`, or allocated */
	char *proxy[2];      /* where the scheme decides: of http, of https; null: not so */
	CURLU *parts;        /* the program's CURLU as it was; null: `url` alone */
	struct lines *lists; /* our copies of every list option */
	size_t list_count;
	struct lines lines;             /* with and without the key header */
	struct payload *payload;        /* null: `body` */
	long keep_post;                 /* POSTREDIR */
	struct curl_slist *old_cookies; /* what the cookie engine was given */
	bool cookie_engine, verbose, follows;
	bool detaches;
	bool stays;    /* its handle is kept when it ends well */
	bool connects; /* the program, or the rule, says whether it may wait for a connection, or
	                  must not reuse one */
	int64_t linger_us, exit_wait_us;

	/* read by everybody. `news` is released after the tape or phase it tells of. */
	atomic_uint news, phase;
	atomic_llong uploaded;
	atomic_bool paused, heard; /* heard: it has, or had, listeners */
	atomic_bool phases;        /* and one of them wants to hear of phases */
	atomic_bool unseen;        /* no snapshot comes by itself: see attempt_look */

	/* lock */
	struct listener *listeners;
	struct attempt *next, *prev;
	enum attempt_state state;
	bool cancel, orphan, abandoned;
	unsigned waiting;
	int64_t idle_us;
	int64_t again_us; /* queued once more, not to be sent before; 0: the first time */
	CURLcode cancel_code;
	CURL *kept;

	/* driver */
	struct attempt *todo, *next_told;
	bool told; /* on the courier's list of them: there is news for listeners */
	struct attempt *next_fresh;
	bool fresh;         /* on the courier's list of them: see attempt_fresh */
	bool fresh_connect; /* it was told so by crowd_connect */
	unsigned work;
	CURLcode code; /* of the transfer that has ended */
	int64_t renew_us, captured_us;
	bool stale, stale_head; /* the snapshot on the tape is older than what has come */
	bool flying;            /* so it was when the lock was held */
	bool unshown;           /* pieces on the tape that no reader may see yet */
	struct passes passes;
	struct tape *held; /* an answer that is not shown: again.c; null: none */
	size_t held_bytes;
	unsigned asked_again;
	size_t read_at;             /* in the payload */
	struct curl_slist *cookies; /* read by everybody once the tape has ended */
	size_t room_used;
	char error[CURL_ERROR_SIZE];
	char room[ATTEMPT_ROOM]; /* of a short URL and a short body */
};

/* A descriptor of ours, and what it was when we got it. */
struct held {
	int fd;
	dev_t dev;
	ino_t ino;
};

/* ready.c: what libcurl wants to know of its sockets. Driver. */
struct ready {
	bool on;            /* libcurl is called for what is ready, not for everything */
	bool failed;        /* the array is not true */
	struct pollfd *fds; /* [0] is for what wakes the driver */
	unsigned *places;   /* by descriptor: where it stands in fds; 0: nowhere */
	size_t count, room, places_room;
	int epoll;          /* ready_watch.c; -1: none */
	struct held anchor; /* the member that proves it to be ours */
};

/* The driver's: how fast news comes of a crowd. */
struct crowd_pace {
	int64_t woke_us;
	int64_t span_us, news; /* so much of late, in that time */
	unsigned fresh;        /* since it woke */
};

struct courier {
	const struct flavour *fl;
	char *resolve; /* the RESOLVE lines of all its writes, or null */
	struct courier *next;
	bool bounded;  /* constant: for one multi at a time, with its bounds */
	bool spoiled;  /* table lock: a connection was closed behind our back; no new attempts */
	CURLM *multi;  /* driver; null at rest */
	CURLSH *share; /* TLS sessions; no locks in it: only the driver uses it */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct attempt *all;
	bool driven, polling, asked, closed;
	bool look; /* a reader wants snapshots of all whose own are old */
	pthread_t driver;
	unsigned epoch;      /* which leadership this is */
	int64_t poll_end_us; /* when the driver's poll is over at the latest */
	unsigned sleeping;
	bool background;              /* the thread for orphans runs */
	bool let_go;                  /* rest.c: by whoever drives, when he leaves */
	int64_t exit_us;              /* when exit began; 0: it has not */
	int64_t due_us;               /* the next moment something must be done */
	int64_t batch_us;             /* a program's loop has begun to start attempts; 0: none */
	unsigned count;               /* attempts there are */
	struct courier_bounds bounds; /* lock; its owner: table lock */
	struct courier_bounds bound;  /* driver: what the CURLM was told */
	unsigned orphans;             /* driver: that fly, when it last looked */
	unsigned crowd;               /* driver: so many were there when the turn began */
	unsigned kept;                /* driver: connections that the CURLM may keep open */
	CURL *pool[COURIER_POOL];
	unsigned pooled;

	struct held *sockets;
	size_t socket_count, socket_room;
	struct held wake[2]; /* the driver sleeps on the first, the second wakes it */

	struct attempt *told, *fresh; /* driver */
	int64_t looked_us;            /* driver: when all attempts were last looked at */
	bool pausing;                 /* driver: one was paused then, or has been since */
	struct ready ready;
	struct crowd_pace pace;

	bool locked; /* by fork's prepare */
};

int64_t courier_now(void); /* CLOCK_MONOTONIC, microseconds */

/* shield.c: around calls in which libcurl may write to a connection. */
struct shield {
	sigset_t old;
	bool pending, blocked;
};
void shield_up(struct shield *p);
void shield_down(struct shield *p);

/* pool.c */
struct courier *courier_of(const struct flavour *fl, const struct curl_slist *resolve,
                           const struct courier_bounds *bounds);
CURLM *pool_multi(const struct flavour *fl); /* null: none can be made */
CURL *courier_take_easy(struct courier *c);
void courier_give_easy(struct courier *c, CURL *easy, bool clean);
bool courier_keeps_connections(void); /* false: this program closes them again and again */
extern pthread_mutex_t courier_table_lock;
extern struct courier *courier_table;

/* drive.c */
typedef bool courier_done(struct courier *c, void *arg);
/* With the lock held on entry and return. At least one turn when nobody else drives. */
void courier_drive(struct courier *c, courier_done *done, void *arg, int64_t until_us);
/* With the lock held: give up a leadership that this thread jumped out of. */
void courier_leave_poll(struct courier *c);

/* sleep.c: by the driver, without the lock, until something happens or `ms` are over. `stale`:
 * there is something newer than its snapshot, so a first short sleep tells whether the answer is
 * there at once, and the snapshot is not needed. */
void courier_sleep(struct courier *c, int wake, int ms, bool stale, int cancel);

/* crowd.c */
enum { CROWD = 32 }; /* from how many attempts in flight on they are handled as one */
void courier_ask(struct courier *c);    /* with the lock held: a turn, soon */
bool batch_puts_off(struct courier *c); /* with the lock held: asked at the batch's end */
/* With the lock held: one has begun, and is looked at when it ends, or at c->due_us. */
bool batch_is_coming(struct courier *c, int64_t now);
/* This thread's batch has just looked through the connections; if not, it is noted that it does. */
bool batch_has_checked(const struct courier *c);
/* By the driver, without the lock, around a sleep that may be of `ms`: more of the news that comes
 * is handled in the same turn. False: it did not wait. */
bool crowd_gather(struct courier *c, int ms);
/* By the driver, before a turn: as many connections are kept as there were attempts. */
void crowd_keep(struct courier *c);
/* By the driver, before a turn that begins attempts: where no connection can be free none is looked
 * for. And when such an attempt is taken off the CURLM: its next one may find one. */
void crowd_connect(struct courier *c, struct attempt *todo);
void crowd_connected(struct attempt *a);

/* ready.c, by the driver without the lock */
void ready_prepare(struct courier *c);      /* a new CURLM */
void ready_choose(struct courier *c);       /* which way it is driven, before a turn */
void ready_end(struct courier *c);          /* after one, with the lock held: the crowd is gone */
void ready_perform(struct courier *c);      /* as curl_multi_perform */
void ready_drop(struct courier *c, int fd); /* it is closed */
void ready_forget(struct courier *c);       /* the CURLM is gone */
/* As poll(2), also for `wake` (-1: nothing). -1 without having slept: no memory. */
int ready_sleep(const struct courier *c, int wake, int ms, bool *woken);
void ready_tell(struct courier *c, int fd, unsigned events);

/* ready_watch.c */
void ready_open(struct ready *r, const struct held *anchor); /* if it is not; a socket of ours */
void ready_close(struct ready *r);
void ready_check(struct ready *r); /* it is there, and ours, or it is none */
void ready_watch(struct ready *r, const struct pollfd *fd); /* from now on, or otherwise */
void ready_unwatch(const struct ready *r, int fd);
void ready_ask(struct courier *c); /* ready_tell for each */

/* snapshot.c, by the driver without the lock */
void snapshot_take(struct attempt *a);
/* After a turn, and then what it tells of. `quiet`: nothing came for a while. Those whose snapshot
 * is still old stay on the list. */
void snapshots_after(struct courier *c, bool quiet);
/* Something came that is to be shown, or makes its snapshot old. */
void attempt_fresh(struct attempt *a);

/* listen.c */
/* By the driver: something is new. */
void attempt_tell(struct attempt *a, unsigned phase);
/* The same by somebody else, with the lock held; listeners are told by attempt_ring. */
void attempt_count(struct attempt *a, unsigned phase);
void attempt_ring(const struct attempt *a);
/* With the lock held, which is given up meanwhile: what the driver has noted. */
void courier_ring(struct courier *c);

/* descriptors.c */
bool held_still(const struct held *h);       /* it is what it was when we got it */
void held_close(struct held *h);             /* if it still is */
bool held_pair(struct held *pair);           /* two: connected sockets; false: none could be made */
CURLM *held_multi(const struct flavour *fl); /* nothing of it is inherited, or lies on 0-2 */
bool held_add_socket(struct courier *c, int fd);
int held_close_socket(struct courier *c, int fd);
bool held_all_there(struct courier *c);
/* Those that are still ours. With the lock held. */
void held_close_all(struct courier *c);
/* With the lock held: what the driver has to sleep on; -1: none could be made. */
int courier_wake_fd(struct courier *c);
void courier_wake(struct courier *c); /* with the lock held */
void courier_awake(struct courier *c);

/* bounds.c */
/* With the table lock held: it is the one for such bounds; it is free to be; it becomes it. */
bool bounds_fit(const struct courier *c, const struct courier_bounds *wanted);
bool bounds_are_free(struct courier *c);
void bounds_take(struct courier *c, const struct courier_bounds *wanted);
void bounds_give_up(const struct flavour *fl, uint64_t owner); /* 0: nobody's */
/* By the driver, with the lock held: there are more orphans than before. An attempt may be one that
 * waits for its place. What the CURLM is to have. */
bool bounds_widen(struct courier *c);
bool bounds_hold(const struct attempt *a);
struct courier_bounds bounds_now(const struct courier *c);
/* By the driver, without the lock, before a turn: the CURLM has them, too. */
void bounds_keep(struct courier *c, const struct courier_bounds *now);

/* rest.c */
void rest_begin(struct courier *c);
void rest_end(struct courier *c);

/* build.c */
int build_handle(struct attempt *a, const struct courier_plan *plan);
void build_free(struct attempt *a);

bool build_replays(CURLoption id);

/* stay.c */
CURL *stay_take(struct attempt *a, const struct courier_plan *plan); /* null: take another */
void stay_keep(struct attempt *a, CURL *easy);

/* cookies.c */
int cookies_install(struct attempt *a, const struct courier_plan *plan);

/* gate.c: the callbacks of the handle */
int gate_install(struct attempt *a);
int gate_before_add(struct attempt *a); /* for a libcurl without PREREQ; 0: go on */

/* again.c, by the driver */
bool again_holds(struct attempt *a, const struct tape_piece *piece); /* the piece is not shown */
void again_flush(struct attempt *a);                                 /* it is after all */
void again_drop(struct attempt *a);
/* A transfer ended: true, and it is queued to be sent once more. */
bool again_later(struct courier *c, struct attempt *a, CURLcode code);
void again_begin(struct attempt *a); /* it is about to be */
/* With the lock held. */
bool again_is_awaited(const struct courier *c, const struct attempt *a);

/* life.c */
void life_background(struct courier *c); /* with the lock held */

/* tape.c, for fork: the lock may be held by a thread that does not exist here */
void tape_forked(struct tape *t);

#endif
