/* What left of a request, put together from what libcurl's debug callback shows. */
#ifndef SENDONCE_INTERCEPT_OUTGOING_H
#define SENDONCE_INTERCEPT_OUTGOING_H

#include "base/bytes.h"

/* All zero but for `limit`. */
struct outgoing {
	size_t limit; /* bytes of body that are kept */
	struct buf head, body;
	bool too_large;
};

/* CURLINFO_HEADER_OUT: each head begins a request of its own. CONNECT's are left out. */
void outgoing_head(struct outgoing *o, const char *data, size_t n);
/* CURLINFO_DATA_OUT */
void outgoing_data(struct outgoing *o, const char *data, size_t n);
/* The value of a header of the last head; p is null when it has none of that name. */
struct span outgoing_header(const struct outgoing *o, const char *name);
/* The body of the last request with the framing of chunks taken off, in place. 0, or -1: it was not
 * seen whole. */
int outgoing_body(struct outgoing *o, struct span *body);
void outgoing_free(struct outgoing *o);

#endif
