/* Loads libsendonce-core.so from our own directory and asks it for its hooks.
 *
 * No lock: a thread that holds one here could wait for the loader's lock, which another thread
 * holds that waits for us. Several threads may load at the same time instead; the loader gives all
 * of them the same object, the core's start function copies pointers only, and everything stored
 * here is then stored again with the same value.
 *
 * When the core cannot be loaded one line in the file SENDONCE_LOG names says why. Without that
 * variable nobody is told here: standard error belongs to the program. */
#include "preload/core.h"
#include "preload/degraded.h"
#include "preload/environ.h"
#include "preload/flavours.h"
#include "preload/loader.h"
#include "preload/ownpath.h"
#include "preload/rawsys.h"

#include <asm/signal.h>
#include <linux/fcntl.h>

#define CORE_FILE  "libsendonce-core.so"
#define PATH_BYTES 768
#define LINE_BYTES 640

typedef int start_fn(const struct preload_api *preload, struct core_api *core);

static enum core_state state; /* release of CORE_LOADED: hooks and calls are complete */
static void *hooks[FN_HOOKED_COUNT];
static corelink_call_fn *calls[CALL_COUNT];
static struct preload_api offered;
static int reported;

static const struct preload_api *offer(void)
{
	offered.abi = CORELINK_ABI;
	for (int i = 0; i < ENV_COUNT; i++)
		offered.env[i] = environ_get((enum corelink_env)i);
	offered.flavour_of_caller = flavours_of_caller;
	return &offered;
}

/* Where RLIMIT_FSIZE lets the file grow no more, SIGXFSZ would end a program that never wrote to
 * it: blocked meanwhile, and taken back unless the program had one waiting already. */
static void append(long fd, const char *data, long size)
{
	unsigned long only = 1UL << (SIGXFSZ - 1), mask = 0, waiting = 0;
	const long at_once[2] = {0, 0};

	if (raw_syscall(__NR_rt_sigprocmask, SIG_BLOCK, (long)&only, (long)&mask, sizeof(mask)) < 0)
		return;
	raw_syscall(__NR_rt_sigpending, (long)&waiting, sizeof(waiting), 0, 0);
	if (raw_syscall(__NR_write, fd, (long)data, size, 0) < 0 && !(waiting & only))
		raw_syscall(__NR_rt_sigtimedwait, (long)&only, 0, (long)at_once, sizeof(only));
	raw_syscall(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask));
}

/* Not inlined: its buffer would lie beside load's on one small stack frame. */
__attribute__((noinline)) static void report(const char *path, const char *reason)
{
	const char *log = environ_get(ENV_SENDONCE_LOG);
	char buffer[LINE_BYTES];
	struct text line;

	/* Relaxed: it only picks one thread out of several. */
	if (!log || __atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))
		return;
	text_begin(&line, buffer, sizeof(buffer) - 1);
	text_add(&line, "sendonce: pid ");
	text_add_number(&line, (unsigned long)raw_syscall(__NR_getpid, 0, 0, 0, 0));
	text_add(&line, degraded_passes_everything()
	                        ? ": UNPROTECTED, all writes pass. "
	                        : ": writes are refused (SENDONCE_FAIL=open lets them pass). ");
	text_add(&line, "Install libsendonce-core.so beside libsendonce.so. Reason: ");
	if (!text_starts_with(reason, path)) { /* the loader's own texts name the file */
		text_add(&line, path);
		text_add(&line, ": ");
	}
	text_add(&line, reason);
	line.size++;
	text_add(&line, "\n");

	long flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	long fd = ownpath_open_high(log, flags, 0600);
	if (fd < 0)
		return;
	append(fd, buffer, (long)line.length);
	ownpath_close(fd);
}

/* The loaded core, or null with the reason. `path` holds the last name tried. */
static void *open_core(struct text *path, const char **reason)
{
	loader_dlopen_fn *open = loader_dlopen();
	if (!open) {
		*reason = "this process has no dlopen";
		return 0;
	}
	for (int resolved = 0; resolved <= 1; resolved++) {
		struct text directory = {path->data, path->size, 0};
		ownpath_add_directory(&directory, resolved);
		if (directory.length == 0)
			continue;
		*path = directory;
		text_add(path, CORE_FILE);
		void *handle = open(path->data, LOADER_NOW | LOADER_NODELETE);
		if (handle)
			return handle;
		*reason = loader_error();
	}
	return 0;
}

/* Not inlined: as report. */
__attribute__((noinline)) static int start(void *handle, const char **reason)
{
	struct core_api core;
	loader_dlsym_fn *symbol = loader_dlsym();
	start_fn *core_start = symbol ? (start_fn *)symbol(handle, CORELINK_START_NAME) : 0;

	if (!core_start) {
		*reason = symbol ? loader_error() : "this process has no dlsym";
		return -1;
	}
	core.abi = CORELINK_ABI;
	for (int i = 0; i < FN_HOOKED_COUNT; i++)
		core.hook[i] = 0;
	for (int i = 0; i < CALL_COUNT; i++)
		core.call[i] = 0;
	if (core_start(offer(), &core) < 0 || core.abi != CORELINK_ABI) {
		*reason = "it belongs to another version of libsendonce.so";
		return -1;
	}
	for (int i = 0; i < FN_HOOKED_COUNT; i++)
		__atomic_store_n(&hooks[i], (void *)core.hook[i], __ATOMIC_RELAXED);
	for (int i = 0; i < CALL_COUNT; i++)
		__atomic_store_n(&calls[i], core.call[i], __ATOMIC_RELAXED);
	return 0;
}

static enum core_state load(void)
{
	char buffer[PATH_BYTES];
	struct text path;
	const char *reason = "its directory is unknown";

	text_begin(&path, buffer, sizeof(buffer));
	void *handle = open_core(&path, &reason);
	if (handle && start(handle, &reason) == 0)
		return CORE_LOADED;
	report(path.length ? path.data : CORE_FILE, reason);
	return CORE_FAILED;
}

int core_is_loaded(void)
{
	/* Acquire: as in core_ensure. */
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == CORE_LOADED;
}

enum core_state core_ensure(void)
{
	enum core_state known = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	if (known != CORE_NOT_TRIED)
		return known;

	int *error = loader_errno();
	int saved = error ? *error : 0;
	enum core_state mine = load();
	/* The first result stands, so that a process never changes from one mode to the other. */
	__atomic_compare_exchange_n(&state, &known, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	if (error)
		*error = saved;
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}

void *core_hook(int index)
{
	return __atomic_load_n(&hooks[index], __ATOMIC_RELAXED);
}

corelink_call_fn *core_call(enum corelink_call which)
{
	/* Relaxed, as above: core_ensure's acquire came before. */
	return __atomic_load_n(&calls[which], __ATOMIC_RELAXED);
}
