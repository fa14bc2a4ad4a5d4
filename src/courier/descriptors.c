/* The descriptors a courier holds: its connections, and a pair of sockets that ends its sleep.
 *
 * A program may close descriptors it never opened (daemons close all of them) and get the same
 * numbers back for files of its own. So each of ours is remembered with device and inode, and asked
 * for them before it is read, written or closed by its number alone. The pair is made anew when it
 * is gone; libcurl's own wakeup pair is never used, since nobody could tell whether it still is
 * that pair. A connection that is gone spoils the whole CURLM: libcurl would send a request, or a
 * TLS goodbye, into whatever has the number now. Such a courier gets no new attempts (pool.c) and
 * is left alone.
 *
 * Not noticed: a descriptor that is closed while its transfer is under way. libcurl meets an error
 * then, as it would natively. Nor one whose number becomes the program's in the instant between our
 * look and the call that follows it: no system call does both, and it takes a program that closes
 * ours and opens its own in one thread just while another makes, or gives up, that descriptor. */
#include "courier/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool held_note(struct held *h, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*h = (struct held){fd, st.st_dev, st.st_ino};
	return true;
}

bool held_still(const struct held *h)
{
	struct stat st;

	return h->fd >= 0 && fstat(h->fd, &st) == 0 && st.st_dev == h->dev && st.st_ino == h->ino;
}

void held_close(struct held *h)
{
	if (held_still(h))
		close(h->fd);
	h->fd = -1;
}

/* --- libcurl's pair --- */

/* What waits to be read from `fd`, or what was sent through it and was not read yet. */
static int held_queued(int fd, unsigned long direction)
{
	struct sockaddr_storage at;
	socklen_t size = sizeof at;
	int bytes = 0;

	if (getsockname(fd, (struct sockaddr *)&at, &size) || at.ss_family != AF_UNIX)
		return -1;
	return ioctl(fd, direction, &bytes) ? -1 : bytes;
}

/* libcurl makes its wakeup pair so that every program started later inherits it, and a CURLM of
 * ours is never given back. Its numbers were free a moment ago; another thread may have been
 * faster, so a wakeup is the proof: one byte at the first that is on its way out of the second.
 * Nothing reads it, for curl_multi_wait does not look there. */
static void held_hide(const struct flavour *fl, CURLM *multi, const int fd[2])
{
	if (held_queued(fd[0], FIONREAD) != 0 || held_queued(fd[1], SIOCOUTQ) != 0)
		return;
	if (CURL_FN(fl, multi_wakeup)(multi) != CURLM_OK)
		return;
	if (held_queued(fd[0], FIONREAD) != 1 || held_queued(fd[1], SIOCOUTQ) <= 0)
		return;
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	fcntl(fd[1], F_SETFD, FD_CLOEXEC);
}

/* With stdin, stdout and stderr taken if they were free, and nothing for other programs. */
CURLM *held_multi(const struct flavour *fl)
{
	int low[3], fd[2] = {-1, -1};
	size_t taken = 0;
	CURLM *multi;

	while (taken < 3 && (low[taken] = open("/", O_PATH | O_CLOEXEC)) >= 0 && low[taken] <= 2)
		taken++;
	if (taken < 3 && low[taken] > 2)
		close(low[taken]);
	if (CURL_HAS(fl, multi_wakeup) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
		close(fd[0]);
		close(fd[1]);
	}
	multi = CURL_FN(fl, multi_init)();
	if (multi && fd[0] >= 0)
		held_hide(fl, multi, fd);
	while (taken)
		close(low[--taken]);
	return multi;
}

/* --- connections --- */

static bool held_room(struct courier *c)
{
	size_t room = c->socket_room ? c->socket_room * 2 : 16;
	struct held *more;

	if (c->socket_count < c->socket_room)
		return true;
	more = realloc(c->sockets, room * sizeof *more);
	if (!more)
		return false;
	c->sockets = more;
	c->socket_room = room;
	return true;
}

bool held_add_socket(struct courier *c, int fd)
{
	bool added;

	pthread_mutex_lock(&c->lock);
	added = held_room(c) && held_note(&c->sockets[c->socket_count], fd);
	c->socket_count += added;
	pthread_mutex_unlock(&c->lock);
	return added;
}

int held_close_socket(struct courier *c, int fd)
{
	bool ours = true;
	size_t i = 0;

	pthread_mutex_lock(&c->lock);
	while (i < c->socket_count && c->sockets[i].fd != fd)
		i++;
	if (i < c->socket_count) {
		ours = held_still(&c->sockets[i]);
		c->sockets[i] = c->sockets[--c->socket_count];
	}
	pthread_mutex_unlock(&c->lock);
	return ours ? close(fd) : 0;
}

bool held_all_there(struct courier *c)
{
	bool all = true;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->socket_count && all; i++)
		all = held_still(&c->sockets[i]);
	pthread_mutex_unlock(&c->lock);
	return all;
}

void held_close_all(struct courier *c)
{
	ready_close(&c->ready);
	for (size_t i = 0; i < c->socket_count; i++)
		held_close(&c->sockets[i]);
	c->socket_count = 0;
	held_close(&c->wake[0]);
	held_close(&c->wake[1]);
}

/* --- the pair --- */

bool held_pair(struct held *pair)
{
	int fd[2];

	held_close(&pair[0]);
	held_close(&pair[1]);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd))
		return false;
	for (int i = 0; i < 2; i++) {
		fd[i] = fd_above_stdio(fd[i]);
		if (fd[i] < 0 || !held_note(&pair[i], fd[i]))
			pair[i].fd = -1;
	}
	return pair[0].fd >= 0 && pair[1].fd >= 0;
}

int courier_wake_fd(struct courier *c)
{
	if ((held_still(&c->wake[0]) && held_still(&c->wake[1])) || held_pair(c->wake))
		return c->wake[0].fd;
	return -1;
}

void courier_wake(struct courier *c)
{
	int keep = errno, cancel;

	if (c->closed) /* nobody sleeps, and a child would make a pair for its parent's attempts */
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the lock is held */
	if (courier_wake_fd(c) >= 0)
		(void)send(c->wake[1].fd, "", 1, MSG_NOSIGNAL); /* a full one wakes as well */
	pthread_setcancelstate(cancel, &cancel);
	errno = keep;
}

void courier_awake(struct courier *c)
{
	char bytes[64];

	pthread_mutex_lock(&c->lock);
	while (held_still(&c->wake[0]) && recv(c->wake[0].fd, bytes, sizeof bytes, 0) > 0)
		;
	pthread_mutex_unlock(&c->lock);
}
