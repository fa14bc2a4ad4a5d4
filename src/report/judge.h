/* The inside of analysis.h: the findings, before they are gathered. */
#ifndef SENDONCE_REPORT_JUDGE_H
#define SENDONCE_REPORT_JUDGE_H

#include "report/analysis.h"

/* Fills in a->of, whose entries are empty. 0, or -1 out of memory. */
int judge_entries(struct analysis *a, analysis_rule *rule, void *ctx);

#endif
