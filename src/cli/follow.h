/* `sendonce events --follow`. */
#ifndef SENDONCE_CLI_FOLLOW_H
#define SENDONCE_CLI_FOLLOW_H

#include <stdbool.h>

struct follow {
	const char *path;
	const char *command; /* --exec; null: none */
	bool json;
};

/* Prints what is added to the log from now on. Returns only when that cannot be done (an exit code
 * after a message), or when standard output is closed. */
int cli_follow(const struct follow *follow);

#endif
