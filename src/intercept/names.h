/* Scope, run and step: what policy and environment say, and what a program sets by sendonce.h. */
#ifndef SENDONCE_INTERCEPT_NAMES_H
#define SENDONCE_INTERCEPT_NAMES_H

#include "identity/identity.h"
#include "intercept/process.h"

/* Those of one write, taken when it begins. */
struct names {
	uint64_t run_hash; /* 0: not known */
	char scope[POLICY_NAME_MAX + 1], run[POLICY_NAME_MAX + 1];
	char step[2 * POLICY_NAME_MAX + 2]; /* the policy's, a /, the thread's */
};

void names_clear(struct names *names); /* all empty */
void names_copy(struct names *to, const struct names *from);

/* On the thread whose write begins: steps are the thread's. */
void names_take(const struct process *process, struct names *out);

/* What the policy takes from headers of the request goes before all else. One that is too long, or
 * not printable, is as if it were not there. */
void names_read(const struct process *process, const struct header_view *headers, size_t count,
                struct names *out);

/* sendonce_scope_set and its sisters, for core_api.call; they return its codes. */
int names_set_scope(const char *scope);
int names_set_run(const char *run);
int names_push_step(const char *step);
int names_pop_step(const char *nothing);

/* Around fork(2). */
void names_fork_prepare(void);
void names_fork_done(void);

#endif
