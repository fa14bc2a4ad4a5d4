/* Who may say that a write did not happen. */
#ifndef SENDONCE_CLI_PERSON_H
#define SENDONCE_CLI_PERSON_H

#include "ledger/ledger.h"

struct person {
	const char *name, *evidence; /* null: not given */
};

/* 0 when a person stands behind this command, or an exit code after a message. `run` may be null.
 * Without an operator it asks on the terminal, with `question`. */
int person_require(const char *command, struct ledger *ledger, const struct person *person,
                   const char *run, const char *question);

#endif
