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

#endif
