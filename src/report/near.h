/* Writes that mean the same in other words. */
#ifndef SENDONCE_REPORT_NEAR_H
#define SENDONCE_REPORT_NEAR_H

#include "report/analysis.h"

/* Marks near duplicates among the entries `which` names (writes that are no duplicates of their
 * own identity, in any order; it is sorted here). 0, or -1 out of memory. */
int near_find(struct analysis *a, uint32_t *which, size_t count, analysis_rule *rule, void *ctx);

/* The names of the parts in which two entries differ, each once, separated by ", ". */
void near_differences(const struct log *log, const struct entry *a, const struct entry *b,
                      struct buf *out);

/* What of an earlier write makes a later equal one suspicious; CAUSE_NONE: nothing, it never
 * happened. */
enum cause near_cause(const struct entry *before, const struct entry *e);

#endif
