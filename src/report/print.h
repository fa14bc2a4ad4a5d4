/* The analysis as a text for people, as JSON, as JUnit's XML and as one HTML page. */
#ifndef SENDONCE_REPORT_PRINT_H
#define SENDONCE_REPORT_PRINT_H

#include <stdio.h>

#include "report/analysis.h"

struct report_view {
	const char *source; /* the log's path, for people */
	unsigned fail_on;   /* FOUND() bits that count as failures (JUnit) */
	size_t most;        /* groups shown at most; 0: all */
};

void report_text(FILE *out, const struct analysis *a, const struct report_view *view);
void report_json(FILE *out, const struct analysis *a, const struct report_view *view);
void report_junit(FILE *out, const struct analysis *a, const struct report_view *view);
/* 0, or -1 out of memory. */
int report_html(FILE *out, const struct analysis *a, const struct report_view *view);
/* Three lines: what was written, what was found, what to do. */
void report_summary(FILE *out, const struct analysis *a, const struct report_view *view);

/* Operations of two logs side by side: `before` may lack some of `after`'s and the other way
 * round. Returns how many findings of `mask` there are more in `after`, over all operations. */
unsigned long report_compare(FILE *out, const struct analysis *before, const struct analysis *after,
                             unsigned mask);

/* --- what the writers share: names.c --- */

/* The operation, or of writes no rule names `METHOD host/path`. Into `out`, which is returned. */
const char *report_op_name(const struct log *log, const struct op_counts *op, char *out,
                           size_t room);
const char *report_entry_op(const struct log *log, const struct entry *e, char *out, size_t room);
/* "duplicate, unknown": the findings of the bits; "" for none. */
const char *report_findings(unsigned found, char *out, size_t room);
/* What enforce did, or would have done: "replay", "refuse unknown-outcome"; "" when not known. */
const char *report_verdict(const struct analysis *a, uint32_t at, char *out, size_t room);
/* The entry after `at` in the group; NO_ENTRY at its end. Begins with the group's first when `at`
 * is NO_ENTRY. */
uint32_t report_next(const struct analysis *a, const struct group *g, uint32_t at);
void report_time(int64_t wall_us, char *out, size_t room);

#endif
