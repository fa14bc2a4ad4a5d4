/* Many processes and threads at one ledger: exactly one executes, whatever dies when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "unit/threads_here.h"

enum { PROCESSES = 8, THREADS = 4, ROUNDS = 25, STORM_WORKERS = 6, STORM_KILLS = 60 };

static char folder[] = "/tmp/sendonce-race-XXXXXX";
static char path[64];

struct shared {
	_Atomic int executed[ROUNDS], answered[ROUNDS], faults;
	_Atomic int sent[256], finished[256];
};
static struct shared *shared;

static struct ledger *open_ledger(void)
{
	struct ledger_options o = {
	        .path = path, .size = 2 << 20, .max_response = 1 << 16, .create = true};
	struct ledger_error error;
	struct ledger *l;

	if (ledger_open(&o, &l, &error) != LEDGER_OK) {
		fprintf(stderr, "%s\n", error.text);
		return NULL;
	}
	return l;
}

static void hash_of(uint8_t out[LEDGER_HASH], unsigned kind, unsigned n)
{
	memset(out, 0, LEDGER_HASH);
	memcpy(out, &n, sizeof(n));
	out[8] = (uint8_t)kind;
	out[9] = (uint8_t)(n * 37);
}

struct write {
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH], place[LEDGER_HASH];
	struct ledger_ids ids;
	struct record_new rec;
};

static void write_make(struct write *w, unsigned n)
{
	hash_of(w->content, 1, n);
	hash_of(w->any, 2, n);
	hash_of(w->place, 3, 0);
	w->ids = (struct ledger_ids){w->content, w->any, NULL, w->place, 7, "op"};
	w->rec = (struct record_new){.content = w->content,
	                             .any_account = w->any,
	                             .place = w->place,
	                             .fingerprint = w->content,
	                             .wire_body = w->content,
	                             .settings = 7,
	                             .operation = "op",
	                             .key = "key",
	                             .generation = 1,
	                             .ttl_us = 3600000000,
	                             .tombstone_us = 3600000000};
}

static void execute(struct ledger *l, struct hold *hold, int round)
{
	char text[64];
	struct ledger_answer answer = {.status = 201, .blob = {text, 0}};

	snprintf(text, sizeof(text), "order of round %d", round);
	answer.blob.n = strlen(text);
	if (ledger_gate(l, hold, clock_now()) != LEDGER_OK)
		return;
	atomic_fetch_add(&shared->executed[round], 1);
	if (ledger_done(l, hold, &answer, clock_now()) != LEDGER_OK)
		atomic_fetch_add(&shared->faults, 1);
}

static bool answered(struct ledger *l, const struct record_view *view, int round)
{
	struct buf blob = {0};
	char text[64];
	long status = 0;
	int rc = ledger_answer(l, view, &blob, &status);

	snprintf(text, sizeof(text), "order of round %d", round);
	if (rc != LEDGER_OK || status != 201 || !span_is(span_buf(&blob), text))
		atomic_fetch_add(&shared->faults, 1);
	buf_free(&blob);
	atomic_fetch_add(&shared->answered[round], 1);
	return true;
}

/* What the courier does: look, act by what is there, look again when somebody was faster. */
static void one_write(struct ledger *l, int round)
{
	struct write w;
	struct record_view view;
	struct hold hold;

	write_make(&w, (unsigned)round);
	for (int tries = 0; tries < 10000; tries++) {
		if (ledger_find(l, &w.ids, clock_now(), &view) == LEDGER_NONE) {
			if (ledger_reserve(l, &w.rec, NULL, clock_now(), &hold) == LEDGER_OK)
				execute(l, &hold, round);
		} else if (view.state == REC_DONE) {
			answered(l, &view, round);
			ledger_delivered(l, view.id, view.generation, 5, clock_now());
			return;
		} else {
			ledger_wait(l, view.id, view.word, 1000000);
		}
	}
	atomic_fetch_add(&shared->faults, 1);
}

static void *thread_main(void *arg)
{
	for (int round = 0; round < ROUNDS; round++)
		one_write(arg, round);
	return NULL;
}

static void process_main(void)
{
	struct ledger *l = open_ledger();
	pthread_t thread[THREADS];

	if (!l)
		_exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, thread_main, l);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

static void wait_all(const pid_t *pid, int count)
{
	int status;

	for (int i = 0; i < count; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static void same_write_executes_once(void **state)
{
	pid_t pid[PROCESSES];
	struct ledger *l;

	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0)
			process_main();
	}
	wait_all(pid, PROCESSES);
	for (int round = 0; round < ROUNDS; round++) {
		assert_int_equal(shared->executed[round], 1);
		assert_int_equal(shared->answered[round], PROCESSES * THREADS);
	}
	assert_int_equal(shared->faults, 0);
	l = open_ledger();
	assert_non_null(l);
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	ledger_close(l);
}

/* Each process has contents of its own, and they meet in the index, the heap and the sweep. */
static void different_writes_do_not_meet(void **state)
{
	pid_t pid[PROCESSES];
	struct ledger *l = open_ledger();
	struct record_view view;
	struct write w;

	(void)state;
	assert_non_null(l);
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		for (unsigned n = 0; pid[i] == 0 && n < 20; n++) {
			struct hold hold;
			struct ledger_answer answer = {.status = 200, .blob = {"abc", 3}};
			write_make(&w, 1000 + (unsigned)i * 100 + n);
			if (ledger_reserve(l, &w.rec, NULL, clock_now(), &hold) != LEDGER_OK ||
			    ledger_gate(l, &hold, clock_now()) != LEDGER_OK ||
			    ledger_done(l, &hold, &answer, clock_now()) != LEDGER_OK)
				_exit(1);
		}
		if (pid[i] == 0)
			_exit(0);
	}
	wait_all(pid, PROCESSES);
	for (unsigned i = 0; i < PROCESSES * 20; i++) {
		write_make(&w, 1000 + i / 20 * 100 + i % 20);
		assert_int_equal(ledger_find(l, &w.ids, clock_now(), &view), LEDGER_OK);
		assert_int_equal(view.state, REC_DONE);
	}
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	ledger_close(l);
}

static unsigned storm_step(struct ledger *l, unsigned n)
{
	struct write w;
	struct record_view view;
	struct hold hold;
	struct ledger_answer answer = {.status = 200, .blob = {"abc", 3}};
	int rc = LEDGER_LOST;

	write_make(&w, 5000 + n);
	if (ledger_find(l, &w.ids, clock_now(), &view) == LEDGER_NONE)
		rc = ledger_reserve(l, &w.rec, NULL, clock_now(), &hold);
	else if (view.state == REC_RESERVED && view.owner == OWNER_DEAD)
		rc = ledger_take(l, &view, clock_now(), &hold);
	else if (view.state == REC_FREED)
		rc = ledger_reserve(l, &w.rec, &view, clock_now(), &hold);
	if (rc != LEDGER_OK || ledger_gate(l, &hold, clock_now()) != LEDGER_OK)
		return n + 1;
	atomic_fetch_add(&shared->sent[n], 1);
	if (ledger_done(l, &hold, &answer, clock_now()) == LEDGER_OK)
		atomic_store(&shared->finished[n], 1);
	return n + 1;
}

static pid_t storm_worker(struct ledger *l, unsigned seed)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (unsigned n = seed;; n++)
		storm_step(l, n % 256);
}

/* kill -9 at any moment: what was done stays done, what was sent is sent once, nothing hangs. */
static void killed_workers_lose_nothing(void **state)
{
	struct ledger *l = open_ledger();
	pid_t pid[STORM_WORKERS];
	struct record_view view;
	struct write w;
	struct timespec pause = {0, 3000000};

	(void)state;
	assert_non_null(l);
	for (unsigned i = 0; i < STORM_WORKERS; i++)
		pid[i] = storm_worker(l, i * 7);
	for (unsigned i = 0; i < STORM_KILLS; i++) {
		pause.tv_nsec = 200000 + (long)(i * 7919 % 3000) * 1000;
		nanosleep(&pause, NULL);
		kill(pid[i % STORM_WORKERS], SIGKILL);
		waitpid(pid[i % STORM_WORKERS], NULL, 0);
		pid[i % STORM_WORKERS] = storm_worker(l, i * 13);
	}
	for (unsigned i = 0; i < STORM_WORKERS; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	for (unsigned n = 0; n < 256; n++) {
		write_make(&w, 5000 + n);
		storm_step(l, n);
		assert_int_equal(ledger_find(l, &w.ids, clock_now(), &view), LEDGER_OK);
		assert_true(shared->sent[n] <= 1);
		if (shared->finished[n])
			assert_int_equal(view.state, REC_DONE);
		if (view.state == REC_SENT)
			assert_int_equal(view.owner, OWNER_DEAD);
		assert_true(view.state == REC_DONE || view.state == REC_SENT);
	}
	assert_int_equal(ledger_verify(l, NULL, NULL), 0);
	ledger_close(l);
}

static int64_t wait_for(struct ledger *l, const struct write *w)
{
	struct record_view view;
	int64_t start = clock_boot_us();

	ledger_find(l, &w->ids, clock_now(), &view);
	if (view.state == REC_DONE) /* too late to wait for it */
		return 5000000;
	if (ledger_wait(l, view.id, view.word, 5000000) != LEDGER_OK)
		return -1;
	return clock_boot_us() - start;
}

/* True when four waiters, each with a mapping of its own, ran before their first slice was over. */
static bool woken_in_time(struct ledger *l, unsigned n)
{
	struct write w;
	struct hold hold;
	struct timespec pause = {0, 30000000};
	pid_t pid[4];
	int status;
	int64_t waited;
	bool in_time = true;

	write_make(&w, n);
	assert_int_equal(ledger_reserve(l, &w.rec, NULL, clock_now(), &hold), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &hold, clock_now()), LEDGER_OK);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			waited = wait_for(open_ledger(), &w);
			_exit(waited < 0 ? 2 : waited > 240000);
		}
	}
	nanosleep(&pause, NULL);
	assert_int_equal(ledger_done(l, &hold, NULL, clock_now()), LEDGER_OK);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 2);
		in_time = in_time && status == 0;
	}
	return in_time;
}

static void waiters_are_woken(void **state)
{
	struct ledger *l = open_ledger();
	struct write w;
	struct hold hold;
	struct record_view view;
	bool in_time = false;

	(void)state;
	assert_non_null(l);
	write_make(&w, 9000);
	assert_int_equal(ledger_reserve(l, &w.rec, NULL, clock_now(), &hold), LEDGER_OK);
	ledger_find(l, &w.ids, clock_now(), &view);
	assert_int_equal(ledger_wait(l, view.id, view.word, 20000), LEDGER_TIMEOUT);
	/* A busy machine may be late; not every time. */
	for (unsigned i = 0; i < 10 && !in_time; i++)
		in_time = woken_in_time(l, 9010 + i);
	assert_true(in_time);
	ledger_close(l);
}

static void waiters_notice_a_dead_owner(void **state)
{
	struct ledger *l = open_ledger();
	struct write w;
	struct hold hold;
	int64_t waited;
	pid_t pid;

	(void)state;
	assert_non_null(l);
	write_make(&w, 9001);
	pid = fork();
	if (pid == 0) {
		ledger_reserve(l, &w.rec, NULL, clock_now(), &hold);
		ledger_gate(l, &hold, clock_now());
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	waited = wait_for(l, &w);
	assert_true(waited >= 0 && waited < 2000000);
	ledger_close(l);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	return shared == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(same_write_executes_once),
	        cmocka_unit_test(different_writes_do_not_meet),
	        cmocka_unit_test(killed_workers_lose_nothing),
	        cmocka_unit_test(waiters_are_woken),
	        cmocka_unit_test(waiters_notice_a_dead_owner),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
