/* What the program's own handle is lent for one perform in place: the key in its header list, its
 * URL or its body, and a body that was read or rendered before. */
#ifndef SENDONCE_INTERCEPT_LEND_H
#define SENDONCE_INTERCEPT_LEND_H

#include "courier/passes.h"
#include "intercept/carry.h"
#include "intercept/chain.h"
#include "intercept/fetch.h"
#include "intercept/writing.h"

enum { LEND_OLD = 2 };

struct lend {
	struct chain *chain;
	struct writing *w;
	struct shadow *shadow;
	struct carried carried;
	const struct curl_slist *copied; /* the program's list that these were made from: */
	struct lines lines;              /* with and without the key */
	struct lines old[LEND_OLD];      /* replaced in the middle of the transfer */
	unsigned old_count;
	bool form;     /* a form goes out as the bytes that were rendered of it */
	bool bodyless; /* but not with the GET that a redirect made of it */
	struct fetch_reader reader;
};

/* Takes *carried over. False: no memory; lend_free in any case. `chain` need not have begun. */
bool lend_make(struct lend *l, struct writing *w, struct chain *chain, struct carried *carried);
void lend_free(struct lend *l);

/* Once the chain has begun: body, URL and headers. CURLE_OK, or what the call comes to. */
CURLcode lend_all(struct lend *l);
/* Right before a wire send: the list for where it goes. */
CURLcode lend_headers(struct lend *l, bool same_authority);
/* A header block of an answer has ended. */
void lend_answered(struct lend *l, const struct passes *passes);

#endif
