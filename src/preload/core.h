/* The core, loaded on the first libcurl call of a process. */
#ifndef SENDONCE_PRELOAD_CORE_H
#define SENDONCE_PRELOAD_CORE_H

#include "base/corelink.h"

enum core_state { CORE_NOT_TRIED, CORE_LOADED, CORE_FAILED };

/* Loads the core if that was not tried yet. Waits for no other thread of ours. */
enum core_state core_ensure(void);
int core_is_loaded(void);
/* The hook of a loaded core; null when it leaves this function alone. */
void *core_hook(int index);
/* Likewise, of the functions of sendonce.h. */
corelink_call_fn *core_call(enum corelink_call which);

#endif
