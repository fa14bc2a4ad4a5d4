/* See pid.h. The page that remembers the number is emptied in a forked child by the kernel, also
 * when libc knew nothing of the fork; where the kernel does not promise that, nothing is
 * remembered. Some emulations of the kernel agree to every advice and follow none: those are told
 * by one that does not exist. */
#include "base/pid.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
enum { WIPED_PAGE = 4096, NO_ADVICE = -1 };

static bool wipe_on_fork(void *page)
{
	return sysconf(_SC_PAGESIZE) == WIPED_PAGE && madvise(page, WIPED_PAGE, NO_ADVICE) != 0 &&
	       madvise(page, WIPED_PAGE, MADV_WIPEONFORK) == 0;
}

unsigned pid_own(void)
{
	static _Alignas(WIPED_PAGE) union {
		_Atomic unsigned pid;
		char page[WIPED_PAGE];
	} known;
	unsigned pid = atomic_load_explicit(&known.pid, memory_order_relaxed);
	int saved = errno;

	if (pid)
		return pid;
	pid = (unsigned)getpid();
	if (wipe_on_fork(&known))
		/* Relaxed: one self-contained word; another thread stores the same. */
		atomic_store_explicit(&known.pid, pid, memory_order_relaxed);
	errno = saved;
	return pid;
}
