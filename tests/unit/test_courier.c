/* The courier against a small server in this process. Each test starts its own server with a script
 * of what to answer; what arrived is kept byte for byte. */
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
	size_t requests, connections;
	atomic_bool stop;
};

static void sleep_ms(int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&ts, NULL);
}

static int64_t now_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static bool server_readable(struct server *s, int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	while (!atomic_load(&s->stop))
		if (poll(&p, 1, 20) > 0)
			return true;
	return false;
}

static long content_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");
	return at ? strtol(at + 17, NULL, 10) : 0;
}

/* One whole request into `b`; false when the connection ended. */
static bool server_request(struct server *s, int fd, struct buf *b)
{
	char chunk[65536];

	for (;;) {
		const char *end = b->n ? memmem(b->data, b->n, "\r\n\r\n", 4) : NULL;
		if (end && b->n >= (size_t)(end + 4 - b->data) + (size_t)content_length(b->data))
			return true;
		if (!server_readable(s, fd))
			return false;
		ssize_t n = recv(fd, chunk, sizeof chunk, 0);
		if (n <= 0)
			return false;
		buf_add(b, chunk, (size_t)n);
	}
}

static bool server_send(int fd, const char *p, size_t n)
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

static bool server_answer(int fd, const struct step *step)
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

static void *server_connection(void *arg)
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
	return NULL;
}

static void *server_main(void *arg)
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
		pthread_mutex_unlock(&s->lock);
		pthread_create(&thread[n++], NULL, server_connection, served);
	}
	while (n)
		pthread_join(thread[--n], NULL);
	return NULL;
}

static void server_start(struct server *s, const struct step *steps, size_t count)
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

static void server_stop(struct server *s)
{
	atomic_store(&s->stop, true);
	if (!s->deaf)
		pthread_join(s->thread, NULL);
	close(s->fd);
	for (size_t i = 0; i < s->requests; i++)
		buf_free(&s->got[i]);
	pthread_mutex_destroy(&s->lock);
}

static size_t server_count(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	size_t n = s->requests;
	pthread_mutex_unlock(&s->lock);
	return n;
}

static bool server_got(struct server *s, size_t index, const char *text)
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

static int record_gate(void *ctx, const struct gate_pass *pass)
{
	struct record *r = ctx;
	int n = atomic_fetch_add(&r->gates, 1);

	r->pass[n] = *pass;
	snprintf(r->url[n], sizeof r->url[n], "%s", pass->effective_url ? pass->effective_url : "");
	if (r->refuse_from && pass->number >= r->refuse_from)
		return -1;
	return r->answers_only && pass->number > 1 && !pass->after_answer ? -1 : 0;
}

static void record_renew(void *ctx)
{
	atomic_fetch_add(&((struct record *)ctx)->renews, 1);
}

static void record_ended(void *ctx, struct tape *tape, struct tape_end *end)
{
	struct record *r = ctx;
	struct tape_end seen;

	tape_ended(tape, &seen);
	assert_false(seen.ended); /* before any reader can know */
	r->end = *end;
	atomic_fetch_add(&r->ended, 1);
}

static void record_abandon(void *ctx)
{
	atomic_fetch_add(&((struct record *)ctx)->abandoned, 1);
}

static void record_release(void *ctx)
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

static void set_word(struct write *w, CURLoption id, uintptr_t word)
{
	assert_int_equal(options_set(&w->options, id, word), 0);
}

static void write_plan(struct write *w, const char *body, size_t n)
{
	snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/v1/orders", w->server.port);
	set_word(w, CURLOPT_URL, (uintptr_t)w->url);
	set_word(w, CURLOPT_POST, 1);
	w->plan = (struct courier_plan){.flavour = flavour_here(),
	                                .options = &w->options,
	                                .body = {body, n},
	                                .body_kind = BODY_BYTES,
	                                .add_header = "Idempotency-Key: k-1",
	                                .strip_header = "Idempotency-Key",
	                                .keep = 1 << 20,
	                                .linger_us = 5000000,
	                                .exit_wait_us = 1000000,
	                                .ctx = &w->record};
	w->plan.calls = (struct attempt_calls){record_gate, record_renew, record_ended,
	                                       record_abandon, record_release};
}

static void write_start(struct write *w, const struct step *steps, size_t count)
{
	options_init(&w->options);
	server_start(&w->server, steps, count);
	write_plan(w, "hello", 5);
}

static void write_send(struct write *w)
{
	assert_int_equal(attempt_start(&w->plan, &w->attempt), COURIER_OK);
}

/* Reads to the end, at most `ms`. False when it has not ended by then. */
static bool write_play(struct attempt *a, struct buf *head, struct buf *body, int ms)
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

static void write_finish(struct write *w)
{
	attempt_unref(w->attempt);
	options_free(&w->options);
	buf_free(&w->head);
	buf_free(&w->body);
	server_stop(&w->server);
}

static const char OK[] = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok";

static void post_is_sent_and_answered(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct tape_end end;

	(void)state;
	write_start(&w, steps, 1);
	w.plan.body = (struct span){"a\0b\0c", 5};
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	tape_ended(attempt_tape(w.attempt), &end);
	assert_true(end.complete);
	assert_false(end.stopped);
	assert_int_equal(end.code, CURLE_OK);
	assert_int_equal(end.status, 201);
	assert_string_equal(w.body.data, "ok");
	assert_string_equal(w.head.data,
	                    "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\n");
	assert_true(server_got(&w.server, 0, "POST /v1/orders HTTP/1.1\r\n"));
	assert_true(server_got(&w.server, 0, "\r\nIdempotency-Key: k-1\r\n"));
	assert_memory_equal(w.server.got[0].data + w.server.got[0].n - 9, "\r\n\r\na\0b\0c", 9);
	assert_int_equal(w.record.gates, 1);
	assert_int_equal(w.record.pass[0].number, 1);
	assert_string_equal(w.record.url[0], w.url);
	assert_int_equal(w.record.ended, 1);
	assert_int_equal(w.record.released, 1);
	assert_int_equal(w.record.abandoned, 0);
	write_finish(&w);
}

static void gate_refused_sends_nothing(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	w.record.refuse_from = 1;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.stopped);
	assert_int_equal(w.record.end.code, CURLE_ABORTED_BY_CALLBACK);
	assert_int_equal(server_count(&w.server), 0);
	write_finish(&w);
}

/* The second write goes out on the kept connection, which the server closes after taking it. */
static void resend_write(struct write *w, struct record *second, bool refuse)
{
	static const struct step steps[] = {
	        {OK, 0, false, 0}, {NULL, 0, true, 0}, {OK, 0, false, 0}};
	struct attempt *first;

	write_start(w, steps, 3);
	write_send(w);
	assert_true(write_play(w->attempt, &w->head, &w->body, 5000));
	first = w->attempt;
	second->answers_only = refuse;
	w->plan.ctx = second;
	write_send(w);
	attempt_unref(first);
	assert_true(write_play(w->attempt, &w->head, &w->body, 5000));
}

static void resend_on_dead_connection_asks_again(void **state)
{
	struct write w = {0};
	struct record second = {0};

	(void)state;
	resend_write(&w, &second, true);
	assert_int_equal(second.gates, 2);
	assert_int_equal(second.pass[1].number, 2);
	assert_false(second.pass[1].after_answer);
	assert_true(second.pass[1].same_authority);
	assert_false(second.end.stopped);
	assert_false(second.end.complete);
	assert_int_equal(second.end.code, CURLE_ABORTED_BY_CALLBACK);
	assert_int_equal(server_count(&w.server), 2);
	write_finish(&w);
}

static void resend_let_through_arrives(void **state)
{
	struct write w = {0};
	struct record second = {0};

	(void)state;
	resend_write(&w, &second, false);
	assert_int_equal(second.gates, 2);
	assert_true(second.end.complete);
	assert_int_equal(server_count(&w.server), 3);
	write_finish(&w);
}

static void redirect_elsewhere_loses_the_key(void **state)
{
	char there[256];
	struct step steps[] = {{there, 0, true, 0}, {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 2);
	snprintf(there, sizeof there,
	         "HTTP/1.1 307 Go\r\nLocation: http://localhost:%d/else\r\nContent-Length: 0\r\n"
	         "Connection: close\r\n\r\n",
	         w.server.port);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	w.record.answers_only = true;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 2);
	assert_true(w.record.pass[1].after_answer);
	assert_false(w.record.pass[1].same_authority);
	assert_non_null(strstr(w.record.url[1], "http://localhost:"));
	assert_true(server_got(&w.server, 0, "Idempotency-Key:"));
	assert_true(server_got(&w.server, 1, "POST /else "));
	assert_true(server_got(&w.server, 1, "\r\n\r\nhello"));
	assert_false(server_got(&w.server, 1, "Idempotency-Key:"));
	assert_int_equal(w.record.end.status, 201);
	write_finish(&w);
}

static void redirect_at_home_keeps_the_key(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 307 Go\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", 0, false, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 2);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.pass[1].same_authority);
	assert_true(server_got(&w.server, 1, "Idempotency-Key: k-1\r\n"));
	write_finish(&w);
}

/* One answer lets one further send through, not two. */
static void answer_counts_for_one_pass(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 307 Go\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", 0, false, 0},
	        {NULL, 0, true, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 3);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	w.record.answers_only = true;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 3);
	assert_true(w.record.pass[1].after_answer);
	assert_false(w.record.pass[2].after_answer);
	assert_false(w.record.end.complete);
	assert_int_equal(server_count(&w.server), 2);
	write_finish(&w);
}

static void digest_round_follows_an_answer(void **state)
{
	static const struct step steps[] = {{"HTTP/1.1 401 No\r\nWWW-Authenticate: Digest "
	                                     "realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n"
	                                     "Content-Length: 0\r\n\r\n",
	                                     0, false, 0},
	                                    {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 2);
	set_word(&w, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
	set_word(&w, CURLOPT_USERPWD, (uintptr_t) "me:secret");
	w.record.answers_only = true;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 2);
	assert_true(w.record.pass[1].after_answer);
	assert_true(server_got(&w.server, 1, "Authorization: Digest username=\"me\""));
	assert_true(server_got(&w.server, 1, "\r\n\r\nhello"));
	write_finish(&w);
}

static void connect_blocks_are_marked_and_do_not_count(void **state)
{
	static const struct step steps[] = {{"HTTP/1.1 200 Tunnel\r\nVia: p\r\n\r\n", 0, false, 0},
	                                    {OK, 0, false, 0}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	char proxy[64];
	int connect = 0, origin = 0;

	(void)state;
	write_start(&w, steps, 2);
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
	set_word(&w, CURLOPT_PROXY, (uintptr_t)proxy);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "");
	set_word(&w, CURLOPT_HTTPPROXYTUNNEL, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	while (tape_read(attempt_tape(w.attempt), &cursor, &p))
		if (p.kind == TAPE_HEADER)
			*(p.connect ? &connect : &origin) += 1;
	assert_int_equal(connect, 3);
	assert_int_equal(origin, 4);
	assert_int_equal(w.record.gates, 1);
	assert_true(server_got(&w.server, 0, "CONNECT "));
	assert_false(server_got(&w.server, 0, "Idempotency-Key"));
	assert_int_equal(w.record.end.status, 201);
	write_finish(&w);
}

static void refused_tunnel_sent_nothing(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", 0, true, 0}};
	struct write w = {0};
	char proxy[64];

	(void)state;
	write_start(&w, steps, 1);
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
	set_word(&w, CURLOPT_PROXY, (uintptr_t)proxy);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "");
	set_word(&w, CURLOPT_HTTPPROXYTUNNEL, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.stopped);
	assert_int_equal(w.record.end.status, 0);
	assert_int_equal(w.record.gates, 0);
	write_finish(&w);
}

/* A listening socket whose queue is full drops every further SYN: the connect hangs. */
static void cancel_while_connecting_is_stopped(void **state)
{
	struct write w = {.server = {.deaf = true}};
	struct attempt_phase phase;
	struct sockaddr_in in = {.sin_family = AF_INET};
	int full[8];

	(void)state;
	write_start(&w, NULL, 0);
	in.sin_port = htons((uint16_t)w.server.port);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 8; i++) {
		full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(full[i], (struct sockaddr *)&in, sizeof in);
	}
	write_send(&w);
	assert_false(write_play(w.attempt, &w.head, &w.body, 300));
	attempt_phase(w.attempt, &phase);
	assert_true(phase.resolved);
	assert_false(phase.gated);
	attempt_cancel(w.attempt);
	attempt_phase(w.attempt, &phase);
	assert_true(phase.ended);
	assert_true(w.record.end.stopped);
	assert_int_equal(w.record.gates, 0);
	assert_int_equal(w.record.ended, 1);
	assert_int_equal(w.record.released, 1);
	for (int i = 0; i < 8; i++)
		close(full[i]);
	write_finish(&w);
}

static void cancel_before_anybody_drove(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	attempt_cancel(w.attempt);
	assert_true(w.record.end.stopped);
	assert_int_equal(w.record.released, 1);
	assert_int_equal(server_count(&w.server), 0);
	write_finish(&w);
}

static bool wait_for(atomic_int *what, int ms)
{
	for (int i = 0; i < ms / 5 && !atomic_load(what); i++)
		sleep_ms(5);
	return atomic_load(what);
}

static void orphan_is_finished_in_the_background(void **state)
{
	static const struct step steps[] = {{OK, 400, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	assert_false(write_play(w.attempt, &w.head, &w.body, 100));
	attempt_orphan(w.attempt);
	assert_true(wait_for(&w.record.released, 5000));
	assert_true(w.record.end.complete);
	assert_int_equal(w.record.ended, 1);
	/* a retry plays the same tape from its beginning */
	assert_true(write_play(w.attempt, &w.head, &w.body, 100));
	assert_string_equal(w.body.data, "ok");
	write_finish(&w);
}

static void orphan_ends_with_its_linger(void **state)
{
	static const struct step steps[] = {{OK, 1500, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	w.plan.linger_us = 200000;
	write_send(&w);
	assert_false(write_play(w.attempt, &w.head, &w.body, 100));
	attempt_orphan(w.attempt);
	assert_true(wait_for(&w.record.released, 1200));
	assert_false(w.record.end.complete);
	assert_false(w.record.end.stopped);
	assert_int_equal(w.record.ended, 1);
	write_finish(&w);
}

struct joiner {
	struct attempt *attempt;
	struct buf head, body;
	bool ended;
};

static void *joiner_main(void *arg)
{
	struct joiner *j = arg;

	j->ended = write_play(j->attempt, &j->head, &j->body, 5000);
	return NULL;
}

static void threads_share_one_tape(void **state)
{
	static const struct step steps[] = {{OK, 150, false, 0}};
	struct write w = {0};
	struct joiner j[3] = {{0}};
	pthread_t thread[3];

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	for (int i = 0; i < 3; i++) {
		j[i].attempt = attempt_ref(w.attempt);
		assert_int_equal(pthread_create(&thread[i], NULL, joiner_main, &j[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		assert_true(j[i].ended);
		assert_string_equal(j[i].body.data, "ok");
		attempt_unref(j[i].attempt);
		buf_free(&j[i].head);
		buf_free(&j[i].body);
	}
	assert_int_equal(server_count(&w.server), 1);
	assert_int_equal(w.record.ended, 1);
	write_finish(&w);
}

/* The leader's own write ends first: one of the others has to take over. */
static void leadership_is_passed_on(void **state)
{
	static const struct step steps[] = {{OK, 100, false, 0}, {OK, 500, false, 0}};
	struct write w = {0};
	struct record second = {0};
	struct joiner j = {0};
	pthread_t thread;
	struct attempt *first;

	(void)state;
	write_start(&w, steps, 2);
	write_send(&w);
	first = w.attempt;
	j.attempt = first;
	assert_int_equal(pthread_create(&thread, NULL, joiner_main, &j), 0);
	sleep_ms(30);
	w.plan.ctx = &second;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	pthread_join(thread, NULL);
	assert_true(j.ended);
	assert_int_equal(second.ended, 1);
	attempt_unref(first);
	buf_free(&j.head);
	buf_free(&j.body);
	write_finish(&w);
}

static const char LARGE[] = "HTTP/1.1 200 OK\r\nContent-Length: 25165824\r\n\r\n";

static void sender_is_paused_above_four_megabytes(void **state)
{
	static const struct step steps[] = {{LARGE, 0, false, 24 << 20}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	struct tape *t;
	size_t held = 0, rest = 0;
	int64_t until = now_us() + 400000;
	struct attempt_phase phase = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	t = attempt_tape(w.attempt);
	assert_true(tape_attach(t));
	while (now_us() < until)
		attempt_wait(w.attempt, until);
	assert_true(tape_full(t));
	while (tape_read(t, &cursor, &p))
		held += p.kind == TAPE_BODY ? p.n : 0;
	assert_in_range(held, 4 << 20, (4 << 20) + 65536);
	until = now_us() + 10000000;
	while (!phase.ended && now_us() < until) {
		attempt_phase(w.attempt, &phase);
		while (tape_read(t, &cursor, &p))
			rest += p.kind == TAPE_BODY ? p.n : 0;
		if (!phase.ended)
			attempt_wait(w.attempt, until);
	}
	assert_int_equal(held + rest, 24 << 20);
	assert_int_equal(cursor.body_bytes, 24 << 20);
	tape_detach(t);
	assert_false(tape_attach(t)); /* more than `keep`: its beginning is gone */
	assert_int_equal(tape_body(t, SIZE_MAX, &w.body), -1);
	assert_true(w.record.end.complete);
	write_finish(&w);
}

static void child_ends_what_its_parent_has_in_flight(void **state)
{
	static const struct step steps[] = {{OK, 500, false, 0}, {OK, 0, false, 0}};
	struct write w = {0};
	int status = 0;
	pid_t child;

	(void)state;
	write_start(&w, steps, 2);
	write_send(&w);
	assert_false(write_play(w.attempt, &w.head, &w.body, 100));
	courier_fork_prepare();
	child = fork();
	if (child == 0) {
		struct tape_end end;
		struct attempt *own;
		struct record record = {0};
		struct buf head = {0}, body = {0};

		courier_fork_child();
		tape_ended(attempt_tape(w.attempt), &end);
		bool told = end.ended && !end.complete && strstr(end.text, "parent") &&
		            !w.record.ended && !w.record.abandoned && !w.record.released;
		attempt_wait(w.attempt, INT64_MAX); /* returns at once */
		attempt_cancel(w.attempt);
		w.plan.ctx = &record;
		bool sent = attempt_start(&w.plan, &own) == COURIER_OK &&
		            write_play(own, &head, &body, 5000) && record.end.complete;
		_exit(told ? sent ? 0 : 2 : 1);
	}
	courier_fork_parent();
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(w.record.end.complete);
	assert_int_equal(server_count(&w.server), 2);
	write_finish(&w);
}

/* In a child, since exit closes the courier for good. Its code is what it saw. */
static int exit_in_child(struct write *w, bool gated, bool orphan)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		struct attempt *a;
		struct buf none = {0};

		courier_fork_child();
		if (attempt_start(&w->plan, &a))
			_exit(100);
		if (gated && write_play(a, &none, &none, 100))
			_exit(101);
		if (orphan)
			attempt_orphan(a);
		int64_t from = now_us();
		courier_at_exit();
		int took = (int)((now_us() - from) / 100000);
		_exit((atomic_load(&w->record.ended) ? 64 : 0) +
		      (atomic_load(&w->record.abandoned) ? 32 : 0) + took);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void exit_waits_for_an_answer(void **state)
{
	static const struct step steps[] = {{OK, 500, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	w.plan.exit_wait_us = 3000000;
	int code = exit_in_child(&w, true, false);
	assert_in_range(code, 64 + 2, 64 + 9); /* ended, in half a second or so */
	write_finish(&w);
}

static void exit_waits_for_an_orphan(void **state)
{
	static const struct step steps[] = {{OK, 500, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	w.plan.exit_wait_us = 3000000;
	int code = exit_in_child(&w, true, true);
	assert_in_range(code, 64 + 2, 64 + 9);
	write_finish(&w);
}

static void exit_gives_up_and_says_so(void **state)
{
	static const struct step steps[] = {{OK, 3000, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	w.plan.exit_wait_us = 300000;
	int code = exit_in_child(&w, true, false);
	assert_in_range(code, 32 + 2, 32 + 9); /* abandoned, not ended */
	write_finish(&w);
}

static void exit_withdraws_what_has_not_left(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	assert_int_equal(exit_in_child(&w, false, false), 64);
	assert_int_equal(server_count(&w.server), 0);
	write_finish(&w);
}

static void cookies_go_out_and_come_back(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nSet-Cookie: b=2; Path=/\r\nContent-Length: 0\r\n\r\n", 0,
	         false, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};
	struct record second = {0};
	const struct flavour *fl = flavour_here();
	struct curl_slist *jar, *back;
	struct attempt *first;

	(void)state;
	write_start(&w, steps, 2);
	jar = CURL_FN(fl, slist_append)(NULL, "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1");
	w.plan.cookies = jar;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(server_got(&w.server, 0, "\r\nCookie: a=1\r\n"));
	back = attempt_cookies(w.attempt);
	assert_non_null(back);
	assert_non_null(back->next);
	CURL_FN(fl, slist_free_all)(back);
	CURL_FN(fl, slist_free_all)(jar);
	/* and do not stay for the next handle */
	first = w.attempt;
	w.plan.cookies = NULL;
	w.plan.ctx = &second;
	write_send(&w);
	attempt_unref(first);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_false(server_got(&w.server, 1, "Cookie:"));
	assert_null(attempt_cookies(w.attempt));
	write_finish(&w);
}

static void own_key_header_is_replaced(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	const struct flavour *fl = flavour_here();
	struct curl_slist *list = CURL_FN(fl, slist_append)(NULL, "idempotency-key: mine");

	(void)state;
	list = CURL_FN(fl, slist_append)(list, "X-Empty;");
	list = CURL_FN(fl, slist_append)(list, "Accept:");
	write_start(&w, steps, 1);
	set_word(&w, CURLOPT_HTTPHEADER, (uintptr_t)list);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_false(server_got(&w.server, 0, "mine"));
	assert_true(server_got(&w.server, 0, "\r\nX-Empty:\r\n"));
	assert_false(server_got(&w.server, 0, "\r\nAccept:"));
	CURL_FN(fl, slist_free_all)(list);
	write_finish(&w);
}

static void program_limits_do_not_reach_the_sender(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", 150, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	set_word(&w, CURLOPT_TIMEOUT_MS, 50);
	set_word(&w, CURLOPT_FAILONERROR, 1);
	set_word(&w, CURLOPT_MAXFILESIZE, 1);
	set_word(&w, CURLOPT_HEADER, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.complete);
	assert_int_equal(w.record.end.status, 500);
	assert_string_equal(w.body.data, "no");
	write_finish(&w);
}

static void dummy(void)
{
}

static void what_cannot_be_carried_is_named(void **state)
{
	static const struct {
		CURLoption id;
		uintptr_t word;
		const char *name; /* null: carried */
	} cases[] = {
	        {CURLOPT_SSL_CTX_FUNCTION, 1, "SSL_CTX_FUNCTION"},
	        {CURLOPT_SSL_CTX_FUNCTION, 0, NULL},
	        {CURLOPT_OPENSOCKETFUNCTION, 1, "OPENSOCKETFUNCTION"},
	        {CURLOPT_SOCKOPTFUNCTION, 1, "SOCKOPTFUNCTION"},
	        {CURLOPT_CLOSESOCKETFUNCTION, 1, "CLOSESOCKETFUNCTION"},
	        {CURLOPT_PREREQFUNCTION, 1, "PREREQFUNCTION"},
	        {CURLOPT_RESOLVER_START_FUNCTION, 1, "RESOLVER_START_FUNCTION"},
	        {CURLOPT_TRAILERFUNCTION, 1, "TRAILERFUNCTION"},
	        {CURLOPT_HSTSREADFUNCTION, 1, "HSTSREADFUNCTION"},
	        {CURLOPT_HSTSWRITEFUNCTION, 1, "HSTSWRITEFUNCTION"},
	        {CURLOPT_INTERLEAVEFUNCTION, 1, "INTERLEAVEFUNCTION"},
	        {CURLOPT_CHUNK_BGN_FUNCTION, 1, "CHUNK_BGN_FUNCTION"},
	        {CURLOPT_WRITEFUNCTION, 1, NULL},
	        {CURLOPT_HEADERFUNCTION, 1, NULL},
	        {CURLOPT_READFUNCTION, 1, NULL},
	        {CURLOPT_SEEKFUNCTION, 1, NULL},
	        {CURLOPT_IOCTLFUNCTION, 1, NULL},
	        {CURLOPT_XFERINFOFUNCTION, 1, NULL},
	        {CURLOPT_PROGRESSFUNCTION, 1, NULL},
	        {CURLOPT_DEBUGFUNCTION, 1, NULL},
	        {CURLOPT_SHARE, 0, NULL},
	        {CURLOPT_CONNECT_ONLY, 1, "CONNECT_ONLY"},
	        {CURLOPT_CONNECT_ONLY, 0, NULL},
	        {CURLOPT_UPLOAD, 1, "UPLOAD"},
	        {CURLOPT_HSTS, 2, "HSTS"},
	        {CURLOPT_HSTS, 0, NULL},
	        {CURLOPT_MIMEPOST, 1, "MIMEPOST"},
	        {CURLOPT_HTTPPOST, 1, "HTTPPOST"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct options o;
		const char *name;

		options_init(&o);
		uintptr_t word = cases[i].word == 2 ? (uintptr_t) "/tmp/h" : cases[i].word;
		if (cases[i].id >= CURLOPTTYPE_FUNCTIONPOINT && cases[i].id < CURLOPTTYPE_OFF_T &&
		    word)
			word = (uintptr_t)dummy;
		assert_int_equal(options_set(&o, cases[i].id, word), 0);
		name = courier_refuses(&o);
		if (cases[i].name && (!name || strcmp(name, cases[i].name)))
			fail_msg("%s: %s", cases[i].name, name ? name : "carried");
		if (!cases[i].name && name)
			fail_msg("%d is refused: %s", (int)cases[i].id, name);
		options_free(&o);
	}
}

static void method_is_built_from_its_outcome(void **state)
{
	static const struct {
		CURLoption id[3];
		uintptr_t word[3];
		const char *line;
		bool body;
	} cases[] = {
	        {{CURLOPT_POST}, {1}, "POST /v1/orders", true},
	        {{CURLOPT_POST, CURLOPT_CUSTOMREQUEST},
	         {1, (uintptr_t) "PATCH"},
	         "PATCH /v1",
	         true},
	        {{CURLOPT_POST, CURLOPT_HTTPGET}, {1, 1}, "GET /v1/orders", false},
	        {{CURLOPT_NOBODY}, {1}, "HEAD /v1/orders", false},
	        {{CURLOPT_NOBODY, CURLOPT_CUSTOMREQUEST},
	         {1, (uintptr_t) "DELETE"},
	         "DELETE /v1/orders",
	         false},
	        {{CURLOPT_HTTPGET, CURLOPT_CUSTOMREQUEST},
	         {1, (uintptr_t) "DELETE"},
	         "DELETE /v1/orders",
	         false},
	};
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct write w = {0};

		write_start(&w, steps, 1);
		for (int j = 0; j < 3 && cases[i].id[j]; j++)
			set_word(&w, cases[i].id[j], cases[i].word[j]);
		w.plan.body_kind = cases[i].body ? BODY_BYTES : BODY_NONE;
		write_send(&w);
		assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
		assert_true(server_got(&w.server, 0, cases[i].line));
		assert_int_equal(server_got(&w.server, 0, "\r\n\r\nhello"), cases[i].body);
		write_finish(&w);
	}
}

/* A libcurl as before 7.66: no gate callback, no poll. */
static CURLcode old_setopt(CURL *easy, CURLoption id, ...)
{
	va_list list;
	void *word;

	va_start(list, id);
	word = va_arg(list, void *);
	va_end(list);
	if (id == CURLOPT_PREREQFUNCTION || id == CURLOPT_PREREQDATA || id == CURLOPT_MAXAGE_CONN)
		return CURLE_UNKNOWN_OPTION;
	return CURL_FN(flavour_here(), easy_setopt)(easy, id, word);
}

static const struct flavour *flavour_old(void)
{
	static struct flavour old;

	if (!old.path) {
		old = *flavour_here();
		old.fn[FN_easy_setopt] = (void (*)(void))old_setopt;
		old.fn[FN_multi_poll] = old.fn[FN_multi_wakeup] = NULL;
	}
	return &old;
}

static void old_libcurl_gates_before_it_connects(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 Tunnel\r\nVia: p\r\n\r\n", 0, false, 0},
	        {"HTTP/1.1 307 Go\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", 50, false, 0},
	        {"HTTP/1.1 200 Tunnel\r\nVia: p\r\n\r\n", 0, false, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	char proxy[64];
	int connect = 0;
	unsigned request = 0;

	(void)state;
	write_start(&w, steps, 4);
	w.plan.flavour = flavour_old();
	w.plan.no_stale_reuse = true;
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
	set_word(&w, CURLOPT_PROXY, (uintptr_t)proxy);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "");
	set_word(&w, CURLOPT_HTTPPROXYTUNNEL, 1);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	while (tape_read(attempt_tape(w.attempt), &cursor, &p)) {
		assert_int_not_equal(p.kind, TAPE_DEBUG); /* the program did not ask for them */
		connect += p.connect;
		request = p.request;
	}
	assert_int_equal(connect, 6); /* each request on a connection of its own */
	assert_int_equal(request, 1);
	assert_int_equal(w.record.gates, 1);
	assert_string_equal(w.record.url[0], w.url);
	assert_int_equal(w.record.end.status, 201);
	assert_true(w.record.end.complete);
	write_finish(&w);
}

static void old_libcurl_proves_a_refused_connect(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct record lost = {0};
	static const struct step silent[] = {{NULL, 0, true, 0}};

	(void)state;
	w.server.deaf = true;
	write_start(&w, steps, 1);
	close(w.server.fd);
	w.plan.flavour = flavour_old();
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 1);
	assert_int_equal(w.record.end.code, CURLE_COULDNT_CONNECT);
	assert_true(w.record.end.stopped);
	attempt_unref(w.attempt);
	/* nothing else does */
	options_free(&w.options);
	memset(&w.server, 0, sizeof w.server);
	write_start(&w, silent, 1);
	w.plan.flavour = flavour_old();
	w.plan.ctx = &lost;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(lost.end.code, CURLE_GOT_NOTHING);
	assert_false(lost.end.stopped);
	assert_int_equal(server_count(&w.server), 1);
	write_finish(&w);
}

static void debug_lines_are_on_the_tape(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	bool request = false;

	(void)state;
	write_start(&w, steps, 1);
	set_word(&w, CURLOPT_VERBOSE, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	while (tape_read(attempt_tape(w.attempt), &cursor, &p))
		request |= p.kind == TAPE_DEBUG && p.debug == CURLINFO_HEADER_OUT &&
		           memmem(p.data, p.n, "POST /v1/orders", 15);
	assert_true(request);
	write_finish(&w);
}

static void lease_is_renewed_while_driven(void **state)
{
	static const struct step steps[] = {{OK, 5600, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 8000));
	assert_int_equal(w.record.renews, 1);
	write_finish(&w);
}

static void snapshot_tells_the_status(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct info *info;
	long status = 0;

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	info = tape_info_copy(attempt_tape(w.attempt));
	assert_non_null(info);
	assert_int_equal(info_get(info, CURLINFO_RESPONSE_CODE, &status), CURLE_OK);
	assert_int_equal(status, 201);
	info_free(info);
	write_finish(&w);
}

/* The headers came, the body hangs: a program that asks for the status now gets it. */
static void snapshot_after_headers_is_there_in_time(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, false, 0}};
	struct write w = {0};
	struct info *info;
	struct attempt_phase phase;
	int64_t until = now_us() + 3000000;
	struct buf head = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	while (!head.n && now_us() < until) {
		attempt_wait(w.attempt, until);
		tape_last_headers(attempt_tape(w.attempt), &head);
	}
	attempt_phase(w.attempt, &phase);
	assert_false(phase.ended);
	info = tape_info_copy(attempt_tape(w.attempt));
	assert_non_null(info);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 200);
	info_free(info);
	buf_free(&head);
	attempt_cancel(w.attempt);
	assert_false(w.record.end.stopped);
	assert_false(w.record.end.complete);
	write_finish(&w);
}

static void cut_answer_is_not_complete(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 0, true, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_false(w.record.end.complete);
	assert_int_equal(w.record.end.code, CURLE_PARTIAL_FILE);
	assert_int_equal(w.record.end.status, 200);
	assert_true(strlen(w.record.end.text) > 0);
	write_finish(&w);
}

static sigjmp_buf jump;

static void jump_out(int signal_number)
{
	(void)signal_number;
	siglongjmp(jump, 1);
}

/* Some programs time libcurl out this way. */
static void leadership_survives_a_jump_out_of_it(void **state)
{
	static const struct step steps[] = {{OK, 400, false, 0}};
	struct write w = {0};
	struct sigaction act = {.sa_handler = jump_out}, old;
	static const struct itimerval soon = {{0, 0}, {0, 100000}};
	volatile int jumps = 0;

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	sigaction(SIGALRM, &act, &old);
	if (sigsetjmp(jump, 1) == 0) {
		setitimer(ITIMER_REAL, &soon, NULL);
		while (now_us() > 0)
			attempt_wait(w.attempt, INT64_MAX);
	}
	jumps++;
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(jumps, 1);
	attempt_orphan(w.attempt);
	assert_true(wait_for(&w.record.released, 3000));
	assert_true(w.record.end.complete);
	assert_int_equal(server_count(&w.server), 1);
	write_finish(&w);
}

static void sigpipe_is_given_back_as_it_was(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	sigset_t before, after;

	(void)state;
	write_start(&w, steps, 1);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
	assert_int_equal(sigismember(&after, SIGPIPE), 0);
	write_finish(&w);
}

static void resolve_lines_stay_with_their_write(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct record second = {0};
	const struct flavour *fl = flavour_here();
	struct curl_slist *list;
	struct attempt *first;
	char line[64], url[64];

	(void)state;
	write_start(&w, steps, 1);
	snprintf(line, sizeof line, "pinned.invalid:%d:127.0.0.1", w.server.port);
	snprintf(url, sizeof url, "http://pinned.invalid:%d/", w.server.port);
	list = CURL_FN(fl, slist_append)(NULL, line);
	set_word(&w, CURLOPT_URL, (uintptr_t)url);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "*");
	set_word(&w, CURLOPT_RESOLVE, (uintptr_t)list);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.complete);
	first = w.attempt;
	set_word(&w, CURLOPT_RESOLVE, 0);
	w.plan.ctx = &second;
	write_send(&w);
	attempt_unref(first);
	assert_true(write_play(w.attempt, &w.head, &w.body, 9000));
	assert_int_equal(second.end.code, CURLE_COULDNT_RESOLVE_HOST);
	assert_true(second.end.stopped);
	CURL_FN(fl, slist_free_all)(list);
	write_finish(&w);
}

static void fork_beside_a_driver(void **state)
{
	static const struct step steps[] = {{OK, 600, false, 0}};
	struct write w = {0};
	struct joiner j = {0};
	pthread_t thread;

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	j.attempt = w.attempt;
	assert_int_equal(pthread_create(&thread, NULL, joiner_main, &j), 0);
	for (int i = 0; i < 10; i++) {
		int status = -1;
		pid_t child;

		sleep_ms(20);
		courier_fork_prepare();
		child = fork();
		if (child == 0) {
			struct tape_end end;

			courier_fork_child();
			tape_ended(attempt_tape(w.attempt), &end);
			_exit(end.ended && !end.complete ? 0 : 1);
		}
		courier_fork_parent();
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	pthread_join(thread, NULL);
	assert_true(j.ended);
	assert_true(w.record.end.complete);
	buf_free(&j.head);
	buf_free(&j.body);
	write_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(post_is_sent_and_answered),
	        cmocka_unit_test(gate_refused_sends_nothing),
	        cmocka_unit_test(resend_on_dead_connection_asks_again),
	        cmocka_unit_test(resend_let_through_arrives),
	        cmocka_unit_test(redirect_elsewhere_loses_the_key),
	        cmocka_unit_test(redirect_at_home_keeps_the_key),
	        cmocka_unit_test(answer_counts_for_one_pass),
	        cmocka_unit_test(digest_round_follows_an_answer),
	        cmocka_unit_test(connect_blocks_are_marked_and_do_not_count),
	        cmocka_unit_test(refused_tunnel_sent_nothing),
	        cmocka_unit_test(cancel_while_connecting_is_stopped),
	        cmocka_unit_test(cancel_before_anybody_drove),
	        cmocka_unit_test(orphan_is_finished_in_the_background),
	        cmocka_unit_test(orphan_ends_with_its_linger),
	        cmocka_unit_test(threads_share_one_tape),
	        cmocka_unit_test(leadership_is_passed_on),
	        cmocka_unit_test(sender_is_paused_above_four_megabytes),
	        cmocka_unit_test(child_ends_what_its_parent_has_in_flight),
	        cmocka_unit_test(exit_waits_for_an_answer),
	        cmocka_unit_test(exit_waits_for_an_orphan),
	        cmocka_unit_test(exit_gives_up_and_says_so),
	        cmocka_unit_test(exit_withdraws_what_has_not_left),
	        cmocka_unit_test(cookies_go_out_and_come_back),
	        cmocka_unit_test(own_key_header_is_replaced),
	        cmocka_unit_test(program_limits_do_not_reach_the_sender),
	        cmocka_unit_test(what_cannot_be_carried_is_named),
	        cmocka_unit_test(method_is_built_from_its_outcome),
	        cmocka_unit_test(old_libcurl_gates_before_it_connects),
	        cmocka_unit_test(old_libcurl_proves_a_refused_connect),
	        cmocka_unit_test(debug_lines_are_on_the_tape),
	        cmocka_unit_test(lease_is_renewed_while_driven),
	        cmocka_unit_test(snapshot_tells_the_status),
	        cmocka_unit_test(snapshot_after_headers_is_there_in_time),
	        cmocka_unit_test(cut_answer_is_not_complete),
	        cmocka_unit_test(leadership_survives_a_jump_out_of_it),
	        cmocka_unit_test(sigpipe_is_given_back_as_it_was),
	        cmocka_unit_test(resolve_lines_stay_with_their_write),
	        cmocka_unit_test(fork_beside_a_driver),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
