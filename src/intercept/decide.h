/* Who answers a request that a program's handle is about to make. */
#ifndef SENDONCE_INTERCEPT_DECIDE_H
#define SENDONCE_INTERCEPT_DECIDE_H

#include "intercept/process.h"
#include "intercept/shadow.h"
#include "verdict/verdict.h"

enum way {
	WAY_LIBCURL,  /* libcurl alone */
	WAY_REDIRECT, /* libcurl, watched for redirects to a listed target (redirect.h) */
	WAY_AUDIT,    /* libcurl, and it is written down (audit.h) */
	WAY_WRITE,    /* us (write.h) */
	WAY_REFUSE,   /* us: refused, for `reason` */
	WAY_POLICY,   /* us: refused, for the policy cannot be used */
	WAY_STOP,     /* us: not HTTP, and stopped by mode replay (replay.h) */
	WAY_NO_MEMORY /* us: what it asks for cannot be told; CURLE_OUT_OF_MEMORY */
};

struct decision {
	enum way way;
	const struct process *process;
	const struct rule *rule; /* that names it; null: none */
	enum verdict_reason reason;
	const char *in_place; /* WAY_WRITE: why its own handle must do it; null: the courier does */
};

/* Also says what passes unprotected. */
struct decision decide(struct shadow *s);

#endif
