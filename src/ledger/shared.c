/* Memory that others write at the same time: copies, sleeping and locks.
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

static inline void word_out(char *to, const shared64 *from)
{
	/* Acquire: see above. */
	uint64_t word = atomic_load_explicit(from, memory_order_acquire);

	memcpy(to, &word, 8);
}

static inline void word_in(shared64 *to, const char *from)
{
	uint64_t word;

	memcpy(&word, from, 8);
	/* Release: publishes the state word that let us write here. */
	atomic_store_explicit(to, word, memory_order_release);
}

void shared_out(void *to, const void *from, size_t n)
{
	const shared64 *source = from;
	char *target = to;

	for (; n >= 32; n -= 32, source += 4, target += 32) {
		word_out(target, source);
		word_out(target + 8, source + 1);
		word_out(target + 16, source + 2);
		word_out(target + 24, source + 3);
	}
	for (; n >= 8; n -= 8, source++, target += 8)
		word_out(target, source);
}

void shared_in(void *to, const void *from, size_t n)
{
	shared64 *target = to;
	const char *source = from;

	for (; n >= 32; n -= 32, source += 32, target += 4) {
		word_in(target, source);
		word_in(target + 1, source + 8);
		word_in(target + 2, source + 16);
		word_in(target + 3, source + 24);
	}
	for (; n >= 8; n -= 8, source += 8, target++)
		word_in(target, source);
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

static enum owner_life lock_life(struct ledger *l, uint64_t word)
{
	return owner_life(l, (unsigned)(word >> 1 & 0x3ff), (unsigned)(word >> 11 & 0xfff),
	                  clock_now());
}

/* Its time lies in the future (another boot) or is 15 s old: no critical section takes a
 * thousandth of that. */
static bool lock_stale(uint64_t word)
{
	uint64_t at = word >> 23, at_now = (uint64_t)clock_coarse_us() >> 10;

	return at > at_now || at_now - at > LEASE_SECONDS * UINT64_C(1000000) >> 10;
}

/* May the lock be taken away? The dead lose it at once. */
static bool lock_abandoned(struct ledger *l, uint64_t word)
{
	return lock_life(l, word) == OWNER_DEAD || lock_stale(word);
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

/* Abandoned is what was looked at: by now another waiter may have taken that lock away, and its own
 * word is nobody's to take. */
uint64_t lock_take(struct ledger *l, shared64 *lock)
{
	struct owner self = owner_self(l);
	uint64_t mine, seen, waiter = 0, abandoned = 0;

	for (unsigned tries = 0;; tries++) {
		mine = lock_word(self, clock_coarse_us()) | waiter;
		seen = atomic_load_explicit(lock, memory_order_relaxed);
		/* Acquire: what the last holder wrote is ours to read. */
		if ((seen == 0 || seen == abandoned) &&
		    atomic_compare_exchange_strong_explicit(lock, &seen, mine, memory_order_acquire,
		                                            memory_order_relaxed))
			return mine;
		if (seen == 0)
			continue;
		if (tries < LOCK_SPINS) {
			if (tries % 16 == 15)
				sched_yield();
			continue;
		}
		waiter = 1;
		abandoned = lock_sleep(l, lock, seen) ? seen | 1 : 0;
	}
}

/* Whoever is seen to live keeps the place it fills, however long it stands still: there are others,
 * and its next store would go into a record that is another's by then. */
static bool lock_orphaned(struct ledger *l, uint64_t word)
{
	enum owner_life life = lock_life(l, word);

	return life == OWNER_DEAD || (life != OWNER_ALIVE && lock_stale(word));
}

uint64_t lock_try(struct ledger *l, shared64 *lock)
{
	uint64_t mine = lock_word(owner_self(l), clock_coarse_us());
	uint64_t seen = atomic_load_explicit(lock, memory_order_relaxed);

	if (seen != 0 && !lock_orphaned(l, seen))
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
