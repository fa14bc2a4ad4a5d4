/* The player: delivers an answer to the program as libcurl itself would have.
 *
 * It is fed events (header line, body bytes, debug line, end) and does not know where they come
 * from: a live courier, a record, or a refusal. It runs the program's callbacks, so it is only ever
 * called on the program's thread inside one of its libcurl calls, with no lock held: a callback may
 * longjmp. It honours what libcurl honours on this side of the wire: HEADER, FAILONERROR,
 * MAXFILESIZE, TIMEOUT, CONNECTTIMEOUT, LOW_SPEED, progress abort, pause, ERRORBUFFER, the default
 * fwrite; body chunks are at most CURL_MAX_WRITE_SIZE (16 KiB). Texts are libcurl's. */
#ifndef SENDONCE_PLAYER_PLAYER_H
#define SENDONCE_PLAYER_PLAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/curlapi.h"

/* What libcurl keeps of its speed from one transfer of a handle to the next: it is measured once in
 * a second of the clock, and one that begins in the same second has the speed of the one before. */
struct player_pace {
	int64_t second;   /* of CLOCK_MONOTONIC, in which it was measured last; 0: never */
	curl_off_t speed; /* bytes a second */
};

/* The program's side of a handle, read from its options when the transfer starts. Null function:
 * libcurl's default (fwrite to the data pointer, or to stdout when that is null). */
struct player_sink {
	CURL *handle; /* what debug callbacks get */
	curl_write_callback write;
	void *write_data;
	curl_write_callback header; /* null and header_data set: `write` is used, as in libcurl */
	void *header_data;
	bool header_in_body; /* CURLOPT_HEADER */
	bool fail_on_error;
	bool resumed; /* a download that goes on: 416 says that nothing is left */
	/* libcurl 8.5 or later (told by what came with 8.4), where only a success without a place
	 * in its Content-Range takes that back, and not a 416 that tells the size. */
	bool resumed_through_416;
	bool has_password, has_proxy_password; /* a 401/407 then waits for the next block */
	curl_off_t max_filesize;               /* 0: none */
	bool no_progress;
	curl_xferinfo_callback xferinfo;
	curl_progress_callback progress; /* the old one, used when xferinfo is null */
	void *progress_data;
	char *error_buffer; /* CURL_ERROR_SIZE, or null */
	bool verbose;
	curl_debug_callback debug; /* null: libcurl's own form to `stderr_file` */
	void *debug_data;
	FILE *stderr_file;                      /* null: stderr */
	int64_t timeout_us, connect_timeout_us; /* 0: none, and libcurl's 300 s while connecting */
	long low_speed_limit, low_speed_time;   /* bytes a second, seconds */
	curl_off_t upload_size;                 /* for progress, known from the start */
	struct player_pace *pace;               /* the handle's; null: it has none */
	/* libcurl 8.8 or later, where what was received is counted once the program has taken it,
	 * trailers are part of a body with header lines in it, and a size that is too large is told
	 * after the header callback. (8.7 as well, which nothing tells from earlier ones.) */
	bool counts_late;
	bool ticks_late; /* libcurl 8.20 or later, which shows no progress before it is connected */
};

enum { PLAYER_RATES = 6 };

struct player {
	struct player_sink sink;
	int64_t started_us;    /* CLOCK_MONOTONIC */
	int64_t connecting_us; /* since when CONNECTTIMEOUT runs */
	curl_off_t body_seen;  /* body bytes fed so far: what libcurl counts as received */
	curl_off_t body_total; /* Content-Length of the current answer, or -1 */
	curl_off_t uploaded;
	long status; /* of the current header block */
	bool in_body;
	bool in_head;    /* inside a header block: the next line is not a status line */
	bool chunked;    /* this block has a Transfer-Encoding: its Content-Length means nothing */
	bool must_fail;  /* a 401/407 with credentials that FAILONERROR ends unless a block follows
	                  */
	bool paused;     /* receiving is paused, by CURL_WRITEFUNC_PAUSE or curl_easy_pause */
	bool delivering; /* a body or header callback is running */
	bool by_events;  /* progress is shown when something happens, and not once a second:
	                    libcurl in an event loop that calls it for descriptors and timers */
	bool error_set;  /* ERRORBUFFER holds the first error */
	bool connected;  /* this was told, or an answer came */
	bool queued;     /* at the last tick */
	bool ended;
	int64_t ticked_us; /* last progress callback; 0: none yet */
	int64_t seen_us;   /* last tick */
	int64_t metered_s; /* the second of the meter's last row, once `metered` */
	bool metered;
	curl_off_t ticked_down, ticked_up;
	int64_t slow_since_us; /* LOW_SPEED: below the limit since; 0: not below */
	struct {
		int64_t us;
		curl_off_t bytes;
	} rate[PLAYER_RATES]; /* one sample a second, as libcurl's own speed is measured */
	unsigned rates;
	struct player_pace pace; /* where the handle has none */
	CURLcode code;           /* the first thing that ended it */
	char *held;              /* bytes a pausing callback did not take */
	size_t held_size, held_at;
	int held_kind;
	char *copy; /* of the piece a callback was last given, if that is long */
	size_t copy_size;
};

/* What the sender knows, for timeouts and progress. */
struct player_phase {
	bool resolved;  /* the name is known, or no name has to be */
	bool tcp;       /* TCP is up, TLS may not be; only chooses the text of a timeout */
	bool connected; /* TLS included */
	bool sent;      /* the gate has opened */
	bool queued;    /* it does not connect yet, and no time of CONNECTTIMEOUT passes */
	curl_off_t uploaded;
};

void player_start(struct player *p, const struct player_sink *sink, int64_t now_us);
void player_stop(struct player *p); /* frees what is held and copied; the sink's data is not ours */

/* Each returns CURLE_OK, or the code the transfer ends with (23, 22, 63, ...): the text is then in
 * ERRORBUFFER. While p->paused nothing more may be fed. A line includes its CRLF. */
CURLcode player_header(struct player *p, const char *line, size_t n);
/* A line of a proxy's answer to CONNECT: shown to the program, but no error and no size of its. */
CURLcode player_connect_header(struct player *p, const char *line, size_t n);
CURLcode player_body(struct player *p, const char *data, size_t n);
CURLcode player_debug(struct player *p, curl_infotype type, const char *data, size_t n);
/* curl_easy_pause on a playing handle. Held bytes are delivered here, or at the next feed. */
CURLcode player_pause(struct player *p, int bits);

/* To be called whenever time may have passed: progress callbacks, deadlines, LOW_SPEED. */
CURLcode player_tick(struct player *p, const struct player_phase *phase, int64_t now_us);
/* Microseconds until player_tick wants to be called, at most 1 s, or a minute where by_events. */
int64_t player_patience(const struct player *p, const struct player_phase *phase, int64_t now_us);

/* The end: the sender's code and text become the program's, unless the player ended it earlier.
 * Not while paused. Makes the last progress callback, as libcurl does also after most errors. */
CURLcode player_end(struct player *p, CURLcode code, const char *text);

/* Puts `text` into ERRORBUFFER (libcurl's rule: first error wins, cut to CURL_ERROR_SIZE). */
void player_error(struct player *p, const char *text);

#endif
