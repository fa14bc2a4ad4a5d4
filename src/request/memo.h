/* What libcurl made of a URL, and such URLs that other handles of this process had. */
#ifndef SENDONCE_REQUEST_MEMO_H
#define SENDONCE_REQUEST_MEMO_H

#include <stdatomic.h>

#include "request/request.h"

/* Shared by all handles with that URL, and not changed once it is. */
struct url_parts {
	atomic_uint refs; /* beside the first */
	unsigned port;
	char *scheme, *host, *path, *query, *user, *password;
};

/* Gives one reference back; may be null. */
void parts_unref(struct url_parts *parts);

/* What the parts of a URL depend on. `text` is borrowed. */
struct memo_key {
	const struct flavour *fl;
	struct span text;
	unsigned flags; /* CURLU_... */
};

/* A reference, or null when it does not know them. */
struct url_parts *memo_get(const struct memo_key *key);
/* `parts` of a URL that memo_get did not know; a reference of its own is taken. Only a URL that is
 * asked for a second time is kept, and none that may have a password in it. */
void memo_put(const struct memo_key *key, struct url_parts *parts);

#endif
