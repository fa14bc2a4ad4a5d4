/* A core for testing the preload alone: it hooks a few functions, writes "NAME LIBCURL" for each
 * call into the file FAKE_CORE_LOG names, and calls the real function. It ties a handle to the
 * libcurl that made it, as the real core does. */
#include "base/corelink.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLER      __builtin_return_address(0)
#define MAX_HANDLES 64
#define EXPORTED    __attribute__((visibility("default")))
#define REAL(f, n)  ((f)->fn[FN_##n])

typedef void *init_fn(void);
typedef int perform_fn(void *);
typedef int setopt_fn(void *, int, ...);
typedef void cleanup_fn(void *);
typedef int add_fn(void *, void *);

static const struct preload_api *preload;
static struct {
	void *handle;
	const struct flavour *flavour;
} handles[MAX_HANDLES];

static void note(const char *what, const struct flavour *flavour)
{
	const char *path = flavour && flavour->path ? strrchr(flavour->path, '/') : NULL;
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %s\n", what, path ? path + 1 : "?");
	const char *log = getenv("FAKE_CORE_LOG");
	int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	if (write(fd, line, (size_t)length) < 0)
		line[0] = '\0';
	close(fd);
}

static const struct flavour *flavour_of(void *handle, void *caller)
{
	for (int i = 0; i < MAX_HANDLES; i++) {
		if (handles[i].handle == handle)
			return handles[i].flavour;
	}
	return preload->flavour_of_caller(caller);
}

static void *hook_init(void)
{
	const struct flavour *flavour = preload->flavour_of_caller(CALLER);
	note("init", flavour);
	void *handle = ((init_fn *)REAL(flavour, easy_init))();
	for (int i = 0; handle && i < MAX_HANDLES; i++) {
		if (handles[i].handle && handles[i].handle != handle)
			continue;
		handles[i].handle = handle;
		handles[i].flavour = flavour;
		break;
	}
	return handle;
}

static int hook_perform(void *handle)
{
	const struct flavour *flavour = flavour_of(handle, CALLER);
	note("perform", flavour);
	return ((perform_fn *)REAL(flavour, easy_perform))(handle);
}

static int hook_setopt(void *handle, int option, void *value)
{
	const struct flavour *flavour = flavour_of(handle, CALLER);
	note("setopt", flavour);
	return ((setopt_fn *)REAL(flavour, easy_setopt))(handle, option, value);
}

static int hook_add(void *multi, void *handle)
{
	const struct flavour *flavour = flavour_of(handle, CALLER);
	note("add", flavour);
	return ((add_fn *)REAL(flavour, multi_add_handle))(multi, handle);
}

static void hook_cleanup(void *handle)
{
	const struct flavour *flavour = flavour_of(handle, CALLER);
	note("cleanup", flavour);
	((cleanup_fn *)REAL(flavour, easy_cleanup))(handle);
}

EXPORTED int sendonce_core_start(const struct preload_api *offered, struct core_api *core)
{
	if (offered->abi != CORELINK_ABI)
		return -1;
	preload = offered;
	core->abi = getenv("FAKE_CORE_STALE") ? CORELINK_ABI + 1 : CORELINK_ABI;
	core->hook[FN_easy_init] = (void (*)(void))hook_init;
	core->hook[FN_easy_perform] = (void (*)(void))hook_perform;
	core->hook[FN_easy_setopt] = (void (*)(void))hook_setopt;
	core->hook[FN_multi_add_handle] = (void (*)(void))hook_add;
	core->hook[FN_easy_cleanup] = (void (*)(void))hook_cleanup;
	const char *scope = offered->env[ENV_SENDONCE_SCOPE];
	note(scope ? scope : "unset", NULL);
	return 0;
}
