/* URLs that libcurl has parsed for other handles of this process. */
#ifndef SENDONCE_REQUEST_MEMO_H
#define SENDONCE_REQUEST_MEMO_H

#include "request/request.h"

/* What the parts of a URL depend on. `text` is borrowed. */
struct memo_key {
	const struct flavour *fl;
	struct span text;
	unsigned flags; /* CURLU_... */
};

/* Fills the texts and the port of `out`, which holds none yet: 1; 0 when it does not know them, -1
 * out of memory. */
int memo_get(const struct memo_key *key, struct request_target *out);
/* Texts and port of `parsed`, for a URL that memo_get did not know. Only one that is asked for a
 * second time is kept, and none that may have a password in it. */
void memo_put(const struct memo_key *key, const struct request_target *parsed);

#endif
