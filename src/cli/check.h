/* `sendonce check`: is this policy good, and does it say what its author means? */
#ifndef SENDONCE_CLI_CHECK_H
#define SENDONCE_CLI_CHECK_H

#include "policy/policy.h"

/* The command; argv[0] is "check". Returns the exit code: 0 the policy is good (warnings may have
 * been printed), 1 it is invalid, 2 usage, 3 it cannot be read. */
int cli_check(int argc, char **argv);

/* Load the policy with this process's environment; for `run`, which must not start a command under
 * a policy that would refuse its writes. 0 and *out for policy_free; else a policy_load code, and
 * its error is on stderr as one line. */
int cli_check_policy(const char *path, struct policy **out);

#endif
