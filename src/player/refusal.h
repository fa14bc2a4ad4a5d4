/* Refusals as HTTP answers: application/problem+json, with a text an operator and an agent's model
 * can both act on (section 5 of the design). */
#ifndef SENDONCE_PLAYER_REFUSAL_H
#define SENDONCE_PLAYER_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* What is known of the write that is refused; null and 0 where nothing is, or may be told. */
struct refusal_facts {
	const char *reason; /* "unknown-outcome", ... */
	const char *operation;
	const char *detail;    /* policy or ledger error, redirect target, ...; may be null */
	int64_t first_sent_us; /* wall; 0 */
	const char *exe;       /* program of the first send */
	int pid;
	const char *key; /* first 8 are shown */
	uint32_t attempts;
	bool generic; /* another account's write: tell nothing of it */
};

/* HTTP status of a reason: 424, 409, 422, 503, 403. */
long refusal_status(const char *reason);
/* The header block (status line, fields, blank line) and the body. */
void refusal_answer(const struct refusal_facts *facts, struct buf *head, struct buf *body);
/* One line for ERRORBUFFER, at most CURL_ERROR_SIZE - 1 bytes. */
void refusal_error(const struct refusal_facts *facts, struct buf *text);

#endif
