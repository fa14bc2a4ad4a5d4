/* A program that closes descriptors it never opened, and gets their numbers for files of its own.
 */
#include "unit/courier_server.h"

#include <fcntl.h>
#include <sys/syscall.h>

enum { FDS = 256, MINE_MAX = 32 };

/* What the program has where a descriptor of the courier was. */
struct mine {
	int fd[MINE_MAX], peer[MINE_MAX];
	size_t n;
};

static bool is_connection(int fd, int port)
{
	struct sockaddr_in to;
	socklen_t size = sizeof to;

	return getpeername(fd, (struct sockaddr *)&to, &size) == 0 && to.sin_family == AF_INET &&
	       ntohs(to.sin_port) == port;
}

static bool is_pair(int fd)
{
	struct sockaddr_storage to;
	socklen_t size = sizeof to;

	return getsockname(fd, (struct sockaddr *)&to, &size) == 0 && to.ss_family == AF_UNIX;
}

static bool is_mine(const struct mine *m, int fd)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->fd[i] == fd || m->peer[i] == fd)
			return true;
	return false;
}

/* To the first free number from `least` on. */
static int move_up(int fd, int least)
{
	int to = fcntl(fd, F_DUPFD, least);

	assert_true(to >= least);
	close(fd);
	return to;
}

/* Out of the way of all numbers that are looked at. */
static void mine_make(struct mine *m)
{
	int two[2];

	assert_true(m->n < MINE_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, two), 0);
	m->fd[m->n] = move_up(two[0], FDS);
	m->peer[m->n] = move_up(two[1], FDS);
	assert_int_equal(write(m->peer[m->n], "for me", 6), 6);
	m->n++;
}

/* By the bare system call: ThreadSanitizer would call the program's mistake a race. */
static int close_bare(int fd)
{
	return (int)syscall(SYS_close, fd);
}

/* Close what the courier and its libcurl have, and put the program's own there, as far as the
 * numbers are still free: the courier may have taken some of them anew. A number in use is never
 * taken by force, since no program could tell whose it is. Returns how many were got. */
static size_t replace(struct mine *m, int port, bool connections, bool pairs)
{
	int found[FDS];
	size_t n = 0, first = m->n, got = 0;

	for (int fd = 3; fd < FDS; fd++)
		if (!is_mine(m, fd) &&
		    ((connections && is_connection(fd, port)) || (pairs && is_pair(fd))))
			found[n++] = fd;
	for (size_t i = 0; i < n; i++)
		mine_make(m);
	for (size_t i = 0; i < n; i++)
		close_bare(found[i]);
	for (size_t i = 0; i < n; i++)
		m->fd[first + i] = move_up(m->fd[first + i], found[i]);
	for (size_t i = 0; i < n; i++)
		got += is_mine(m, found[i]);
	return got;
}

/* Nothing was read from it, written to it, or closed. */
static void mine_is_untouched(struct mine *m)
{
	char bytes[16];

	for (size_t i = 0; i < m->n; i++) {
		assert_int_equal(read(m->peer[i], bytes, sizeof bytes), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(read(m->fd[i], bytes, sizeof bytes), 6);
		assert_memory_equal(bytes, "for me", 6);
		close(m->fd[i]);
		close(m->peer[i]);
	}
	m->n = 0;
}

static void write_again(struct write *w)
{
	buf_free(&w->body);
	buf_free(&w->head);
	write_send(w);
	assert_true(write_play(w->attempt, &w->head, &w->body, 5000));
	assert_string_equal(w->body.data, "ok");
}

static void everything_is_closed_between_writes(void **state)
{
	static const struct step steps[] = {
	        {OK, 0, false, 0}, {OK, 0, false, 0}, {OK, 0, false, 0}};
	struct write w = {0};
	struct mine mine = {0};

	(void)state;
	write_start(&w, steps, 3);
	write_again(&w);
	attempt_unref(w.attempt);
	assert_true(replace(&mine, w.server.port, true, true) >= 2);
	write_again(&w);
	attempt_unref(w.attempt);
	write_again(&w); /* and over the connection of the second */
	mine_is_untouched(&mine);
	assert_int_equal(server_count(&w.server), 3);
	pthread_mutex_lock(&w.server.lock);
	assert_int_equal(w.server.connections, 2);
	pthread_mutex_unlock(&w.server.lock);
	write_finish(&w);
}

/* Programs the host starts later get none of them, libcurl's own wakeup pair included. */
static void nothing_goes_over_exec(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	bool before[FDS];
	int ours = 0;

	(void)state;
	for (int fd = 0; fd < FDS; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	write_start(&w, steps, 1);
	write_again(&w);
	for (int fd = 0; fd < FDS; fd++) {
		if (before[fd] || (!is_pair(fd) && !is_connection(fd, w.server.port)))
			continue;
		ours++;
		assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	assert_in_range(ours, 3, 5); /* a connection, libcurl's pair, and perhaps our own */
	write_finish(&w);
}

static void a_pooled_connection_is_closed(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}, {OK, 0, false, 0}};
	struct write w = {0};
	struct mine mine = {0};

	(void)state;
	write_start(&w, steps, 2);
	write_again(&w);
	attempt_unref(w.attempt);
	assert_true(replace(&mine, w.server.port, true, false) >= 1);
	write_again(&w);
	mine_is_untouched(&mine);
	assert_int_equal(server_count(&w.server), 2);
	write_finish(&w);
}

struct waiting {
	struct attempt *attempt;
	atomic_int tid;
	struct buf head, body;
	bool ended;
};

static void *waiting_main(void *arg)
{
	struct waiting *x = arg;

	atomic_store(&x->tid, gettid());
	x->ended = write_play(x->attempt, &x->head, &x->body, 5000);
	return NULL;
}

/* How often it has gone to sleep; -1: it is awake. */
static long waiting_sleeps(struct waiting *x)
{
	char path[64], line[128];
	bool asleep = false;
	long count = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", atomic_load(&x->tid));
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		asleep = asleep || strncmp(line, "State:\tS", 8) == 0;
		sscanf(line, "voluntary_ctxt_switches: %ld", &count);
	}
	if (f)
		fclose(f);
	return asleep ? count : -1;
}

/* Until the request has arrived and the thread sleeps for the answer. */
static void waiting_settle(struct waiting *x, struct server *s)
{
	long before = -1, now;

	for (int64_t until = now_us() + 5000000; now_us() < until; sleep_ms(30)) {
		now = server_count(s) ? waiting_sleeps(x) : -1;
		if (now >= 0 && now == before)
			return;
		before = now;
	}
	fail_msg("the thread does not go to sleep");
}

static void waiting_free(struct waiting *x)
{
	attempt_unref(x->attempt);
	buf_free(&x->head);
	buf_free(&x->body);
}

/* The second write has to wake the thread that sleeps for the first. */
static void the_pair_is_replaced_under_a_sleeper(void **state)
{
	static const struct step steps[] = {{OK, 1000, false, 0}, {OK, 0, false, 0}};
	struct write w = {0};
	struct record second = {0};
	struct waiting first = {0};
	struct mine mine = {0};
	pthread_t thread;

	(void)state;
	write_start(&w, steps, 2);
	write_send(&w);
	first.attempt = w.attempt;
	assert_int_equal(pthread_create(&thread, NULL, waiting_main, &first), 0);
	waiting_settle(&first, &w.server);
	assert_true(replace(&mine, w.server.port, false, true) >= 2);
	w.plan.ctx = &second;
	write_again(&w);
	pthread_join(thread, NULL);
	assert_true(first.ended);
	assert_string_equal(first.body.data, "ok");
	mine_is_untouched(&mine);
	assert_int_equal(second.ended, 1);
	assert_int_equal(w.record.ended, 1);
	waiting_free(&first);
	write_finish(&w);
}

/* Whatever it ends with, it ends, and what comes after it is not disturbed. */
static void a_connection_is_closed_in_flight(void **state)
{
	static const struct step steps[] = {{OK, 500, false, 0}, {OK, 0, false, 0}};
	struct write w = {0};
	struct waiting first = {0};
	pthread_t thread;

	(void)state;
	write_start(&w, steps, 2);
	write_send(&w);
	first.attempt = w.attempt;
	assert_int_equal(pthread_create(&thread, NULL, waiting_main, &first), 0);
	waiting_settle(&first, &w.server);
	for (int fd = 3; fd < FDS; fd++)
		if (is_connection(fd, w.server.port))
			assert_int_equal(close_bare(fd), 0);
	pthread_join(thread, NULL);
	assert_true(first.ended);
	assert_int_equal(w.record.ended, 1);
	assert_false(w.record.end.stopped);
	write_again(&w);
	assert_int_equal(server_count(&w.server), 2);
	waiting_free(&first);
	write_finish(&w);
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < FDS; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each time costs a CURLM with its descriptors, so from some time on nothing is kept open. */
static void closing_again_and_again_costs_no_more(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}, {OK, 0, false, 0}, {OK, 0, false, 0},
	                                    {OK, 0, false, 0}, {OK, 0, false, 0}, {OK, 0, false, 0},
	                                    {OK, 0, false, 0}, {OK, 0, false, 0}, {OK, 0, false, 0},
	                                    {OK, 0, false, 0}, {OK, 0, false, 0}, {OK, 0, false, 0},
	                                    {OK, 0, false, 0}, {OK, 0, false, 0}};
	struct write w = {0};
	int before = 0;

	(void)state;
	write_start(&w, steps, 14);
	for (int i = 0; i < 14; i++) {
		struct mine mine = {0};

		atomic_store(&w.record.gates, 0); /* it has room for eight */
		write_again(&w);
		replace(&mine, w.server.port, true, false);
		mine_is_untouched(&mine);
		assert_true(server_is_quiet(&w.server, 5000));
		if (i == 10)
			before = count_descriptors();
		if (i < 13)
			attempt_unref(w.attempt);
	}
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(server_count(&w.server), 14);
	write_finish(&w);
}

/* Not on the program's stdin, stdout or stderr, however many of them it has closed. */
static void nothing_is_held_where_stdio_was(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	int status = -1;
	pid_t child;

	(void)state;
	write_start(&w, steps, 1);
	child = fork();
	if (child == 0) {
		bool there = false;

		courier_fork_child();
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		if (attempt_start(&w.plan, &w.attempt) ||
		    !write_play(w.attempt, &w.head, &w.body, 5000))
			_exit(2);
		for (int fd = 0; fd < 3; fd++)
			there = there || is_connection(fd, w.server.port) || is_pair(fd);
		_exit(there);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	write_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(nothing_goes_over_exec),
	        cmocka_unit_test(everything_is_closed_between_writes),
	        cmocka_unit_test(a_pooled_connection_is_closed),
	        cmocka_unit_test(the_pair_is_replaced_under_a_sleeper),
	        cmocka_unit_test(a_connection_is_closed_in_flight),
	        cmocka_unit_test(nothing_is_held_where_stdio_was),
	        cmocka_unit_test(closing_again_and_again_costs_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
