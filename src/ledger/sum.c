/* Sums over what is in the file: they find torn pages and flipped bits, and are no defence against
 * somebody who may write it.
 *
 * Each word goes into one of four lanes, reversibly (exclusive or, rotation, multiplication by an
 * odd number), and each lane into the sum by an odd factor: a change of one word alone always
 * changes the sum. Four lanes, because one would be a single chain of multiplications, each of
 * which waits for the one before. What is no whole word at the end counts as one filled up with
 * zeroes, as it lies in the file; the size is part of the sum. */
#include <string.h>

#include "ledger/internal.h"
#include "ledger/sum.h"

uint64_t sum_bytes(uint64_t seed, const void *data, size_t n)
{
	return sum_over(seed, false, NULL, data, n);
}

uint64_t sum_out(void *to, const void *from, size_t n, uint64_t seed)
{
	return sum_over(seed, true, to, from, n);
}

uint64_t hash_tag(const uint8_t *hash)
{
	uint64_t word;

	memcpy(&word, hash, 8);
	return sum_mix(word);
}
