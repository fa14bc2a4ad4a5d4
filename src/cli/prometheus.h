/* `stats --prometheus`: the text format of the node exporter's textfile collector. */
#ifndef SENDONCE_CLI_PROMETHEUS_H
#define SENDONCE_CLI_PROMETHEUS_H

#include "ledger/ledger.h"
#include "report/flow.h"

/* `log` and `flows` may be empty; `ledger` is open. 0, or -1 out of memory. */
int cli_prometheus(struct ledger *ledger, const struct log *log, const struct flows *flows);

#endif
