/* Many attempts in flight at once, which are driven by what is ready: all of them end, whatever
 * becomes of the descriptor that tells it, and nothing of the program's is touched. */
#include "unit/courier_server.h"

#include "courier/inside.h"

#include <fcntl.h>
#include <sys/epoll.h>

enum { MANY = 48, FEW = 6, FDS = 512 };

/* --- a server that answers all at once --- */

struct hall {
	int fd, port;
	pthread_t thread;
	atomic_int requests, connections;
	atomic_bool go, stop;
};

static void *hall_main(void *arg)
{
	struct hall *h = arg;
	struct pollfd p[1 + MANY + FEW] = {{.fd = h->fd, .events = POLLIN}};
	bool asked[1 + MANY + FEW] = {false};
	char request[4096];
	nfds_t n = 1;

	while (!atomic_load(&h->stop)) {
		poll(p, n, 5);
		if (n < sizeof p / sizeof *p && p[0].revents) {
			p[n++] = (struct pollfd){.fd = accept(h->fd, NULL, NULL), .events = POLLIN};
			atomic_fetch_add(&h->connections, 1);
		}
		for (nfds_t i = 1; i < n; i++) {
			if (!asked[i] && p[i].revents &&
			    recv(p[i].fd, request, sizeof request, MSG_DONTWAIT) > 0) {
				asked[i] = true;
				p[i].events = 0;
				atomic_fetch_add(&h->requests, 1);
			}
			if (asked[i] && atomic_load(&h->go)) {
				server_send(p[i].fd, OK, strlen(OK));
				asked[i] = false;
				p[i].events = POLLIN;
			}
		}
	}
	for (nfds_t i = 1; i < n; i++)
		close(p[i].fd);
	return NULL;
}

static void hall_start(struct hall *h)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof in;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(h->fd, (struct sockaddr *)&in, sizeof in), 0);
	assert_int_equal(listen(h->fd, 128), 0);
	getsockname(h->fd, (struct sockaddr *)&in, &size);
	h->port = ntohs(in.sin_port);
	assert_int_equal(pthread_create(&h->thread, NULL, hall_main, h), 0);
}

/* --- writes --- */

struct crowd {
	struct hall hall;
	struct write one[MANY + FEW];
	size_t count;
};

static void crowd_send(struct crowd *c, size_t count)
{
	for (; count; count--, c->count++) {
		struct write *w = &c->one[c->count];

		options_init(&w->options);
		w->server.port = c->hall.port;
		write_plan(w, "hello", 5);
		write_send(w);
	}
}

/* Until all requests are there: nothing is answered yet. */
static void crowd_drive_to(struct crowd *c, size_t requests)
{
	int64_t until = now_us() + 10000000;

	while ((size_t)atomic_load(&c->hall.requests) < requests && now_us() < until)
		attempt_wait(c->one[0].attempt, now_us() + 20000);
	assert_int_equal(atomic_load(&c->hall.requests), requests);
}

static void crowd_drive(struct crowd *c)
{
	if (!c->count)
		return;
	crowd_drive_to(c, c->count);
	attempt_wait(c->one[0].attempt, now_us() + 20000);
	attempt_wait(c->one[0].attempt, now_us() + 20000);
}

static struct crowd *crowd_start(size_t count)
{
	struct crowd *c = calloc(1, sizeof *c);

	hall_start(&c->hall);
	crowd_send(c, count);
	crowd_drive(c);
	return c;
}

static void crowd_answer(struct crowd *c)
{
	atomic_store(&c->hall.go, true);
	for (size_t i = 0; i < c->count; i++) {
		struct write *w = &c->one[i];

		assert_true(write_play(w->attempt, &w->head, &w->body, 10000));
		assert_string_equal(w->body.data, "ok");
		assert_int_equal(w->record.gates, 1);
		assert_int_equal(w->record.ended, 1);
		assert_int_equal(w->record.end.status, 201);
		attempt_unref(w->attempt);
		options_free(&w->options);
		buf_free(&w->head);
		buf_free(&w->body);
		*w = (struct write){0};
	}
	c->count = 0;
	atomic_store(&c->hall.go, false);
	atomic_store(&c->hall.requests, 0);
}

static void crowd_end(struct crowd *c)
{
	crowd_answer(c);
	atomic_store(&c->hall.stop, true);
	pthread_join(c->hall.thread, NULL);
	close(c->hall.fd);
	free(c);
}

/* --- sets of epoll in this process --- */

static size_t sets(int *first)
{
	char path[32], text[64];
	size_t n = 0;

	for (int fd = 3; fd < FDS; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t size = readlink(path, text, sizeof text - 1);
		if (size <= 0)
			continue;
		text[size] = '\0';
		if (strcmp(text, "anon_inode:[eventpoll]") != 0)
			continue;
		if (n++ == 0 && first)
			*first = fd;
	}
	return n;
}

static int the_set(void)
{
	int fd = -1;

	assert_int_equal(sets(&fd), 1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return fd;
}

static void there_is_a_set_meanwhile(void **state)
{
	struct crowd *c = crowd_start(MANY);

	(void)state;
	the_set();
	crowd_end(c);
	assert_int_equal(sets(NULL), 0);
}

static void few_need_none(void **state)
{
	struct crowd *c = crowd_start(FEW);

	(void)state;
	assert_int_equal(sets(NULL), 0);
	crowd_end(c);
}

/* Those that were under way before the crowd came are not forgotten. */
static void a_crowd_joins_a_few(void **state)
{
	struct crowd *c = crowd_start(FEW);

	(void)state;
	crowd_send(c, MANY);
	crowd_drive(c);
	the_set();
	crowd_end(c);
	assert_int_equal(sets(NULL), 0);
}

static void the_set_is_closed(void **state)
{
	struct crowd *c = crowd_start(MANY);

	(void)state;
	assert_int_equal(close(the_set()), 0);
	attempt_wait(c->one[0].attempt, now_us() + 20000);
	the_set(); /* another one */
	crowd_end(c);
	assert_int_equal(sets(NULL), 0);
}

/* With a set of the program's in its place, with whatever it looks at. */
static void the_set_is_replaced(void **state)
{
	struct crowd *c = crowd_start(MANY);
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 4711}, seen = {0};
	int fd = the_set(), own = epoll_create1(EPOLL_CLOEXEC), end[2];

	(void)state;
	assert_int_equal(pipe(end), 0);
	assert_int_equal(epoll_ctl(own, EPOLL_CTL_ADD, end[0], &e), 0);
	assert_int_equal(dup3(own, fd, O_CLOEXEC), fd);
	close(own);
	attempt_wait(c->one[0].attempt, now_us() + 20000);
	crowd_end(c);
	assert_int_equal(sets(&own), 1); /* not closed */
	assert_int_equal(own, fd);
	assert_int_equal(epoll_wait(fd, &seen, 1, 0), 0); /* nothing was added */
	assert_int_equal(write(end[1], "x", 1), 1);
	assert_int_equal(epoll_wait(fd, &seen, 1, 0), 1); /* or taken out */
	assert_int_equal(seen.data.u64, 4711);
	close(fd);
	close(end[0]);
	close(end[1]);
}

static size_t descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < FDS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Whatever it asks of its parent's attempts, nothing is opened for them. */
static int child_asks(const struct crowd *c)
{
	size_t before = descriptors();

	for (size_t i = 0; i < c->count; i++) {
		attempt_look(c->one[i].attempt);
		attempt_played(c->one[i].attempt);
		attempt_drop(c->one[i].attempt);
	}
	return descriptors() == before ? 0 : 2;
}

/* The child has no part in it, and what it closes is still there for its parent. */
static void a_child_is_forked(void **state)
{
	struct crowd *c = crowd_start(MANY);
	int status = -1;
	pid_t pid;

	(void)state;
	courier_fork_prepare();
	pid = fork();
	if (pid == 0) {
		courier_fork_child();
		_exit(sets(NULL) == 0 ? child_asks(c) : 1);
	}
	courier_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	the_set();
	crowd_end(c);
}

/* Taken off in flight, one after the other: the rest goes on. */
static void some_are_cancelled(void **state)
{
	struct crowd *c = crowd_start(MANY);

	(void)state;
	for (size_t i = MANY - FEW; i < MANY; i++) {
		attempt_cancel(c->one[i].attempt);
		assert_int_equal(c->one[i].record.ended, 1);
		attempt_unref(c->one[i].attempt);
		options_free(&c->one[i].options);
	}
	c->count = MANY - FEW;
	the_set();
	crowd_end(c);
	assert_int_equal(sets(NULL), 0);
}

/* A loop that does not care for phases is not woken before there is an answer. */
static void phases_are_for_those_who_ask(void **state)
{
	struct crowd *c = crowd_start(0);
	struct bell *bell[2] = {bell_new(), bell_new()};
	struct bell_note note[2] = {{0}, {0}};
	struct listener listener[2];
	int64_t until = now_us() + 10000000;
	unsigned seen;

	(void)state;
	crowd_send(c, 2);
	for (int i = 0; i < 2; i++) {
		listener[i] =
		        (struct listener){.bell = bell[i], .note = &note[i], .phases = i == 1};
		assert_true(attempt_listen(c->one[i].attempt, &listener[i]));
	}
	/* What was new before one listens one sees oneself, and is not rung for. */
	seen = attempt_news(c->one[1].attempt);
	while (atomic_load(&c->hall.requests) < 2 && now_us() < until)
		sleep_ms(1);
	sleep_ms(20);
	assert_false(bell_has_notes(bell[0]));
	assert_true(bell_has_notes(bell[1]) || attempt_news(c->one[1].attempt) == seen);
	assert_int_not_equal(attempt_news(c->one[0].attempt), 0);
	atomic_store(&c->hall.go, true);
	while (!bell_has_notes(bell[0]) && now_us() < until)
		sleep_ms(1);
	assert_true(bell_has_notes(bell[0]));
	for (int i = 0; i < 2; i++) {
		attempt_unlisten(c->one[i].attempt, &listener[i]);
		bell_unref(bell[i]);
	}
	crowd_end(c);
}

/* --- what begins together --- */

/* Nothing that earlier tests left open. */
static struct crowd *crowd_alone(void)
{
	courier_let_go(flavour_here(), 0);
	return crowd_start(0);
}

static size_t told_to_connect(const struct crowd *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += c->one[i].attempt->fresh_connect;
	return n;
}

/* Where there is no connection none is looked for. What comes later finds those of the first. */
static void the_first_connect_at_once(void **state)
{
	struct crowd *c = crowd_alone();

	(void)state;
	crowd_send(c, MANY);
	crowd_drive(c);
	assert_int_equal(told_to_connect(c), MANY);
	crowd_answer(c);
	assert_int_equal(atomic_load(&c->hall.connections), MANY);
	crowd_send(c, MANY);
	crowd_drive(c);
	assert_int_equal(told_to_connect(c), 0);
	crowd_end(c);
}

static void the_second_reuse_them(void **state)
{
	struct crowd *c = crowd_alone();

	(void)state;
	for (int i = 0; i < 3; i++) {
		crowd_send(c, MANY);
		crowd_drive(c);
		crowd_answer(c);
		assert_int_equal(atomic_load(&c->hall.connections), MANY);
	}
	crowd_end(c);
}

static void a_few_look_for_one(void **state)
{
	struct crowd *c = crowd_alone();

	(void)state;
	crowd_send(c, FEW);
	crowd_drive(c);
	assert_int_equal(told_to_connect(c), 0);
	crowd_end(c);
}

/* A program that waits for a connection, wants its own, or reads what libcurl says of it. */
static void who_has_a_say_is_left_alone(void **state)
{
	static const CURLoption says[] = {CURLOPT_PIPEWAIT, CURLOPT_FRESH_CONNECT, CURLOPT_VERBOSE};

	(void)state;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		struct crowd *c = crowd_alone();

		for (size_t j = 0; j < MANY; j++) {
			struct write *w = &c->one[c->count++];

			options_init(&w->options);
			assert_int_equal(options_set(&w->options, says[i], 1), 0);
			w->server.port = c->hall.port;
			write_plan(w, "hello", 5);
			write_send(w);
		}
		/* who waits for a connection that may be shared has one request out */
		crowd_drive_to(c, says[i] == CURLOPT_PIPEWAIT ? 1 : MANY);
		assert_int_equal(told_to_connect(c), 0);
		for (size_t j = 0; j < MANY; j++) {
			attempt_cancel(c->one[j].attempt);
			attempt_unref(c->one[j].attempt);
			options_free(&c->one[j].options);
		}
		c->count = 0;
		crowd_end(c);
	}
}

/* A driver that begins in the middle of a batch waits for its end, and not for ever. */
static void a_batch_is_taken_whole(void **state)
{
	(void)state;
	for (int jumps = 0; jumps < 2; jumps++) {
		struct crowd *c = crowd_alone();
		struct bell *bell = bell_new();
		struct bell_note note = {0};
		struct listener listener = {.bell = bell, .note = &note};
		int64_t until;

		courier_batch_begin();
		crowd_send(c, 1);
		assert_true(attempt_listen(c->one[0].attempt, &listener));
		sleep_ms(20);
		assert_int_equal(atomic_load(&c->hall.connections), 0);
		crowd_send(c, MANY - 1);
		if (!jumps)
			courier_batch_end();
		until = now_us() + 1000000;
		while (atomic_load(&c->hall.requests) < MANY && now_us() < until)
			sleep_ms(1);
		assert_int_equal(atomic_load(&c->hall.requests), MANY);
		assert_int_equal(told_to_connect(c), MANY);
		courier_batch_end();
		attempt_unlisten(c->one[0].attempt, &listener);
		bell_unref(bell);
		crowd_end(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(there_is_a_set_meanwhile),
	        cmocka_unit_test(few_need_none),
	        cmocka_unit_test(a_crowd_joins_a_few),
	        cmocka_unit_test(the_set_is_closed),
	        cmocka_unit_test(the_set_is_replaced),
	        cmocka_unit_test(a_child_is_forked),
	        cmocka_unit_test(some_are_cancelled),
	        cmocka_unit_test(phases_are_for_those_who_ask),
	        cmocka_unit_test(the_first_connect_at_once),
	        cmocka_unit_test(the_second_reuse_them),
	        cmocka_unit_test(a_few_look_for_one),
	        cmocka_unit_test(who_has_a_say_is_left_alone),
	        cmocka_unit_test(a_batch_is_taken_whole),
	        cmocka_unit_test(there_is_a_set_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
