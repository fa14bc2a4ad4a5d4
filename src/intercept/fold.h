/* A path that may be written down: ids and secrets folded away. */
#ifndef SENDONCE_INTERCEPT_FOLD_H
#define SENDONCE_INTERCEPT_FOLD_H

#include "base/bytes.h"

/* Of a path no rule has a pattern for. A segment that is a number, a UUID or holds four digits or
 * more becomes {id}; one of 16 or more characters that are not all of one kind (lower case, upper
 * case, digits) becomes {secret}. A query is cut off. */
void fold_path(struct span path, struct buf *out);

#endif
