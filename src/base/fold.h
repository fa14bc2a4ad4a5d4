/* A path that may be written down: ids and secrets folded away. */
#ifndef SENDONCE_BASE_FOLD_H
#define SENDONCE_BASE_FOLD_H

#include "base/bytes.h"

/* Of a path no rule has a pattern for. A segment that is a number, a UUID or holds four digits or
 * more becomes {id}; one of 16 or more characters that are not all of one kind (lower case, upper
 * case, digits) becomes {secret}. A query is cut off. */
void fold_path(struct span path, struct buf *out);

/* What one name or segment is shown as: "{id}", "{secret}", or null when it may be shown as it is.
 */
const char *fold_word(struct span word);

#endif
