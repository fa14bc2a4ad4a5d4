/* See choose.h. What `match` says is asked once a URL and method and kept in the shadow; `when` is
 * asked at each request, and only where a rule has one. */
#include "intercept/choose.h"

#include <string.h>

#include "identity/predicate.h"
#include "intercept/gather.h"

static struct policy_target target_of(const struct request_target *t, struct span method)
{
	return (struct policy_target){
	        .method = method,
	        .scheme = span_of(t->scheme),
	        .host = span_of(t->host),
	        .port = t->port,
	        .path = span_of(t->path),
	};
}

/* The first one by `match` alone. */
static const struct rule *matched(struct shadow *s, const struct process *process)
{
	struct ruled *known = &s->ruled;
	const char *method = request_method(&s->options);
	struct policy_target target;
	size_t n;

	if (known->made == s->target.made && strcmp(known->method, method) == 0)
		return known->rule;
	target = target_of(&s->target, span_of(method));
	n = target.method.n;
	if (n >= sizeof(known->method))
		return policy_match(process->policy, &target);
	memcpy(known->method, method, n + 1);
	known->rule = policy_match(process->policy, &target);
	known->made = s->target.made;
	return known->rule;
}

/* Only a read callback's bytes are not there yet. A form never is JSON, nor a list of pairs. */
static bool body_is_unread(const struct shadow *s)
{
	enum request_body kind = request_body_kind(&s->options);

	return kind == REQUEST_READ || kind == REQUEST_UPLOAD;
}

/* A form that libcurl will render is something that is there and cannot be read as JSON. */
static void stand_in(const struct shadow *s, struct identity_in *in)
{
	enum request_body kind = request_body_kind(&s->options);

	if (kind != REQUEST_MIME && kind != REQUEST_FORMPOST)
		return;
	in->body = span_of("multipart");
	in->content_type = span_of("multipart/form-data");
}

bool choose_is_open(const struct shadow *s, const struct rule *rule)
{
	return predicates_read_body(&rule->when) && body_is_unread(s);
}

/* From `rule` on, which `match` names already. */
static const struct rule *choose(const struct shadow *s, const struct process *process,
                                 const struct policy_target *target, struct span query,
                                 const struct rule *rule)
{
	struct predicate_asking asking;
	struct identity_in in = {0};
	struct gathered own = {0};

	if (!rule || rule->when.count == 0)
		return rule;
	if (gather_identity(s, &own, &in) != 0) {
		gather_free(&own);
		return rule; /* out of memory: the write itself will say so */
	}
	in.query = query;
	stand_in(s, &in);
	asking = predicates_ask(&in);
	while (rule && !choose_is_open(s, rule) && !predicates_fit(&asking, &rule->when))
		rule = policy_match_after(process->policy, target, rule);
	predicates_asked(&asking);
	gather_free(&own);
	return rule;
}

const struct rule *choose_rule(struct shadow *s, const struct process *process)
{
	const struct rule *rule = matched(s, process);
	struct policy_target target;

	if (!rule || rule->when.count == 0) /* most requests: the rest is not even looked at */
		return rule;
	target = target_of(&s->target, span_of(request_method(&s->options)));
	return choose(s, process, &target, span_of(s->target.query), rule);
}

const struct rule *choose_redirected(const struct shadow *s, const struct process *process,
                                     const char *method, const struct request_target *t)
{
	struct policy_target target = target_of(t, span_of(method));

	return choose(s, process, &target, span_of(t->query),
	              policy_match(process->policy, &target));
}

const struct rule *choose_read(const struct process *process, const struct rule *rule,
                               const struct identity_in *in)
{
	struct policy_target target = {
	        .method = in->method,
	        .scheme = in->scheme,
	        .host = in->host,
	        .port = in->port,
	        .path = in->path,
	};
	struct predicate_asking asking;

	asking = predicates_ask(in);
	while (rule && !predicates_fit(&asking, &rule->when))
		rule = policy_match_after(process->policy, &target, rule);
	predicates_asked(&asking);
	return rule;
}
