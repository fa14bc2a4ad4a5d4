/* The key in a query or in a JSON body: the carriers that are not a header. */
#ifndef SENDONCE_IDENTITY_CARRY_H
#define SENDONCE_IDENTITY_CARRY_H

#include "base/bytes.h"

enum carry_found {
	CARRY_FOUND,
	CARRY_ABSENT,  /* not there, null or empty: there is a place for one */
	CARRY_NO_TEXT, /* something that is not a text stands in its place */
	CARRY_NO_PLACE /* not JSON, or what it should stand in is no object */
};

/* CARRY_FOUND: the text is appended to `key`. `pointer`: RFC 6901, not empty. */
enum carry_found carry_json_find(struct span body, struct span pointer, struct buf *key);
/* The body without its key; -1: there is none, or the body cannot be read; nothing is added. */
int carry_json_without(struct span body, struct span pointer, struct buf *out);
/* The body with this key, in the place of one that is there; -1: it has no place for one. */
int carry_json_with(struct span body, struct span pointer, struct span key, struct buf *out);

/* Pairs whose decoded name is `name` go out, the others stay as they are. */
void carry_query_without(struct span query, struct span name, struct buf *out);
/* A URL, as a program spells it, with the pair at the end of its query. */
void carry_url_with(struct span url, struct span name, struct span key, struct buf *out);

#endif
