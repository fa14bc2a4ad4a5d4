/* The sendings this process has in flight, by record: so that a second caller joins the tape itself
 * and does not wait for it in the ledger. */
#ifndef SENDONCE_INTERCEPT_LOCAL_H
#define SENDONCE_INTERCEPT_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;

/* `owner` tells two sendings of one record apart. Failing (no memory) is harmless: others then wait
 * in the ledger. Keeps a reference to the attempt until local_remove. `attempt` null: the call
 * sends in place, and others wait in the ledger; only nesting is noticed. */
void local_add(uint64_t record, const void *owner, struct attempt *attempt);
void local_remove(uint64_t record, const void *owner);
/* The call that started it has returned: from now on nobody's stack is under it. */
void local_orphaned(uint64_t record, const void *owner);

/* A reference to the attempt, or null. *nested: this very thread is inside the call that sends it,
 * in one of the program's callbacks: waiting for it would wait for ever. */
struct attempt *local_find(uint64_t record, bool *nested);

void local_fork_prepare(void);
void local_fork_parent(void);
void local_fork_child(void);

#endif
