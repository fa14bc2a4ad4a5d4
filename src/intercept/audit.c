/* See audit.h. Header lines and the moment before each wire send are watched always, so that a send
 * which libcurl repeats by itself is told from a redirect or a round of authentication. The debug
 * callback, which costs more, is chained where the body is not in memory, and where there is no
 * PREREQ to count by, and that of the answer's body where the rule asks something of it. Memory
 * that runs out costs the event its fingerprint, never the program. */
#include "intercept/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "courier/fields.h"
#include "courier/passes.h"
#include "identity/predicate.h"
#include "intercept/chain.h"
#include "intercept/choose.h"
#include "intercept/fetch.h"
#include "base/fold.h"
#include "intercept/gather.h"
#include "intercept/names.h"
#include "intercept/notice.h"
#include "intercept/outgoing.h"
#include "intercept/redirect.h"
#include "verdict/verdict.h"

struct audit {
	struct chain chain;
	struct chain_calls calls;
	struct shadow *shadow;
	const struct process *process;
	struct names names;
	const struct rule *rule; /* null: unlisted */
	const struct rule *by;   /* by which it is compared: the rule, or the defaults */
	struct redirect
	        *redirect; /* an unlisted write under enforce, that may lead to a listed one */
	struct passes passes;
	struct outgoing out;
	struct gathered own;
	struct identity_in in;
	struct identity id;
	struct buf parts;
	struct buf head, answer; /* of the last answer, where its body is asked about */
	bool answer_lost;        /* it is larger than is kept, or there was no memory */
	bool watching;           /* the debug callback is chained */
	bool identified, body_lost;
	unsigned repeated; /* wire sends that no answer had asked for */
	int64_t started_us;
	uint8_t trace[16];
	char method[32];
};

/* --- what the chain tells --- */

static void count_send(struct audit *a, const char *url)
{
	struct gate_pass pass;

	passes_begin(&a->passes, url, &pass);
	if (pass.number > 1 && !pass.after_answer)
		a->repeated++;
}

/* Never stopped in mode audit. */
static int on_pass(void *ctx, const char *url)
{
	struct audit *a = ctx;

	if (a->redirect && redirect_pass(a->redirect, url))
		return -1;
	count_send(a, url);
	return 0;
}

static void on_header(void *ctx, const char *line, size_t n)
{
	struct audit *a = ctx;

	passes_header(&a->passes, line, n);
	if (!a->calls.body)
		return;
	if (span_starts((struct span){line, n}, "HTTP/")) {
		buf_reset(&a->head);
		buf_reset(&a->answer);
		a->answer_lost = false;
	}
	buf_add(&a->head, line, n);
}

static void on_body(void *ctx, const char *data, size_t n)
{
	struct audit *a = ctx;

	if (n > (size_t)a->process->policy->max_response - a->answer.n)
		a->answer_lost = true;
	if (!a->answer_lost)
		buf_add(&a->answer, data, n);
}

static void on_debug(void *ctx, curl_infotype type, const char *data, size_t n)
{
	struct audit *a = ctx;

	if (type == CURLINFO_DATA_OUT)
		outgoing_data(&a->out, data, n);
	if (type != CURLINFO_HEADER_OUT)
		return;
	outgoing_head(&a->out, data, n);
	passes_request(&a->passes, data, n);
	if (a->chain.no_prereq && !a->passes.opening)
		count_send(a, NULL);
}

static void audit_free(struct audit *a)
{
	gather_free(&a->own);
	outgoing_free(&a->out);
	passes_free(&a->passes);
	buf_free(&a->parts);
	buf_free(&a->head);
	buf_free(&a->answer);
	redirect_free(a->redirect);
	free(a);
}

static void tell(struct audit *a, CURLcode code);

static void on_dropped(void *ctx)
{
	struct audit *a = ctx;

	tell(a, CURLE_ABORTED_BY_CALLBACK);
	audit_free(a);
}

/* --- the event --- */

/* Writes that no rule names are compared by the schema's defaults, where the log wants them. */
static void set_rule(struct audit *a, const struct rule *rule)
{
	const struct policy *defaults = a->process->unlisted;

	a->rule = rule;
	a->by = rule ? rule : defaults ? &defaults->rules[0] : NULL;
}

static void identify(struct audit *a, const struct span *body)
{
	a->in = (struct identity_in){
	        .rule = a->by,
	        .secret = process_secret(NULL, NULL),
	        .scope = span_of(a->names.scope),
	        .step = span_of(a->names.step),
	        .env = process_env,
	};
	if (!a->in.secret.n || gather_identity(a->shadow, &a->own, &a->in) != 0)
		return;
	names_read(a->process, a->own.headers, a->own.count, &a->names);
	a->in.scope = span_of(a->names.scope);
	a->in.step = span_of(a->names.step);
	if (body) {
		a->in.body = *body;
		a->in.content_type = outgoing_header(&a->out, "Content-Type");
	}
	if (body && a->rule && choose_is_open(a->shadow, a->rule)) {
		set_rule(a, choose_read(a->process, a->rule, &a->in));
		a->in.rule = a->by;
	}
	if (!a->by)
		return;
	gather_trace(&a->own, a->trace);
	a->identified = identity_begin(&a->in, &a->id) == IDENTITY_OK;
	if (a->identified)
		identity_leaves(&a->in, &a->parts);
}

/* A body that nobody but libcurl has read is known once it has left. */
static void identify_sent(struct audit *a)
{
	struct span body;

	if (outgoing_body(&a->out, &body) == 0)
		identify(a, &body);
	else
		a->body_lost = true;
}

/* Of an answer that is not there whole nothing can be said. */
static bool body_matches(const struct audit *a, bool complete)
{
	struct predicate_view view = {.body = span_buf(&a->answer)};

	if (!a->by->body.count)
		return true;
	if (!complete || a->answer_lost || a->answer.failed || a->head.failed)
		return false;
	view.content_type = fields_find(span_buf(&a->head), "Content-Type");
	return predicates_hold_answer(&a->by->body, &view);
}

static const char *outcome_of(const struct audit *a, CURLcode code)
{
	struct ending ending = {
	        .gate_opened = a->passes.count > 0,
	        .complete = code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR,
	        .status = a->passes.status,
	        .seen_at = passes_seen_at(&a->passes, code != CURLE_OK),
	};

	ending.body_matches = body_matches(a, ending.complete);
	return outcome_kind_name(verdict_outcome(&ending, a->by));
}

static void describe(const struct audit *a, CURLcode code, struct event *e)
{
	curl_off_t bytes = 0;

	e->method = a->method;
	e->host = a->shadow->target.host;
	e->wire_sends = a->passes.count;
	e->status = a->passes.status ? a->passes.status : -1;
	e->curlcode = code;
	e->ms = (clock_boot_us() - a->started_us) / 1000;
	if (CURL_FN(a->shadow->flavour, easy_getinfo)(a->shadow->handle, CURLINFO_SIZE_DOWNLOAD_T,
	                                              &bytes) == CURLE_OK)
		e->bytes = bytes;
	if (a->repeated)
		e->reason = "wire-resend";
	else if (a->body_lost)
		e->reason = "body-not-seen";
}

static void describe_write(const struct audit *a, CURLcode code, struct event *e)
{
	static const uint8_t no_trace[16];

	e->outcome = outcome_of(a, code);
	if (a->identified) {
		e->identity = a->id.content;
		e->own_key = a->id.has_own_key ? a->id.own_key : NULL;
		e->fingerprint = a->id.fingerprint;
		e->key = a->id.has_own_key ? a->id.own_key_text : NULL;
		e->parts = a->parts.failed ? NULL : a->parts.data;
	}
	if (memcmp(a->trace, no_trace, sizeof(no_trace)) != 0)
		e->trace = a->trace;
}

static void tell(struct audit *a, CURLcode code)
{
	struct event e = notice_event(a->process, a->rule ? "write" : "unlisted");
	struct buf path = {0};

	if (!a->by)
		return; /* a `when` that does not hold */
	e.scope = a->names.scope[0] ? a->names.scope : NULL;
	e.run = a->names.run[0] ? a->names.run : NULL;
	describe(a, code, &e);
	describe_write(a, code, &e);
	if (a->rule) {
		e.operation = a->rule->operation;
		e.path = a->rule->path_text;
	} else {
		fold_path(span_of(a->shadow->target.path), &path);
		e.path = path.failed ? NULL : path.data;
	}
	notice_send(a->process, &e);
	buf_free(&path);
}

/* --- the perform --- */

static bool body_in_memory(const struct shadow *s)
{
	enum request_body kind = request_body_kind(&s->options);

	return kind == REQUEST_NO_BODY || kind == REQUEST_FIELDS;
}

/* Which of several rules it is may be known only when the body has left. */
static bool asks_of_answer(const struct audit *a)
{
	return a->rule && (a->rule->body.count || choose_is_open(a->shadow, a->rule));
}

static int watch(struct audit *a)
{
	a->calls = (struct chain_calls){
	        .pass = on_pass,
	        .header = on_header,
	        .body = asks_of_answer(a) ? on_body : NULL,
	        .debug = a->watching ? on_debug : NULL,
	        .dropped = on_dropped,
	};
	if (chain_begin(&a->chain, a->shadow, &a->calls, a) != 0)
		return -1;
	if (!a->chain.no_prereq || a->watching)
		return 0;
	chain_end(&a->chain);
	a->calls.debug = on_debug;
	return chain_begin(&a->chain, a->shadow, &a->calls, a);
}

/* On the heap: a callback may jump out of the perform. Null: no memory. */
static struct audit *audit_new(struct shadow *s, const struct process *process,
                               const struct rule *rule)
{
	struct audit *a = calloc(1, sizeof(*a));
	const char *method = request_method(&s->options);

	if (!a)
		return NULL;
	a->shadow = s;
	a->process = process;
	names_take(process, &a->names);
	set_rule(a, rule);
	a->started_us = clock_boot_us();
	a->watching = a->by && !body_in_memory(s);
	a->out.limit = a->by ? (size_t)a->by->max_request : 0;
	strncpy(a->method, method, sizeof(a->method) - 1);
	if (a->by && !a->watching)
		identify(a, NULL);
	if (!rule && redirect_possible(s))
		a->redirect = redirect_new(s);
	return a;
}

struct audit *audit_begin(struct shadow *s, const struct process *process, const struct rule *rule)
{
	struct audit *a = audit_new(s, process, rule);

	fetch_give_form(s);
	shadow_begin(s, NULL);
	if (a && watch(a) == 0)
		return a;
	if (a)
		audit_free(a);
	return NULL;
}

struct writing *audit_end(struct audit *a, CURLcode code)
{
	struct redirect *redirect = a->redirect;

	chain_end(&a->chain);
	if (a->watching)
		identify_sent(a);
	tell(a, code);
	a->redirect = NULL;
	audit_free(a);
	return redirect ? redirect_refusal(redirect) : NULL;
}

void audit_abandon(struct audit *a)
{
	chain_end(&a->chain);
	on_dropped(a);
}
