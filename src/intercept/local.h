/* The sendings this process has in flight, by record: so that a second caller joins the tape itself
 * and does not wait for it in the ledger. */
#ifndef SENDONCE_INTERCEPT_LOCAL_H
#define SENDONCE_INTERCEPT_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

struct attempt;

/* Who makes a sending go on. */
enum local_driver {
	DRIVER_CALL,   /* the thread that adds it, from inside of the call that sends */
	DRIVER_LOOP,   /* the same, whenever its own loop comes by */
	DRIVER_COURIER /* anybody */
};

/* `owner` tells two sendings of one record apart. Failing (no memory) is harmless: others then wait
 * in the ledger. Keeps a reference to the attempt until local_remove. `attempt` null: it is sent in
 * place, and others wait in the ledger; only nesting is noticed. */
void local_add(uint64_t record, const void *owner, struct attempt *attempt,
               enum local_driver driver);
void local_remove(uint64_t record, const void *owner);
/* The call that started it has returned: from now on nobody's stack is under it. */
void local_orphaned(uint64_t record, const void *owner);

/* Where the calling thread stands to a sending. */
enum local_nesting {
	LOCAL_APART, /* another thread makes it go on, or anybody can */
	LOCAL_BELOW, /* it is inside of the call that sends, in one of the program's callbacks:
	                waiting for it would wait for ever */
	LOCAL_BESIDE /* its own loop makes it go on: as long as it stands, the sending does */
};

/* A reference to the attempt, or null. */
struct attempt *local_find(uint64_t record, enum local_nesting *nesting);

void local_fork_prepare(void);
void local_fork_parent(void);
void local_fork_child(void);

#endif
