/* Draining: a body that a read callback gives is read before the request is looked at.
 *
 * The callback is called on the program's thread inside its perform, as libcurl calls it: with room
 * for as many bytes as libcurl's own buffer has, until the announced size is there or it has no
 * more. No lock is held: it may longjmp. */
#ifndef SENDONCE_REQUEST_BODY_H
#define SENDONCE_REQUEST_BODY_H

#include "base/curlapi.h"
#include "base/options.h"
#include "base/payload.h"

struct body_source {
	curl_read_callback read; /* never null */
	void *data;
	curl_off_t size; /* as announced; -1: not */
	size_t room;     /* of one read */
	bool to_the_end; /* sent in chunks: what was announced does not end it */
};
/* For REQUEST_READ and REQUEST_UPLOAD. */
struct body_source body_source_of(const struct options *options);
/* POSTFIELDSIZE(_LARGE) or INFILESIZE(_LARGE), whichever counts; -1: unknown. */
curl_off_t body_announced(const struct options *options);
/* A Transfer-Encoding of the program's own says so, or (`size` -1) libcurl's does. */
bool body_is_chunked(const struct options *options, curl_off_t size);

enum body_drained {
	BODY_DRAINED,
	BODY_ABORTED,   /* the callback returned CURL_READFUNC_ABORT */
	BODY_FUNNY,     /* it returned more than it was given room for */
	BODY_OVERSIZE,  /* more than `limit` bytes; what was read is kept */
	BODY_NO_MEMORY, /* nor disk */
	BODY_STOPPED    /* body_watch said so */
};

/* Called between two reads, and again and again while `paused`, where it sleeps a little itself.
 * True: go on. *resume is set when a pause is over. */
typedef bool body_watch(void *ctx, bool paused, bool *resume);

/* `into` is sealed when all went well. */
enum body_drained body_drain(const struct body_source *source, size_t limit, body_watch *watch,
                             void *ctx, struct payload *into);

#endif
