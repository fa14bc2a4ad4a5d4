/* Where we were loaded from. */
#ifndef SENDONCE_PRELOAD_OWNPATH_H
#define SENDONCE_PRELOAD_OWNPATH_H

#include "preload/text.h"

/* Appends the directory of libsendonce.so, with the slash: as the loader names it, or (`resolved`)
 * as the kernel does, links followed. Appends nothing when that is not an absolute path. */
void ownpath_add_directory(struct text *path, int resolved);

/* Opens a file above the standard descriptors, or returns a negative value. */
long ownpath_open_high(const char *path, long flags, long mode);
void ownpath_close(long fd);

#endif
