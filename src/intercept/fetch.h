/* The body of a write, fetched before anything is decided about it, step by step. */
#ifndef SENDONCE_INTERCEPT_FETCH_H
#define SENDONCE_INTERCEPT_FETCH_H

#include "courier/courier.h"
#include "intercept/writing.h"

/* A stage: read, or render, what the request will carry (w->in.body and w->payload), in as many
 * steps as it takes, and go on with write_identified. */
enum step fetch_body(struct writing *w);
/* A stage: no rule names the request after all; libcurl performs it, the body that was read first.
 */
enum step fetch_pass(struct writing *w);
/* What the call leaves behind. A body of which no byte left is kept for the next call: the
 * program's stream is at its end, where libcurl would not have touched it. */
void fetch_end(struct writing *w);

/* The plan's share. */
void fetch_plan(const struct writing *w, struct courier_plan *plan);

/* libcurl is about to use the program's handle itself: a form that was rendered goes back to it.
 * False: it cannot be sent again, which libcurl calls CURLE_SEND_FAIL_REWIND. */
bool fetch_give_form(struct shadow *s);

/* A body that libcurl reads from what was fetched, on the program's own handle. */
struct fetch_reader {
	struct payload *payload;
	size_t at;
};
size_t fetch_read(char *out, size_t size, size_t n, void *reader);
int fetch_seek(void *reader, curl_off_t offset, int origin);

#endif
