/* A listener of this process for itself: what is sent to it never leaves. */
#ifndef SENDONCE_REQUEST_LISTENER_H
#define SENDONCE_REQUEST_LISTENER_H

#include <stdbool.h>
#include <sys/un.h>

#include "base/curlapi.h"

struct listener {
	int fd, peer;                                               /* -1: none */
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* for ABSTRACT_UNIX_SOCKET */
};
#define LISTENER_NONE ((struct listener){.fd = -1, .peer = -1})

/* Of a LISTENER_NONE. False: there is none; listener_close in any case. */
bool listener_open(struct listener *l);
/* Does not wait. True: `peer` is a connection from this process. */
bool listener_accept(struct listener *l);
void listener_close(struct listener *l);

/* For CURLOPT_OPENSOCKETFUNCTION of who connects to it. */
curl_socket_t listener_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address);

#endif
