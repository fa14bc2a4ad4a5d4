/* Running a command to its end, and what is said about its writes afterwards. */
#ifndef SENDONCE_CLI_REPORTED_H
#define SENDONCE_CLI_REPORTED_H

#include <stdbool.h>

struct reported {
	const char *report;  /* a file, its form by its name; null: none */
	const char *fail_on; /* as `report --fail-on`; null: nothing */
	bool summary;        /* three lines to stderr */
};

/* Starts argv, waits for it, reports, and ends as it did: by its exit code (CLI_FAILED for 0 when
 * fail_on found something) or by its signal. Its streams are its own. */
int cli_run_reported(char **argv, const struct reported *ask);
/* Replaces this process by the command; returns only when that fails. */
int cli_execute(char **argv);

#endif
