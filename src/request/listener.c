/* See listener.h. An abstract unix socket that the kernel names, so that nothing lies in any file
 * system; who connects to it is checked to be this process. Its descriptors are above those of the
 * standard streams, which a program may have closed, and programs run by this one inherit none. */
#include "request/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

static int open_socket(void)
{
	return fd_above_stdio(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* libcurl would make one that programs run by this one inherit. */
curl_socket_t listener_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)ctx, (void)purpose, (void)address;
	return open_socket();
}

bool listener_open(struct listener *l)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX}, address = {0};
	socklen_t size = sizeof(address), head = offsetof(struct sockaddr_un, sun_path) + 1;

	l->fd = open_socket();
	if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&any, sizeof(any.sun_family)) != 0 ||
	    listen(l->fd, 8) != 0 || getsockname(l->fd, (struct sockaddr *)&address, &size) != 0 ||
	    size <= head)
		return false;
	memcpy(l->name, address.sun_path + 1, size - head);
	return true;
}

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.pid == getpid();
}

bool listener_accept(struct listener *l)
{
	int fd;

	if (l->peer >= 0)
		return true;
	fd = fd_above_stdio(accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (fd >= 0 && is_ours(fd))
		l->peer = fd;
	else if (fd >= 0)
		close(fd);
	return l->peer >= 0;
}

void listener_close(struct listener *l)
{
	if (l->peer >= 0)
		close(l->peer);
	if (l->fd >= 0)
		close(l->fd);
	*l = LISTENER_NONE;
}
