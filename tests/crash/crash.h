/* What the crash tests share: writes to make, a clock that can be moved, and system calls that
 * tell.
 *
 * base/clock.c is included with other names, so that a test may move time on and begin a new boot;
 * kill() can be told that a process is dead although it only stands still, and a futex never
 * sleeps while a check runs: it counts, and a wait without end is noticed by its count. */
#ifndef SENDONCE_TESTS_CRASH_H
#define SENDONCE_TESTS_CRASH_H

#define clock_now       machine_now
#define clock_boot_us   machine_boot_us
#define clock_boot_id   machine_boot_id
#define clock_coarse_us machine_coarse_us
#include "base/clock.c"
#undef clock_now
#undef clock_boot_us
#undef clock_boot_id
#undef clock_coarse_us
struct stamp clock_now(void);
int64_t clock_boot_us(void);
uint64_t clock_boot_id(void);
int64_t clock_coarse_us(void);

#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ledger/internal.h"

#define SECOND INT64_C(1000000)
enum { LEDGER_SIZE = 256 * 1024, WAITS_MAX = 400, ANSWER_MAX = 12000 };

static int64_t skew_us;       /* both clocks are later by this */
static uint64_t boot_here;    /* 0: the machine's */
static int64_t boot_began_us; /* of the clock that counts from a boot */
static pid_t dead_pid;        /* kill() says it is gone */
static bool checking;         /* a futex returns at once */
static unsigned waits;

uint64_t clock_boot_id(void)
{
	return boot_here ? boot_here : machine_boot_id();
}

int64_t clock_boot_us(void)
{
	return machine_boot_us() + skew_us - boot_began_us;
}

int64_t clock_coarse_us(void)
{
	return machine_coarse_us() + skew_us - boot_began_us;
}

struct stamp clock_now(void)
{
	struct stamp now = machine_now();

	return (struct stamp){now.wall_us + skew_us, now.boot_us + skew_us - boot_began_us,
	                      clock_boot_id()};
}

int kill(pid_t pid, int sig)
{
	if (sig == 0 && dead_pid && pid == dead_pid) {
		errno = ESRCH;
		return -1;
	}
	return (int)syscall(SYS_kill, pid, sig);
}

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static const char *where = "start"; /* of the test, for its message */
static uint64_t where_number;

static void fail(const char *format, ...)
{
	va_list args;

	printf("%s %llu: ", where, (unsigned long long)where_number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* Six arguments always: what the callee does not take it does not read. */
static long call_kernel(long n, const long a[6])
{
	long rc;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];

	__asm__ volatile("syscall"
	                 : "=a"(rc)
	                 : "a"(n), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];

	__asm__ volatile("svc 0"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory");
	rc = x0;
#endif
	if (rc < 0 && rc > -4096) {
		errno = (int)-rc;
		return -1;
	}
	return rc;
}

long syscall(long n, ...)
{
	long a[6];
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (n != SYS_futex || !checking || a[1] != FUTEX_WAIT)
		return call_kernel(n, a);
	if (++waits > WAITS_MAX)
		fail("a wait without end");
	errno = ETIMEDOUT;
	return -1;
}

/* --- writes --- */

struct write {
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH], place[LEDGER_HASH], own[LEDGER_HASH];
	struct ledger_ids ids;
	struct record_new rec;
	char answer[ANSWER_MAX];
	struct ledger_answer reply;
};

static void fill_hash(uint8_t out[LEDGER_HASH], unsigned kind, unsigned n)
{
	memset(out, (int)kind, LEDGER_HASH);
	memcpy(out, &n, sizeof(n));
}

/* Write number n with an answer of so many bytes; each has a key of its own. */
static void write_make(struct write *w, unsigned n, size_t answer)
{
	fill_hash(w->content, 1, n);
	fill_hash(w->any, 2, n);
	fill_hash(w->place, 3, 0);
	fill_hash(w->own, 4, n);
	w->ids = (struct ledger_ids){w->content, w->any, w->own, NULL, 7, "op"};
	w->rec = (struct record_new){.content = w->content,
	                             .any_account = w->any,
	                             .own_key = w->own,
	                             .place = w->place,
	                             .fingerprint = w->content,
	                             .wire_body = w->any,
	                             .settings = 7,
	                             .operation = "op",
	                             .key = "the-key",
	                             .generation = 1,
	                             .ttl_us = 100 * SECOND,
	                             .tombstone_us = 200 * SECOND};
	for (size_t i = 0; i < answer; i++)
		w->answer[i] = (char)(1 + (i * 7 + i / 256 + n * 31) % 255);
	w->reply = (struct ledger_answer){.status = 201, .blob = {w->answer, answer}};
}

static struct ledger *open_ledger(const char *path, bool create, bool durable)
{
	struct ledger_options o = {.path = path,
	                           .size = LEDGER_SIZE,
	                           .max_response = ANSWER_MAX,
	                           .create = create,
	                           .durable = durable};
	struct ledger_error error;
	struct ledger *l;

	if (ledger_open(&o, &l, &error) != LEDGER_OK)
		fail("%s", error.text);
	return l;
}

static struct record_view find_write(struct ledger *l, const struct write *w)
{
	struct record_view v;

	ledger_find(l, &w->ids, clock_now(), &v);
	return v;
}

/* The stored answer is the one that was given, to the byte. */
__attribute__((unused)) static bool answer_is(struct ledger *l, const struct write *w,
                                              const struct record_view *v)
{
	struct buf blob = {0};
	long status;
	int rc = ledger_answer(l, v, &blob, &status);
	bool same = rc == LEDGER_OK && status == w->reply.status && blob.n == w->reply.blob.n &&
	            memcmp(blob.data, w->reply.blob.p, blob.n) == 0;

	if (rc == LEDGER_OK && !same)
		fail("a torn answer is played");
	buf_free(&blob);
	return same;
}

/* What a courier does that resends a doubt with the same key. Ends with `done`, or the test. */
__attribute__((unused)) static void complete(struct ledger *l, const struct write *w)
{
	struct record_new rec = w->rec;
	struct record_view v;
	struct hold h;
	int rc;

	for (int tries = 0; tries < 10; tries++) {
		v = find_write(l, w);
		if (v.state == REC_DONE)
			return;
		/* What it was written with never got to the disk: no program resends that, it waits
		 * for a person. */
		if (v.state == REC_UNKNOWN && v.key[0] == '\0' &&
		    ledger_resolve(l, &v, false, NULL, clock_now()) == LEDGER_OK)
			continue;
		rec.generation = v.state == REC_NONE ? 1 : v.generation;
		if (v.state == REC_RESERVED || v.state == REC_SENT || v.state == REC_UNKNOWN)
			rc = ledger_take(l, &v, clock_now(), &h);
		else
			rc = ledger_reserve(l, &rec, v.state == REC_NONE ? NULL : &v, clock_now(),
			                    &h);
		if (rc == LEDGER_LOST)
			continue;
		if (rc != LEDGER_OK)
			fail("cannot be completed: %d in state %s", rc, record_state_name(v.state));
		if (ledger_gate(l, &h, clock_now()) != LEDGER_OK)
			fail("the gate is shut to the owner");
		if (ledger_done(l, &h, &w->reply, clock_now()) != LEDGER_OK)
			fail("done is refused");
	}
	fail("never done: stays %s", record_state_name(find_write(l, w).state));
}

#endif
