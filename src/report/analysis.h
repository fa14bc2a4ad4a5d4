/* What the log says about duplicates: for each write whether it repeats an earlier one, why it was
 * sent again, and what enforce would have done with it. */
#ifndef SENDONCE_REPORT_ANALYSIS_H
#define SENDONCE_REPORT_ANALYSIS_H

#include <stdint.h>

#include "report/log.h"

/* What is wrong with a write. One write may have several. */
#define FINDINGS(X)                                                                                \
	X(DUPLICATE, "duplicate")           /* the same identity was sent before */                \
	X(WIRE_DUPLICATE, "wire-duplicate") /* libcurl sent it twice within one call */            \
	X(NEAR_DUPLICATE, "near-duplicate") /* equal business fields, other words */               \
	X(CONFLICT, "conflict")             /* the program's key of another write */               \
	X(FRESH_KEY, "fresh-key")           /* a new key for content that had one */               \
	X(UNKNOWN, "unknown")               /* in doubt, and nothing settled it */                 \
	X(UNPROTECTED, "unprotected")       /* sendonce could not protect it */

enum finding {
#define FINDING_ID(id, name) FIND_##id,
	FINDINGS(FINDING_ID) FIND_COUNT
#undef FINDING_ID
};
const char *finding_name(enum finding finding);
#define FOUND(id) (1u << FIND_##id)

/* Why a write was sent again, seen from the one before it. */
enum cause {
	CAUSE_NONE,
	CAUSE_NO_ANSWER,    /* a retry: the one before got no answer */
	CAUSE_DOUBT,        /* a retry: it got an answer that proves nothing (5xx, 409, ...) */
	CAUSE_OVERLAP,      /* it was still under way */
	CAUSE_AFTER_ANSWER, /* a repeat: it had been answered */
	CAUSE_WIRE          /* libcurl by itself: the connection died */
};
const char *cause_name(enum cause cause);

/* Of one entry, at the same index as in the log. */
struct judged {
	uint32_t before; /* the entry it repeats; NO_ENTRY: none */
	uint32_t next;   /* the next attempt of the same group; NO_ENTRY: the last */
	uint8_t found;   /* FOUND() bits */
	uint8_t cause;
	int8_t verdict; /* verdict_kind enforce gave, or would have given; -1: it has none */
	uint8_t reason; /* verdict_reason of a refusal */
};
enum { NO_ENTRY = UINT32_MAX };

/* The attempts of one write (or, near duplicates, of two that mean the same). */
struct group {
	uint32_t first; /* entry; the others follow by judged.next */
	uint32_t attempts;
	uint8_t found; /* of all of them */
	bool near;     /* first and its `next` differ in words only */
};

struct op_counts {
	uint32_t operation;          /* text; 0: writes that no rule names */
	uint32_t method, host, path; /* of those */
	unsigned long writes, wire_sends, prevented, found[FIND_COUNT];
};

/* Is the entry one of this operation's? */
bool op_counts_hold(const struct op_counts *op, const struct entry *e);

struct analysis {
	const struct log *log;
	struct judged *of;
	struct group *group; /* the ones with a finding, the most attempts first */
	size_t group_count, group_room;
	struct op_counts *op; /* the most findings first */
	size_t op_count, op_room;
	struct op_counts all;
	int64_t from_us, to_us;
};

/* The rule an event's write is judged by: the policy's of that operation, else the defaults. Never
 * null. */
typedef const struct rule *analysis_rule(void *ctx, const char *operation);

/* `log` is sorted, and stays the caller's. 0, or -1 out of memory. `out` is freed by analysis_free
 * in any case. */
int analysis_make(const struct log *log, analysis_rule *rule, void *ctx, struct analysis *out);
void analysis_free(struct analysis *a);

/* Has any write one of the findings in `mask` (FOUND() bits)? */
bool analysis_has(const struct analysis *a, unsigned mask);

#endif
