/* The 64-bit words every transition is a compare-and-swap of.
 *
 * state word, low half (what futex waits on): state 3, bank 1, owner 10, sequence 18;
 *             high half: the owner's nonce 12, tenure 8, generation 12 (its low bits).
 * A new sequence number is taken by every publication, a new tenure by every change of owner or
 * generation: a hold from an earlier tenure is recognised although the sequence went on.
 *
 * lease word: end of the lease in units of 65.5 ms on CLOCK_BOOTTIME 40, boot id 24. */
#ifndef SENDONCE_LEDGER_WORD_H
#define SENDONCE_LEDGER_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/layout.h"
#include "ledger/ledger.h"

enum { LEASE_SECONDS = 15 };

struct word {
	enum record_state state;
	unsigned bank, owner, sequence, nonce, tenure, generation;
};

static inline struct word word_read(uint64_t w)
{
	return (struct word){(enum record_state)(w & 7),  (unsigned)(w >> 3 & 1),
	                     (unsigned)(w >> 4 & 0x3ff),  (unsigned)(w >> 14 & 0x3ffff),
	                     (unsigned)(w >> 32 & 0xfff), (unsigned)(w >> 44 & 0xff),
	                     (unsigned)(w >> 52 & 0xfff)};
}

static inline uint64_t word_make(struct word w)
{
	return (uint64_t)((unsigned)w.state & 7) | (uint64_t)(w.bank & 1) << 3 |
	       (uint64_t)(w.owner & 0x3ff) << 4 | (uint64_t)(w.sequence & 0x3ffff) << 14 |
	       (uint64_t)(w.nonce & 0xfff) << 32 | (uint64_t)(w.tenure & 0xff) << 44 |
	       (uint64_t)(w.generation & 0xfff) << 52;
}

static inline uint64_t lease_make(struct stamp now, int64_t seconds)
{
	int64_t until = now.boot_us + seconds * 1000000;

	return ((uint64_t)until >> 16) << 24 | (now.boot & 0xffffff);
}

/* A lease of another boot is never fresh: nobody from before is left to renew it. Nor is one
 * that ends later than any lease can (a damaged word must not hold a record for ever). */
static inline bool lease_fresh(uint64_t lease, struct stamp now)
{
	uint64_t at = (uint64_t)now.boot_us >> 16, until = lease >> 24;

	if ((lease & 0xffffff) != (now.boot & 0xffffff))
		return false;
	return until > at && until - at < 4 * LEASE_SECONDS * UINT64_C(1000000) >> 16;
}

/* Milliseconds, and the boot's low bits as in a lease. 0: the boot is not known. */
static inline struct layout_stamp stamp_pack(struct stamp t)
{
	uint64_t at = (uint64_t)(t.boot_us / 1000) << 24 | (t.boot & 0xffffff);

	return (struct layout_stamp){t.wall_us, t.boot ? at : 0};
}

/* A stamp of another boot comes back without one: only its wall clock can be compared. */
static inline struct stamp stamp_read(struct layout_stamp s, struct stamp now)
{
	if (s.at == 0 || (s.at & 0xffffff) != (now.boot & 0xffffff))
		return (struct stamp){s.wall_us, 0, 0};
	return (struct stamp){s.wall_us, (int64_t)(s.at >> 24) * 1000, now.boot};
}

#endif
