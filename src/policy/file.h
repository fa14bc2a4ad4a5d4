/* Reading the file of a policy, or of a part of one. */
#ifndef SENDONCE_POLICY_FILE_H
#define SENDONCE_POLICY_FILE_H

#include "policy/policy.h"

/* The file's bytes are appended to `b`, which the caller frees in any case. 0, or a policy_load
 * code and `error` filled in: POLICY_MISSING, POLICY_INVALID (no regular file, no permission),
 * POLICY_NOMEM. O_CLOEXEC. */
int file_read(const char *path, struct buf *b, struct policy_error *error);

#endif
