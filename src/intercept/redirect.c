/* See redirect.h. The program's own transfer goes on as it would, with PREREQ chained: where a hop
 * is about to be sent, its URL and method are matched as if the program had asked for them. What
 * was led there has no record and no key, so it is not sent.
 *
 * Not promised: anything with a libcurl that has no PREREQ (before 7.80). */
#include "intercept/redirect.h"

#include <stdlib.h>

#include "intercept/chain.h"
#include "intercept/choose.h"
#include "intercept/process.h"
#include "intercept/write.h"
#include "intercept/writing.h"

struct redirect {
	struct chain chain;
	struct shadow *shadow;
	const struct process *process;
	const struct rule *rule;      /* that a redirect led to; null: none did */
	struct request_target target; /* and where */
	char method[32];
};

/* By its `match` alone: what is performed natively in spite of it was told of already. */
static bool is_listed(const struct shadow *s)
{
	return s->ruled.made == s->target.made && s->ruled.rule && s->ruled.rule->when.count == 0;
}

bool redirect_possible(const struct shadow *s)
{
	return options_long(&s->options, CURLOPT_FOLLOWLOCATION, 0) && !s->chain &&
	       process_get()->state == PROCESS_ON && process_get()->acting != MODE_INJECT &&
	       s->target.valid && !is_listed(s);
}

/* As the program would have asked for it, without the options that count for its own URL alone. */
static const struct rule *rule_for(struct redirect *w, const char *url, const char *method)
{
	struct options asked;
	struct request_target *t = &w->target;
	const struct rule *rule = NULL;

	options_init(&asked);
	if (options_set(&asked, CURLOPT_URL, (uintptr_t)url) == 0 &&
	    request_target_update(t, w->shadow->flavour, &asked) == 0 && t->valid)
		rule = choose_redirected(w->shadow, w->process, method, t);
	options_free(&asked);
	return rule;
}

int redirect_pass(void *ctx, const char *url)
{
	struct redirect *w = ctx;
	struct shadow *s = w->shadow;
	const char *method = NULL;
	long hops = 0;

	CURL_FN(s->flavour, easy_getinfo)(s->handle, CURLINFO_REDIRECT_COUNT, &hops);
	if (!hops || !url)
		return 0;
	CURL_FN(s->flavour, easy_getinfo)(s->handle, CURLINFO_EFFECTIVE_METHOD, &method);
	if (!method)
		return 0;
	w->rule = rule_for(w, url, method);
	for (size_t i = 0; w->rule && i < sizeof(w->method) - 1 && method[i]; i++)
		w->method[i] = method[i];
	return w->rule ? -1 : 0;
}

void redirect_free(void *ctx)
{
	struct redirect *w = ctx;

	if (w)
		request_target_free(&w->target);
	free(w);
}

static const struct chain_calls calls = {.pass = redirect_pass, .dropped = redirect_free};

struct redirect *redirect_new(struct shadow *s)
{
	struct redirect *w = calloc(1, sizeof(*w));

	if (w) {
		w->shadow = s;
		w->process = process_get();
	}
	return w;
}

struct writing *redirect_refusal(struct redirect *w)
{
	struct writing *refusal = NULL;

	if (w->rule)
		refusal = write_begin_redirected(w->shadow, w->process, w->rule, w->method,
		                                 &w->target);
	redirect_free(w);
	return refusal;
}

struct redirect *redirect_begin(struct shadow *s)
{
	struct redirect *w = redirect_new(s);

	if (w && chain_begin(&w->chain, s, &calls, w) == 0)
		return w;
	redirect_free(w);
	return NULL;
}

struct writing *redirect_end(struct redirect *w)
{
	chain_end(&w->chain);
	return redirect_refusal(w);
}

bool redirect_refuses(struct redirect *r, struct writing *w)
{
	bool led = r->rule != NULL;

	chain_end(&r->chain);
	if (led)
		write_redirected(w, r->rule, r->method, &r->target);
	redirect_free(r);
	return led;
}

void redirect_abandon(struct redirect *w)
{
	chain_end(&w->chain);
	redirect_free(w);
}
