/* Which libraries a program would be started with, found as the loader would. */
#ifndef SENDONCE_CLI_CLOSURE_H
#define SENDONCE_CLI_CLOSURE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/elf.h"

enum { CLOSURE_MAX = 512 };

struct closure {
	char *path[CLOSURE_MAX]; /* of each library; owned */
	size_t count;
	char missing[128]; /* the first that was not found; "" */
};

/* The libraries `program` needs, directly and through each other. `from` is its path (for
 * $ORIGIN). Freed by closure_free. */
void closure_make(const char *from, const struct elf *program, struct closure *out);
void closure_free(struct closure *closure);
/* Null, or the first one whose file name begins with `prefix`. */
const char *closure_find(const struct closure *closure, const char *prefix);

#endif
