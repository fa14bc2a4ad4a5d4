/* What single values of a policy mean: durations, sizes, statuses, selectors, names.
 *
 * Pure functions of the text. Each parser returns null, or what is wrong with the text and what
 * would be right, as the end of a sentence that begins with the key. */
#ifndef SENDONCE_POLICY_VALUES_H
#define SENDONCE_POLICY_VALUES_H

#include "base/bytes.h"
#include "policy/policy.h"

/* 500ms 30s 10m 24h 7d 0, in microseconds. */
const char *value_duration(struct span text, int64_t *out);
/* 32MiB 64KiB 2GiB, or plain bytes. */
const char *value_size(struct span text, int64_t *out);
/* 303, or 2xx for a whole class; added to the set. */
const char *value_status(struct span text, struct status_set *set);
/* A part of a request: /json/pointer, query:NAME, header:NAME or the name of a form field. */
const char *value_selector(struct span text);
const char *value_pointer(struct span text);
/* The rest of `text` after `prefix`; *there says whether it begins so. */
struct span value_after(struct span text, const char *prefix, bool *there);
/* An HTTP token: header names, methods. */
bool value_is_token(struct span text);

/* How many letters must be changed, added, left out or swapped to get from a to b; stops counting
 * at `limit`. */
size_t value_distance(struct span a, struct span b, size_t limit);

enum expand_code { EXPAND_OK, EXPAND_UNSET, EXPAND_BAD, EXPAND_NOMEM };
/* Replace every ${NAME}. A variable that is unset or empty makes the whole value unset: half a name
 * would be shared by all who left the other half out. `name` gets the culprit (cut). The caller
 * frees *out, which is null unless EXPAND_OK. */
enum expand_code value_expand(struct span text, policy_env *env, void *ctx, char **out,
                              char name[64]);

#endif
