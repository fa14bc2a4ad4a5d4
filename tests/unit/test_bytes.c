/* Growing buffers: in the caller's room and out of it, and when memory runs out at any step. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>

static long held, until_failure;

static void *test_realloc_(void *old, size_t n)
{
	void *p = until_failure > 0 && --until_failure == 0 ? NULL : realloc(old, n);

	held += p && !old;
	return p;
}

static void test_free_(void *p)
{
	held -= p != NULL;
	free(p);
}

#undef malloc
#undef realloc
#undef free
#define malloc(n) test_realloc_(NULL, n)
#define realloc   test_realloc_
#define free      test_free_
#include "../../src/base/bytes.c"
#undef malloc
#undef realloc
#undef free

enum { LENT = 8, MOST = 4000 };

static void expect(const struct buf *b, size_t n)
{
	assert_int_equal(b->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(b->data[i], (char)('a' + i % 26));
	assert_int_equal(b->data[n], '\0');
}

static void add(struct buf *b, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		buf_add_char(b, (char)('a' + i % 26));
}

/* Every way to grow, at the edge of the room and far behind it. */
static void the_room_lent_is_left_when_it_is_full(void **state)
{
	char room[LENT + 1];

	(void)state;
	room[LENT] = '#';
	for (size_t n = 0; n < 600; n++) {
		struct buf b = buf_in(room, LENT);

		assert_ptr_equal(b.data, room);
		expect(&b, 0);
		add(&b, 0, n);
		expect(&b, n);
		assert_int_equal(b.data == room, n < LENT);
		assert_int_equal(held, n >= LENT);
		buf_reset(&b);
		add(&b, 0, n);
		expect(&b, n);
		buf_free(&b);
		assert_int_equal(held, 0);
		assert_null(b.data);
		assert_int_equal(room[LENT], '#');
	}
}

static void one_append_may_be_larger_than_the_room(void **state)
{
	char room[LENT], text[MOST];

	(void)state;
	for (size_t i = 0; i < MOST; i++)
		text[i] = (char)('a' + i % 26);
	for (size_t n = 0; n < MOST; n += 7) {
		struct buf lent = buf_in(room, sizeof room), own = {0};

		buf_add(&lent, text, n);
		expect(&lent, n);
		buf_add(&own, text, n);
		expect(&own, n);
		buf_free(&lent);
		buf_free(&own);
	}
	assert_int_equal(held, 0);
}

/* What was there stays, nothing is added any more, and a reset forgets it. */
static void a_failure_keeps_what_there_was(void **state)
{
	char room[LENT];

	(void)state;
	for (int lent = 0; lent < 2; lent++) {
		for (long at = 1; at < 4; at++) {
			struct buf b = lent ? buf_in(room, LENT) : (struct buf){0};
			size_t n;

			until_failure = at;
			for (n = 0; !b.failed; n++)
				buf_add_char(&b, (char)('a' + n % 26));
			until_failure = 0;
			n--;
			assert_int_equal(b.n, n);
			if (b.data)
				expect(&b, n);
			buf_add_text(&b, "x");
			buf_add_number(&b, 7);
			assert_null(buf_grow(&b, 1));
			buf_printf(&b, "%s", "y");
			assert_true(b.failed);
			assert_int_equal(b.n, n);
			buf_reset(&b);
			add(&b, 0, 100);
			expect(&b, 100);
			buf_free(&b);
			assert_int_equal(held, 0);
		}
	}
}

static void no_size_wraps(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_add_text(&b, "abc");
	assert_null(buf_grow(&b, SIZE_MAX));
	assert_true(b.failed);
	expect(&b, 3);
	buf_reset(&b);
	assert_null(buf_grow(&b, SIZE_MAX - 3));
	assert_true(b.failed);
	buf_free(&b);
}

static void numbers(void **state)
{
	static const struct {
		int64_t value;
		const char *text;
	} cases[] = {{0, "0"},
	             {9, "9"},
	             {10, "10"},
	             {-1, "-1"},
	             {-10, "-10"},
	             {1234567890123, "1234567890123"},
	             {INT64_MAX, "9223372036854775807"},
	             {INT64_MIN, "-9223372036854775808"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf b = {0};

		buf_add_number(&b, cases[i].value);
		assert_string_equal(b.data, cases[i].text);
		buf_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_room_lent_is_left_when_it_is_full),
	        cmocka_unit_test(one_append_may_be_larger_than_the_room),
	        cmocka_unit_test(a_failure_keeps_what_there_was),
	        cmocka_unit_test(no_size_wraps),
	        cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
