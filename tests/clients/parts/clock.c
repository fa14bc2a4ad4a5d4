/* A wall clock that jumped, and another boot, for one process: preloaded in front of everything.
 *
 * CLOCK_SHIFT: seconds that CLOCK_REALTIME is ahead. CLOCK_BOOT: a file to be read as the boot id.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *out)
{
	int (*real)(clockid_t, struct timespec *) =
	        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	const char *shift = getenv("CLOCK_SHIFT");
	int rc = real(id, out);

	if (rc == 0 && id == CLOCK_REALTIME && shift)
		out->tv_sec += atol(shift);
	return rc;
}

int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) =
	        (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	const char *boot = getenv("CLOCK_BOOT");
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	if (boot && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
		path = boot;
	return real(path, flags, mode);
}
