/* How a record's key gets into the request: in a header, a query pair or a JSON member. */
#ifndef SENDONCE_INTERCEPT_CARRY_H
#define SENDONCE_INTERCEPT_CARRY_H

#include "courier/courier.h"
#include "intercept/writing.h"

/* What is sent in place of the program's own. Owns all of it; all zero is nothing changed. */
struct carried {
	char *key_line; /* header lines; null: none */
	char *url;      /* null: the program's own */
	bool is_target; /* `url` is a REQUEST_TARGET, which the program has set */
	bool has_body;
	struct buf body;         /* of a REQUEST_FIELDS */
	struct payload *payload; /* of another */
	curl_off_t size;         /* of the payload, as the program would have announced it */
	struct header_edit edit;
};

/* `key` "": none is sent. 0, or -1 out of memory; carried_free in any case. */
int carry_key(const struct writing *w, const char *key, struct carried *out);
void carried_free(struct carried *c);

/* The plan's share; borrowed from `c`. After fetch_plan. */
void carry_plan(const struct carried *c, struct courier_plan *plan);

#endif
