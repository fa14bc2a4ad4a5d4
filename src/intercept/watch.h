/* Records that another process sends, and a program's loop waits for: a thread of ours looks at the
 * ledger meanwhile, and rings. It exists only while there is such a record. */
#ifndef SENDONCE_INTERCEPT_WATCH_H
#define SENDONCE_INTERCEPT_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "courier/bell.h"
#include "ledger/ledger.h"

/* The caller's memory until watch_remove. */
struct watch {
	struct watch *next;
	struct ledger *ledger;
	uint64_t record, word;
	struct bell *bell;
	struct bell_note *note; /* to be left with it */
	atomic_bool rung;       /* the word is another one, or it is time to look */
};

/* Ring when `record` has another word than `word`, and once a second. False: there can be no
 * thread, and the loop has to look by itself. */
bool watch_add(struct watch *w, struct ledger *ledger, uint64_t record, uint64_t word,
               struct bell *bell, struct bell_note *note);
void watch_remove(struct watch *w); /* also one that was never added */

void watch_fork_prepare(void);
void watch_fork_parent(void);
void watch_fork_child(void);

#endif
