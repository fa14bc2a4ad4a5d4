/* What rebuild.c and recover.c share. Nobody else includes it. */
#ifndef SENDONCE_LEDGER_REBUILDING_H
#define SENDONCE_LEDGER_REBUILDING_H

#include "ledger/carry.h"
#include "ledger/rebuild.h"

/* May change the record; false: it is left out. */
typedef bool rebuild_filter(void *ctx, struct ledger_record *record);

/* Every record of `from`, and its counters, into `to`, which nobody uses yet; flushed. */
int rebuild_copy(struct ledger *from, struct ledger *to, rebuild_filter *filter, void *ctx,
                 struct rebuild_report *report);
/* A new file called `name` that goes on with the secret of `from` (null: a new one). */
int rebuild_make(const struct ledger_options *like, const char *name, const struct ledger *from,
                 struct ledger **out, struct ledger_error *error);
/* The file at `path`, locked against others who replace it; a descriptor, or an error. */
int rebuild_lock(const char *path, struct ledger_error *error);

#endif
