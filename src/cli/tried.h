/* `doctor --run`: a program against a local server, to see what arrives. */
#ifndef SENDONCE_CLI_TRIED_H
#define SENDONCE_CLI_TRIED_H

#include "cli/diagnose.h"

/* Runs argv with the preload, `{url}` in its arguments replaced by the server's. With one argument
 * only, a recipe is used where there is one for that program. Its output goes to stderr. 0, or an
 * exit code after a message. */
int cli_try(char **argv, struct diagnosis *out);

#endif
