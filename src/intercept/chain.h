/* Our callbacks on the program's own handle, for one perform.
 *
 * Each of them calls the program's (or does what libcurl does without one) and tells what it saw.
 * The program's are looked up in what it has set, at each call, so that one it changes in the
 * middle of the transfer counts from then on, as natively; what is chained is not passed to libcurl
 * meanwhile (chain_keeps). At the end every option is what the program last set it to. */
#ifndef SENDONCE_INTERCEPT_CHAIN_H
#define SENDONCE_INTERCEPT_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/curlapi.h"

struct shadow;

enum chain_keep {
	CHAIN_GIVE,
	CHAIN_KEEP,
	CHAIN_CUT /* end the transfer */
};

/* What is told; a null one is not chained. They run on the program's thread, inside its perform. */
struct chain_calls {
	/* Right before a wire send; `url` (may be null) is where it goes. 0: go on, else abort. */
	int (*pass)(void *ctx, const char *url);
	/* The program's own PREREQFUNCTION stopped what `pass` had let through. */
	void (*unsent)(void *ctx);
	/* Is the program to be given this? `line`: a header line for sure; with CURLOPT_HEADER, or
	 * without it, one may come as a piece of body as well. What is kept from the program counts
	 * as taken. */
	enum chain_keep (*keeps)(void *ctx, const char *data, size_t n, bool line);
	/* What the program has taken: a header line, a piece of body (decoded). */
	void (*header)(void *ctx, const char *line, size_t n);
	void (*body)(void *ctx, const char *data, size_t n);
	void (*debug)(void *ctx, curl_infotype type, const char *data, size_t n);
	/* Once a second or more often, unless libcurl itself prints the progress. */
	void (*tick)(void *ctx);
	/* The perform will never return: a callback jumped out of it, and the handle goes. */
	void (*dropped)(void *ctx);
};

enum { CHAIN_TAKEN_MAX = 28 };

struct chain {
	struct shadow *shadow;
	const struct chain_calls *calls;
	void *ctx;
	CURLoption taken[CHAIN_TAKEN_MAX];
	size_t taken_count;
	bool post_taken; /* POSTFIELDS or their size, which depend on each other */
	bool form_taken; /* the method, which a form had set */
	bool no_prereq;  /* this libcurl has none: `pass` is never called from here */
	bool lost;       /* the program reset the handle: the rest of the transfer was not seen */
	struct buf held; /* with CURLOPT_HEADER: what may be a header line and not body */
};

/* 0, or -1: an option was refused, and everything is as before. */
int chain_begin(struct chain *c, struct shadow *s, const struct chain_calls *calls, void *ctx);
/* Set one more option for this perform. */
CURLcode chain_override(struct chain *c, CURLoption id, uintptr_t word);
/* POSTFIELDS of these bytes, which must stay; the method must be a POST already. */
CURLcode chain_override_body(struct chain *c, const char *body, curl_off_t n);
/* A POST of `size` bytes that are read (-1: not announced) instead of the program's form. Its
 * curl_mime must be detached from the handle, and is the capture's. */
CURLcode chain_override_form(struct chain *c, curl_off_t size);
/* The size of a body that is read, for a POST or a PUT; -1: none is announced. */
CURLcode chain_override_size(struct chain *c, curl_off_t size);
/* Give everything back. */
void chain_end(struct chain *c);

/* For the hooks of a handle that has a chain. */
bool chain_keeps(const struct chain *c, CURLoption id); /* record it, but do not tell libcurl */
void chain_was_reset(struct chain *c);
void chain_dropped(struct chain *c); /* before its cleanup */
/* `copy`, made by curl_easy_duphandle, gets the program's own options. */
void chain_give_copy(const struct chain *c, CURL *copy);

#endif
