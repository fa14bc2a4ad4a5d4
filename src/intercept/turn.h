/* repeat: ordinal. Equal writes of one run are told apart by their number: the first one of a
 * process means the first that the run ever made, the second the second. */
#ifndef SENDONCE_INTERCEPT_TURN_H
#define SENDONCE_INTERCEPT_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "intercept/writing.h"

/* Which of the equal writes this call is, from the first look on. `view`, the record found for it,
 * becomes the one of its turn, unless something undelivered comes first; `content` is what the
 * ledger knows this write by. True: there is none yet, and `view` is the run's last. Nothing
 * happens where the rule says otherwise. */
bool turn_choose(struct writing *w, const uint8_t *content, struct stamp now,
                 struct record_view *view);
/* The program got the answer: the next equal call means the next one. */
void turn_over(const struct writing *w);

/* Locks around fork(2). A child goes on counting where its parent was. */
void turn_fork_prepare(void);
void turn_fork_done(void);

#endif
