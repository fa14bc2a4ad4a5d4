/* How the writes of each operation went: what stats shows and a scraper takes. */
#ifndef SENDONCE_REPORT_FLOW_H
#define SENDONCE_REPORT_FLOW_H

#include "report/log.h"

/* By what became of them. The names are the `verdict` label of the exported metric. */
#define FLOWS(X)                                                                                   \
	X(EXECUTE, "execute")                                                                      \
	X(RESEND, "resend")                                                                        \
	X(JOIN, "join")                                                                            \
	X(REPLAY, "replay")                                                                        \
	X(REFUSE, "refuse")                                                                        \
	X(UNPROTECTED, "unprotected")                                                              \
	X(AUDITED, "audited") /* written down only */

enum flow_kind {
#define FLOW_ID(id, name) FLOW_##id,
	FLOWS(FLOW_ID) FLOW_COUNT
#undef FLOW_ID
};
const char *flow_name(enum flow_kind kind);

struct flow {
	uint32_t operation; /* text; 0: writes no rule names */
	unsigned long writes[FLOW_COUNT];
	unsigned long unknown;          /* of them ended in doubt */
	unsigned long late[FLOW_COUNT]; /* of them, in the newest tenth of the log's time */
};

struct flows {
	struct flow *of;
	size_t count;
};

/* `log` is sorted. 0, or -1 out of memory. Freed by flows_free in any case. */
int flows_make(const struct log *log, struct flows *out);
void flows_free(struct flows *flows);

/* Does something retry this operation much more than it used to? In the newest tenth at least
 * twenty writes, half of them answered from the ledger, and three times the share of before. */
bool flow_jumps(const struct flow *flow);

#endif
