/* Draining: a body that a read callback gives is read before the request is looked at.
 *
 * The callback is called on the program's thread inside its perform, as libcurl calls it: with room
 * for as many bytes as libcurl's own buffer has, until the announced size is there or it has no
 * more. One read at a time, so that whoever asks can look after other things in between. No lock is
 * held: the callback may longjmp. */
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
/* libcurl sends it with Expect: 100-continue, and begins to read it after the server's answer to
 * that. `by_size`: of an upload, too, only if it is large. Not looked at: whether HTTP/2 will be
 * agreed on, which has no such header. */
bool body_is_expected(const struct options *options, curl_off_t size, bool by_size);
/* An HTTPPOST list with a part that is read by a callback, which nothing can rewind. */
bool body_has_stream(const struct options *options);

enum body_drained {
	BODY_DRAINED,
	BODY_MORE,      /* read on */
	BODY_PAUSED,    /* the callback returned CURL_READFUNC_PAUSE: read on when it may */
	BODY_ABORTED,   /* the callback returned CURL_READFUNC_ABORT */
	BODY_FUNNY,     /* it returned more than it was given room for */
	BODY_OVERSIZE,  /* more than `limit` bytes; what was read is kept */
	BODY_NO_MEMORY, /* nor disk */
};

/* One read. `into` is sealed once all is there (BODY_DRAINED). */
enum body_drained body_read(const struct body_source *source, size_t limit, struct payload *into);

#endif
