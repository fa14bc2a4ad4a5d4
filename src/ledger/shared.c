/* Memory that others write at the same time: copies, checksums, sleeping and locks.
 *
 * Everything in the file that changes is read and written in aligned 8-byte words, each an atomic
 * of its own, so that a reader that meets a writer gets old or new words and finds out by looking
 * at the state word again. Copying out acquires and copying in releases: whoever sees a word of a
 * second writer also sees the publication of the first, which is what makes the second look
 * reliable. Locks are one word that names its holder; nobody waits for a dead one, and nobody for
 * ever. They do not promise exclusion against a process that was stopped for 15 s inside a critical
 * section of a few microseconds; its publication then fails, as its word is no longer there. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/internal.h"

enum { LOCK_SPINS = 64, LOCK_SLICE_US = 10000 };

void shared_out(void *to, const void *from, size_t n)
{
	const shared64 *source = from;
	char *target = to;
	uint64_t word;

	for (size_t i = 0; i < n / 8; i++) {
		/* Acquire: see above. */
		word = atomic_load_explicit(&source[i], memory_order_acquire);
		memcpy(target + i * 8, &word, 8);
	}
}

void shared_in(void *to, const void *from, size_t n)
{
	shared64 *target = to;
	const char *source = from;
	uint64_t word;

	for (size_t i = 0; i < n / 8; i++) {
		memcpy(&word, source + i * 8, 8);
		/* Release: publishes the state word that let us write here. */
		atomic_store_explicit(&target[i], word, memory_order_release);
	}
}

void shared_in_bytes(void *to, const void *from, size_t n)
{
	size_t whole = n / 8 * 8;
	uint64_t last = 0;

	shared_in(to, from, whole);
	if (n == whole)
		return;
	memcpy(&last, (const char *)from + whole, n - whole);
	shared_in((char *)to + whole, &last, 8);
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 29;
}

#define STEP UINT64_C(0x9e3779b97f4a7c15)

__extension__ typedef unsigned __int128 wide;

/* Both halves of a product: every bit of the factors reaches about half of the result's. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	wide product = (wide)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t fold_in(uint64_t h, const char *p)
{
	uint64_t words[2];

	memcpy(words, p, 16);
	return fold(h ^ words[0], STEP ^ words[1]) ^ h << 1;
}

/* Finds torn pages and flipped bits; it is no defence against somebody who may write the file. Four
 * pairs of words at a time go four ways, each of which waits only for itself. */
uint64_t sum_bytes(uint64_t seed, const void *data, size_t n)
{
	const char *p = data;
	uint64_t a = mix(seed ^ n ^ STEP), b = a + STEP, c = b + STEP, d = c + STEP, words[2] = {0};

	for (; n >= 64; p += 64, n -= 64) {
		a = fold_in(a, p);
		b = fold_in(b, p + 16);
		c = fold_in(c, p + 32);
		d = fold_in(d, p + 48);
	}
	for (; n >= 16; p += 16, n -= 16)
		a = fold_in(a, p);
	if (n) {
		memcpy(words, p, n);
		b = fold(b ^ words[0], STEP ^ words[1] ^ n);
	}
	return mix(fold(a ^ c, b + STEP) ^ fold(b ^ d, c + STEP) ^ d);
}

uint64_t hash_tag(const uint8_t *hash)
{
	uint64_t word;

	memcpy(&word, hash, 8);
	return mix(word);
}

/* The half of the word that changes with every publication. */
static uint32_t *low_half(shared64 *word)
{
	uint32_t *half = (uint32_t *)(void *)word;

	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? half : half + 1;
}

void futex_sleep(shared64 *word, uint64_t seen, int64_t timeout_us)
{
	struct timespec t = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	int saved = errno;

	/* Not FUTEX_PRIVATE: the other side maps the same file in another process. */
	syscall(SYS_futex, low_half(word), FUTEX_WAIT, (uint32_t)seen, &t, NULL, 0);
	errno = saved;
}

void futex_wake_all(shared64 *word)
{
	int saved = errno;

	syscall(SYS_futex, low_half(word), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

void futex_wake_one(shared64 *word)
{
	int saved = errno;

	syscall(SYS_futex, low_half(word), FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = saved;
}

/* lock word: waiter 1, owner slot 10, nonce 12, taken at (ms of the coarse clock) 41. */
static uint64_t lock_word(struct owner self, int64_t now_us)
{
	return (uint64_t)self.slot << 1 | (uint64_t)self.nonce << 11 |
	       (uint64_t)(now_us >> 10) << 23;
}

/* May the lock be taken away? The dead lose it at once. So does a holder whose time lies in the
 * future (another boot) or is 15 s old: no critical section takes a thousandth of that. */
static bool lock_abandoned(struct ledger *l, uint64_t word)
{
	struct stamp now = clock_now();
	uint64_t at = word >> 23, at_now = (uint64_t)clock_coarse_us() >> 10;
	enum owner_life life =
	        owner_life(l, (unsigned)(word >> 1 & 0x3ff), (unsigned)(word >> 11 & 0xfff), now);

	if (life == OWNER_DEAD || at > at_now)
		return true;
	return at_now - at > LEASE_SECONDS * UINT64_C(1000000) >> 10;
}

/* One bounded sleep; true when the lock may be stolen. */
static bool lock_sleep(struct ledger *l, shared64 *lock, uint64_t seen)
{
	/* Relaxed: only asks the holder for a wake-up; the lock itself orders. */
	if (!(seen & 1) &&
	    !atomic_compare_exchange_strong_explicit(lock, &seen, seen | 1, memory_order_relaxed,
	                                             memory_order_relaxed))
		return false;
	seen |= 1;
	futex_sleep(lock, seen, LOCK_SLICE_US);
	return atomic_load_explicit(lock, memory_order_relaxed) == seen && lock_abandoned(l, seen);
}

uint64_t lock_take(struct ledger *l, shared64 *lock)
{
	struct owner self = owner_self(l);
	uint64_t mine, seen, waiter = 0;
	bool steal = false;

	for (unsigned tries = 0;; tries++) {
		mine = lock_word(self, clock_coarse_us()) | waiter;
		seen = atomic_load_explicit(lock, memory_order_relaxed);
		/* Acquire: what the last holder wrote is ours to read. */
		if ((seen == 0 || steal) &&
		    atomic_compare_exchange_strong_explicit(lock, &seen, mine, memory_order_acquire,
		                                            memory_order_relaxed))
			return mine;
		steal = false;
		if (seen == 0)
			continue;
		if (tries < LOCK_SPINS) {
			if (tries % 16 == 15)
				sched_yield();
			continue;
		}
		waiter = 1;
		steal = lock_sleep(l, lock, seen);
	}
}

uint64_t lock_try(struct ledger *l, shared64 *lock)
{
	uint64_t mine = lock_word(owner_self(l), clock_coarse_us());
	uint64_t seen = atomic_load_explicit(lock, memory_order_relaxed);

	if (seen != 0 && !lock_abandoned(l, seen))
		return 0;
	/* Acquire: as in lock_take. */
	return atomic_compare_exchange_strong_explicit(lock, &seen, mine, memory_order_acquire,
	                                               memory_order_relaxed)
	               ? mine
	               : 0;
}

bool lock_held(shared64 *lock, uint64_t token)
{
	return (atomic_load_explicit(lock, memory_order_relaxed) | 1) == (token | 1);
}

void lock_drop(shared64 *lock, uint64_t token)
{
	uint64_t seen = token;

	/* Release: hands what we wrote to the next holder. A stolen lock is left to its thief. */
	while (!atomic_compare_exchange_weak_explicit(lock, &seen, 0, memory_order_release,
	                                              memory_order_relaxed)) {
		if ((seen | 1) != (token | 1))
			return;
	}
	if (seen & 1)
		futex_wake_one(lock);
}
