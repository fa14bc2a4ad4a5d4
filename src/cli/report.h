/* What `report` and `run --report` share. */
#ifndef SENDONCE_CLI_REPORT_H
#define SENDONCE_CLI_REPORT_H

#include "policy/policy.h"
#include "report/print.h"

enum cli_report_form { CLI_REPORT_TEXT, CLI_REPORT_JSON, CLI_REPORT_JUNIT, CLI_REPORT_HTML };
enum {
	CLI_REPORT_PAGE_GROUPS = 2000,
	CLI_REPORT_DEFAULT_MASK = FOUND(DUPLICATE) | FOUND(WIRE_DUPLICATE) | FOUND(NEAR_DUPLICATE)
};

/* The rules an analysis asks for: a policy's (may be null, stays the caller's) and the defaults. */
struct cli_rules {
	const struct policy *policy;
	struct policy *defaults;
};
int cli_rules_load(struct cli_rules *out, const struct policy *policy); /* 0, or -1 no memory */
void cli_rules_free(struct cli_rules *rules);
const struct rule *cli_rules_find(void *ctx, const char *operation); /* an analysis_rule */

/* The names after --fail-on. 0, or an exit code after a message. */
int cli_finding_mask(const char *command, const char *list, unsigned *mask);
/* A message about a log that could not be read (rc of log_read); returns the exit code. */
int cli_log_failed(const char *command, const char *path, int rc);
/* To standard output (path null) or a file. 0, or an exit code after a message. */
int cli_report_write(const char *command, const char *path, enum cli_report_form form,
                     const struct analysis *a, const struct report_view *view);

#endif
