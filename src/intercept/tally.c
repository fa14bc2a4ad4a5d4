/* See tally.h. */
#include "intercept/tally.h"

#include "base/clock.h"
#include "intercept/notice.h"

static const char *text_or_null(const char *text)
{
	return text && *text ? text : NULL;
}

void tally_write(const struct tally *t, const char *name)
{
	struct event event = notice_event(t->process, name);
	bool traced = false;

	for (size_t i = 0; i < sizeof(t->trace); i++)
		traced = traced || t->trace[i] != 0;
	event.operation = t->rule->operation;
	event.method = t->method;
	event.host = t->host;
	event.path = t->rule->path_text;
	event.key = text_or_null(t->key);
	event.fingerprint = t->fingerprint;
	event.record = t->record;
	event.generation = t->generation ? t->generation : -1;
	event.attempt = t->attempt ? t->attempt : -1;
	event.wire_sends = t->wire_sends;
	event.status = t->status ? t->status : -1;
	event.curlcode = t->curlcode;
	event.bytes = t->bytes;
	event.ms = ((t->ended_us ? t->ended_us : clock_boot_us()) - t->started_us) / 1000;
	event.verdict = t->verdict;
	event.reason = text_or_null(t->reason);
	event.outcome = t->outcome;
	event.served = t->served;
	event.trace = traced ? t->trace : NULL;
	notice_send(t->process, &event);
}
