/* A clock that stands MOVED_SECONDS ahead, for programs that are to believe that time has passed:
 * preloaded behind libsendonce.so. Both clocks that sendonce looks at move. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *out)
{
	const char *ahead = getenv("MOVED_SECONDS");
	int rc = (int)syscall(SYS_clock_gettime, id, out);

	if (rc == 0 && ahead && (id == CLOCK_REALTIME || id == CLOCK_BOOTTIME))
		out->tv_sec += strtol(ahead, NULL, 10);
	return rc;
}
