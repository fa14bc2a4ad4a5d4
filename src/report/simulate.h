/* What enforce would have done with each attempt of one write, by the verdict table itself. */
#ifndef SENDONCE_REPORT_SIMULATE_H
#define SENDONCE_REPORT_SIMULATE_H

#include "ledger/ledger.h"
#include "report/log.h"

enum { SIMULATED_KEYS = 64 };

/* The record a ledger would hold. All zero is "none yet". */
struct simulation {
	const struct log *log;
	const struct rule *rule;
	struct record_view record;
	const struct entry *driving; /* whose answer is awaited; null: nobody's */
	int64_t driven_until_us;
	uint64_t own_keys[SIMULATED_KEYS]; /* bound to the record */
	size_t own_key_count;
};

/* Attempts are given in the order they began. */
struct verdict simulate_attempt(struct simulation *s, const struct entry *e);

#endif
