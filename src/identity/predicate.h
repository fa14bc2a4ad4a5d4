/* Does what a policy asks of a request (`when`) or of an answer (`answers.body`) hold? */
#ifndef SENDONCE_IDENTITY_PREDICATE_H
#define SENDONCE_IDENTITY_PREDICATE_H

#include "identity/identity.h"

struct json_doc;

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
/* A request that is asked about list by list: its body is read once for all of them. */
struct predicate_asking {
	struct predicate_view view;
	struct json_doc *doc; /* null before a condition has looked at the body */
	bool readable;
};

/* The request that `in` describes, its body included; borrows what `in` points to. */
struct predicate_asking predicates_ask(const struct identity_in *in);
bool predicates_fit(struct predicate_asking *asking, const struct predicate_list *list);
void predicates_asked(struct predicate_asking *asking);
/* One list of one request. */
bool predicates_hold_request(const struct predicate_list *list, const struct identity_in *in);
/* An answer, of which `view` has content_type and body. Of a stream of server-sent events the last
 * one that is JSON and no request or notification of its own (no `method`) is looked at. */
bool predicates_hold_answer(const struct predicate_list *list, const struct predicate_view *view);
/* Is the body looked at? */
bool predicates_read_body(const struct predicate_list *list);

#endif
