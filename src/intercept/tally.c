/* See tally.h. */
#include "intercept/tally.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "intercept/notice.h"

void tally_clear(struct tally *t)
{
	memset(t, 0, offsetof(struct tally, method));
	t->method[0] = t->host[0] = t->key[0] = '\0';
	names_clear(&t->names);
}

void tally_copy(struct tally *to, const struct tally *from)
{
	memcpy(to, from, offsetof(struct tally, method));
	text_copy(to->method, from->method);
	text_copy(to->host, from->host);
	text_copy(to->key, from->key);
	names_copy(&to->names, &from->names);
}

static const char *text_or_null(const char *text)
{
	return text && *text ? text : NULL;
}

/* Null where it was never found out: all zero. */
static const uint8_t *bytes_or_null(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return bytes;
	return NULL;
}

void tally_write(const struct tally *t, const char *name)
{
	struct event event = notice_event(t->process, name);

	event.scope = text_or_null(t->names.scope);
	event.run = text_or_null(t->names.run);
	event.operation = t->rule->operation;
	event.method = t->method;
	event.host = t->host;
	event.path = t->rule->path_text;
	event.key = text_or_null(t->key);
	event.identity = bytes_or_null(t->identity, sizeof(t->identity));
	event.own_key = bytes_or_null(t->own_key, sizeof(t->own_key));
	event.fingerprint = bytes_or_null(t->fingerprint, sizeof(t->fingerprint));
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
	event.trace = bytes_or_null(t->trace, sizeof(t->trace));
	notice_send(t->process, &event);
}
