/* From a handle to what the identity is made of: headers, credentials, body, target. */
#ifndef SENDONCE_INTERCEPT_GATHER_H
#define SENDONCE_INTERCEPT_GATHER_H

#include "identity/identity.h"
#include "intercept/shadow.h"
#include "request/request.h"

enum { GATHERED_FIRST = 12 };

/* Owns what `identity_in` only borrows. All zero is empty, `first` is whatever it is. Not to be
 * copied. */
struct gathered {
	struct header_view *headers; /* `first`, or allocated */
	size_t count, room;
	char *userpwd; /* a copy of USERPWD, cut in two */
	char range[REQUEST_RANGE];
	bool failed;
	struct header_view first[GATHERED_FIRST];
};

/* Fills `in` (rule, secret, scope, step and env are the caller's to set before). 0, or -1 out of
 * memory. What it points to lives until gather_free and until the program's next setopt. */
int gather_identity(const struct shadow *s, struct gathered *own, struct identity_in *in);
void gather_free(struct gathered *own);

/* The trace id of a `traceparent` header among them (W3C Trace Context); false when there is none.
 */
bool gather_trace(const struct gathered *own, uint8_t out[16]);

/* What of this handle the courier cannot carry, or null: the reason for an `unprotected` event. */
const char *gather_obstacle(const struct shadow *s);

/* The URL as libcurl would report it, for answers that no transfer brought. */
void gather_url(const struct request_target *t, struct buf *out);

/* The program's side of the handle, for the player. */
void gather_sink(const struct shadow *s, struct player_sink *sink);
/* The same, as the options are now, for a playing that is under way: what it has learned stays. */
void gather_sink_again(const struct shadow *s, struct player_sink *sink);

#endif
