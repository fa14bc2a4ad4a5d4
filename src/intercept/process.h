/* What is decided once for the whole process: policy, mode, scope, run, secret, ledger. */
#ifndef SENDONCE_INTERCEPT_PROCESS_H
#define SENDONCE_INTERCEPT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/corelink.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

enum process_state {
	PROCESS_OFF,   /* no policy, or mode off: everything passes */
	PROCESS_ON,    /* enforce, inject or replay */
	PROCESS_AUDIT, /* writes are written down; the ledger is never opened */
	PROCESS_BROKEN /* a policy that cannot be used: writes are refused with `error` */
};

struct process {
	enum process_state state;
	struct policy *policy; /* null unless PROCESS_ON or PROCESS_AUDIT, or mode off */
	struct policy
	        *unlisted; /* writes no rule names are written down by this; null: they are not */
	char error[1200];  /* PROCESS_BROKEN: why */
	char ledger_path[4096];
	bool ledger_default; /* its folder may be made */
	char events_path[4096];
	char scope[256];
	char run[256];
	uint64_t run_hash;       /* 0: not known */
	enum policy_mode acting; /* PROCESS_ON: MODE_ENFORCE, MODE_INJECT or MODE_REPLAY */
	const char *mode;        /* its name, for events */
};

/* Called once, by sendonce_core_start. */
void process_link(const struct preload_api *preload);
const struct flavour *process_flavour(const void *caller);
/* policy_env: the environment as it was when the process was loaded, then as it is now. */
const char *process_env(void *ctx, const char *name);

/* Fills in scope and run as policy and environment say; the command line explains with them. */
void process_names(struct process *p);
/* Loaded at the first call; never null, never changes afterwards. */
const struct process *process_get(void);

/* This process, or this child of a fork, where it stands for a run of its own; never 0. */
uint64_t process_as_run(void);

/* The mapped ledger, opened at the first call and tried again as long as it fails. Null: `error`
 * (may be null) says why; also where the file was replaced since (ledger_retired). */
struct ledger *process_ledger(struct ledger_error *error);
/* The same, but only if it is open already. */
struct ledger *process_ledger_opened(void);
/* The HMAC secret that goes with it. `ledger` null: there is none to be opened (audit); hashes are
 * then made under a fixed label unless SENDONCE_SECRET_FILE names a secret, so that two processes
 * call the same write by the same name. Empty when that file cannot be read: `error`, which may be
 * null. */
struct span process_secret(struct ledger *ledger, struct ledger_error *error);

/* Locks around fork(2). */
void process_fork_prepare(void);
void process_fork_done(void);

#endif
