/* What happens to calls when the core cannot be loaded: reads pass, writes are refused. */
#ifndef SENDONCE_PRELOAD_DEGRADED_H
#define SENDONCE_PRELOAD_DEGRADED_H

#include "base/flavour.h"

/* Looks at one call and its first three arguments; returns the function to jump to. */
void *degraded_select(enum curl_fn function, const unsigned long *args, void *real);

/* SENDONCE_FAIL=open, or a mode that never refuses. */
int degraded_passes_everything(void);

/* What a libcurl function that this process does not have answers: an error, never a crash. */
void *degraded_missing(enum curl_fn function);

#endif
