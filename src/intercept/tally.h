/* What one call of the program came to: it becomes one `write` event when the call has returned
 * and, where it sent something, the sending has ended, whichever is later. */
#ifndef SENDONCE_INTERCEPT_TALLY_H
#define SENDONCE_INTERCEPT_TALLY_H

#include <stdint.h>

#include "intercept/names.h"

_Static_assert((int)KEY_TEXT_MAX <= (int)LEDGER_KEY_MAX, "a key fits the tally's");

struct tally {
	const struct process *process;
	const struct rule *rule;
	uint8_t identity[LEDGER_HASH], own_key[LEDGER_HASH]; /* own_key: zeroes without one */
	uint8_t fingerprint[LEDGER_HASH], trace[16];
	uint64_t record;
	int64_t generation, attempt, wire_sends, status, curlcode, bytes;
	const char *verdict, *reason, *outcome, *served;
	int64_t started_us, ended_us; /* CLOCK_BOOTTIME; ended 0: now */
	/* Texts stand last: what they do not fill of their room is never touched. */
	char method[32], host[256], key[LEDGER_KEY_MAX + 1];
	struct names names;
};

/* All zero, the texts empty. */
void tally_clear(struct tally *t);
void tally_copy(struct tally *to, const struct tally *from);
void tally_write(const struct tally *t, const char *event);

#endif
