/* Does what a policy asks of a request (`when`) or of an answer (`answers.body`) hold? */
#ifndef SENDONCE_IDENTITY_PREDICATE_H
#define SENDONCE_IDENTITY_PREDICATE_H

#include "identity/identity.h"

struct predicate_view {
	struct span query, content_type, body;
	const struct header_view *headers;
	size_t header_count;
	/* What is said of a body that is there and cannot be read as JSON: of a request, that it
	 * meets every json predicate (what cannot be told is protected); of an answer, none. */
	bool unreadable_holds;
};

/* All of them, or there are none. Out of memory: as for a body that cannot be read. */
bool predicates_hold(const struct predicate_list *list, const struct predicate_view *view);
/* A request that `in` describes, its body included. */
bool predicates_hold_request(const struct predicate_list *list, const struct identity_in *in);
/* An answer, of which `view` has content_type and body. Of a stream of server-sent events the last
 * one that is JSON and no request or notification of its own (no `method`) is looked at. */
bool predicates_hold_answer(const struct predicate_list *list, const struct predicate_view *view);
/* Is the body looked at? */
bool predicates_read_body(const struct predicate_list *list);

#endif
