/* Where policy, ledger and event log are: one answer for the core and for the command line.
 *
 * The environment comes through a look-up function, so that a host's environment as it was at its
 * start, a command's options and a test's table all work. An empty variable counts as unset. */
#ifndef SENDONCE_POLICY_PATHS_H
#define SENDONCE_POLICY_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

#define PATHS_POLICY_DEFAULT "/etc/sendonce/policy.yaml"

enum paths_code {
	PATHS_OK = 0,
	PATHS_RELATIVE = -1, /* `out` holds the path as it was given */
	PATHS_TOO_LONG = -2,
	PATHS_NO_HOME = -3, /* a default path is wanted, and this user has no home */
	PATHS_NOWHERE = -4  /* a ledger in memory has no folder for an event log */
};
/* What a negative code means and what to do, for a message after the path. */
const char *paths_error(int code);

/* SENDONCE_POLICY, else /etc/sendonce/policy.yaml; `*named` is false for the latter. */
int paths_policy(policy_env *env, void *ctx, char *out, size_t room, bool *named);

/* SENDONCE_LEDGER, else the policy's ledger.path, else $XDG_STATE_HOME/sendonce/ledger, else
 * ~/.local/state/sendonce/ledger. `*is_default` is true for the last two: only their folder is
 * made when it is missing. `policy` may be null. The word `memory` is not a path and stays as it is
 * (LEDGER_MEMORY). */
int paths_ledger(const struct policy *policy, policy_env *env, void *ctx, char *out, size_t room,
                 bool *is_default);

/* The policy's `events`, else the ledger's path with ".events.jsonl". */
int paths_events(const struct policy *policy, policy_env *env, void *ctx, char *out, size_t room);

#endif
