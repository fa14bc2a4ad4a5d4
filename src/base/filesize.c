/* A write beyond RLIMIT_FSIZE is answered by SIGXFSZ, which kills a program that never wrote to the
 * file in question. Here the thread blocks that signal around the write and takes back the one its
 * own write raised. Where there is no limit, which is nearly everywhere, one system call finds out
 * and nothing is touched.
 *
 * Not promised: a SIGXFSZ that somebody sends to the process by kill(2) in just that moment may be
 * taken for our own. */
#include "base/filesize.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

static void only_xfsz(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGXFSZ);
}

void filesize_enter(struct filesize_guard *g)
{
	struct rlimit limit;
	sigset_t set, waiting;
	int saved = errno;

	g->on = g->pending = false;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		only_xfsz(&set);
		g->pending = sigpending(&waiting) == 0 && sigismember(&waiting, SIGXFSZ) == 1;
		g->on = pthread_sigmask(SIG_BLOCK, &set, &g->mask) == 0;
	}
	errno = saved;
}

void filesize_leave(struct filesize_guard *g)
{
	static const struct timespec at_once = {0, 0};
	sigset_t set;
	int saved = errno;

	if (!g->on)
		return;
	only_xfsz(&set);
	while (!g->pending && sigtimedwait(&set, NULL, &at_once) == -1 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &g->mask, NULL);
	errno = saved;
}
