/* The environment as it was at load, and whether sendonce may act in this process at all. */
#ifndef SENDONCE_PRELOAD_ENVIRON_H
#define SENDONCE_PRELOAD_ENVIRON_H

#include "base/corelink.h"

/* The value a name of CORELINK_ENV had; null when unset or when AT_SECURE is set. */
const char *environ_get(enum corelink_env name);
/* SENDONCE_DISABLE=1, or a program that runs with more rights than its user. */
int environ_is_disabled(void);
/* The program headers of the executable, by the kernel's word; null when unknown. */
const void *environ_program_headers(unsigned long *count);

#endif
