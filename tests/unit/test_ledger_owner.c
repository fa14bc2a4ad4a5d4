/* Owners as other processes see them: in another pid namespace, standing still, and waking up late.
 * Real processes at one ledger, through its public functions only. Nobody waits for a lease to run
 * out: who takes over says that it is 16 s later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"

#define SECOND INT64_C(1000000)

static char folder[] = "/tmp/sendonce-owner-XXXXXX";
static char path[64];
static struct ledger *l;
static unsigned number;

struct write {
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH], place[LEDGER_HASH];
	struct ledger_ids ids;
	struct record_new rec;
};

static void write_make(struct write *w, unsigned n)
{
	memset(w->content, 1, LEDGER_HASH);
	memset(w->any, 2, LEDGER_HASH);
	memset(w->place, 3, LEDGER_HASH);
	memcpy(w->content, &n, sizeof(n));
	memcpy(w->any, &n, sizeof(n));
	w->ids = (struct ledger_ids){w->content, w->any, NULL, NULL, 7, "op"};
	w->rec = (struct record_new){.content = w->content,
	                             .any_account = w->any,
	                             .place = w->place,
	                             .fingerprint = w->content,
	                             .wire_body = w->content,
	                             .settings = 7,
	                             .operation = "op",
	                             .key = "the-key",
	                             .generation = 1,
	                             .ttl_us = 3600 * SECOND,
	                             .tombstone_us = 3600 * SECOND};
}

static struct stamp later(int64_t us)
{
	struct stamp now = clock_now();

	now.wall_us += us;
	now.boot_us += us;
	return now;
}

static struct record_view find_at(const struct write *w, struct stamp now)
{
	struct record_view v;

	ledger_find(l, &w->ids, now, &v);
	return v;
}

static struct ledger *open_ledger(void)
{
	struct ledger_options o = {
	        .path = path, .size = 1 << 20, .max_response = 4096, .create = true};
	struct ledger_error e;
	struct ledger *out;

	return ledger_open(&o, &out, &e) == LEDGER_OK ? out : NULL;
}

/* --- two processes that tell each other how far they are --- */

struct steps {
	_Atomic int at;
	_Atomic int result[16];
};
static struct steps *steps;

static void step_to(int n)
{
	atomic_store(&steps->at, n);
}

static void step_wait(int n)
{
	for (int i = 0; i < 10000 && atomic_load(&steps->at) < n; i++)
		usleep(1000);
	if (atomic_load(&steps->at) < n)
		_exit(99);
}

static int ended(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* --- another pid namespace --- */

/* A process that is the first one of a pid namespace of its own; /proc stays that of ours. Returns
 * its helper, which ends as it does; 0 where that is forbidden. */
static pid_t in_a_namespace(void (*run)(void))
{
	pid_t helper, inner;
	int status = 0;

	atomic_store(&steps->at, 0);
	helper = fork();
	if (helper != 0)
		return helper;
	if (unshare(CLONE_NEWPID) != 0)
		_exit(77);
	inner = fork();
	if (inner == 0) {
		run();
		_exit(0);
	}
	waitpid(inner, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static bool may_unshare(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWPID) != 0);
	return ended(pid) == 0;
}

static void owner_there(void)
{
	struct ledger *mine = open_ledger();
	struct write w;
	struct hold h;

	write_make(&w, number);
	if (!mine || ledger_reserve(mine, &w.rec, NULL, clock_now(), &h) != LEDGER_OK ||
	    ledger_gate(mine, &h, clock_now()) != LEDGER_OK)
		_exit(1);
	step_to(1);
	step_wait(2);
	if (ledger_renew(mine, &h, clock_now()) != LEDGER_OK)
		_exit(2);
	step_to(3);
	step_wait(4);
	_exit(98); /* without a word; the first one of a namespace cannot kill itself */
}

/* From outside neither its life nor its death is seen: the lease alone decides. */
static void an_owner_in_another_namespace(void **state)
{
	struct record_view v;
	struct write w;
	struct hold h;
	pid_t pid;

	(void)state;
	if (!may_unshare())
		skip();
	write_make(&w, ++number);
	pid = in_a_namespace(owner_there);
	step_wait(1);
	v = find_at(&w, clock_now());
	assert_int_equal(v.state, REC_SENT);
	assert_int_equal(v.owner, OWNER_UNKNOWABLE);
	assert_int_equal(v.owner_pid, 0);
	assert_true(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, clock_now(), &h), LEDGER_LOST);
	assert_int_equal(ledger_wait(l, v.id, v.word, 300000), LEDGER_TIMEOUT);
	step_to(2);
	step_wait(3);
	step_to(4);
	assert_int_equal(ended(pid), 98);
	v = find_at(&w, clock_now());
	assert_int_equal(v.owner, OWNER_UNKNOWABLE);
	assert_int_equal(ledger_take(l, &v, clock_now(), &h), LEDGER_LOST);
	v = find_at(&w, later(16 * SECOND));
	assert_false(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, later(16 * SECOND), &h), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &h, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_done(l, &h, NULL, clock_now()), LEDGER_OK);
}

/* Two inside: they see each other, although /proc is that of another namespace and has somebody
 * else, or nobody, under their numbers. */
static void two_inside(void)
{
	struct ledger *mine = open_ledger();
	struct record_view v;
	struct write w;
	struct hold h;
	pid_t owner;

	write_make(&w, number);
	owner = fork();
	if (owner == 0) {
		if (ledger_reserve(mine, &w.rec, NULL, clock_now(), &h) != LEDGER_OK)
			_exit(1);
		step_to(1);
		step_wait(9);
		_exit(0);
	}
	step_wait(1);
	ledger_find(mine, &w.ids, clock_now(), &v);
	atomic_store(&steps->result[0], (int)v.owner);
	atomic_store(&steps->result[1], v.owner_pid == owner);
	atomic_store(&steps->result[2], ledger_take(mine, &v, clock_now(), &h));
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	ledger_find(mine, &w.ids, clock_now(), &v);
	atomic_store(&steps->result[3], (int)v.owner);
	atomic_store(&steps->result[4], ledger_take(mine, &v, clock_now(), &h));
}

static void a_namespace_with_the_proc_of_another(void **state)
{
	(void)state;
	if (!may_unshare())
		skip();
	number++;
	assert_int_equal(ended(in_a_namespace(two_inside)), 0);
	assert_int_equal(steps->result[0], OWNER_ALIVE);
	assert_true(steps->result[1]);
	assert_int_equal(steps->result[2], LEDGER_LOST);
	assert_int_equal(steps->result[3], OWNER_DEAD);
	assert_int_equal(steps->result[4], LEDGER_OK);
}

static void outside_of_ours(void)
{
	struct ledger *mine = open_ledger();
	struct record_view v;
	struct write w;
	struct hold h;

	write_make(&w, number);
	ledger_find(mine, &w.ids, clock_now(), &v);
	atomic_store(&steps->result[0], (int)v.owner);
	atomic_store(&steps->result[1], ledger_take(mine, &v, clock_now(), &h));
	ledger_find(mine, &w.ids, later(16 * SECOND), &v);
	atomic_store(&steps->result[2], ledger_take(mine, &v, later(16 * SECOND), &h));
}

/* The other way round: from inside, an owner outside; and it finds its tenure gone. */
static void taken_over_from_a_namespace(void **state)
{
	struct write w;
	struct hold h;

	(void)state;
	if (!may_unshare())
		skip();
	write_make(&w, ++number);
	assert_int_equal(ledger_reserve(l, &w.rec, NULL, clock_now(), &h), LEDGER_OK);
	assert_int_equal(ended(in_a_namespace(outside_of_ours)), 0);
	assert_int_equal(steps->result[0], OWNER_UNKNOWABLE);
	assert_int_equal(steps->result[1], LEDGER_LOST);
	assert_int_equal(steps->result[2], LEDGER_OK);
	assert_int_equal(ledger_gate(l, &h, clock_now()), LEDGER_LOST);
	assert_int_equal(ledger_renew(l, &h, clock_now()), LEDGER_LOST);
}

/* --- SIGSTOP and SIGCONT --- */

enum last_word { GATE, WIRE, RENEW, WITHDRAW, DONE, DOUBT, NOT_EXECUTED, WORDS };

static int say(struct hold *h, enum last_word word)
{
	struct ledger_answer a = {.status = 201, .blob = {"mine", 4}};

	switch (word) {
	case GATE:
		return ledger_gate(l, h, clock_now());
	case WIRE:
		return ledger_wire_send(l, h);
	case RENEW:
		return ledger_renew(l, h, clock_now());
	case WITHDRAW:
		return ledger_withdraw(l, h, clock_now());
	case DONE:
		return ledger_done(l, h, &a, clock_now());
	case DOUBT:
		return ledger_unknown(l, h, false, NULL, clock_now());
	default:
		return ledger_freed(l, h, FREED_ANSWER, NULL, clock_now());
	}
}

/* Gets the record into `from`, stops, and says its word when it is woken. */
static pid_t owner_that_stops(const struct write *w, enum record_state from, enum last_word word)
{
	struct record_view v;
	struct hold h;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		v = find_at(w, clock_now());
		if (from == REC_UNKNOWN && ledger_take(l, &v, clock_now(), &h) != LEDGER_OK)
			_exit(100);
		if (from != REC_UNKNOWN &&
		    ledger_reserve(l, &w->rec, NULL, clock_now(), &h) != LEDGER_OK)
			_exit(101);
		if (from == REC_SENT && ledger_gate(l, &h, clock_now()) != LEDGER_OK)
			_exit(102);
		raise(SIGSTOP);
		_exit(-say(&h, word));
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

/* Somebody was in doubt about it before: a write to be sent again. */
static void leave_in_doubt(const struct write *w)
{
	struct hold h;

	assert_int_equal(ledger_reserve(l, &w->rec, NULL, clock_now(), &h), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &h, clock_now()), LEDGER_OK);
	assert_int_equal(ledger_unknown(l, &h, false, NULL, clock_now()), LEDGER_OK);
}

/* What the one that stood still is told, when somebody else has the record meanwhile: has it to
 * send, has sent it, or has its answer. Nothing is sent, and only a final answer still counts. */
static int told(enum last_word word, enum record_state now)
{
	if (word == DONE && (now == REC_SENT || now == REC_UNKNOWN))
		return LEDGER_OK;
	if (word == DOUBT && (now == REC_SENT || now == REC_UNKNOWN))
		return LEDGER_OK; /* a note: nothing changes hands */
	return LEDGER_LOST;
}

static void check_wakes_up(enum record_state from, enum last_word word, int followed)
{
	struct ledger_answer theirs = {.status = 201, .blob = {"theirs", 6}};
	struct record_view v, after;
	struct write w;
	struct hold h;
	pid_t pid;

	write_make(&w, ++number);
	if (from == REC_UNKNOWN)
		leave_in_doubt(&w);
	pid = owner_that_stops(&w, from, word);
	v = find_at(&w, clock_now());
	assert_int_equal(v.owner, OWNER_ALIVE);
	assert_int_equal(ledger_take(l, &v, clock_now(), &h), LEDGER_LOST);
	v = find_at(&w, later(16 * SECOND));
	assert_int_equal(ledger_take(l, &v, later(16 * SECOND), &h), LEDGER_OK);
	if (followed >= 1)
		assert_int_equal(ledger_gate(l, &h, clock_now()), LEDGER_OK);
	if (followed >= 2)
		assert_int_equal(ledger_done(l, &h, &theirs, clock_now()), LEDGER_OK);
	v = find_at(&w, clock_now());
	kill(pid, SIGCONT);
	assert_int_equal(ended(pid), -told(word, v.state));
	after = find_at(&w, clock_now());
	assert_int_equal(after.wire_sends, v.wire_sends);
	if (word == DONE && v.state != REC_DONE && told(word, v.state) == LEDGER_OK) {
		assert_int_equal(after.state, REC_DONE);
		return;
	}
	assert_int_equal(after.state, v.state);
	assert_int_equal(after.owner, v.owner);
	assert_int_equal(after.status, v.status);
	if (followed == 0) /* still its follower's */
		assert_int_equal(ledger_gate(l, &h, clock_now()), LEDGER_OK);
}

static void who_wakes_up_late_finds_its_tenure_gone(void **state)
{
	static const enum record_state from[] = {REC_RESERVED, REC_SENT, REC_UNKNOWN};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (enum last_word word = 0; word < WORDS; word++)
			for (int followed = 0; followed <= 2; followed++)
				check_wakes_up(from[i], word, followed);
}

/* Nobody followed: it renews, and goes on. */
static void who_wakes_up_late_and_was_not_followed_goes_on(void **state)
{
	struct record_view v;
	struct write w;
	pid_t pid;

	(void)state;
	write_make(&w, ++number);
	pid = owner_that_stops(&w, REC_RESERVED, RENEW);
	kill(pid, SIGCONT);
	assert_int_equal(ended(pid), 0);
	write_make(&w, ++number);
	pid = owner_that_stops(&w, REC_SENT, DONE);
	v = find_at(&w, later(16 * SECOND));
	assert_false(v.lease_fresh);
	kill(pid, SIGCONT);
	assert_int_equal(ended(pid), 0);
	assert_int_equal(find_at(&w, clock_now()).state, REC_DONE);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	steps = mmap(NULL, sizeof(*steps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	             0);
	l = open_ledger();
	return steps == MAP_FAILED || !l ? -1 : 0;
}

static int tear_down(void **state)
{
	int faults = ledger_verify(l, NULL, NULL);

	(void)state;
	ledger_close(l);
	unlink(path);
	return rmdir(folder) || faults ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_owner_in_another_namespace),
	        cmocka_unit_test(a_namespace_with_the_proc_of_another),
	        cmocka_unit_test(taken_over_from_a_namespace),
	        cmocka_unit_test(who_wakes_up_late_finds_its_tenure_gone),
	        cmocka_unit_test(who_wakes_up_late_and_was_not_followed_goes_on),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
