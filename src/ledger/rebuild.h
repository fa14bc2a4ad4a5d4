/* A new file for a ledger: of another size, or from what a damaged one still says. For the command
 * line; both put the new file in the old one's place and keep the old one beside it. */
#ifndef SENDONCE_LEDGER_REBUILD_H
#define SENDONCE_LEDGER_REBUILD_H

#include "ledger/ledger.h"

struct rebuild_report {
	char old[4096];      /* where the old file is now */
	uint64_t records;    /* brought over */
	uint64_t unreadable; /* recover: places of records of which nothing certain is left */
	bool lost;           /* recover: writes without a record are in doubt (ledger_lost) */
	bool secret_lost;    /* recover: the new ledger has a new secret */
	int64_t size;
};

/* Offline: refused (LEDGER_CANNOT) while anybody owns a record. The old file is retired, so that
 * who has it mapped refuses instead of writing where nobody looks. `options`: path, size, group,
 * durable. LEDGER_FULL: the records do not fit. */
int ledger_resize(const struct ledger_options *options, struct rebuild_report *report,
                  struct ledger_error *error);

/* From a damaged ledger at `path`, or the one that the note at `path` says was set aside. Its size
 * stays; `options->size` is for a file that does not tell it. LEDGER_NONE: there is no damage, and
 * nothing was done. */
int ledger_recover(const struct ledger_options *options, struct rebuild_report *report,
                   struct ledger_error *error);

#endif
