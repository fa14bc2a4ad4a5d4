/* The bytes of a request body that had to be fetched first: from a read callback, or from libcurl's
 * own rendering of a form. Counted references, so that the courier sends the very bytes without
 * another copy. Above 1 MiB they lie in an unlinked file, mapped for reading: a container's memory
 * limit counts them no more than it has to. */
#ifndef SENDONCE_BASE_PAYLOAD_H
#define SENDONCE_BASE_PAYLOAD_H

#include "base/bytes.h"

struct payload;

enum { PAYLOAD_IN_MEMORY = 1 << 20 };

struct payload *payload_new(void); /* null: no memory */
struct payload *payload_ref(struct payload *p);
void payload_unref(struct payload *p); /* null is fine */

/* What one read brought. 0, or -1: no memory and no room on the disk. */
int payload_add(struct payload *p, const void *data, size_t n);
/* The same read goes on. */
int payload_extend(struct payload *p, const void *data, size_t n);
/* From now on it is only read. 0, or -1. */
int payload_seal(struct payload *p);

size_t payload_size(const struct payload *p);
struct span payload_bytes(const struct payload *p); /* only once sealed */
/* How many of the bytes from `at` on came by one read: what a chunk of the request would hold. */
size_t payload_piece(const struct payload *p, size_t at);

#endif
