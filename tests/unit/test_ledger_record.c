/* Every transition of a record, by one process: who may make it, what it leaves, what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/internal.h"

enum { SECOND = 1000000 };

static char folder[] = "/tmp/sendonce-record-XXXXXX";
static char path[64];
static struct ledger *l;
static struct stamp now;

struct write {
	uint8_t content[LEDGER_HASH], any[LEDGER_HASH], place[LEDGER_HASH], own[LEDGER_HASH];
	struct ledger_ids ids;
	struct record_new rec;
};

static void fill(uint8_t out[LEDGER_HASH], unsigned kind, unsigned n)
{
	memset(out, (int)kind, LEDGER_HASH);
	memcpy(out, &n, sizeof(n));
}

/* Write number n; own key number `own`, 0: none. */
static void write_make(struct write *w, unsigned n, unsigned own)
{
	fill(w->content, 1, n);
	fill(w->any, 2, n);
	fill(w->place, 3, 0);
	fill(w->own, 4, own);
	w->ids = (struct ledger_ids){w->content, w->any, own ? w->own : NULL, w->place, 7, "op"};
	w->rec = (struct record_new){.content = w->content,
	                             .any_account = w->any,
	                             .own_key = own ? w->own : NULL,
	                             .place = w->place,
	                             .fingerprint = w->content,
	                             .wire_body = w->any,
	                             .settings = 7,
	                             .operation = "op",
	                             .key = "the-key",
	                             .generation = 1,
	                             .ttl_us = 100 * (int64_t)SECOND,
	                             .tombstone_us = 200 * (int64_t)SECOND};
}

static struct record_view find(const struct write *w)
{
	struct record_view v;

	ledger_find(l, &w->ids, now, &v);
	return v;
}

static struct hold reserve(const struct write *w)
{
	struct hold h;

	assert_int_equal(ledger_reserve(l, &w->rec, NULL, now, &h), LEDGER_OK);
	return h;
}

static struct hold sent(const struct write *w)
{
	struct hold h = reserve(w);

	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
	return h;
}

static struct hold done(const struct write *w)
{
	struct hold h = sent(w);
	struct ledger_answer a = {.status = 201, .blob = {"created", 7}};

	assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_OK);
	return h;
}

static void later(int64_t us)
{
	now.wall_us += us;
	now.boot_us += us;
}

static int open_new(int64_t size)
{
	struct ledger_options o = {
	        .path = path, .size = size, .max_response = 4096, .durable = true, .create = true};
	struct ledger_error e;

	unlink(path);
	return ledger_open(&o, &l, &e);
}

static int set_up(void **state)
{
	(void)state;
	now = clock_now();
	return open_new(512 * 1024);
}

static int tear_down(void **state)
{
	int faults = ledger_verify(l, NULL, NULL);

	(void)state;
	ledger_close(l);
	return faults ? -1 : 0;
}

static void view_says_what_was_reserved(void **state)
{
	struct write w;
	struct record_view v;
	uint8_t trace[16] = {9, 8, 7};

	(void)state;
	write_make(&w, 1, 0);
	w.rec.trace = trace;
	w.rec.run = 77;
	assert_int_equal(ledger_find(l, &w.ids, now, &v), LEDGER_NONE);
	assert_int_equal(v.hit, HIT_NONE);
	assert_int_equal(v.state, REC_NONE);
	reserve(&w);
	v = find(&w);
	assert_int_equal(v.hit, HIT_CONTENT);
	assert_int_equal(v.state, REC_RESERVED);
	assert_int_equal(v.generation, 1);
	assert_false(v.ever_sent);
	assert_int_equal(v.owner, OWNER_ALIVE);
	assert_int_equal(v.owner_pid, getpid());
	assert_true(v.lease_fresh);
	assert_string_equal(v.key, "the-key");
	assert_string_equal(v.operation, "op");
	assert_string_equal(v.exe, "test_ledger_record");
	assert_memory_equal(v.trace, trace, 16);
	assert_memory_equal(v.fingerprint, w.content, LEDGER_HASH);
	assert_memory_equal(v.wire_body, w.any, LEDGER_HASH);
	assert_int_equal(v.settings, 7);
	assert_int_equal(v.run_count, 1);
	assert_int_equal(v.runs[0].run, 77);
	assert_int_equal(v.runs[0].delivered_us, 0);
	assert_int_equal(v.made.wall_us, now.wall_us);
	assert_int_equal(v.first_sent.wall_us, 0);
	later(16 * SECOND);
	assert_false(find(&w).lease_fresh);
}

static void second_reserve_is_lost(void **state)
{
	struct write w;
	struct hold h;

	(void)state;
	write_make(&w, 1, 0);
	reserve(&w);
	assert_int_equal(ledger_reserve(l, &w.rec, NULL, now, &h), LEDGER_LOST);
}

static void gate_then_done(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	struct buf blob = {0};
	struct ledger_answer a = {.status = 201, .blob = {"an answer", 9}};
	long status;

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	v = find(&w);
	assert_int_equal(v.state, REC_SENT);
	assert_true(v.ever_sent);
	assert_int_equal(v.first_sent.wall_us, now.wall_us);
	assert_int_equal(v.wire_sends, 1);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_LOST);
	assert_int_equal(ledger_withdraw(l, &h, now), LEDGER_LOST);
	assert_int_equal(ledger_wire_send(l, &h), LEDGER_OK);
	later(SECOND);
	assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_DONE);
	assert_int_equal(v.owner, OWNER_NONE);
	assert_int_equal(v.wire_sends, 2);
	assert_int_equal(v.ended.wall_us, now.wall_us);
	assert_true(v.answer_kept && v.answer_final);
	assert_int_equal(ledger_answer(l, &v, &blob, &status), LEDGER_OK);
	assert_int_equal(status, 201);
	assert_true(span_is(span_buf(&blob), "an answer"));
	buf_free(&blob);
	assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_LOST);
	assert_int_equal(ledger_unknown(l, &h, false, NULL, now), LEDGER_LOST);
	assert_int_equal(ledger_freed(l, &h, FREED_ANSWER, NULL, now), LEDGER_LOST);
	v.generation++;
	assert_int_equal(ledger_answer(l, &v, &blob, &status), LEDGER_NONE);
}

static void withdrawn_before_the_gate(void **state)
{
	struct write w;
	struct hold h, old;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	h = old = reserve(&w);
	assert_int_equal(ledger_withdraw(l, &h, now), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &old, now), LEDGER_LOST);
	v = find(&w);
	assert_int_equal(v.state, REC_FREED);
	assert_int_equal(v.freed, FREED_WITHDRAWN);
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &h), LEDGER_OK);
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &old), LEDGER_LOST);
	v = find(&w);
	assert_int_equal(v.state, REC_RESERVED);
	assert_int_equal(v.generation, 1);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
}

static void doubt_is_sent_again_with_first_sent_kept(void **state)
{
	struct write w;
	struct hold h, again, late;
	struct record_view v;
	struct stamp first = now;

	(void)state;
	write_make(&w, 1, 0);
	h = late = sent(&w);
	assert_int_equal(ledger_unknown(l, &h, true, NULL, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_UNKNOWN);
	assert_int_equal(v.owner, OWNER_NONE);
	assert_true(v.in_doubt && v.ended_by_curlcode && v.ever_sent);
	later(5 * SECOND);
	assert_int_equal(ledger_take(l, &v, now, &again), LEDGER_OK);
	assert_int_equal(ledger_take(l, &v, now, &h), LEDGER_LOST);
	v = find(&w);
	assert_int_equal(v.state, REC_UNKNOWN);
	assert_int_equal(v.owner, OWNER_ALIVE);
	assert_int_equal(ledger_take(l, &v, now, &h), LEDGER_LOST);
	/* withdrawn: unknown again, never freed */
	assert_int_equal(ledger_withdraw(l, &again, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_UNKNOWN);
	assert_int_equal(v.owner, OWNER_NONE);
	assert_int_equal(ledger_take(l, &v, now, &again), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &again, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_SENT);
	assert_int_equal(v.first_sent.wall_us, first.wall_us);
	assert_int_equal(v.attempts, 2);
	/* "not executed" of the first attempt says nothing about the second */
	assert_int_equal(ledger_freed(l, &late, FREED_ANSWER, NULL, now), LEDGER_LOST);
	/* but its final answer is one */
	assert_int_equal(ledger_done(l, &late, NULL, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_DONE);
	assert_false(v.answer_kept);
	assert_false(v.in_doubt);
	assert_int_equal(ledger_done(l, &again, NULL, now), LEDGER_LOST);
}

static void freed_by_each_kind(void **state)
{
	static const enum freed_how how[] = {FREED_ANSWER, FREED_STORED};
	struct write w;
	struct hold h;
	struct record_view v;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		write_make(&w, 10 + i, 0);
		h = sent(&w);
		assert_int_equal(ledger_freed(l, &h, how[i], NULL, now), LEDGER_OK);
		v = find(&w);
		assert_int_equal(v.state, REC_FREED);
		assert_int_equal(v.freed, how[i]);
		w.rec.generation = how[i] == FREED_STORED ? 2 : 1;
		assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &h), LEDGER_OK);
		v = find(&w);
		assert_int_equal(v.generation, w.rec.generation);
		assert_int_equal(v.first_sent.wall_us != 0, how[i] == FREED_ANSWER);
		assert_false(v.ever_sent);
	}
}

static void late_not_executed_after_the_record_was_given_up(void **state)
{
	struct write w;
	struct hold h, other;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	later(20 * SECOND);
	v = find(&w);
	assert_false(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, now, &other), LEDGER_OK);
	assert_int_equal(find(&w).state, REC_UNKNOWN);
	assert_int_equal(ledger_renew(l, &h, now), LEDGER_LOST);
	assert_int_equal(ledger_renew(l, &other, now), LEDGER_OK);
	assert_int_equal(ledger_freed(l, &h, FREED_ANSWER, NULL, now), LEDGER_LOST);
	assert_int_equal(ledger_unknown(l, &h, false, NULL, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.owner, OWNER_ALIVE);
	assert_int_equal(ledger_gate(l, &other, now), LEDGER_OK);
}

static void generation_needs_a_reason(void **state)
{
	struct write w;
	struct hold h, old;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	old = done(&w);
	v = find(&w);
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &h), LEDGER_LOST);
	w.rec.generation = 2;
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &h), LEDGER_OK);
	assert_int_equal(ledger_done(l, &old, NULL, now), LEDGER_LOST);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
	v = find(&w);
	w.rec.generation = 3;
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &old), LEDGER_LOST);
	later(16 * SECOND);
	v = find(&w);
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &old), LEDGER_OK);
	assert_int_equal(find(&w).generation, 3);
	assert_int_equal(ledger_done(l, &h, NULL, now), LEDGER_LOST);
}

static void expiry_leaves_a_tombstone_and_then_nothing(void **state)
{
	struct write w, other;
	struct hold h;
	struct record_view v;
	struct buf blob = {0};
	long status;

	(void)state;
	write_make(&w, 1, 0);
	write_make(&other, 2, 0);
	done(&w);
	h = sent(&other);
	assert_int_equal(ledger_unknown(l, &h, false, NULL, now), LEDGER_OK);
	later(99 * (int64_t)SECOND);
	sweep_some(l, 10, now);
	assert_int_equal(find(&w).state, REC_DONE);
	later(2 * SECOND);
	sweep_some(l, 10, now);
	v = find(&w);
	assert_int_equal(v.state, REC_TOMBSTONE);
	assert_int_equal(v.generation, 1);
	assert_int_not_equal(v.first_sent.wall_us, 0);
	assert_int_equal(ledger_answer(l, &v, &blob, &status), LEDGER_NONE);
	later(199 * (int64_t)SECOND);
	sweep_some(l, 10, now);
	assert_int_equal(find(&w).state, REC_TOMBSTONE);
	later(2 * SECOND);
	sweep_some(l, 10, now);
	assert_int_equal(find(&w).state, REC_NONE);
	assert_int_equal(ledger_look(l, v.id, now, &v), LEDGER_NONE);
	/* a doubt outlives everything */
	later(1000000 * (int64_t)SECOND);
	sweep_some(l, 10, now);
	assert_int_equal(find(&other).state, REC_UNKNOWN);
	h = reserve(&w);
	assert_int_equal(find(&w).state, REC_RESERVED);
}

static void wall_clock_jump_expires_nothing(void **state)
{
	struct write w;

	(void)state;
	write_make(&w, 1, 0);
	done(&w);
	now.wall_us += 1000 * (int64_t)SECOND;
	sweep_some(l, 10, now);
	assert_int_equal(find(&w).state, REC_DONE);
	/* another boot, the clock set back: the send lies in the future */
	now.wall_us -= 2000 * (int64_t)SECOND;
	now.boot ^= 1;
	sweep_some(l, 10, now);
	assert_int_equal(find(&w).state, REC_DONE);
	assert_false(find(&w).lease_fresh);
}

static void runs_keep_eight_and_drop_the_oldest_delivered(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	bool found[12] = {false};

	(void)state;
	write_make(&w, 1, 0);
	h = done(&w);
	for (uint64_t run = 1; run <= 8; run++) {
		later(SECOND);
		assert_int_equal(ledger_asked(l, h.id, 1, run, now), LEDGER_OK);
		if (run == 3 || run == 2) /* 3 before 2 */
			continue;
	}
	assert_int_equal(ledger_delivered(l, h.id, 1, 3, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.run_count, 8);
	assert_int_equal(v.first_delivered.wall_us, now.wall_us);
	later(SECOND);
	assert_int_equal(ledger_delivered(l, h.id, 1, 2, now), LEDGER_OK);
	assert_int_equal(ledger_asked(l, h.id, 1, 9, now), LEDGER_OK);  /* 3 goes */
	assert_int_equal(ledger_asked(l, h.id, 1, 10, now), LEDGER_OK); /* 2 goes */
	assert_int_equal(ledger_asked(l, h.id, 1, 11, now), LEDGER_OK); /* 1 goes: oldest asked */
	v = find(&w);
	assert_int_equal(v.run_count, 8);
	for (size_t i = 0; i < v.run_count; i++)
		found[v.runs[i].run] = true;
	for (int run = 1; run <= 11; run++)
		assert_int_equal(found[run], run > 3);
	assert_int_equal(ledger_asked(l, h.id, 2, 12, now), LEDGER_LOST);
	assert_true(ledger_has_run(l, 11));
	assert_false(ledger_has_run(l, 1));
	assert_false(ledger_has_run(l, 0));
}

static void delivered_to_an_unknown_run(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	h = done(&w);
	assert_int_equal(ledger_asked(l, h.id, 1, 0, now), LEDGER_OK);
	assert_int_equal(ledger_delivered(l, h.id, 1, 0, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.run_count, 0);
	assert_int_equal(v.first_delivered.wall_us, now.wall_us);
	later(SECOND);
	assert_int_equal(ledger_delivered(l, h.id, 1, 0, now), LEDGER_OK);
	assert_int_equal(find(&w).first_delivered.wall_us, v.first_delivered.wall_us);
}

static void own_keys_find_the_record_first(void **state)
{
	struct write w, other, third;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 51);
	h = done(&w);
	write_make(&other, 2, 51);
	v = find(&other);
	assert_int_equal(v.hit, HIT_OWN_KEY);
	assert_int_equal(v.id, h.id);
	assert_int_equal(ledger_reserve(l, &other.rec, NULL, now, &h), LEDGER_LOST);
	write_make(&third, 3, 52);
	assert_int_equal(find(&third).state, REC_NONE);
	for (unsigned key = 52; key < 72; key++) {
		write_make(&third, 3, key);
		assert_int_equal(ledger_bind_key(l, v.id, third.own), LEDGER_OK);
		assert_int_equal(ledger_bind_key(l, v.id, third.own), LEDGER_OK);
	}
	write_make(&third, 3, 60);
	assert_int_equal(find(&third).hit, HIT_OWN_KEY);
	assert_int_equal(find(&third).id, v.id);
	/* gone with the record */
	later(101 * (int64_t)SECOND);
	sweep_some(l, 4, now);
	later(201 * (int64_t)SECOND);
	sweep_some(l, 4, now);
	assert_int_equal(find(&third).state, REC_NONE);
	reserve(&third);
	assert_int_equal(find(&third).hit, HIT_OWN_KEY);
}

static void new_key_on_delivered_content_is_a_record_of_its_own(void **state)
{
	struct write first, second;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&first, 1, 51);
	write_make(&second, 1, 52);
	h = done(&first);
	assert_int_equal(find(&second).hit, HIT_CONTENT);
	/* not before it was delivered */
	assert_int_equal(ledger_reserve(l, &second.rec, NULL, now, &h), LEDGER_LOST);
	v = find(&first);
	assert_int_equal(ledger_delivered(l, v.id, 1, 5, now), LEDGER_OK);
	assert_int_equal(ledger_reserve(l, &second.rec, NULL, now, &h), LEDGER_OK);
	assert_int_not_equal(h.id, v.id);
	assert_int_equal(find(&first).id, v.id);
	assert_int_equal(find(&second).id, h.id);
	/* without a key: the one that is alive */
	second.ids.own_key = NULL;
	assert_int_equal(find(&second).id, h.id);
}

/* The key's record is over and the key now comes with another content, which has its own record. */
static void key_moves_to_another_content(void **state)
{
	struct write first, moved, second;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&first, 1, 51);
	write_make(&second, 2, 0);
	write_make(&moved, 2, 51);
	done(&first);
	h = reserve(&second);
	assert_int_equal(ledger_withdraw(l, &h, now), LEDGER_OK);
	v = find(&moved);
	assert_int_equal(v.hit, HIT_OWN_KEY);
	moved.rec.generation = 2;
	assert_int_equal(ledger_reserve(l, &moved.rec, &v, now, &h), LEDGER_LOST);
	v = find(&moved);
	assert_int_equal(v.state, REC_FREED);
	assert_int_equal(ledger_reserve(l, &moved.rec, &v, now, &h), LEDGER_OK);
	assert_int_equal(find(&moved).id, h.id);
	/* and where that content has none, to a new one */
	write_make(&moved, 3, 51);
	v = find(&moved);
	assert_int_equal(ledger_reserve(l, &moved.rec, &v, now, &h), LEDGER_OK);
	assert_int_equal(find(&moved).id, h.id);
	assert_int_equal(find(&moved).hit, HIT_OWN_KEY);
}

static void other_account_hinders_until_delivered(void **state)
{
	struct write w, other;
	struct hold h;
	struct record_view v;
	struct ledger_answer a = {.status = 200, .blob = {"x", 1}};

	(void)state;
	write_make(&w, 1, 0);
	write_make(&other, 2, 0);
	memcpy(other.any, w.any, LEDGER_HASH);
	h = reserve(&w);
	v = find(&other);
	assert_int_equal(v.hit, HIT_ANY_ACCOUNT);
	assert_int_equal(v.id, h.id);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
	assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_OK);
	assert_int_equal(find(&other).hit, HIT_ANY_ACCOUNT);
	assert_int_equal(ledger_delivered(l, h.id, 1, 0, now), LEDGER_OK);
	assert_int_equal(find(&other).hit, HIT_NONE);
}

/* Both looked before either wrote: one inserts, the other is told to look again. */
static void opaque_accounts_do_not_insert_side_by_side(void **state)
{
	struct write w, other;
	struct hold h;

	(void)state;
	write_make(&w, 1, 0);
	write_make(&other, 2, 0);
	memcpy(other.any, w.any, LEDGER_HASH);
	w.rec.opaque = other.rec.opaque = true;
	reserve(&w);
	assert_int_equal(ledger_reserve(l, &other.rec, NULL, now, &h), LEDGER_LOST);
	other.rec.opaque = false; /* a name and a password are another account */
	assert_int_equal(ledger_reserve(l, &other.rec, NULL, now, &h), LEDGER_OK);
}

/* Another run's write of the same content has a record of its own, of the next generation. */
static void runs_write_side_by_side(void **state)
{
	struct write a, b;
	struct hold first, second, third;
	struct record_view v;

	(void)state;
	write_make(&a, 1, 0);
	write_make(&b, 1, 0);
	a.rec.run = 11;
	b.rec.run = 22;
	b.rec.generation = 2;
	first = done(&a);
	assert_int_equal(ledger_reserve(l, &b.rec, NULL, now, &second), LEDGER_LOST);
	assert_int_equal(ledger_delivered(l, first.id, 1, 11, now), LEDGER_OK);
	assert_int_equal(ledger_reserve(l, &a.rec, NULL, now, &third), LEDGER_LOST);
	later(1000);
	second = sent(&b);
	assert_int_equal(ledger_reserve(l, &b.rec, NULL, now, &third), LEDGER_LOST);
	assert_int_equal(find(&a).id, second.id);
	assert_int_equal(ledger_find_content(l, a.rec.content, 11, now, &v), LEDGER_OK);
	assert_int_equal(v.id, first.id);
	assert_int_equal(ledger_find_content(l, a.rec.content, 22, now, &v), LEDGER_NONE);
	assert_int_equal(ledger_find_content(l, a.rec.content, 0, now, &v), LEDGER_OK);
	assert_int_equal(v.id, second.id);
	assert_int_equal(ledger_done(l, &second, NULL, now), LEDGER_OK);
	assert_int_equal(ledger_delivered(l, second.id, 2, 22, now), LEDGER_OK);
	assert_int_equal(ledger_reserve(l, &b.rec, NULL, now, &third), LEDGER_LOST);
	assert_int_equal(ledger_find_content(l, a.rec.content, 22, now, &v), LEDGER_OK);
	assert_int_equal(v.id, second.id);
}

/* Equal writes of one run, each with a record of its own: asked for by number. */
static void a_run_asks_for_its_writes_in_turn(void **state)
{
	static const uint64_t made_by[] = {11, 22, 11, 11, 22};
	struct hold made[5];
	struct record_view v;
	struct write w;
	uint32_t place;

	(void)state;
	write_make(&w, 1, 0);
	assert_int_equal(ledger_find_turn(l, w.rec.content, 11, 1, now, &v, &place), LEDGER_NONE);
	for (uint32_t i = 0; i < 5; i++) {
		w.rec.run = made_by[i];
		w.rec.generation = i + 1;
		made[i] = done(&w);
		assert_int_equal(ledger_delivered(l, made[i].id, i + 1, made_by[i], now),
		                 LEDGER_OK);
		later(1000);
	}
	for (uint32_t turn = 1; turn <= 5; turn++) {
		static const int mine[] = {0, 2, 3, 3, 3}, other[] = {1, 4, 4, 4, 4};

		assert_int_equal(ledger_find_turn(l, w.rec.content, 11, turn, now, &v, &place),
		                 LEDGER_OK);
		assert_int_equal(v.id, made[mine[turn - 1]].id);
		assert_int_equal(v.hit, HIT_CONTENT);
		assert_int_equal(place, turn < 3 ? turn : 3);
		assert_int_equal(ledger_find_turn(l, w.rec.content, 22, turn, now, &v, &place),
		                 LEDGER_OK);
		assert_int_equal(v.id, made[other[turn - 1]].id);
		assert_int_equal(place, turn < 2 ? turn : 2);
	}
	assert_int_equal(ledger_find_turn(l, w.rec.content, 33, 1, now, &v, &place), LEDGER_NONE);
}

/* Its own record is found first, freed or delivered; the neighbour is there to be asked for. */
static void a_record_of_its_own_does_not_hide_a_neighbour(void **state)
{
	struct write w, other;
	struct hold h, mine;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	write_make(&other, 2, 0);
	memcpy(other.any, w.any, LEDGER_HASH);
	mine = reserve(&other);
	assert_int_equal(ledger_withdraw(l, &mine, now), LEDGER_OK);
	assert_int_equal(ledger_find_neighbour(l, &other.ids, now, &v), LEDGER_NONE);
	h = sent(&w);
	assert_int_equal(find(&other).hit, HIT_CONTENT);
	assert_int_equal(ledger_find_neighbour(l, &other.ids, now, &v), LEDGER_OK);
	assert_int_equal(v.hit, HIT_ANY_ACCOUNT);
	assert_int_equal(v.id, h.id);
	other.ids.any_account = NULL;
	assert_int_equal(ledger_find_neighbour(l, &other.ids, now, &v), LEDGER_NONE);
}

static void other_settings_hinder_until_delivered(void **state)
{
	struct write w, other;
	struct hold h;

	(void)state;
	write_make(&w, 1, 0);
	write_make(&other, 2, 0);
	other.ids.settings = other.rec.settings = 8;
	h = sent(&w);
	assert_int_equal(find(&other).hit, HIT_OTHER_SETTINGS);
	assert_int_equal(find(&other).id, h.id);
	other.ids.operation = "another";
	assert_int_equal(find(&other).hit, HIT_NONE);
	other.ids.operation = "op";
	fill(other.place, 3, 1);
	assert_int_equal(find(&other).hit, HIT_NONE);
	fill(other.place, 3, 0);
	assert_int_equal(ledger_done(l, &h, NULL, now), LEDGER_OK);
	assert_int_equal(find(&other).hit, HIT_OTHER_SETTINGS);
	assert_int_equal(ledger_delivered(l, h.id, 1, 0, now), LEDGER_OK);
	assert_int_equal(find(&other).hit, HIT_NONE);
}

static void answer_that_is_not_final_lasts_as_long_as_the_lease(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	struct buf blob = {0};
	struct ledger_answer a = {.status = 503, .blob = {"busy", 4}};
	long status;

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	assert_int_equal(ledger_unknown(l, &h, false, &a, now), LEDGER_OK);
	v = find(&w);
	assert_true(v.answer_kept);
	assert_false(v.answer_final);
	assert_int_equal(v.status, 503);
	assert_int_equal(ledger_answer(l, &v, &blob, &status), LEDGER_OK);
	assert_true(span_is(span_buf(&blob), "busy"));
	buf_free(&blob);
	later(16 * SECOND);
	v = find(&w);
	assert_false(v.answer_kept);
	sweep_some(l, 4, now);
	assert_int_equal(ledger_answer(l, &v, &blob, &status), LEDGER_NONE);
	assert_int_equal(find(&w).state, REC_UNKNOWN);
}

static void answer_too_large_is_done_and_not_kept(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	static char big[5000];
	struct ledger_answer a = {.status = 200, .blob = {big, sizeof(big)}};

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_DONE);
	assert_int_equal(v.status, 200);
	assert_false(v.answer_kept);
}

static void resolve_and_forget(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	struct ledger_answer a = {.status = 200, .blob = {"by hand", 7}};

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	v = find(&w);
	assert_int_equal(ledger_resolve(l, &v, true, &a, now), LEDGER_LOST);
	assert_int_equal(ledger_forget(l, &v, now), LEDGER_LOST);
	assert_int_equal(ledger_unknown(l, &h, false, NULL, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(ledger_resolve(l, &v, false, NULL, now), LEDGER_OK);
	assert_int_equal(ledger_resolve(l, &v, false, NULL, now), LEDGER_LOST);
	v = find(&w);
	assert_int_equal(v.freed, FREED_RESOLVED);
	assert_int_equal(ledger_reserve(l, &w.rec, &v, now, &h), LEDGER_OK);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
	later(16 * SECOND);
	v = find(&w);
	assert_int_equal(ledger_resolve(l, &v, true, &a, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_DONE);
	assert_true(v.answer_kept && v.answer_final);
	assert_int_equal(ledger_resolve(l, &v, false, NULL, now), LEDGER_LOST);
	assert_int_equal(ledger_forget(l, &v, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_FREED);
	assert_int_equal(v.freed, FREED_STORED);
	assert_string_equal(v.key, "");
	assert_true(ledger_has_pid(l, NULL, 0) == false);
}

static void who_has_a_record_here(void **state)
{
	struct write w;
	int parent = getppid(), self = getpid();

	(void)state;
	assert_false(ledger_has_pid(l, &self, 1));
	write_make(&w, 1, 0);
	done(&w);
	assert_true(ledger_has_pid(l, &parent, 1));
	assert_true(ledger_has_pid(l, &self, 1));
}

static void abandon_leaves_the_truth(void **state)
{
	struct write w;
	struct hold h;

	(void)state;
	write_make(&w, 1, 0);
	h = reserve(&w);
	ledger_abandon(l, &h, now);
	assert_int_equal(find(&w).state, REC_FREED);
	write_make(&w, 2, 0);
	h = sent(&w);
	ledger_abandon(l, &h, now);
	assert_int_equal(find(&w).state, REC_UNKNOWN);
}

static void full_ledger_still_answers(void **state)
{
	struct write w;
	struct hold h;
	struct ledger_answer a = {.status = 201, .blob = {"0123456789", 10}};
	unsigned n = 0;
	int rc;

	(void)state;
	for (rc = LEDGER_OK; rc == LEDGER_OK; n++) {
		write_make(&w, n, n + 1);
		rc = ledger_reserve(l, &w.rec, NULL, now, &h);
		if (rc == LEDGER_OK && ledger_gate(l, &h, now) == LEDGER_OK)
			assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_OK);
	}
	assert_int_equal(rc, LEDGER_FULL);
	assert_true(n > 100);
	for (unsigned i = 0; i + 1 < n; i++) {
		write_make(&w, i, 0);
		assert_int_equal(find(&w).state, REC_DONE);
	}
	/* what has expired makes room, also where nothing was swept meanwhile */
	later(101 * (int64_t)SECOND);
	sweep_some(l, n, now);
	later(201 * (int64_t)SECOND);
	for (unsigned i = 0; i + 1 < n; i++) {
		write_make(&w, 10000 + i, 10000 + i);
		assert_int_equal(ledger_reserve(l, &w.rec, NULL, now, &h), LEDGER_OK);
	}
}

static void child_is_another_owner(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	pid_t pid;
	int status;

	(void)state;
	write_make(&w, 1, 0);
	pid = fork();
	if (pid == 0) {
		if (ledger_reserve(l, &w.rec, NULL, clock_now(), &h) != LEDGER_OK)
			_exit(1);
		_exit(ledger_gate(l, &h, clock_now()) == LEDGER_OK ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	v = find(&w);
	assert_int_equal(v.state, REC_SENT);
	assert_int_equal(v.owner, OWNER_DEAD);
	assert_true(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, now, &h), LEDGER_OK);
	assert_int_equal(find(&w).state, REC_UNKNOWN);
	assert_int_equal(find(&w).owner, OWNER_ALIVE);
}

static void dead_owner_of_a_reserved_one_is_followed(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;
	pid_t pid;

	(void)state;
	write_make(&w, 1, 0);
	pid = fork();
	if (pid == 0)
		_exit(ledger_reserve(l, &w.rec, NULL, clock_now(), &h) == LEDGER_OK ? 0 : 1);
	waitpid(pid, NULL, 0);
	v = find(&w);
	assert_int_equal(v.state, REC_RESERVED);
	assert_int_equal(v.owner, OWNER_DEAD);
	assert_int_equal(ledger_take(l, &v, now, &h), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_RESERVED);
	assert_int_equal(v.generation, 1);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
}

static struct layout_owner *slots(void)
{
	return (struct layout_owner *)(void *)(l->base + l->fixed.owners_at);
}

static void owner_in_another_namespace_is_judged_by_its_lease(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	atomic_fetch_xor(&slots()[owner_self(l).slot].pid_ns, 1);
	v = find(&w);
	assert_int_equal(v.owner, OWNER_UNKNOWABLE);
	assert_int_equal(v.owner_pid, 0);
	assert_true(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, now, &h), LEDGER_LOST);
	later(16 * SECOND);
	v = find(&w);
	assert_false(v.lease_fresh);
	assert_int_equal(ledger_take(l, &v, now, &h), LEDGER_OK);
}

static void owner_of_another_boot_holds_nothing(void **state)
{
	struct write w;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	sent(&w);
	now.boot ^= 1;
	v = find(&w);
	assert_int_equal(v.owner, OWNER_UNKNOWABLE);
	assert_false(v.lease_fresh);
}

/* A new process finds a slot only where the old one is certainly not at work. */
static int claims(int64_t silent_seconds, bool other_boot)
{
	struct stamp t = clock_now();
	struct layout_owner *s = slots();
	uint64_t seen = lease_make(t, 15 - silent_seconds);
	int status;
	pid_t pid;

	for (unsigned i = 1; i < LAYOUT_OWNERS; i++) {
		atomic_store(&s[i].claim,
		             UINT64_C(2) << 50 | UINT64_C(77) << 28 |
		                     ((uint64_t)(t.boot_us / SECOND - silent_seconds) & 0xfffffff));
		atomic_store(&s[i].boot, t.boot);
		atomic_store(&s[i].pid_ns, 1);
		atomic_store(&s[i].seen, other_boot ? seen ^ 1 : seen);
	}
	pid = fork();
	if (pid == 0) {
		struct write w;
		struct hold h;
		write_make(&w, 1, 0);
		_exit(ledger_reserve(l, &w.rec, NULL, t, &h) == LEDGER_OK);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void slots_are_taken_from_the_silent_only(void **state)
{
	(void)state;
	assert_int_equal(claims(5, false), 0);
	assert_int_equal(claims(40, false), 0);
	assert_int_equal(claims(90, false), clock_boot_us() > 90 * (int64_t)SECOND);
	ledger_close(l);
	assert_int_equal(open_new(512 * 1024), 0);
	assert_int_equal(claims(5, true), 1);
}

static void owners_come_and_go_by_the_thousand(void **state)
{
	struct write w;
	struct hold h;
	int status;
	pid_t pid;

	(void)state;
	for (unsigned i = 0; i < 1100; i++) {
		pid = fork();
		if (pid == 0) {
			write_make(&w, i % 50, 0);
			_exit(owner_self(l).slot ? 0 : 1);
		}
		waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
	}
	write_make(&w, 1, 0);
	h = reserve(&w);
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
}

static void locks_of_the_dead_are_stolen(void **state)
{
	struct write w;
	struct hold h;
	struct change c;
	int64_t start;
	pid_t pid;

	(void)state;
	write_make(&w, 1, 0);
	h = reserve(&w);
	pid = fork();
	if (pid == 0) {
		change_begin(l, h.id, &c);
		_exit(lock_take(l, &l->header->table_lock) ? 0 : 1);
	}
	waitpid(pid, NULL, 0);
	start = clock_boot_us();
	assert_int_equal(ledger_gate(l, &h, now), LEDGER_OK);
	write_make(&w, 2, 0);
	reserve(&w);
	assert_true(clock_boot_us() - start < 5 * SECOND);
}

/* A lock of 20 s ago. Of somebody who is seen to live a place stays, and any other lock goes. */
static void a_place_stays_with_the_living(void **state)
{
	shared64 *lock = &record_at(l, 5)->lock;
	uint64_t old;
	pid_t pid;

	(void)state;
	old = lock_try(l, lock) - ((uint64_t)(20 * SECOND) >> 10 << 23);
	atomic_store(lock, old);
	assert_true(lock_try(l, lock) == 0);
	assert_true(lock_take(l, lock) != 0);
	pid = fork();
	if (pid == 0) {
		atomic_store(lock, 0);
		_exit(lock_try(l, lock) ? 0 : 1);
	}
	waitpid(pid, NULL, 0);
	assert_true(atomic_load(lock) != 0 && lock_try(l, lock) != 0); /* the dead keep nothing */
	atomic_store(lock, UINT64_C(20) << 23);                        /* nobody's, of long ago */
	assert_true(lock_try(l, lock) != 0);
}

/* Stopped for so long that its lock was taken away: what it publishes is void. */
static void late_publication_is_lost(void **state)
{
	struct write w;
	struct hold h;
	struct change late, in_time;

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	assert_int_equal(change_begin(l, h.id, &late), LEDGER_OK);
	atomic_store(&late.rec->lock, 0);
	assert_int_equal(change_begin(l, h.id, &in_time), LEDGER_OK);
	in_time.bank.wire_sends = 9;
	assert_int_equal(change_publish(l, &in_time, NULL), LEDGER_OK);
	late.word.state = REC_FREED;
	assert_int_equal(change_publish(l, &late, NULL), LEDGER_LOST);
	/* and also when the lock looks like its own again */
	assert_int_equal(change_begin(l, h.id, &in_time), LEDGER_OK);
	late.token = in_time.token;
	assert_int_equal(change_publish(l, &late, NULL), LEDGER_LOST);
	assert_int_equal(find(&w).state, REC_SENT);
	assert_int_equal(find(&w).wire_sends, 9);
}

/* A place taken and marked, its maker dead before the record was there. */
static void half_made_record_is_cleared_away(void **state)
{
	struct write w;
	struct layout_record *rec;

	(void)state;
	write_make(&w, 1, 3);
	rec = record_at(l, 0);
	atomic_store(&l->header->next_record, 1);
	atomic_store(&rec->life, 1);
	atomic_store(&rec->linked, 1);
	shared_in(rec->content, w.content, LEDGER_HASH);
	shared_in(rec->any_account, w.any, LEDGER_HASH);
	assert_int_equal(index_add(l, w.content, INDEX_CONTENT, 0), LEDGER_OK);
	assert_int_equal(key_bind(l, record_id(0, 1), w.own), LEDGER_OK);
	assert_int_equal(find(&w).state, REC_NONE);
	sweep_some(l, 1, now);
	assert_int_equal(atomic_load(&rec->linked), 0);
	assert_false(index_has(l, w.content, INDEX_CONTENT, 0));
	assert_int_equal(key_find(l, w.own), LEDGER_NONE);
	assert_int_equal(reserve(&w).id & UINT32_MAX, 1);
}

static void extents_of_the_dead_are_found(void **state)
{
	struct write w;
	struct hold h;
	uint32_t unit, last = 0;

	(void)state;
	write_make(&w, 1, 0);
	h = reserve(&w);
	while ((unit = heap_take(l, 10000, EXTENT_ANSWER, h.id, now)) != 0)
		last = unit;
	assert_int_not_equal(last, 0);
	later(50 * (int64_t)SECOND);
	assert_int_equal(heap_take(l, 10000, EXTENT_ANSWER, h.id, now), 0);
	later(20 * (int64_t)SECOND);
	assert_int_not_equal(heap_take(l, l->fixed.heap_size * 3 / 4, EXTENT_ANSWER, h.id, now), 0);
	assert_string_equal(find(&w).key, "the-key");
}

/* A page of the heap that never got to the disk: what is behind it is found again, what is named
 * stays. */
static void a_hole_in_the_heap_does_not_end_it(void **state)
{
	static char body[3000];
	struct write w[4];
	struct ledger_answer a = {.status = 200, .blob = {body, sizeof(body)}};
	struct record_view v;
	struct buf blob = {0};
	struct hold h;
	uint64_t half = l->fixed.heap_size / 2;
	long status;

	(void)state;
	memset(body, 'b', sizeof(body));
	for (unsigned i = 0; i < 4; i++) {
		write_make(&w[i], i, 0);
		h = sent(&w[i]);
		assert_int_equal(ledger_done(l, &h, &a, now), LEDGER_OK);
	}
	memset(l->base + l->fixed.heap_at + 3136, 0, 4096); /* behind the first one */
	assert_true(ledger_verify(l, NULL, NULL) > 0);
	later(70 * (int64_t)SECOND);
	/* The rest of it, twice: in front of the hole there is not that much. */
	assert_int_not_equal(heap_take(l, half, EXTENT_ANSWER, h.id, now), 0);
	while (heap_take(l, 2000, EXTENT_ANSWER, h.id, now))
		;
	later(70 * (int64_t)SECOND);
	assert_int_not_equal(heap_take(l, half, EXTENT_ANSWER, h.id, now), 0);
	for (unsigned i = 0; i < 4; i += 3) {
		v = find(&w[i]);
		assert_int_equal(ledger_answer(l, &v, &blob, &status), LEDGER_OK);
		assert_memory_equal(blob.data, body, sizeof(body));
		buf_free(&blob);
	}
	for (unsigned i = 1; i < 3; i++) {
		v = find(&w[i]);
		assert_int_equal(ledger_forget(l, &v, now), LEDGER_OK);
	}
}

static void all_are_found(unsigned count, unsigned without)
{
	struct write w;
	struct record_view v;

	for (unsigned i = 0; i < count; i++) {
		write_make(&w, i, 0);
		v = find(&w);
		assert_int_equal(v.state, i == without ? REC_NONE : REC_DONE);
		write_make(&w, 100000 + i, i + 1);
		v = find(&w);
		assert_int_equal(v.hit, i == without ? HIT_NONE : HIT_OWN_KEY);
	}
}

/* Each level is filled from the one before; who died while filling one left entries there. */
static void index_grows(void **state)
{
	struct write w;
	struct index_walk old;
	uint64_t level = 0;
	unsigned n;

	(void)state;
	ledger_close(l);
	assert_int_equal(open_new(4 << 20), LEDGER_OK);
	write_make(&w, 0, 0);
	old = index_start(l, w.content, INDEX_CONTENT);
	for (n = 0; level < 2; n++) {
		write_make(&w, n, n + 1);
		done(&w);
		level = atomic_load(&l->header->index_level);
	}
	assert_true(n > 300);
	all_are_found(n, n);
	/* begun before it grew: goes on where everything is */
	write_make(&w, 0, 0);
	assert_int_equal(old.level, 0);
	assert_int_equal(index_next(l, &old), 0);
	write_make(&w, n - 1, 0);
	old = index_start(l, w.content, INDEX_CONTENT);
	old.level = 0;
	assert_int_equal(index_next(l, &old), n - 1);
	/* back to the middle of the growth: the next level is there, and not switched to */
	atomic_store(&l->header->index_level, 1);
	atomic_store(&l->header->index_left, 0);
	for (; atomic_load(&l->header->index_level) < 2; n++) {
		write_make(&w, n, n + 1);
		done(&w);
	}
	all_are_found(n, n);
	later(101 * (int64_t)SECOND);
	sweep_some(l, UINT64_MAX, now);
	later(201 * (int64_t)SECOND);
	sweep_one(l, record_at(l, 7), now);
	write_make(&w, 7, 8);
	assert_int_equal(find(&w).hit, HIT_NONE);
}

/* The same from another process that has seen nothing of it. */
static void growth_is_seen_by_others(void **state)
{
	struct ledger_options o = {.path = path, .max_response = 4096};
	struct ledger_error e;
	struct ledger *mine = l, *other;
	struct write w;

	(void)state;
	ledger_close(l);
	assert_int_equal(open_new(4 << 20), LEDGER_OK);
	mine = l;
	write_make(&w, 0, 0);
	done(&w);
	assert_int_equal(ledger_open(&o, &other, &e), LEDGER_OK);
	for (unsigned n = 1; atomic_load(&l->header->index_level) < 2; n++) {
		write_make(&w, n, 0);
		done(&w);
	}
	l = other;
	assert_int_equal(find(&w).state, REC_DONE);
	write_make(&w, 0, 0);
	assert_int_equal(find(&w).state, REC_DONE);
	write_make(&w, 99999, 0);
	assert_int_equal(find(&w).state, REC_NONE);
	ledger_close(other);
	l = mine;
}

/* Nobody looks at a group before something in it can be over, and everybody's moment is kept. */
static void sweep_looks_when_it_is_time(void **state)
{
	struct write w;
	uint64_t token;

	(void)state;
	for (unsigned n = 0; n < 30; n++) {
		write_make(&w, n, 0);
		w.rec.ttl_us = (100 + (int64_t)n) * SECOND;
		done(&w);
	}
	later(99 * (int64_t)SECOND);
	assert_int_equal(due_begin(l, 0, now), 0);
	later(2 * SECOND);
	sweep_some(l, 4, now);
	write_make(&w, 0, 0);
	assert_int_equal(find(&w).state, REC_TOMBSTONE);
	write_make(&w, 5, 0);
	assert_int_equal(find(&w).state, REC_DONE);
	for (int i = 0; i < 6; i++) /* what it publishes itself makes it look once more */
		sweep_some(l, 4, now);
	assert_int_equal(due_begin(l, 0, now), 0);
	later(30 * (int64_t)SECOND);
	for (int i = 0; i < 6; i++)
		sweep_some(l, 4, now);
	for (unsigned n = 0; n < 30; n++) {
		write_make(&w, n, 0);
		assert_int_equal(find(&w).state, REC_TOMBSTONE);
	}
	/* one that comes while a sweep is under way is not forgotten; a sweep of the dead ends */
	later(500 * (int64_t)SECOND);
	token = due_begin(l, 0, now);
	assert_int_not_equal(token, 0);
	assert_int_equal(due_begin(l, 0, now), 0);
	due_note(l, 3, (uint64_t)now.wall_us + 1000);
	due_end(l, 0, token, 0);
	assert_int_not_equal(due_begin(l, 0, now), 0);
	later(6 * SECOND);
	assert_int_not_equal(due_begin(l, 0, now), 0);
}

/* A person's word about a write whose facts are damaged counts at once. */
static void resolved_without_facts(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 0);
	h = sent(&w);
	assert_int_equal(ledger_unknown(l, &h, false, NULL, now), LEDGER_OK);
	record_at(l, 0)->room[3] ^= 1;
	v = find(&w);
	assert_int_equal(v.state, REC_UNKNOWN);
	assert_string_equal(v.key, "");
	assert_int_equal(ledger_resolve(l, &v, true, NULL, now), LEDGER_OK);
	v = find(&w);
	assert_int_equal(v.state, REC_DONE);
	assert_false(v.in_doubt);
	later(101 * (int64_t)SECOND);
	sweep_some(l, 10, now);
	assert_int_equal(find(&w).state, REC_TOMBSTONE);
}

static void errno_is_kept(void **state)
{
	struct write w;
	struct hold h;
	struct record_view v;

	(void)state;
	write_make(&w, 1, 5);
	errno = 4242;
	h = done(&w);
	v = find(&w);
	ledger_asked(l, h.id, 1, 5, now);
	ledger_wait(l, h.id, v.word, 1000);
	ledger_look(l, h.id, now, &v);
	ledger_verify(l, NULL, NULL);
	assert_int_equal(errno, 4242);
}

static void names_and_counters(void **state)
{
	(void)state;
	assert_int_equal(ledger_name_hash(span_of("")), 0);
	assert_int_not_equal(ledger_name_hash(span_of("a")), 0);
	assert_int_not_equal(ledger_name_hash(span_of("a")), ledger_name_hash(span_of("b")));
	assert_string_equal(record_state_name(REC_UNKNOWN), "unknown");
	assert_string_equal(ledger_counter_name(COUNT_replayed), "replayed");
	ledger_count(l, COUNT_replayed);
	ledger_count(l, COUNT_replayed);
	assert_int_equal(ledger_counter(l, COUNT_replayed), 2);
	assert_int_equal(ledger_counter(l, COUNT_joined), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(view_says_what_was_reserved),
	        CASE(second_reserve_is_lost),
	        CASE(gate_then_done),
	        CASE(withdrawn_before_the_gate),
	        CASE(doubt_is_sent_again_with_first_sent_kept),
	        CASE(freed_by_each_kind),
	        CASE(late_not_executed_after_the_record_was_given_up),
	        CASE(generation_needs_a_reason),
	        CASE(expiry_leaves_a_tombstone_and_then_nothing),
	        CASE(wall_clock_jump_expires_nothing),
	        CASE(runs_keep_eight_and_drop_the_oldest_delivered),
	        CASE(delivered_to_an_unknown_run),
	        CASE(own_keys_find_the_record_first),
	        CASE(new_key_on_delivered_content_is_a_record_of_its_own),
	        CASE(key_moves_to_another_content),
	        CASE(other_account_hinders_until_delivered),
	        CASE(opaque_accounts_do_not_insert_side_by_side),
	        CASE(runs_write_side_by_side),
	        CASE(a_run_asks_for_its_writes_in_turn),
	        CASE(a_record_of_its_own_does_not_hide_a_neighbour),
	        CASE(other_settings_hinder_until_delivered),
	        CASE(answer_that_is_not_final_lasts_as_long_as_the_lease),
	        CASE(answer_too_large_is_done_and_not_kept),
	        CASE(resolve_and_forget),
	        CASE(who_has_a_record_here),
	        CASE(abandon_leaves_the_truth),
	        CASE(full_ledger_still_answers),
	        CASE(child_is_another_owner),
	        CASE(dead_owner_of_a_reserved_one_is_followed),
	        CASE(owner_in_another_namespace_is_judged_by_its_lease),
	        CASE(owner_of_another_boot_holds_nothing),
	        CASE(slots_are_taken_from_the_silent_only),
	        CASE(owners_come_and_go_by_the_thousand),
	        CASE(locks_of_the_dead_are_stolen),
	        CASE(a_place_stays_with_the_living),
	        CASE(late_publication_is_lost),
	        CASE(half_made_record_is_cleared_away),
	        CASE(extents_of_the_dead_are_found),
	        CASE(a_hole_in_the_heap_does_not_end_it),
	        CASE(index_grows),
	        CASE(growth_is_seen_by_others),
	        CASE(sweep_looks_when_it_is_time),
	        CASE(resolved_without_facts),
	        CASE(errno_is_kept),
	        CASE(names_and_counters),
	};

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/ledger", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
