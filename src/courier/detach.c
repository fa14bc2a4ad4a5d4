/* exit: detach. The process ends at once; a child goes on with what it has sent.
 *
 * The child is forked in exit's handler, while nobody is inside libcurl (the fork handlers of
 * life.c see to that), and it is given the couriers that have such attempts whole: memory, CURLM
 * and connections are as they were, and the parent never touches them again. It has a session of
 * its own, no descriptor of the program's, no handler of its signals, and stdin, stdout and stderr
 * on /dev/null, so that whoever waits for the end of a pipe is not kept waiting. It first makes the
 * records its own (`adopt`) and says so through a pipe: only then may the parent die, or the writes
 * would look abandoned meanwhile. Then it drives until every answer is in the ledger, each for its
 * linger at most, and ends by _exit: no handler, no destructor and no buffer of the program's is
 * run or written there.
 *
 * Not promised: where the fork fails, or a lock of the TLS library was held by another thread at
 * that moment (an alarm ends such a child), the write is in doubt, as after _exit. */
#include "courier/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOLD_PATIENCE_MS = 2000, ALARM_SLACK_S = 30 };

/* Read by the fork handlers, which this thread runs itself. */
static bool detaching;

static bool is_gated(const struct attempt *a)
{
	return atomic_load_explicit(&a->phase, memory_order_relaxed) & GATED;
}

static bool has_any(const struct courier *c)
{
	for (const struct attempt *a = c->all; a; a = a->next)
		if (a->detaches && is_gated(a) && !a->abandoned && a->state != ATTEMPT_ENDED)
			return true;
	return false;
}

bool detach_takes(const struct courier *c)
{
	return detaching && !c->closed && has_any(c);
}

/* --- both sides of the fork, with the locks held --- */

void detach_leave(struct courier *c)
{
	c->driven = c->closed = true;
	for (struct attempt *a = c->all; a; a = a->next)
		a->abandoned = true; /* not ours to mark */
}

void detach_keep(struct courier *c)
{
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->driven = c->polling = c->background = false;
	c->sleeping = 0;
	c->epoch++;
	c->exit_us = 0;
	for (struct attempt *a = c->all; a; a = a->next) {
		tape_forked(a->tape);
		a->orphan = true;
		a->waiting = 0;
		a->listeners = NULL;
		a->idle_us = courier_now();
		if (!is_gated(a)) {
			a->cancel = true;
			a->cancel_code = CURLE_ABORTED_BY_CALLBACK;
		}
	}
	ready_close(&c->ready); /* the old ones are shared with the parent */
	held_pair(c->wake);
}

/* --- the child --- */

static void forget_signals(void)
{
	struct sigaction plain = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		if (i != SIGKILL && i != SIGSTOP)
			sigaction(i, &plain, NULL);
	sigaction(SIGPIPE, &ignored, NULL);
	sigaction(SIGHUP, &ignored, NULL);
	sigaction(SIGINT, &ignored, NULL);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static bool is_kept(int fd, int told)
{
	if (fd == told)
		return true;
	for (const struct courier *c = courier_table; c; c = c->next) {
		if (fd == c->wake[0].fd || fd == c->wake[1].fd)
			return true;
		for (size_t i = 0; i < c->socket_count; i++)
			if (c->sockets[i].fd == fd && held_still(&c->sockets[i]))
				return true;
	}
	return false;
}

static int highest_kept(int told)
{
	int high = told > STDERR_FILENO ? told : STDERR_FILENO;

	for (const struct courier *c = courier_table; c; c = c->next) {
		for (size_t i = 0; i < c->socket_count; i++)
			high = c->sockets[i].fd > high ? c->sockets[i].fd : high;
		for (int i = 0; i < 2; i++)
			high = c->wake[i].fd > high ? c->wake[i].fd : high;
	}
	return high;
}

/* Up to the highest of ours one by one, what lies above in one call: limits may be a billion. */
static void close_others(int told)
{
	int high = highest_kept(told);

	for (int fd = STDERR_FILENO + 1; fd <= high; fd++)
		if (!is_kept(fd, told))
			close(fd);
#ifdef SYS_close_range
	syscall(SYS_close_range, (unsigned)high + 1, ~0U, 0);
#endif
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (null >= 0)
			dup2(null, fd);
		else
			close(fd);
	}
	if (null > STDERR_FILENO)
		close(null);
}

static int64_t longest_linger(void)
{
	int64_t most = 0;

	for (const struct courier *c = courier_table; c; c = c->next)
		for (const struct attempt *a = c->all; a; a = a->next)
			most = a->linger_us > most ? a->linger_us : most;
	return most;
}

static void adopt_all(void)
{
	for (const struct courier *c = courier_table; c; c = c->next)
		for (const struct attempt *a = c->all; a; a = a->next)
			if (a->calls.adopt)
				a->calls.adopt(a->ctx);
}

static bool is_through(struct courier *c, void *arg)
{
	(void)arg;
	return !c->all;
}

static _Noreturn void child_main(int told)
{
	int64_t linger = longest_linger();

	alarm((unsigned)(linger / 1000000) + ALARM_SLACK_S);
	leave_terminal();
	close_others(told);
	forget_signals();
	adopt_all();
	if (write(told, "", 1) != 1)
		_exit(1); /* the parent is gone: somebody may have the records by now */
	close(told);
	for (struct courier *c = courier_table; c; c = c->next) {
		pthread_mutex_lock(&c->lock);
		courier_drive(c, is_through, NULL, courier_now() + linger + 1000000);
		for (struct attempt *a = c->all; a; a = a->next)
			a->calls.abandon(a->ctx);
		pthread_mutex_unlock(&c->lock);
	}
	_exit(0);
}

/* --- the parent --- */

static bool wanted(void)
{
	bool any = false;

	pthread_mutex_lock(&courier_table_lock);
	for (struct courier *c = courier_table; c && !any; c = c->next) {
		pthread_mutex_lock(&c->lock);
		any = !c->closed && has_any(c);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&courier_table_lock);
	return any;
}

static void wait_told(int told)
{
	struct pollfd p = {.fd = told, .events = POLLIN};

	while (poll(&p, 1, TOLD_PATIENCE_MS) < 0 && errno == EINTR)
		;
}

void courier_detach(void)
{
	int told[2], keep = errno;
	pid_t pid;

	if (!wanted() || pipe2(told, O_CLOEXEC) != 0)
		return;
	told[1] = fd_above_stdio(told[1]);
	detaching = true;
	pid = fork();
	detaching = false;
	if (pid == 0)
		child_main(told[1]);
	close(told[1]);
	if (pid > 0)
		wait_told(told[0]);
	close(told[0]);
	errno = keep;
}
