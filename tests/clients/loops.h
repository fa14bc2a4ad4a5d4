/* A program's own loop around curl_multi, in the four ways there are, and transfers that note what
 * they see. Included by the test programs that compare such a loop with and without the preload.
 *
 *     poll    curl_multi_poll and curl_multi_perform
 *     wait    curl_multi_wait and curl_multi_perform
 *     fdset   curl_multi_fdset, curl_multi_timeout, select, curl_multi_perform
 *     epoll   SOCKETFUNCTION, TIMERFUNCTION, epoll, curl_multi_socket_action */
#ifndef SENDONCE_TESTS_LOOPS_H
#define SENDONCE_TESTS_LOOPS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { LOOP_TURNS_MAX = 100000, TRANSFER_BODY = 8192, TRANSFER_URL = 512 };

enum loop_kind { LOOP_POLL, LOOP_WAIT, LOOP_FDSET, LOOP_EPOLL };

struct loop {
	CURLM *multi;
	enum loop_kind kind;
	int running; /* as last said */
	int epoll;
	double timer; /* when libcurl wants to be called, in ms; negative: never */
	bool silent;  /* changes of `running` are not printed */
	bool unread;  /* messages are not read */
	int turns;    /* what it took, to be compared roughly */
	int timers;   /* calls of TIMERFUNCTION */
	int sockets;  /* calls of SOCKETFUNCTION */
	int lost;     /* pointers of curl_multi_assign that did not come back */
	int messages;
};

struct transfer {
	CURL *easy;
	const char *name;
	char body[TRANSFER_BODY];
	size_t bytes;
	int headers, bodies, progress, reads;
	int pauses; /* how often the write callback still says PAUSE */
	int read_pauses;
	size_t at, size; /* of what the read callback gives */
	CURLcode code;
	bool ended;
	char error[CURL_ERROR_SIZE];
	struct curl_slist *list;
	curl_mime *mime;
};

static inline double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- transfers */

static inline size_t transfer_write(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t have = strlen(t->body), room = TRANSFER_BODY - 1 - have;

	t->bodies++;
	if (t->pauses > 0) {
		t->pauses--;
		printf("%s pauses\n", t->name);
		return CURL_WRITEFUNC_PAUSE;
	}
	memcpy(t->body + have, data, size * n < room ? size * n : room);
	t->bytes += size * n;
	return size * n;
}

static inline size_t transfer_header(char *data, size_t size, size_t n, void *ctx)
{
	(void)data;
	((struct transfer *)ctx)->headers++;
	return size * n;
}

static inline int transfer_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c,
                                    curl_off_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	((struct transfer *)ctx)->progress++;
	return 0;
}

static inline size_t transfer_read(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	size_t take = t->size - t->at < size * n ? t->size - t->at : size * n;

	t->reads++;
	if (t->read_pauses > 0 && t->at >= t->size / 2) {
		t->read_pauses--;
		printf("%s read pauses\n", t->name);
		return CURL_READFUNC_PAUSE;
	}
	if (t->at < t->size / 2 && take > t->size / 2)
		take = t->size / 2; /* so that there is a half to pause at */
	for (size_t i = 0; i < take; i++, t->at++)
		data[i] = (char)('a' + t->at % 26);
	return take;
}

static inline void transfer_open(struct transfer *t, const char *name, const char *base,
                                 const char *query)
{
	char url[TRANSFER_URL];

	memset(t, 0, sizeof(*t));
	t->name = name;
	t->code = CURLE_OK;
	t->easy = curl_easy_init();
	snprintf(url, sizeof(url), "%s%s", base, query);
	curl_easy_setopt(t->easy, CURLOPT_URL, url);
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, transfer_write);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, transfer_header);
	curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION, transfer_progress);
	curl_easy_setopt(t->easy, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(t->easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
}

/* The body names the transfer, so that no two are the same write. */
static inline void transfer_post(struct transfer *t, const char *name, const char *base,
                                 const char *query)
{
	char body[64];

	transfer_open(t, name, base, query);
	snprintf(body, sizeof(body), "{\"write\":\"%s\"}", name);
	t->list = curl_slist_append(NULL, "Content-Type: application/json");
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->list);
	curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, body);
}

static inline void transfer_report(const struct transfer *t)
{
	long status = 0, redirects = -1;
	curl_off_t down = -1, up = -1;
	char *type = NULL, *method = NULL;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_COUNT, &redirects);
	curl_easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
	curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &up);
	curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
	curl_easy_getinfo(t->easy, CURLINFO_EFFECTIVE_METHOD, &method);
	printf("%s ended=%d code=%d status=%ld headers=%d bodies=%d bytes=%zu reads=%d down=%ld "
	       "up=%ld redirects=%ld type=%s "
	       "method=%s progressed=%d error=%s body=%.60s\n",
	       t->name, t->ended, (int)t->code, status, t->headers, t->bodies, t->bytes, t->reads,
	       (long)down, (long)up, redirects, type ? type : "", method ? method : "",
	       t->progress > 0, t->error, t->body);
}

static inline void transfer_close(struct transfer *t)
{
	curl_easy_cleanup(t->easy);
	curl_mime_free(t->mime);
	curl_slist_free_all(t->list);
}

/* ---- the loop */

static inline int loop_on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned)
{
	struct loop *l = ctx;
	struct epoll_event e = {.data.fd = fd};

	(void)easy;
	l->sockets++;
	if (what == CURL_POLL_REMOVE) {
		l->lost += assigned != l;
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	e.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	if (assigned) {
		l->lost += assigned != l;
		epoll_ctl(l->epoll, EPOLL_CTL_MOD, fd, &e);
		return 0;
	}
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
		printf("epoll refuses a descriptor\n");
	if (curl_multi_assign(l->multi, fd, l) != CURLM_OK)
		printf("assign refuses a descriptor\n");
	return 0;
}

static inline int loop_on_timer(CURLM *multi, long ms, void *ctx)
{
	struct loop *l = ctx;

	(void)multi;
	l->timers++;
	l->timer = ms < 0 ? -1 : now_ms() + (double)ms;
	return 0;
}

static inline void loop_open(struct loop *l, const char *kind)
{
	static const char *const names[] = {"poll", "wait", "fdset", "epoll"};
	size_t i = 0;

	memset(l, 0, sizeof(*l));
	while (i < 3 && strcmp(kind, names[i]) != 0)
		i++;
	l->kind = (enum loop_kind)i;
	l->running = -1;
	l->timer = -1;
	l->epoll = -1;
	l->multi = curl_multi_init();
	if (l->kind != LOOP_EPOLL)
		return;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, loop_on_socket);
	curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, loop_on_timer);
	curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
}

static inline void loop_close(struct loop *l)
{
	CURLMcode code = curl_multi_cleanup(l->multi);

	if (code != CURLM_OK)
		printf("cleanup: %s\n", curl_multi_strerror(code));
	if (l->epoll >= 0)
		close(l->epoll);
}

static inline void loop_ran(struct loop *l, CURLMcode code, int running)
{
	if (code != CURLM_OK)
		printf("drive: %s\n", curl_multi_strerror(code));
	if (running != l->running && !l->silent)
		printf("running %d\n", running);
	l->running = running;
}

static inline void loop_read(struct loop *l)
{
	struct transfer *t;
	CURLMsg *msg;
	int left;

	while (!l->unread && (msg = curl_multi_info_read(l->multi, &left))) {
		t = NULL;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
		l->messages++;
		if (!t || t->easy != msg->easy_handle || msg->msg != CURLMSG_DONE) {
			printf("a message of something else\n");
			continue;
		}
		t->ended = true;
		t->code = msg->data.result;
		if (!l->silent)
			printf("message %s code=%d left=%d\n", t->name, (int)t->code, left);
	}
}

static inline void loop_perform(struct loop *l)
{
	int running = -1;
	CURLMcode code = curl_multi_perform(l->multi, &running);

	loop_ran(l, code, running);
}

/* Now, whether or not there is anything to do. */
static inline void loop_drive(struct loop *l)
{
	int running = -1;
	CURLMcode code;

	if (l->kind != LOOP_EPOLL) {
		loop_perform(l);
		return;
	}
	code = curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	loop_ran(l, code, running);
}

static inline void loop_select(struct loop *l, long ms)
{
	fd_set in, out, err;
	int last = -1;
	long wanted = -1;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&err);
	curl_multi_fdset(l->multi, &in, &out, &err, &last);
	curl_multi_timeout(l->multi, &wanted);
	if (last < 0 && (wanted < 0 || wanted > 100))
		wanted = 100; /* as its documentation asks for */
	if (wanted >= 0 && wanted < ms)
		ms = wanted;
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	select(last + 1, &in, &out, &err, &tv);
}

static inline void loop_epoll_turn(struct loop *l, long ms)
{
	struct epoll_event events[64];
	double left = l->timer < 0 ? (double)ms : l->timer - now_ms();
	int running = l->running, n;
	CURLMcode code;

	ms = left < 0 ? 0 : left < (double)ms ? (long)left + 1 : ms;
	n = epoll_wait(l->epoll, events, 64, (int)ms);
	for (int i = 0; i < n; i++) {
		int what = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		           (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		           (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
		code = curl_multi_socket_action(l->multi, events[i].data.fd, what, &running);
		loop_ran(l, code, running);
	}
	if (l->timer >= 0 && now_ms() >= l->timer) {
		l->timer = -1;
		code = curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
		loop_ran(l, code, running);
	}
}

/* Waits for at most so many milliseconds, drives once, reads the messages. */
static inline void loop_turn(struct loop *l, long ms)
{
	int ready = 0;

	if (++l->turns > LOOP_TURNS_MAX) {
		printf("too many turns\n");
		exit(1);
	}
	if (l->kind == LOOP_POLL)
		curl_multi_poll(l->multi, NULL, 0, (int)ms, &ready);
	if (l->kind == LOOP_WAIT)
		curl_multi_wait(l->multi, NULL, 0, (int)ms, &ready);
	if (l->kind == LOOP_FDSET)
		loop_select(l, ms);
	if (l->kind == LOOP_EPOLL)
		loop_epoll_turn(l, ms);
	else
		loop_perform(l);
	loop_read(l);
}

static inline void loop_add(struct loop *l, struct transfer *t)
{
	CURLMcode code = curl_multi_add_handle(l->multi, t->easy);

	if (code != CURLM_OK)
		printf("add %s: %s\n", t->name, curl_multi_strerror(code));
}

static inline void loop_remove(struct loop *l, struct transfer *t)
{
	CURLMcode code = curl_multi_remove_handle(l->multi, t->easy);

	if (code != CURLM_OK)
		printf("remove %s: %s\n", t->name, curl_multi_strerror(code));
}

/* Until nothing runs. curl_multi_wait returns at once when there is nothing to wait for, so a loop
 * without a descriptor may turn often. */
static inline void loop_run(struct loop *l)
{
	if (l->kind != LOOP_EPOLL)
		loop_perform(l);
	do
		loop_turn(l, 500);
	while (l->running != 0);
}

/* ---- programs of cases: NAME KIND URL */

static const char *url;
static struct loop loop;

struct loop_case {
	const char *name;
	void (*run)(void);
};

static inline void finish(struct transfer *t)
{
	transfer_report(t);
	transfer_close(t);
}

static inline void run_alone(struct transfer *t)
{
	loop_add(&loop, t);
	loop_run(&loop);
	loop_remove(&loop, t);
}

static inline int loop_cases(const struct loop_case *cases, size_t count, int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	curl_global_init(CURL_GLOBAL_ALL);
	if (argc != 4)
		return 64;
	url = argv[3];
	loop_open(&loop, argv[2]);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		cases[i].run();
		printf("cost turns=%d timers=%d sockets=%d lost=%d\n", loop.turns, loop.timers,
		       loop.sockets, loop.lost);
		loop_close(&loop);
		return 0;
	}
	return 64;
}

#endif
