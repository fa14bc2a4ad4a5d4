/* Inside of serving in place: shared by inplace.c (one perform) and reask.c (as many as it takes).
 */
#ifndef SENDONCE_INTERCEPT_INPLACED_H
#define SENDONCE_INTERCEPT_INPLACED_H

#include "courier/passes.h"
#include "intercept/chain.h"
#include "intercept/lend.h"
#include "intercept/send.h"
#include "intercept/writing.h"

struct inplace {
	struct chain chain;
	struct writing *w;
	struct shadow *shadow;
	struct send *send;
	struct tape *tape;
	struct passes passes;
	struct lend lend;
	bool unsent, fed, torn, chained;
	bool told; /* the sending is over, and the ledger knows */
	int64_t renew_us, bytes;
	/* An answer that says "in progress", kept from the program: reask.c */
	bool keeping, cut;
	size_t kept;
	unsigned asked_again;
	int64_t due_us;
};

/* inplace.c */
bool inplace_in_child(const struct inplace *p);
void inplace_describe_end(const struct inplace *p, CURLcode code, struct tape_end *end);
/* The sending is over, for the ledger first. */
void inplace_tell_end(struct inplace *p, struct tape_end *end);
/* Give the handle back as the program knows it. */
void inplace_unchain(struct inplace *p);
/* The lease, if it is time. */
void inplace_tick(void *ctx);
/* Without PREREQ: before each perform. 0, or the ledger says no. */
int inplace_pass_before(struct inplace *p);
/* Stage: libcurl has performed the handle. */
enum step inplace_performed(struct writing *w);
/* The call is over with w->code. Frees. */
enum step inplace_over(struct inplace *p, int64_t bytes);

/* reask.c */
enum chain_keep reask_keeps(void *ctx, const char *data, size_t n, bool line);
/* What libcurl performed came to an answer after which the request is to go out again. */
bool reask_is_due(struct inplace *p, CURLcode code);
/* Stage: until it is time, or the program's side ends it. */
enum step reask_wait(struct writing *w);
/* Nobody is there to ask again: the ledger is told. */
void reask_give_up(struct inplace *p);
/* It is not to: the answer that was kept is the answer. */
enum step reask_show(struct inplace *p, CURLcode code);

#endif
