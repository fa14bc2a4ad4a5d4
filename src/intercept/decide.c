/* See decide.h. */
#include "intercept/decide.h"

#include "intercept/choose.h"
#include "intercept/gather.h"
#include "intercept/inplace.h"
#include "intercept/redirect.h"
#include "intercept/replay.h"
#include "intercept/write.h"

/* Only written down: a listed write in mode audit, an unlisted one where the policy wants them. */
static bool is_audited(const struct shadow *s, const struct process *process,
                       const struct rule *rule)
{
	if (rule ? process->state != PROCESS_AUDIT : !process->unlisted)
		return false;
	if (options_long(&s->options, CURLOPT_CONNECT_ONLY, 0))
		return false;
	return rule || !request_is_read(request_method(&s->options));
}

static enum way natively(const struct shadow *s)
{
	return redirect_possible(s) ? WAY_REDIRECT : WAY_LIBCURL;
}

static enum way refused(struct decision *d, enum verdict_reason reason)
{
	d->reason = reason;
	return WAY_REFUSE;
}

static enum way listed(struct shadow *s, struct decision *d)
{
	d->in_place = gather_obstacle(s);
	if (!d->in_place || inplace_can(s))
		return WAY_WRITE;
	if (d->process->acting == MODE_REPLAY)
		return refused(d, REASON_REPLAY_MISS);
	write_unprotected(s, d->process, d->rule, d->in_place);
	return natively(s);
}

static enum way stopped(const struct shadow *s, struct decision *d)
{
	return replay_is_raw(s) ? WAY_STOP : refused(d, replay_reason(s));
}

static enum way unlisted(struct shadow *s, struct decision *d)
{
	if (replay_would_stop(s, d->process))
		return stopped(s, d);
	if (write_refuses_unlisted(s, d->process))
		return refused(d, REASON_UNLISTED);
	return natively(s);
}

/* A request whose target there was no memory for may be a listed write. libcurl, asked a moment
 * later, might have the memory. */
static bool may_be_a_write(const struct shadow *s, const struct process *process)
{
	return process->state != PROCESS_AUDIT && process->acting != MODE_INJECT &&
	       !request_is_read(request_method(&s->options));
}

static enum way choose(struct shadow *s, struct decision *d)
{
	const struct process *process = d->process;
	int rc;

	if (process->state == PROCESS_OFF)
		return WAY_LIBCURL;
	request_settle(&s->options, s->flavour);
	rc = request_target_update(&s->target, s->flavour, &s->options);
	if (rc != 0 && may_be_a_write(s, process))
		return WAY_NO_MEMORY;
	if (rc != 0 || !s->target.valid)
		return replay_would_stop(s, process) ? stopped(s, d) : WAY_LIBCURL;
	if (process->state == PROCESS_BROKEN)
		return request_is_read(request_method(&s->options)) ? WAY_LIBCURL : WAY_POLICY;
	d->rule = choose_rule(s, process);
	if (is_audited(s, process, d->rule))
		return WAY_AUDIT;
	if (process->state == PROCESS_AUDIT)
		return natively(s);
	return d->rule ? listed(s, d) : unlisted(s, d);
}

struct decision decide(struct shadow *s)
{
	struct decision d = {.process = process_get()};

	d.way = choose(s, &d);
	return d;
}
