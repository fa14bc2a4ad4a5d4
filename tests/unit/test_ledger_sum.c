/* The ledger's sums: every bit counts, of every word, in every lane and at every end; and what is
 * copied out of the file is what was summed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ledger/internal.h"

enum { MOST = 200 };

static _Alignas(8) char file[MOST + 8];

/* In the file whole words are written, with zeroes behind the last byte. */
static void fill(size_t n)
{
	memset(file, 0, sizeof(file));
	for (size_t i = 0; i < n; i++)
		file[i] = (char)(i * 37 + 11);
}

static void a_flipped_bit_shows_wherever_it_is(void **state)
{
	(void)state;
	for (size_t n = 0; n <= MOST; n++) {
		uint64_t sum;

		fill(n);
		sum = sum_bytes(5, file, n);
		for (size_t bit = 0; bit < n * 8; bit++) {
			file[bit / 8] ^= (char)(1 << bit % 8);
			assert_int_not_equal(sum_bytes(5, file, n), sum);
			file[bit / 8] ^= (char)(1 << bit % 8);
		}
		assert_int_equal(sum_bytes(5, file, n), sum);
	}
}

static void the_copy_is_what_was_summed(void **state)
{
	char copy[MOST + 8];

	(void)state;
	for (size_t n = 0; n <= MOST; n++) {
		fill(n);
		memset(copy, 0x55, sizeof(copy));
		assert_int_equal(sum_out(copy, file, n, 7), sum_bytes(7, file, n));
		assert_memory_equal(copy, file, n);
		assert_int_equal(copy[n], 0x55);
	}
}

static void what_lies_behind_the_last_byte_counts(void **state)
{
	char copy[MOST];
	uint64_t sum;

	(void)state;
	fill(13);
	sum = sum_bytes(7, file, 13);
	file[15] = 1;
	assert_int_not_equal(sum_out(copy, file, 13, 7), sum);
}

static void size_seed_and_order_count(void **state)
{
	uint64_t sum, word[2];

	(void)state;
	memset(file, 0, sizeof(file));
	for (size_t n = 0; n < MOST; n++)
		assert_int_not_equal(sum_bytes(1, file, n), sum_bytes(1, file, n + 1));
	fill(MOST);
	assert_int_not_equal(sum_bytes(1, file, MOST), sum_bytes(2, file, MOST));
	sum = sum_bytes(1, file, MOST);
	/* Words that change places: of one lane, and of two. */
	for (size_t at = 8; at + 8 <= MOST; at += 8) {
		fill(MOST);
		memcpy(&word[0], file, 8);
		memcpy(&word[1], file + at, 8);
		memcpy(file, &word[1], 8);
		memcpy(file + at, &word[0], 8);
		assert_int_not_equal(sum_bytes(1, file, MOST), sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_flipped_bit_shows_wherever_it_is),
	        cmocka_unit_test(the_copy_is_what_was_summed),
	        cmocka_unit_test(what_lies_behind_the_last_byte_counts),
	        cmocka_unit_test(size_seed_and_order_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
