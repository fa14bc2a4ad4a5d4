/* What an attempt that has ended means for its record: the "outcome, first match" paragraph of the
 * design, section 5.
 *
 * Only two things prove that a write did not happen: its gate never opened, or the server said so
 * and no earlier send of the same record is unaccounted for. Everything that proves nothing is
 * unknown. What the caller's CURLcode was plays no part. */
#include "verdict/verdict.h"

/* The server's "no" is about this send alone. It also settles an earlier one in doubt only where
 * the provider answers for the key: it marks the answer as a replay, or keeps such answers. */
static enum outcome_kind refused_there(const struct ending *ending, const struct rule *rule)
{
	bool stored = status_set_has(&rule->stores, ending->status);

	if (ending->earlier_in_doubt && !ending->provider_replayed && !stored)
		return OUTCOME_UNKNOWN;
	return stored ? OUTCOME_FREED_STORED : OUTCOME_FREED;
}

/* The write had its answer, which says where its result can be seen. That the result could not be
 * fetched takes nothing back. */
static enum outcome_kind seen_elsewhere(const struct ending *ending, const struct rule *rule)
{
	if (ending->complete && status_set_has(&rule->final, ending->status) &&
	    ending->body_matches)
		return OUTCOME_DONE;
	return status_set_has(&rule->final, ending->seen_at) ? OUTCOME_DONE_NOT_KEPT
	                                                     : OUTCOME_UNKNOWN;
}

enum outcome_kind verdict_outcome(const struct ending *ending, const struct rule *rule)
{
	if (!ending->gate_opened)
		return OUTCOME_NOT_EXECUTED;
	if (ending->seen_at)
		return seen_elsewhere(ending, rule);
	if (!ending->complete)
		return OUTCOME_UNKNOWN;
	if (status_set_has(&rule->in_progress, ending->status))
		return OUTCOME_IN_PROGRESS;
	if (status_set_has(&rule->already_done, ending->status))
		return OUTCOME_DONE_NOT_KEPT;
	if (status_set_has(&rule->final, ending->status) && ending->body_matches)
		return OUTCOME_DONE;
	if (status_set_has(&rule->not_executed, ending->status))
		return refused_there(ending, rule);
	return OUTCOME_UNKNOWN;
}

const char *outcome_kind_name(enum outcome_kind kind)
{
	static const char *const names[] = {
	        [OUTCOME_NOT_EXECUTED] = "not-executed",
	        [OUTCOME_IN_PROGRESS] = "in-progress",
	        [OUTCOME_DONE_NOT_KEPT] = "done-not-kept",
	        [OUTCOME_DONE] = "done",
	        [OUTCOME_FREED] = "freed",
	        [OUTCOME_FREED_STORED] = "freed-stored",
	        [OUTCOME_UNKNOWN] = "unknown",
	};

	if ((unsigned)kind >= sizeof(names) / sizeof(*names))
		return "invalid";
	return names[kind];
}
