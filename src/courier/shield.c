/* SIGPIPE is blocked while libcurl works for us, and one that arose meanwhile is consumed: with
 * NOSIGNAL it does not ignore the signal, and a TLS connection that the other side has closed
 * raises it. One that was pending before stays pending, and the program's mask is what it was. */
#include "courier/inside.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

void shield_up(struct shield *p)
{
	sigset_t set;

	sigemptyset(&set);
	p->pending = !sigpending(&set) && sigismember(&set, SIGPIPE) == 1;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	p->blocked = pthread_sigmask(SIG_BLOCK, &set, &p->old) == 0;
}

void shield_down(struct shield *p)
{
	static const struct timespec now;
	sigset_t set;

	if (!p->blocked)
		return;
	sigemptyset(&set);
	if (!p->pending && !sigpending(&set) && sigismember(&set, SIGPIPE) == 1) {
		sigemptyset(&set);
		sigaddset(&set, SIGPIPE);
		while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
			;
	}
	pthread_sigmask(SIG_SETMASK, &p->old, NULL);
}
