/* A complete answer as the ledger keeps it, and back.
 *
 * Blob: version, getinfo values, the header blocks and the body as the program got it (after
 * content decoding). Never kept: Set-Cookie and Set-Cookie2, Date, Age, Connection, Keep-Alive,
 * Transfer-Encoding, request ids (X-Request-Id, Request-Id, CF-Ray, X-Amzn-*-Id, ...), rate limit
 * headers, Server-Timing, traceparent. Content-Encoding goes and Content-Length is made right when
 * the body was decoded. */
#ifndef SENDONCE_COURIER_ANSWER_H
#define SENDONCE_COURIER_ANSWER_H

#include <stdint.h>

#include "courier/tape.h"

/* What a blob may hold beside the body; `max_response` speaks of the body alone. */
enum { ANSWER_BESIDE_BODY = 512 * 1024 };

/* Of a tape that has not ended the caller knows that the answer came whole. 0, or -1: not whole,
 * above max bytes, or out of memory: the answer is then not kept. */
int answer_store(struct tape *t, size_t max, struct buf *blob);
/* The same for a body of at most max_response bytes, whatever comes with it. */
int answer_keep(struct tape *t, size_t max_response, struct buf *blob);

/* What a replay adds to the header block. */
struct answer_marks {
	const char *verdict; /* value of Sendonce-Verdict; null: none */
	bool replayed;       /* Idempotent-Replayed: true */
	/* May be null. Another body in the place of the kept one: true, and it is in `out`. */
	bool (*edit)(void *ctx, struct span head, struct span body, struct buf *out);
	void *ctx;
	const char *url; /* EFFECTIVE_URL, unless a redirect led elsewhere; null: none */
};
/* A finished tape made from a blob, ready to be played. Null when malformed or out of memory. */
struct tape *answer_load(const struct buf *blob, const struct answer_marks *marks);
/* A finished tape made from a header block and a body (refusals). The scheme of effective_url,
 * which may be null, says the protocol. */
struct tape *answer_made(struct span head, struct span body, const char *effective_url);

#endif
