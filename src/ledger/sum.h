/* The sum of sum.c, to be compiled where a size is known. */
#ifndef SENDONCE_LEDGER_SUM_H
#define SENDONCE_LEDGER_SUM_H

#include <string.h>

#include "ledger/layout.h"

#define SUM_FACTOR UINT64_C(0xd6e8feb86659fd93)
#define SUM_STEP   UINT64_C(0x9e3779b97f4a7c15)

struct lanes {
	uint64_t a, b, c, d;
};

static inline uint64_t sum_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= SUM_FACTOR;
	return h ^ h >> 29;
}

static inline uint64_t sum_in(uint64_t h, uint64_t word)
{
	h ^= word;
	return (h << 29 | h >> 35) * SUM_FACTOR;
}

/* One word, of memory that nobody writes; else of the file, copied. */
static inline uint64_t sum_word(bool shared, char *to, const char *from, size_t at, size_t n)
{
	uint64_t word = 0;

	if (!shared) {
		memcpy(&word, from + at, n);
		return word;
	}
	/* Acquire: as shared_out. */
	word = atomic_load_explicit((const shared64 *)(const void *)(from + at),
	                            memory_order_acquire);
	memcpy(to + at, &word, n);
	return word;
}

/* Four words, one a lane. */
#define SUM_FOUR(AT)                                                                               \
	(h.a = sum_in(h.a, sum_word(shared, to, from, (AT), 8)),                                   \
	 h.b = sum_in(h.b, sum_word(shared, to, from, (AT) + 8, 8)),                               \
	 h.c = sum_in(h.c, sum_word(shared, to, from, (AT) + 16, 8)),                              \
	 h.d = sum_in(h.d, sum_word(shared, to, from, (AT) + 24, 8)))

static inline __attribute__((always_inline)) uint64_t sum_over(uint64_t seed, bool shared, char *to,
                                                               const char *from, size_t n)
{
	struct lanes h = {seed ^ SUM_STEP, n ^ 3 * SUM_STEP, 5 * SUM_STEP, 7 * SUM_STEP};
	size_t at = 0, eights = n / 64 * 64;

	for (; at < eights; at += 64) {
		SUM_FOUR(at);
		SUM_FOUR(at + 32);
	}
	if (n - at >= 32) {
		SUM_FOUR(at);
		at += 32;
	}
	if (n - at >= 8)
		h.a = sum_in(h.a, sum_word(shared, to, from, at, 8));
	if (n - at >= 16)
		h.b = sum_in(h.b, sum_word(shared, to, from, at + 8, 8));
	if (n - at >= 24)
		h.c = sum_in(h.c, sum_word(shared, to, from, at + 16, 8));
	if (n % 8)
		h.d = sum_in(h.d, sum_word(shared, to, from, n / 8 * 8, n % 8));
	return sum_mix(h.a * (3 * SUM_STEP) + h.b * (5 * SUM_STEP) + h.c * (7 * SUM_STEP) +
	               h.d * (9 * SUM_STEP));
}

#endif
