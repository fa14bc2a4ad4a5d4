/* How a record's key gets into the request: in a header, a query pair or a JSON member. */
#ifndef SENDONCE_INTERCEPT_CARRY_H
#define SENDONCE_INTERCEPT_CARRY_H

#include "base/clock.h"
#include "courier/courier.h"
#include "intercept/writing.h"

/* What is sent in place of the program's own. Owns all of it; all zero is nothing changed. */
struct carried {
	struct buf key_line, time_line; /* header lines; empty: none */
	char *url;                      /* null: the program's own */
	bool is_target;                 /* `url` is a REQUEST_TARGET, which the program has set */
	bool has_body;
	struct buf body;         /* of a REQUEST_FIELDS */
	struct payload *payload; /* of another */
	curl_off_t size;         /* of the payload, as the program would have announced it */
	struct header_edit edit;
	char room[160]; /* of a short key line */
};

/* `key` "": none is sent. 0, or -1 out of memory; carried_free in any case. `first_sent`: of the
 * record, wall_us; where the record has none yet see carry_time. */
int carry_key(const struct writing *w, const char *key, int64_t first_sent, struct carried *out);
/* The moment that the first send of a generation is dated by, for a provider that is told of it:
 * the record's, if it was sent before; else what the program itself says of the key it sends; else
 * now. wall_us 0: the rule has no header for it. */
struct stamp carry_time(const struct writing *w, const struct record_view *view,
                        uint32_t generation);
/* `from` is empty then. Nothing else may copy one. */
void carried_move(struct carried *to, struct carried *from);
void carried_free(struct carried *c);

/* The plan's share; borrowed from `c`. After fetch_plan. */
void carry_plan(const struct carried *c, struct courier_plan *plan);

#endif
