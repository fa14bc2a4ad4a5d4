/* Forms (MIMEPOST, HTTPPOST), rendered by libcurl itself.
 *
 * Boundaries, encoders, nested parts, files, data callbacks: nobody renders a form as libcurl does
 * but libcurl. So it sends the request, on the program's thread, to a listener of ours in this
 * process, from a handle of ours; what arrives is the body. The program's read callbacks run inside
 * its own perform, with no lock held.
 *
 * A copy of a handle has a form that only libcurl knows. It is therefore copied twice: once with
 * the program's handle, where libcurl sends it, and once with ours, where it is rendered. The
 * program does not hear when the second one ends (release.h).
 *
 * The program's curl_mime is moved to that handle and stays there: libcurl rewinds a form only on
 * the handle that read it. Where libcurl itself is to use the program's handle again, the form is
 * rewound and goes back (capture_give_back). HTTPPOST lists are read afresh each time and not
 * moved.
 */
#ifndef SENDONCE_REQUEST_CAPTURE_H
#define SENDONCE_REQUEST_CAPTURE_H

#include "base/curlapi.h"
#include "base/options.h"
#include "base/payload.h"
#include "request/body.h"

/* Belongs to one handle of the program. All zero: nothing was captured yet. */
struct capture {
	CURL *easy;      /* ours, or null */
	curl_mime *mime; /* the program's, while it is attached to `easy` */
	bool busy;       /* a callback jumped out of it */
	bool used;       /* libcurl has read the form on the program's own handle */
	bool stuck;      /* a part of it could not be rewound when it was given back */
	bool copied;     /* `easy` has a form for good: a copy that libcurl made, as it did for the
	                    program's handle, which is itself a copy */
	bool read;       /* that one was rendered, and has not been rewound since */
	bool heard;      /* libcurl did not make one for the program's handle: this one ends as it
	                    would have */
	bool lost;       /* no form is on the program's handle where it has set one: libcurl, which
	                    may take none that it cannot rewind, did not take it back */
};

struct captured {
	struct payload *body; /* the caller's: sealed */
	curl_off_t size;      /* as announced, which may be more; -1: libcurl sends it in chunks */
	char *type;           /* the caller's: Content-Type, "" when there is none */
	CURLcode code;        /* CAPTURE_FAILED: what perform would have returned */
	char error[CURL_ERROR_SIZE];
};

enum capture_result {
	CAPTURE_DONE,
	CAPTURE_MORE,      /* go on */
	CAPTURE_PAUSED,    /* nothing moves: a read callback pauses, or has nothing yet */
	CAPTURE_FAILED,    /* libcurl could not render it: `code` and `error` are its own */
	CAPTURE_OVERSIZE,  /* more than `limit` bytes */
	CAPTURE_NO_MEMORY, /* nor disk */
	CAPTURE_CANNOT     /* no listener, or a libcurl that does not let us */
};

struct rendering;

/* Begin to render what `options`, those of `program`, say. Null: *why says why not. */
struct rendering *capture_begin(struct capture *c, const struct flavour *fl, CURL *program,
                                const struct options *options, size_t limit,
                                enum capture_result *why);
/* One step of it, inside of which the program's read callbacks run. Everything but CAPTURE_MORE and
 * CAPTURE_PAUSED is the end. */
enum capture_result capture_step(struct rendering *r);
/* The program lets its read callback be called again. */
void capture_resume(struct rendering *r);
/* Also in the middle. `result` is what the last step said, and what comes back is the last word: a
 * result other than CAPTURE_DONE gives no body. Frees. */
enum capture_result capture_end(struct rendering *r, enum capture_result result,
                                struct captured *out);

/* Before libcurl duplicates `program`, which is not performing: what renders the form of its copy,
 * into *to, which is all zero. False: nothing does. So it is where `program` has been set to send
 * something else since: its form then does not go back to it, and *to only ends as libcurl's copy
 * would. */
bool capture_copy(struct capture *to, struct capture *from, const struct flavour *fl, CURL *program,
                  const struct options *options);
/* Before that, too, once the form of `from` was given back: the same *to. */
void capture_note_copy(struct capture *to, const struct capture *from);

/* The program sets MIMEPOST. True: it set the form that is attached here, which stays; its own
 * handle must not get it. */
bool capture_keeps(struct capture *c, const struct flavour *fl, const curl_mime *mime);

/* Before libcurl itself performs or duplicates `program`. A form that is not what `program` would
 * send stays where it is: to set it would make a form of the request. False: a part of the form has
 * no way back to its beginning. libcurl would have found out itself (CURLE_SEND_FAIL_REWIND) on the
 * handle that read it; on this one it would send the form without that part's bytes. */
bool capture_give_back(struct capture *c, const struct flavour *fl, CURL *program,
                       const struct options *options);
/* libcurl has performed the program's handle with the form on it. */
void capture_note_use(struct capture *c);

/* The program's handle is cleaned up or reset. The form itself is the program's. */
void capture_drop(struct capture *c, const struct flavour *fl);

#endif
