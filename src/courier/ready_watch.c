/* The sockets of a crowd in the kernel: an epoll set, which tells of those that are ready without a
 * look at the others. There is one only while a crowd is in flight.
 *
 * Its descriptor can be closed by the program, and its number be given out again, as that of any
 * descriptor of ours (descriptors.c). Sets of epoll have no inode of their own, so that is found
 * out otherwise: the courier's waking socket, which has one, is a member of ours, and can be
 * changed, to what it is, only there. A set that is gone is made anew, one of the program's is
 * never touched; one of ours is left open where the program has closed that socket and not the set.
 *
 * A forked child closes its descriptor and leaves the set, which is the parent's, as it is. */
#include "courier/inside.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { WATCH_EVENTS = 128 };

static bool watch_put(int set, int how, int fd, unsigned events)
{
	struct epoll_event e;

	memset(&e, 0, sizeof e);
	e.events = events;
	e.data.fd = fd;
	return epoll_ctl(set, how, fd, &e) == 0;
}

static bool watch_is_ours(const struct ready *r)
{
	return r->epoll >= 0 && held_still(&r->anchor) &&
	       watch_put(r->epoll, EPOLL_CTL_MOD, r->anchor.fd, 0);
}

static bool watch_fill(const struct ready *r, int set)
{
	if (!watch_put(set, EPOLL_CTL_ADD, r->anchor.fd, 0))
		return false;
	for (size_t i = 1; i < r->count; i++)
		if (!watch_put(set, EPOLL_CTL_ADD, r->fds[i].fd, (unsigned short)r->fds[i].events))
			return false;
	return true;
}

void ready_open(struct ready *r, const struct held *anchor)
{
	int set;

	if (anchor->fd < 0 || r->epoll >= 0)
		return;
	r->anchor = *anchor;
	set = fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	if (set >= 0 && watch_fill(r, set))
		r->epoll = set;
	else if (set >= 0)
		close(set);
}

void ready_close(struct ready *r)
{
	if (watch_is_ours(r))
		close(r->epoll);
	r->epoll = -1;
}

void ready_check(struct ready *r)
{
	if (!watch_is_ours(r))
		r->epoll = -1;
}

/* A socket that the kernel will not take spoils the whole: poll looks at all of them then. */
void ready_watch(struct ready *r, const struct pollfd *fd)
{
	unsigned events = (unsigned short)fd->events;

	if (r->epoll < 0)
		return;
	if (!watch_put(r->epoll, EPOLL_CTL_MOD, fd->fd, events) &&
	    !watch_put(r->epoll, EPOLL_CTL_ADD, fd->fd, events))
		ready_close(r);
}

void ready_unwatch(const struct ready *r, int fd)
{
	if (r->epoll >= 0)
		(void)watch_put(r->epoll, EPOLL_CTL_DEL, fd, 0);
}

/* What is ready stays so until it is dealt with, so there is an end to asking. */
void ready_ask(struct courier *c)
{
	struct epoll_event events[WATCH_EVENTS];
	size_t most = c->ready.count / WATCH_EVENTS + 1;
	int found;

	do {
		found = epoll_wait(c->ready.epoll, events, WATCH_EVENTS, 0);
		for (int i = 0; i < found; i++)
			ready_tell(c, events[i].data.fd, events[i].events);
	} while (found == WATCH_EVENTS && --most > 0);
}
