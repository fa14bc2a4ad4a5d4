/* Which connections of a crowd are ready.
 *
 * curl_multi_perform and curl_multi_wait look at every transfer each time, at a system call or two
 * a transfer. From a certain number on libcurl is therefore called for those whose sockets are
 * ready and for those whose time has come only (curl_multi_socket_action). What it wants to know of
 * its sockets stands in one array, and in the kernel (ready_watch.c); where that is not to be had,
 * poll(2) looks through the array.
 *
 * The array is the driver's, who sleeps on a copy: asleep he may lose his leadership, and the array
 * is another's then. It is kept from the CURLM's first day on, since libcurl says nothing twice.
 *
 * Where there is no memory for it the CURLM is driven the other way. */
#include "courier/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READY_FIRST_ROOM = 64 };

/* --- the array: [0] is what wakes the driver --- */

static bool ready_room(struct ready *r, size_t wanted)
{
	size_t room = r->room ? r->room : READY_FIRST_ROOM;
	struct pollfd *more;

	while (room < wanted)
		room *= 2;
	if (room == r->room)
		return true;
	more = realloc(r->fds, room * sizeof *more);
	if (!more)
		return false;
	r->fds = more;
	r->room = room;
	return true;
}

static bool ready_place_for(struct ready *r, int fd)
{
	size_t wanted = (size_t)fd + 1, room = r->places_room ? r->places_room : READY_FIRST_ROOM;
	unsigned *more;

	while (room < wanted)
		room *= 2;
	if (room == r->places_room)
		return true;
	more = realloc(r->places, room * sizeof *more);
	if (!more)
		return false;
	memset(more + r->places_room, 0, (room - r->places_room) * sizeof *more);
	r->places = more;
	r->places_room = room;
	return true;
}

static bool ready_put(struct ready *r, int fd, short events)
{
	if (fd < 0 || !ready_place_for(r, fd) || !ready_room(r, r->count + 1))
		return false;
	if (!r->places[fd]) {
		r->places[fd] = (unsigned)r->count;
		r->fds[r->count++] = (struct pollfd){.fd = fd};
	}
	r->fds[r->places[fd]].events = events;
	ready_watch(r, &r->fds[r->places[fd]]);
	return true;
}

void ready_drop(struct courier *c, int fd)
{
	struct ready *r = &c->ready;
	unsigned place = fd >= 0 && (size_t)fd < r->places_room ? r->places[fd] : 0;

	if (!place)
		return;
	ready_unwatch(r, fd);
	r->places[fd] = 0;
	r->fds[place] = r->fds[--r->count];
	if (place < r->count)
		r->places[r->fds[place].fd] = place;
}

static int ready_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *assigned)
{
	struct courier *c = data;
	short events =
	        (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));

	(void)easy, (void)assigned;
	if (what == CURL_POLL_REMOVE)
		ready_drop(c, fd);
	else if (!ready_put(&c->ready, fd, events))
		c->ready.failed = true;
	return 0;
}

/* --- beginning and end --- */

void ready_prepare(struct courier *c)
{
	__typeof__(&curl_multi_setopt) set = CURL_FN(c->fl, multi_setopt);
	struct ready *r = &c->ready;

	r->epoll = -1;
	r->failed = !CURL_HAS(c->fl, multi_socket_action) || !CURL_HAS(c->fl, multi_socket_all) ||
	            !CURL_HAS(c->fl, multi_timeout) || !ready_room(r, 1);
	if (r->failed)
		return;
	r->fds[0] = (struct pollfd){.fd = -1, .events = POLLIN};
	r->count = 1;
	set(c->multi, CURLMOPT_SOCKETDATA, c);
	set(c->multi, CURLMOPT_SOCKETFUNCTION, ready_socket);
}

/* What is in flight already is asked for its sockets. */
void ready_choose(struct courier *c)
{
	struct ready *r = &c->ready;
	bool wanted = !r->failed && (c->crowd >= CROWD || (r->on && c->crowd));
	int running;

	if (r->epoll >= 0)
		ready_check(r);
	if (wanted && !r->on)
		CURL_FN(c->fl, multi_socket_all)(c->multi, &running);
	r->on = wanted && !r->failed;
	if (!r->on)
		ready_close(r);
}

void ready_end(struct courier *c)
{
	if (!c->ready.on || c->count)
		return;
	c->ready.on = false;
	ready_close(&c->ready);
}

void ready_forget(struct courier *c)
{
	ready_close(&c->ready);
	free(c->ready.fds);
	free(c->ready.places);
	c->ready = (struct ready){.epoll = -1};
}

/* --- at work --- */

/* What is said of a socket in trouble is libcurl's to find out: 0 has it look. */
static int ready_bits(unsigned events)
{
	if (events & ~(unsigned)(POLLIN | POLLOUT))
		return 0;
	return (events & POLLIN ? CURL_CSELECT_IN : 0) | (events & POLLOUT ? CURL_CSELECT_OUT : 0);
}

/* One socket was ready: `events` of poll or epoll, which are the same numbers. */
void ready_tell(struct courier *c, int fd, unsigned events)
{
	struct ready *r = &c->ready;
	int running;

	c->pace.fresh++;
	if (fd >= 0 && (size_t)fd < r->places_room && r->places[fd])
		CURL_FN(c->fl, multi_socket_action)(c->multi, fd, ready_bits(events), &running);
}

/* From the last to the first: one that is taken out meanwhile is replaced by the last, and that has
 * had its turn. */
static void ready_act(struct courier *c)
{
	struct ready *r = &c->ready;

	for (size_t i = r->count; i-- > 1;) {
		if (i >= r->count || !r->fds[i].revents)
			continue;
		unsigned events = (unsigned short)r->fds[i].revents;
		r->fds[i].revents = 0;
		ready_tell(c, r->fds[i].fd, events);
	}
}

static void ready_poll(struct courier *c)
{
	struct ready *r = &c->ready;
	int found = r->count > 1 ? poll(r->fds + 1, r->count - 1, 0) : 0;

	if (found > 0)
		ready_act(c);
	else if (found < 0 && errno != EINTR)
		r->failed = true;
}

void ready_perform(struct courier *c)
{
	struct ready *r = &c->ready;
	int running;
	long ms = -1;

	if (r->epoll >= 0)
		ready_ask(c);
	else
		ready_poll(c);
	if (CURL_FN(c->fl, multi_timeout)(c->multi, &ms) == CURLM_OK && ms == 0)
		CURL_FN(c->fl, multi_socket_action)(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

static struct pollfd *ready_copy(const struct ready *r)
{
	struct pollfd *copy = malloc(r->count * sizeof *copy);

	if (copy)
		memcpy(copy, r->fds, r->count * sizeof *copy);
	return copy;
}

int ready_sleep(const struct courier *c, int wake, int ms, bool *woken)
{
	const struct ready *r = &c->ready;
	struct pollfd two[2] = {{.fd = wake, .events = POLLIN}, {.fd = r->epoll, .events = POLLIN}};
	struct pollfd *fds = r->epoll >= 0 ? two : ready_copy(r);
	nfds_t count = r->epoll >= 0 ? 2 : r->count;
	long own = -1;
	int found;

	if (!fds)
		return -1;
	fds[0].fd = wake;
	if (CURL_FN(c->fl, multi_timeout)(c->multi, &own) == CURLM_OK && own >= 0 && own < ms)
		ms = (int)own;
	found = poll(fds, count, ms);
	*woken = found > 0 && fds[0].revents;
	if (fds != two)
		free(fds);
	return found;
}
