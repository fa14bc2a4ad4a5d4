/* Who drives an attempt, and what becomes of it when nobody waits, at exit and across fork. */
#include "unit/courier_server.h"

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

/* The runtimes of the sanitizers do not know the forced unwinding of a cancelled thread: one is
 * left with a poisoned stack, which its own end of a thread trips over, the other stays inside poll
 * and no longer sees this thread's locks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif

#ifndef UNDER_SANITIZER
/* A driver and a follower: neither takes a lock or the leadership with it. */
static void cancelled_threads_leave_nothing_locked(void **state)
{
	static const struct step steps[] = {{OK, 1000, false, 0}};
	struct write w = {0};
	struct joiner j[2] = {{0}};
	pthread_t thread[2];
	void *result;

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	for (int i = 0; i < 2; i++) {
		j[i].attempt = w.attempt;
		assert_int_equal(pthread_create(&thread[i], NULL, joiner_main, &j[i]), 0);
		sleep_ms(50);
	}
	for (int i = 1; i >= 0; i--) {
		assert_int_equal(pthread_cancel(thread[i]), 0);
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		buf_free(&j[i].head);
		buf_free(&j[i].body);
	}
	/* and it goes on in the background */
	assert_true(wait_for(&w.record.released, 3000));
	assert_true(w.record.end.complete);
	write_finish(&w);
}

#endif

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

static void slow_ready(void *ctx, struct attempt *a)
{
	struct record *r = ctx;

	(void)a;
	usleep(200000);
	assert_int_equal(r->gates, 0);
	assert_int_equal(r->ended, 0);
	*r->url[7] = '!';
}

/* A thread that drives already takes a new attempt up at once, but not before its maker is done. */
static void nobody_drives_what_is_not_ready(void **state)
{
	static const struct step late[] = {{OK, 1000, false, 0}}, at_once[] = {{OK, 0, false, 0}};
	struct write driven = {0}, w = {0};

	(void)state;
	write_start(&driven, late, 1);
	write_send(&driven);
	assert_false(write_play(driven.attempt, &driven.head, &driven.body, 50));
	attempt_orphan(driven.attempt);
	write_start(&w, at_once, 1);
	w.plan.ready = slow_ready;
	write_send(&w);
	assert_int_equal(*w.record.url[7], '!');
	assert_true(wait_for(&w.record.released, 2000));
	assert_int_equal(w.record.gates, 1);
	assert_true(wait_for(&driven.record.released, 5000));
	write_finish(&w);
	write_finish(&driven);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(cancel_while_connecting_is_stopped),
	        cmocka_unit_test(cancel_before_anybody_drove),
	        cmocka_unit_test(orphan_is_finished_in_the_background),
	        cmocka_unit_test(orphan_ends_with_its_linger),
	        cmocka_unit_test(threads_share_one_tape),
	        cmocka_unit_test(leadership_is_passed_on),
	        cmocka_unit_test(child_ends_what_its_parent_has_in_flight),
	        cmocka_unit_test(exit_waits_for_an_answer),
	        cmocka_unit_test(exit_waits_for_an_orphan),
	        cmocka_unit_test(exit_gives_up_and_says_so),
	        cmocka_unit_test(exit_withdraws_what_has_not_left),
	        cmocka_unit_test(lease_is_renewed_while_driven),
#ifndef UNDER_SANITIZER
	        cmocka_unit_test(cancelled_threads_leave_nothing_locked),
#endif
	        cmocka_unit_test(leadership_survives_a_jump_out_of_it),
	        cmocka_unit_test(sigpipe_is_given_back_as_it_was),
	        cmocka_unit_test(fork_beside_a_driver),
	        cmocka_unit_test(nobody_drives_what_is_not_ready),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
