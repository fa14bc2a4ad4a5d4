/* One request of the real libcurl, as a listener on loopback saw it, beside the options that were
 * recorded for it. Include cmocka first. */
#ifndef SENDONCE_TESTS_WIRE_HERE_H
#define SENDONCE_TESTS_WIRE_HERE_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/options.h"
#include "flavour_here.h"
#include "unit/threads_here.h"

enum { SETS_MAX = 9, WIRE_ROOM = 16384, WIRE_QUIET_MS = 60 };

struct set {
	CURLoption id;
	uintptr_t word;
};
#define SET(option, value)                                                                         \
	{                                                                                          \
		CURLOPT_##option, (uintptr_t)(value)                                               \
	}

struct wire {
	int listener;
	unsigned port;
	char text[WIRE_ROOM]; /* all that came, NUL-terminated */
	size_t n;
};

static inline void wire_open(struct wire *w)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;

	w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(w->listener >= 0);
	assert_int_equal(bind(w->listener, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(w->listener, 8), 0);
	assert_int_equal(getsockname(w->listener, (struct sockaddr *)&a, &n), 0);
	w->port = ntohs(a.sin_port);
}

/* Reads until nothing more comes, then answers and closes. */
static inline void *wire_serve(void *arg)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
	                             "Connection: close\r\n\r\n";
	struct wire *w = arg;
	int fd = accept(w->listener, NULL, NULL);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	w->n = 0;
	while (w->n < WIRE_ROOM - 1 && poll(&p, 1, WIRE_QUIET_MS) > 0) {
		ssize_t got = read(fd, w->text + w->n, WIRE_ROOM - 1 - w->n);

		if (got <= 0)
			break;
		w->n += (size_t)got;
	}
	w->text[w->n] = '\0';
	if (send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0)
		w->n = 0;
	close(fd);
	return NULL;
}

/* Applies the settings to both, performs, and leaves the request in `w`. */
static inline void wire_send(struct wire *w, const struct set *set, size_t n, struct options *o)
{
	const struct flavour *fl = flavour_here();
	CURL *h = CURL_FN(fl, easy_init)();
	pthread_t server;

	assert_non_null(h);
	options_init(o);
	for (size_t i = 0; i < n && set[i].id; i++) {
		assert_int_equal(CURL_FN(fl, easy_setopt)(h, set[i].id, set[i].word), CURLE_OK);
		assert_int_equal(options_set(o, set[i].id, set[i].word), 0);
	}
	CURL_FN(fl, easy_setopt)(h, CURLOPT_TIMEOUT_MS, 4000L);
	CURL_FN(fl, easy_setopt)(h, CURLOPT_PROXY, "");
	CURL_FN(fl, easy_setopt)(h, CURLOPT_NOSIGNAL, 1L);
	assert_int_equal(pthread_create(&server, NULL, wire_serve, w), 0);
	assert_int_equal(CURL_FN(fl, easy_perform)(h), CURLE_OK);
	pthread_join(server, NULL);
	CURL_FN(fl, easy_cleanup)(h);
}

/* The n-th word of the request line. */
static inline struct span wire_word(const struct wire *w, int n)
{
	const char *from = w->text;

	while (n--)
		from += strcspn(from, " \r") + 1;
	return (struct span){from, strcspn(from, " \r")};
}

static inline struct span wire_body(const struct wire *w)
{
	const char *at = strstr(w->text, "\r\n\r\n");

	assert_non_null(at);
	return (struct span){at + 4, w->n - (size_t)(at + 4 - w->text)};
}

#endif
