/* A small server with a script of answers, and one write through the courier to it: what the tests
 * of the courier share. What arrived is kept byte for byte. */
#ifndef SENDONCE_TESTS_COURIER_SERVER_H
#define SENDONCE_TESTS_COURIER_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "courier/courier.h"
#include "player/info.h"
#include "unit/flavour_here.h"
#include "unit/threads_here.h"

/* A child of fork may start a thread: the tests of exit do. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* --- server --- */

enum { MAX_REQUESTS = 16 };

/* One step answers one request: delay, text, then maybe close. A null text closes at once. */
struct step {
	const char *text;
	int delay_ms;
	bool close;
	size_t filler; /* so many bytes more after the text */
};

struct server {
	int fd, port;
	const struct step *steps;
	size_t step_count;
	bool deaf; /* never accepts */
	pthread_t thread;
	pthread_mutex_t lock;
	struct buf got[MAX_REQUESTS];
	size_t requests, connections, open; /* open: connections now */
	atomic_bool stop;
};

static inline void sleep_ms(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static inline int64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline bool server_readable(struct server *s, int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	while (!atomic_load(&s->stop))
		if (poll(&p, 1, 20) > 0)
			return true;
	return false;
}

static inline long content_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");
	return at ? strtol(at + 17, NULL, 10) : 0;
}

/* One whole request into `b`; false when the connection ended. */
static inline bool server_request(struct server *s, int fd, struct buf *b)
{
	char chunk[65536];

	for (;;) {
		const char *end = b->n ? memmem(b->data, b->n, "\r\n\r\n", 4) : NULL;
		if (end && strcasestr(b->data, "\r\nTransfer-Encoding: chunked")) {
			if (memcmp(b->data + b->n - 5, "0\r\n\r\n", 5) == 0)
				return true;
		} else if (end &&
		           b->n >= (size_t)(end + 4 - b->data) + (size_t)content_length(b->data)) {
			return true;
		}
		if (!server_readable(s, fd))
			return false;
		ssize_t n = recv(fd, chunk, sizeof chunk, 0);
		if (n <= 0)
			return false;
		buf_add(b, chunk, (size_t)n);
	}
}

static inline bool server_send(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static inline bool server_answer(int fd, const struct step *step)
{
	static const char filler[65536];
	size_t left = step->filler;

	sleep_ms(step->delay_ms);
	if (!step->text || !server_send(fd, step->text, strlen(step->text)))
		return false;
	while (left) {
		size_t n = left < sizeof filler ? left : sizeof filler;
		if (!server_send(fd, filler, n))
			return false;
		left -= n;
	}
	return !step->close;
}

struct served {
	struct server *server;
	int fd;
};

static inline void *server_connection(void *arg)
{
	struct served served = *(struct served *)arg;
	struct server *s = served.server;

	free(arg);
	for (bool go = true; go;) {
		struct buf b = {0};

		go = server_request(s, served.fd, &b);
		pthread_mutex_lock(&s->lock);
		size_t index = s->requests;
		if (go && index < s->step_count)
			s->got[s->requests++] = b;
		else
			buf_free(&b), go = false;
		pthread_mutex_unlock(&s->lock);
		go = go && server_answer(served.fd, &s->steps[index]);
	}
	close(served.fd);
	pthread_mutex_lock(&s->lock);
	s->open--;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static inline void *server_main(void *arg)
{
	struct server *s = arg;
	pthread_t thread[MAX_REQUESTS];
	size_t n = 0;

	while (n < MAX_REQUESTS && server_readable(s, s->fd)) {
		struct served *served = malloc(sizeof *served);
		served->server = s;
		served->fd = accept(s->fd, NULL, NULL);
		pthread_mutex_lock(&s->lock);
		s->connections++;
		s->open++;
		pthread_mutex_unlock(&s->lock);
		pthread_create(&thread[n++], NULL, server_connection, served);
	}
	while (n)
		pthread_join(thread[--n], NULL);
	return NULL;
}

static inline void server_start(struct server *s, const struct step *steps, size_t count)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof in;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->steps = steps;
	s->step_count = count;
	pthread_mutex_init(&s->lock, NULL);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&in, sizeof in), 0);
	assert_int_equal(listen(s->fd, s->deaf ? 0 : 16), 0);
	getsockname(s->fd, (struct sockaddr *)&in, &size);
	s->port = ntohs(in.sin_port);
	if (!s->deaf)
		assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static inline void server_stop(struct server *s)
{
	atomic_store(&s->stop, true);
	if (!s->deaf)
		pthread_join(s->thread, NULL);
	close(s->fd);
	for (size_t i = 0; i < s->requests; i++)
		buf_free(&s->got[i]);
	pthread_mutex_destroy(&s->lock);
}

static inline size_t server_count(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	size_t n = s->requests;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Waits until it has closed every connection. False when it has not after `ms`. */
static inline bool server_is_quiet(struct server *s, int ms)
{
	for (int64_t until = now_us() + (int64_t)ms * 1000; now_us() < until; sleep_ms(1)) {
		pthread_mutex_lock(&s->lock);
		size_t open = s->open;
		pthread_mutex_unlock(&s->lock);
		if (!open)
			return true;
	}
	return false;
}

static inline bool server_got(struct server *s, size_t index, const char *text)
{
	pthread_mutex_lock(&s->lock);
	bool has = index < s->requests &&
	           memmem(s->got[index].data, s->got[index].n, text, strlen(text));
	pthread_mutex_unlock(&s->lock);
	return has;
}

/* --- the plan's calls, recorded --- */

struct record {
	atomic_int gates, renews, ended, abandoned, released;
	unsigned refuse_from; /* passes from this number on are refused; 0: none */
	bool answers_only;    /* a later pass needs an answer before it */
	struct gate_pass pass[8];
	struct tape_end end;
	char url[8][128];
};

static inline int record_gate(void *ctx, const struct gate_pass *pass)
{
	struct record *r = ctx;
	int n = atomic_fetch_add(&r->gates, 1);

	r->pass[n] = *pass;
	snprintf(r->url[n], sizeof r->url[n], "%s", pass->effective_url ? pass->effective_url : "");
	if (r->refuse_from && pass->number >= r->refuse_from)
		return -1;
	return r->answers_only && pass->number > 1 && !pass->after_answer ? -1 : 0;
}

static inline void record_renew(void *ctx)
{
	atomic_fetch_add(&((struct record *)ctx)->renews, 1);
}

static inline void record_ended(void *ctx, struct tape *tape, struct tape_end *end)
{
	struct record *r = ctx;
	struct tape_end seen;

	tape_ended(tape, &seen);
	assert_false(seen.ended); /* before any reader can know */
	r->end = *end;
	atomic_fetch_add(&r->ended, 1);
}

static inline void record_abandon(void *ctx)
{
	atomic_fetch_add(&((struct record *)ctx)->abandoned, 1);
}

static inline void record_release(void *ctx)
{
	atomic_fetch_add(&((struct record *)ctx)->released, 1);
}

/* --- one write --- */

struct write {
	struct server server;
	struct record record;
	struct options options;
	struct courier_plan plan;
	struct attempt *attempt;
	struct buf head, body;
	char url[128];
};

static inline void set_word(struct write *w, CURLoption id, uintptr_t word)
{
	assert_int_equal(options_set(&w->options, id, word), 0);
}

static inline void write_plan(struct write *w, const char *body, size_t n)
{
	snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/v1/orders", w->server.port);
	set_word(w, CURLOPT_URL, (uintptr_t)w->url);
	set_word(w, CURLOPT_POST, 1);
	w->plan = (struct courier_plan){.flavour = flavour_here(),
	                                .options = &w->options,
	                                .body = {body, n},
	                                .body_kind = BODY_BYTES,
	                                .edit.add = {"Idempotency-Key: k-1"},
	                                .edit.key_name = "Idempotency-Key",
	                                .keep = 1 << 20,
	                                .linger_us = 5000000,
	                                .exit_wait_us = 1000000,
	                                .ctx = &w->record};
	w->plan.calls = (struct attempt_calls){.gate = record_gate,
	                                       .renew = record_renew,
	                                       .ended = record_ended,
	                                       .abandon = record_abandon,
	                                       .release = record_release};
}

static inline void write_start(struct write *w, const struct step *steps, size_t count)
{
	options_init(&w->options);
	server_start(&w->server, steps, count);
	write_plan(w, "hello", 5);
}

static inline void write_send(struct write *w)
{
	assert_int_equal(attempt_start(&w->plan, &w->attempt), COURIER_OK);
}

/* Reads to the end, at most `ms`. False when it has not ended by then. */
static inline bool write_play(struct attempt *a, struct buf *head, struct buf *body, int ms)
{
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	struct tape_end end = {0};
	int64_t until = now_us() + (int64_t)ms * 1000;

	if (!tape_attach(attempt_tape(a)))
		return false;
	while (!end.ended && now_us() < until) {
		tape_ended(attempt_tape(a), &end);
		while (tape_read(attempt_tape(a), &cursor, &p))
			buf_add(p.kind == TAPE_HEADER ? head : body, p.data, p.n);
		if (!end.ended)
			attempt_wait(a, until);
	}
	tape_detach(attempt_tape(a));
	return end.ended;
}

static inline void write_finish(struct write *w)
{
	attempt_unref(w->attempt);
	options_free(&w->options);
	buf_free(&w->head);
	buf_free(&w->body);
	server_stop(&w->server);
}

#define OK "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok"

#endif
