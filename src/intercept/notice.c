/* See notice.h. A line that cannot be written is counted in the ledger, if there is one: the host
 * is never made to wait for its log. */
#include "intercept/notice.h"

#include <errno.h>

struct event notice_event(const struct process *p, const char *name)
{
	struct event event = event_make(name);

	event.scope = p->scope[0] ? p->scope : NULL;
	event.run = p->run[0] ? p->run : NULL;
	event.mode = p->mode;
	return event;
}

void notice_send(const struct process *p, const struct event *event)
{
	int saved = errno;

	struct ledger *ledger = process_ledger_opened();

	if ((!p->events_path[0] || event_write(p->events_path, event) != 0) && ledger)
		ledger_count(ledger, COUNT_events_lost);
	errno = saved;
}

void notice_warning(const struct process *p, const char *reason, const char *text)
{
	struct event event = notice_event(p, "warning");

	event.reason = reason;
	event.text = text;
	notice_send(p, &event);
}
