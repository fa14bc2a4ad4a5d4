/* What libsendonce.so (the preload) and libsendonce-core.so say to each other. Both are built and
 * installed together; `abi` only guards against a stale file beside a new one.
 * No libc header here: the preload is freestanding. */
#ifndef SENDONCE_BASE_CORELINK_H
#define SENDONCE_BASE_CORELINK_H

#include "base/flavour.h"

enum { CORELINK_ABI = 6 };

/* The environment as it was when the process was loaded: php-fpm and others clear or overwrite
 * it later. All null when AT_SECURE is set. */
#define CORELINK_ENV(X)                                                                            \
	X(SENDONCE_DISABLE)                                                                        \
	X(SENDONCE_POLICY)                                                                         \
	X(SENDONCE_MODE)                                                                           \
	X(SENDONCE_LEDGER)                                                                         \
	X(SENDONCE_SCOPE)                                                                          \
	X(SENDONCE_RUN)                                                                            \
	X(SENDONCE_SECRET_FILE)                                                                    \
	X(SENDONCE_LOG)                                                                            \
	X(SENDONCE_FAIL)                                                                           \
	X(XDG_STATE_HOME)                                                                          \
	X(HOME)

enum corelink_env {
#define CORELINK_ENV_NAME(name) ENV_##name,
	CORELINK_ENV(CORELINK_ENV_NAME) ENV_COUNT
#undef CORELINK_ENV_NAME
};

struct preload_api {
	unsigned abi;
	const char *env[ENV_COUNT]; /* null when unset; stable for the life of the process */
	/* The flavour a call made from `caller` means: the libcurl that contains it, else the only
	 * libcurl loaded, else the one the caller's object needs or got by dlsym. Null: none. */
	const struct flavour *(*flavour_of_caller)(const void *caller);
};

/* The functions of include/sendonce.h; a text or null in, one of its codes out. */
#define CORELINK_CALLS(X) X(scope_set) X(run_set) X(step_push) X(step_pop)

enum corelink_call {
#define CORELINK_CALL_NAME(name) CALL_##name,
	CORELINK_CALLS(CORELINK_CALL_NAME) CALL_COUNT
#undef CORELINK_CALL_NAME
};
typedef int corelink_call_fn(const char *text);

struct core_api {
	unsigned abi;
	/* Jumped to with the program's own arguments and return address, never for a call that
	 * libcurl makes to itself. A null slot means: call the real function. */
	void (*hook[FN_HOOKED_COUNT])(void);
	corelink_call_fn *call[CALL_COUNT]; /* null: there is no such function */
};

/* Exported by the core. Only copies pointers and may be called by several threads at once,
 * also inside a library's constructor: it takes no lock and does no I/O. Returns 0, or a
 * negative value when the two do not belong together. */
#define CORELINK_START_NAME "sendonce_core_start"
int sendonce_core_start(const struct preload_api *preload, struct core_api *core);

#endif
