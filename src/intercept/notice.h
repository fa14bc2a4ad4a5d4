/* Events that are not a write's end: warnings and writes that pass unprotected. */
#ifndef SENDONCE_INTERCEPT_NOTICE_H
#define SENDONCE_INTERCEPT_NOTICE_H

#include "intercept/process.h"
#include "ledger/events.h"

/* An event with what every event of this process carries. */
struct event notice_event(const struct process *p, const char *name);
/* A line that cannot be written is lost and counted. Keeps errno. */
void notice_send(const struct process *p, const struct event *event);

void notice_warning(const struct process *p, const char *reason, const char *text);

/* What is sent between these two by this thread is written together, at the end, in one write. For
 * one call of the program's loop, in which many writes may end: their lines are in the log before
 * the call returns and the program can learn of any of the ends. Lines of a process that dies by
 * a signal or _exit(2) in a callback of that same call are lost; the ledger has the writes. Without
 * a batch, the end does nothing: every call of the program that may send begins with it, for a
 * batch that a callback jumped out of. */
void notice_batch_begin(void);
void notice_batch_end(void);

#endif
