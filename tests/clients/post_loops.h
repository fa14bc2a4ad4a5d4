/* One transfer in a multi of its own, waited for in one of the four ways programs do it. */
#ifndef POST_LOOPS_H
#define POST_LOOPS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void loops_check(CURLMcode code, const char *what)
{
	if (code == CURLM_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, curl_multi_strerror(code));
	exit(72);
}

static void loops_poll(CURLM *multi)
{
	for (int running = 1; running;) {
		loops_check(curl_multi_perform(multi, &running), "perform");
		if (running)
			loops_check(curl_multi_poll(multi, NULL, 0, 1000, NULL), "poll");
	}
}

static void loops_wait(CURLM *multi)
{
	for (int running = 1; running;) {
		loops_check(curl_multi_perform(multi, &running), "perform");
		if (running)
			loops_check(curl_multi_wait(multi, NULL, 0, 1000, NULL), "wait");
	}
}

/* What select is to wait for comes from both functions, as the manual says; or, `timed` false, from
 * the descriptors alone, as in xmlrpc-c and pycurl's select. */
static void loops_select(CURLM *multi, bool timed)
{
	for (int running = 1; running;) {
		fd_set in, out, exc;
		struct timeval tv;
		int max = -1;
		long ms = -1;

		loops_check(curl_multi_perform(multi, &running), "perform");
		if (!running)
			break;
		FD_ZERO(&in);
		FD_ZERO(&out);
		FD_ZERO(&exc);
		if (timed)
			loops_check(curl_multi_timeout(multi, &ms), "timeout");
		loops_check(curl_multi_fdset(multi, &in, &out, &exc, &max), "fdset");
		if (ms < 0 || (timed && ms > 1000))
			ms = timed ? 1000 : 30000;
		if (max < 0 && ms > 100)
			ms = 100;
		tv = (struct timeval){ms / 1000, ms % 1000 * 1000};
		select(max + 1, &in, &out, &exc, &tv);
	}
}

/* Level-triggered. libcurl may set the timer anew for a descriptor of the same batch of events. */
struct loops_epoll {
	int epoll, timer, sockets;
};

static int loops_on_socket(CURL *curl, curl_socket_t fd, int what, void *ctx, void *assigned)
{
	struct loops_epoll *l = ctx;
	struct epoll_event e = {.data.fd = fd};

	(void)curl;
	if (what == CURL_POLL_REMOVE) {
		l->sockets--;
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		e.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		e.events |= EPOLLOUT;
	if (!assigned)
		l->sockets++;
	return epoll_ctl(l->epoll, assigned ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e);
}

static __thread CURLM *loops_multi;

static int loops_on_socket_assign(CURL *curl, curl_socket_t fd, int what, void *ctx, void *assigned)
{
	int rc = loops_on_socket(curl, fd, what, ctx, assigned);

	if (what != CURL_POLL_REMOVE)
		loops_check(curl_multi_assign(loops_multi, fd, ctx), "assign");
	return rc;
}

static int loops_on_timer(CURLM *multi, long ms, void *ctx)
{
	struct loops_epoll *l = ctx;
	struct itimerspec t = {.it_value = {ms / 1000, ms % 1000 * 1000000}};

	(void)multi;
	if (ms < 0)
		t.it_value = (struct timespec){0, 0};
	else if (ms == 0)
		t.it_value.tv_nsec = 1;
	return timerfd_settime(l->timer, 0, &t, NULL);
}

static void loops_act(CURLM *multi, struct loops_epoll *l, const struct epoll_event *e,
                      int *running)
{
	int bits = (e->events & EPOLLIN ? CURL_CSELECT_IN : 0) |
	           (e->events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
	           (e->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
	uint64_t ticks;

	if (e->data.fd != l->timer) {
		loops_check(curl_multi_socket_action(multi, e->data.fd, bits, running), "action");
		return;
	}
	if (read(l->timer, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	loops_check(curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, running), "timeout");
}

static void loops_epoll_run(CURLM *multi, struct loops_epoll *l)
{
	struct epoll_event events[8];

	for (int running = 1; running;) {
		int n = epoll_wait(l->epoll, events, 8, 60000);
		if (n <= 0) {
			fprintf(stderr, "nothing came for a minute\n");
			exit(74);
		}
		for (int i = 0; i < n; i++)
			loops_act(multi, l, &events[i], &running);
	}
}

/* Before the handle is added, as an event loop does it. */
static void loops_epoll_open(CURLM *multi, struct loops_epoll *l)
{
	struct epoll_event e = {.events = EPOLLIN};

	*l = (struct loops_epoll){epoll_create1(EPOLL_CLOEXEC),
	                          timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), 0};
	e.data.fd = l->timer;
	epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->timer, &e);
	loops_multi = multi;
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, loops_on_socket_assign);
	curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, loops_on_timer);
	curl_multi_setopt(multi, CURLMOPT_TIMERDATA, l);
}

static CURLcode loops_result(CURLM *multi)
{
	CURLcode rc = CURLE_OK;
	int left;

	for (CURLMsg *m = curl_multi_info_read(multi, &left); m;
	     m = curl_multi_info_read(multi, &left))
		rc = m->data.result;
	return rc;
}

static void loops_run(const char *kind, CURLM *multi, struct loops_epoll *l)
{
	if (strcmp(kind, "wait") == 0)
		loops_wait(multi);
	else if (strcmp(kind, "select") == 0)
		loops_select(multi, true);
	else if (strcmp(kind, "fdset") == 0)
		loops_select(multi, false);
	else if (strcmp(kind, "epoll") == 0)
		loops_epoll_run(multi, l);
	else
		loops_poll(multi);
}

/* `kind`: poll, wait, select, fdset or epoll. `keep`: the multi and its connections are there for
 * this thread's next transfer. */
static CURLcode loops_perform(const char *kind, CURL *curl, bool keep)
{
	static __thread CURLM *multi;
	static __thread struct loops_epoll l;
	CURLcode rc;

	if (!multi) {
		multi = curl_multi_init();
		l = (struct loops_epoll){-1, -1, 0};
		if (strcmp(kind, "epoll") == 0)
			loops_epoll_open(multi, &l);
	}
	loops_check(curl_multi_add_handle(multi, curl), "add");
	loops_run(kind, multi, &l);
	rc = loops_result(multi);
	loops_check(curl_multi_remove_handle(multi, curl), "remove");
	if (keep)
		return rc;
	loops_check(curl_multi_cleanup(multi), "cleanup");
	multi = NULL;
	if (l.epoll >= 0) {
		close(l.epoll);
		close(l.timer);
	}
	return rc;
}

#endif
