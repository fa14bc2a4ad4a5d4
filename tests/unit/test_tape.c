/* The tape alone: order, what stays and what does not, and readers beside a writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "courier/tape.h"
#include "unit/threads_here.h"

static void add(struct tape *t, enum tape_kind kind, const void *data, size_t n)
{
	struct tape_piece p = {.kind = kind, .data = data, .n = n};

	assert_int_equal(tape_add(t, &p), 0);
}

static void add_line(struct tape *t, const char *line, bool connect)
{
	struct tape_piece p = {.kind = TAPE_HEADER,
	                       .data = line,
	                       .n = strlen(line),
	                       .connect = connect,
	                       .request = 7};

	assert_int_equal(tape_add(t, &p), 0);
}

static void add_body(struct tape *t, size_t n, char c)
{
	char *data = malloc(n);

	assert_non_null(data);
	memset(data, c, n);
	add(t, TAPE_BODY, data, n);
	free(data);
}

static void pieces_come_in_order_and_are_copies(void **state)
{
	struct tape *t = tape_new(100);
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	char body[] = {'a', '\0', 'b'};

	(void)state;
	assert_int_equal(tape_read(t, &cursor, &p), 0);
	add_line(t, "HTTP/1.1 200 OK\r\n", false);
	add(t, TAPE_BODY, body, sizeof body);
	memset(body, 'x', sizeof body);
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_int_equal(p.kind, TAPE_HEADER);
	assert_int_equal(p.request, 7);
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_int_equal(p.kind, TAPE_BODY);
	assert_int_equal(p.n, 3);
	assert_memory_equal(p.data, "a\0b", 3);
	assert_int_equal(cursor.body_bytes, 3);
	assert_int_equal(tape_read(t, &cursor, &p), 0);
	add(t, TAPE_BODY, "c", 1);
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_int_equal(cursor.body_bytes, 4);
	tape_unref(t);
}

static void two_readers_have_their_own_place(void **state)
{
	struct tape *t = tape_new(100);
	struct tape_cursor one = {0}, two = {0};
	struct tape_piece p;

	(void)state;
	add(t, TAPE_BODY, "1", 1);
	add(t, TAPE_BODY, "2", 1);
	assert_int_equal(tape_read(t, &one, &p), 1);
	assert_int_equal(tape_read(t, &one, &p), 1);
	assert_int_equal(tape_read(t, &two, &p), 1);
	assert_memory_equal(p.data, "1", 1);
	tape_unref(t);
}

/* What a turn brought is shown with the snapshot that belongs to it. */
static void a_held_tape_shows_nothing_by_itself(void **state)
{
	struct tape *t = tape_new(100);
	struct tape_end end = {.code = CURLE_OK};
	struct tape_cursor cursor = {0}, late = {0};
	struct tape_piece p;

	(void)state;
	add_body(t, 1, 'a');
	tape_hold(t);
	add_body(t, 1, 'b');
	add_body(t, 1, 'c');
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_int_equal(tape_read(t, &cursor, &p), 0);
	tape_show(t);
	add_body(t, 1, 'd');
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_memory_equal(p.data, "b", 1);
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_int_equal(tape_read(t, &cursor, &p), 0);
	assert_int_equal(tape_read(t, &late, &p), 1);
	tape_finish(t, &end);
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_memory_equal(p.data, "d", 1);
	assert_int_equal(tape_read(t, &cursor, &p), 0);
	tape_unref(t);
}

static void the_end_is_told_once(void **state)
{
	struct tape *t = tape_new(100);
	struct tape_end end = {.complete = true, .code = CURLE_OK, .status = 201}, seen;

	(void)state;
	tape_ended(t, &seen);
	assert_false(seen.ended);
	tape_finish(t, &end);
	end.status = 500;
	tape_finish(t, &end);
	tape_ended(t, &seen);
	assert_true(seen.ended);
	assert_true(seen.complete);
	assert_int_equal(seen.status, 201);
	tape_unref(t);
}

/* Lines as they come, and what the last origin block then is. */
static void last_headers_are_the_origins(void **state)
{
	static const struct {
		const char *line[10];
		const char *last;
		unsigned connect; /* bit i: line i is CONNECT's */
	} cases[] = {
	        {{"HTTP/1.1 200 OK\r\n", "A: b\r\n", "\r\n"}, "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", 0},
	        {{"HTTP/1.1 302 Go\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", "\r\n"},
	         "HTTP/1.1 200 OK\r\n\r\n",
	         0},
	        {{"HTTP/1.1 200 Tunnel\r\n", "\r\n", "HTTP/1.1 201 OK\r\n", "\r\n"},
	         "HTTP/1.1 201 OK\r\n\r\n",
	         3},
	        {{"HTTP/1.1 407 No\r\n", "\r\n"}, "", 3},
	        {{"HTTP/1.1 200 OK\r\n", "\r\n", "Trailer: t\r\n"}, "HTTP/1.1 200 OK\r\n\r\n", 0},
	        {{"HTTP/1.1 100 Continue\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", "\r\n"},
	         "HTTP/1.1 200 OK\r\n\r\n",
	         0},
	        {{"ICY 200 OK\r\n", "\r\n"}, "ICY 200 OK\r\n\r\n", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tape *t = tape_new(100);

		for (unsigned j = 0; cases[i].line[j]; j++)
			add_line(t, cases[i].line[j], cases[i].connect >> j & 1);
		assert_int_equal(tape_head(t).n, strlen(cases[i].last));
		if (tape_head(t).n)
			assert_string_equal(tape_head(t).p, cases[i].last);
		tape_unref(t);
	}
}

static void body_is_whole_or_not_given(void **state)
{
	static const struct {
		size_t pieces, size, keep, max;
		int rc;
	} cases[] = {
	        {0, 0, 10, 10, 0},  {2, 5, 10, 10, 0},   {2, 5, 10, 9, -1},
	        {3, 5, 10, 99, -1}, {1, 11, 10, 99, -1}, {1, 1, 0, 99, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tape *t = tape_new(cases[i].keep);
		struct buf spare = {0};
		struct span body = {0};

		for (size_t j = 0; j < cases[i].pieces; j++)
			add_body(t, cases[i].size, 'x');
		assert_int_equal(tape_body(t, cases[i].max, &spare, &body), cases[i].rc);
		if (!cases[i].rc)
			assert_int_equal(body.n, cases[i].pieces * cases[i].size);
		assert_int_equal(tape_attach(t), cases[i].pieces * cases[i].size <= cases[i].keep);
		buf_free(&spare);
		tape_unref(t);
	}
}

static void a_reader_gets_all_above_keep(void **state)
{
	struct tape *t = tape_new(10);
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	size_t n = 0;

	(void)state;
	assert_true(tape_attach(t));
	for (int i = 0; i < 100; i++)
		add_body(t, 7, 'x');
	while (tape_read(t, &cursor, &p))
		n += p.n;
	assert_int_equal(n, 700);
	assert_false(tape_attach(t)); /* what was played is gone */
	tape_detach(t);
	tape_unref(t);
}

static void a_slow_reader_loses_nothing(void **state)
{
	struct tape *t = tape_new(10);
	struct tape_cursor fast = {0}, slow = {0};
	struct tape_piece p;

	(void)state;
	assert_true(tape_attach(t));
	assert_true(tape_attach(t));
	for (char c = 'a'; c <= 'z'; c++)
		add_body(t, 5, c);
	while (tape_read(t, &fast, &p))
		;
	for (char c = 'a'; c <= 'z'; c++) {
		assert_int_equal(tape_read(t, &slow, &p), 1);
		assert_int_equal(p.data[0], c);
	}
	assert_int_equal(slow.body_bytes, fast.body_bytes);
	tape_unref(t);
}

static void full_only_for_a_reader_that_lags(void **state)
{
	struct tape *t = tape_new(SIZE_MAX);
	struct tape_cursor cursor = {0};
	struct tape_piece p;

	(void)state;
	add_body(t, (4 << 20) + 1, 'x');
	assert_false(tape_full(t)); /* nobody there */
	assert_true(tape_attach(t));
	assert_true(tape_full(t));
	assert_int_equal(tape_read(t, &cursor, &p), 1);
	assert_false(tape_full(t));
	add_body(t, 4 << 20, 'x');
	assert_false(tape_full(t)); /* at most 4 MiB is not too much */
	add_body(t, 1, 'x');
	assert_true(tape_full(t));
	tape_detach(t);
	assert_false(tape_full(t));
	tape_unref(t);
}

/* One that left without a word (longjmp) holds the sender back no longer than the others do. */
static void a_reader_that_vanished_stops_nobody(void **state)
{
	struct tape *t = tape_new(SIZE_MAX);
	struct tape_cursor here = {0};
	struct tape_piece p;

	(void)state;
	assert_true(tape_attach(t));
	assert_true(tape_attach(t));
	add_body(t, (4 << 20) + 1, 'x');
	assert_int_equal(tape_read(t, &here, &p), 1);
	assert_false(tape_full(t));
	tape_unref(t);
}

static void snapshot_is_copied(void **state)
{
	struct tape *t = tape_new(10);
	struct info *copy;

	(void)state;
	assert_null(tape_info_copy(t));
	tape_info(t, info_new());
	tape_info(t, info_new());
	copy = tape_info_copy(t);
	assert_non_null(copy);
	tape_unref(t);
	info_free(copy);
}

enum { THREADS = 3, PIECES = 20000 };

static void *read_all(void *arg)
{
	struct tape *t = arg;
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	struct tape_end end = {0};
	size_t n = 0;

	do {
		tape_ended(t, &end);
		while (tape_read(t, &cursor, &p))
			n += p.n == 3 && !memcmp(p.data, "abc", 3);
	} while (!end.ended);
	tape_detach(t);
	return (void *)n;
}

static void readers_beside_a_writer_miss_nothing(void **state)
{
	struct tape *t = tape_new(100);
	struct tape_end end = {.complete = true};
	pthread_t thread[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		assert_true(tape_attach(t));
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, t), 0);
	}
	for (int i = 0; i < PIECES; i++)
		add(t, TAPE_BODY, "abc", 3);
	tape_finish(t, &end);
	for (int i = 0; i < THREADS; i++) {
		void *n = NULL;

		pthread_join(thread[i], &n);
		assert_int_equal((uintptr_t)n, PIECES);
	}
	tape_unref(t);
}

static void a_snapshot_taken_is_gone(void **state)
{
	struct tape *t = tape_new(100);
	struct info *info = info_new();

	(void)state;
	assert_non_null(info);
	info_set_long(info, CURLINFO_RESPONSE_CODE, 201);
	tape_info(t, info);
	assert_ptr_equal(tape_info_take(t), info);
	assert_null(tape_info_take(t));
	tape_unref(t);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 201);
	info_free(info);
}

static void expect_pieces(struct tape *t, const char *const *want, size_t count)
{
	struct tape_cursor cursor = {0};
	struct tape_piece p;

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(tape_read(t, &cursor, &p), 1);
		assert_int_equal(p.n, strlen(want[i]));
		assert_string_equal(p.data, want[i]);
		assert_int_equal(p.kind, i + 1 < count ? TAPE_HEADER : TAPE_BODY);
	}
	assert_int_equal(tape_read(t, &cursor, &p), 0);
}

static void an_answer_filled_in_at_once_reads_as_pieces(void **state)
{
	static const char *const want[] = {"HTTP/1.1 200 OK\r\n", "A: b\r\n folded\r\n", "\r\n",
	                                   "body"};
	char head[] = "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", body[] = "body";
	struct tape *t = tape_new(0);
	struct buf spare = {0};
	struct span out;

	(void)state;
	assert_int_equal(tape_fill(t, span_of(head), span_of(body)), 0);
	memset(head, 'x', sizeof head - 1);
	memset(body, 'x', sizeof body - 1);
	assert_true(tape_attach(t));
	expect_pieces(t, want, 4);
	tape_detach(t);
	expect_pieces(t, want, 4);
	assert_int_equal(tape_body(t, 4, &spare, &out), 0);
	assert_true(span_is(out, "body"));
	assert_string_equal(tape_head(t).p, "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n");
	buf_free(&spare);
	tape_unref(t);
}

/* Debug callbacks print libcurl's texts as they lie here, as far as the NUL that they have
 * natively. */
static void a_piece_ends_with_a_nul(void **state)
{
	char text[64];
	struct tape *t = tape_new(100);
	struct tape_cursor cursor = {0};
	struct tape_piece p = {.kind = TAPE_DEBUG, .data = text};

	(void)state;
	memset(text, 'x', sizeof text);
	for (p.n = 0; p.n < sizeof text; p.n++)
		assert_int_equal(tape_add(t, &p), 0);
	assert_true(tape_attach(t));
	for (size_t n = 0; n < sizeof text; n++) {
		assert_int_equal(tape_read(t, &cursor, &p), 1);
		assert_int_equal(p.n, n);
		assert_int_equal(strlen(p.data), n);
	}
	tape_unref(t);
}

/* The process exits while a driver is still at work: readers go through the tape without its lock
 * by then. */
static void nothing_is_added_after_the_end(void **state)
{
	struct tape *t = tape_new(100);
	struct tape_end end = {.ended = true};
	struct buf spare = {0};
	struct span body;

	(void)state;
	add_line(t, "HTTP/1.1 200 OK\r\n", 0);
	add_body(t, 3, 'x');
	tape_finish(t, &end);
	add_line(t, "HTTP/1.1 500 No\r\n", 0);
	add_body(t, 200, 'y');
	assert_true(span_is(tape_head(t), "HTTP/1.1 200 OK\r\n"));
	assert_int_equal(tape_body(t, 100, &spare, &body), 0);
	assert_true(span_is(body, "xxx"));
	expect_pieces(t, (const char *const[]){"HTTP/1.1 200 OK\r\n", "xxx"}, 2);
	buf_free(&spare);
	tape_unref(t);
}

static void a_filled_tape_may_have_no_body(void **state)
{
	struct tape *t = tape_new(10);
	struct tape_cursor cursor = {0};
	struct tape_piece p;

	(void)state;
	assert_int_equal(tape_fill(t, span_of("HTTP/1.1 204 N\r\n\r\n"), (struct span){0}), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tape_read(t, &cursor, &p), 1);
		assert_int_equal(p.kind, TAPE_HEADER);
	}
	assert_int_equal(tape_read(t, &cursor, &p), 0);
	tape_unref(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pieces_come_in_order_and_are_copies),
	        cmocka_unit_test(two_readers_have_their_own_place),
	        cmocka_unit_test(a_held_tape_shows_nothing_by_itself),
	        cmocka_unit_test(the_end_is_told_once),
	        cmocka_unit_test(last_headers_are_the_origins),
	        cmocka_unit_test(body_is_whole_or_not_given),
	        cmocka_unit_test(a_reader_gets_all_above_keep),
	        cmocka_unit_test(a_slow_reader_loses_nothing),
	        cmocka_unit_test(full_only_for_a_reader_that_lags),
	        cmocka_unit_test(a_reader_that_vanished_stops_nobody),
	        cmocka_unit_test(snapshot_is_copied),
	        cmocka_unit_test(a_snapshot_taken_is_gone),
	        cmocka_unit_test(an_answer_filled_in_at_once_reads_as_pieces),
	        cmocka_unit_test(a_piece_ends_with_a_nul),
	        cmocka_unit_test(nothing_is_added_after_the_end),
	        cmocka_unit_test(a_filled_tape_may_have_no_body),
	        cmocka_unit_test(readers_beside_a_writer_miss_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
