/* The real loader functions, found behind us. */
#ifndef SENDONCE_PRELOAD_LOADER_H
#define SENDONCE_PRELOAD_LOADER_H

enum loader_mode { /* the same numbers in glibc and musl */
	           LOADER_LAZY = 1,
	           LOADER_NOW = 2,
	           LOADER_NOLOAD = 4,
	           LOADER_DEEPBIND = 8,
	           LOADER_NODELETE = 0x1000
};

#define LOADER_NEXT ((void *)-1l) /* RTLD_NEXT */

typedef void *loader_dlopen_fn(const char *file, int mode);
typedef void *loader_dlsym_fn(void *handle, const char *name);
typedef void *loader_dlvsym_fn(void *handle, const char *name, const char *version);

/* Null where the process has no such function: it has no libc, or no libdl yet. */
loader_dlopen_fn *loader_dlopen(void);
loader_dlsym_fn *loader_dlsym(void);
loader_dlvsym_fn *loader_dlvsym(void); /* glibc only */
/* What went wrong in this thread's last loader call; also clears it. Never null. */
const char *loader_error(void);
/* The thread's errno; null without a libc. */
int *loader_errno(void);
/* Keeps a loaded library loaded for ever. */
void loader_pin(const char *path);

#endif
