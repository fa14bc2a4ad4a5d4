/* What is found out about one request: the way of a write (section 2 of the design) without its
 * last step. */
#include "cli/explain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "identity/predicate.h"
#include "intercept/choose.h"
#include "intercept/replay.h"
#include "intercept/write.h"
#include "player/refusal.h"

enum { MAX_FORM = 64 << 20, PAUSE_US = 1000 };

static struct policy_target target_of(const struct explained *e)
{
	const struct request_target *t = &e->shadow.target;

	return (struct policy_target){
	        .method = span_of(request_method(&e->shadow.options)),
	        .scheme = span_of(t->scheme),
	        .host = span_of(t->host),
	        .port = t->port,
	        .path = span_of(t->path),
	};
}

void explain_mismatch(const struct explained *e, const struct rule *rule, struct buf *out)
{
	static const struct {
		unsigned part;
		const char *name;
	} names[] = {{MATCH_METHOD, "method"},
	             {MATCH_SCHEME, "scheme"},
	             {MATCH_HOST, "host"},
	             {MATCH_PORT, "port"},
	             {MATCH_PATH, "path"}};
	struct policy_target target = target_of(e);
	unsigned parts = matcher_differs(rule->matcher, &target);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (parts & names[i].part)
			buf_printf(out, "%s%s", out->n ? ", " : "", names[i].name);
	if (!parts && rule->when.count && !predicates_hold_request(&rule->when, &e->write.in))
		buf_add_text(out, "when");
}

/* --- the body --- */

static enum capture_result render(struct shadow *s, struct captured *form)
{
	enum capture_result result = CAPTURE_MORE;
	struct rendering *r =
	        capture_begin(&s->capture, s->flavour, s->handle, &s->options, MAX_FORM, &result);

	if (!r)
		return result;
	for (;;) {
		result = capture_step(r);
		if (result == CAPTURE_PAUSED)
			usleep(PAUSE_US);
		else if (result != CAPTURE_MORE)
			return capture_end(r, result, form);
	}
}

static int render_form(const struct explaining *all, struct explained *e)
{
	enum capture_result result = render(&e->shadow, &e->form);

	if (result != CAPTURE_DONE)
		return cli_fail(CLI_CANNOT, all->command, "libcurl cannot render the form: %s",
		                e->form.error[0] ? e->form.error : "are its files there?");
	e->write.in.body = payload_bytes(e->form.body);
	e->write.in.content_type = span_of(e->form.type);
	return 0;
}

static int find_body(const struct explaining *all, struct explained *e)
{
	switch (request_body_kind(&e->shadow.options)) {
	case REQUEST_MIME:
		return render_form(all, e);
	case REQUEST_UPLOAD:
		e->write.in.body = span_buf(&e->line.upload);
		if (!e->write.in.body.p)
			e->write.in.body.p = "";
		return 0;
	default:
		return 0;
	}
}

/* --- the identity --- */

static int gather(const struct explaining *all, struct explained *e)
{
	struct ledger_error error = {{0}};
	struct writing *w = &e->write;

	names_take(&all->process, &w->tally.names);
	w->in = (struct identity_in){
	        .secret = process_secret(all->ledger, &error),
	        .scope = span_of(w->tally.names.scope),
	        .step = span_of(w->tally.names.step),
	        .env = process_env,
	};
	if (!w->in.secret.n)
		return cli_fail(CLI_CANNOT, all->command, "%s", error.text);
	if (gather_identity(&e->shadow, &w->own, &w->in) != 0)
		return cli_fail(CLI_CANNOT, all->command, "out of memory");
	names_read(&all->process, w->own.headers, w->own.count, &w->tally.names);
	w->in.scope = span_of(w->tally.names.scope);
	w->in.step = span_of(w->tally.names.step);
	return find_body(all, e);
}

static int decide(struct explained *e, const char *decision, const char *why)
{
	e->decision = decision;
	e->why = why;
	return 0;
}

static int describe_all(const struct explaining *all, struct explained *e)
{
	const struct identity_in *in = &e->write.in;

	if (describe_content(in, &e->parts) || describe_must_match(in, &e->must_match) ||
	    describe_account(in, &e->account, &e->account_opaque))
		return cli_fail(CLI_CANNOT, all->command, "out of memory");
	return 0;
}

/* --- the verdict --- */

static const char *why_execute(const struct explained *e)
{
	if (e->verdict.doubt_dropped)
		return "the doubt about the last one is dropped (unknown_ttl); it is sent as a new "
		       "write";
	if (e->view.state == REC_NONE)
		return "nothing like it is known: it is sent";
	if (e->view.state == REC_FREED)
		return "the last try is known not to have happened: it is sent";
	if (e->verdict.next_generation || e->verdict.own_record)
		return "the one before is over: it is sent as a new write, with another key";
	return "it is sent";
}

static const char *why(const struct explained *e)
{
	switch (e->verdict.kind) {
	case VERDICT_EXECUTE:
		return why_execute(e);
	case VERDICT_TAKE:
		return "the program that was to send it is gone and nothing left: it is sent";
	case VERDICT_RESEND:
		return e->verdict.blind
		               ? "whether it arrived is not known; it is sent again, and may "
		                 "happen "
		                 "twice (on_unknown: resend)"
		               : "whether it arrived is not known; it is sent again with the same "
		                 "key, by which the provider deduplicates";
	case VERDICT_JOIN:
		return "the same write is being sent: its answer is waited for";
	case VERDICT_REPLAY:
		return "it is done: the kept answer is given, nothing is sent";
	case VERDICT_REFUSE:
		break;
	}
	return "nothing is sent";
}

static void tell_refusal(struct explained *e, enum verdict_reason reason, const char *detail)
{
	bool known = e->view.state != REC_NONE;
	struct refusal_facts facts = {
	        .reason = verdict_reason_name(reason),
	        .operation = e->write.rule ? e->write.rule->operation : NULL,
	        .detail = detail,
	        .first_sent_us = known ? e->view.first_sent.wall_us : 0,
	        .exe = known ? e->view.exe : NULL,
	        .pid = known ? e->view.owner_pid : 0,
	        .key = known ? e->view.key : NULL,
	        .attempts = known ? e->view.attempts : 0,
	        .generic = e->verdict.generic_text,
	};
	struct buf text = {0};

	refusal_error(&facts, &text);
	snprintf(e->text, sizeof(e->text), "%s", text.data ? text.data : "");
	buf_free(&text);
}

static int refuse_it(struct explained *e, enum verdict_reason reason, const char *detail)
{
	e->verdict = (struct verdict){.kind = VERDICT_REFUSE, .reason = reason};
	tell_refusal(e, reason, detail);
	return decide(e, "refuse", "nothing is sent");
}

static bool sends(enum verdict_kind kind)
{
	return kind == VERDICT_EXECUTE || kind == VERDICT_TAKE || kind == VERDICT_RESEND;
}

static void find_key(const struct explaining *all, struct explained *e)
{
	bool known = e->view.state != REC_NONE && e->view.key[0];

	if (sends(e->verdict.kind)) {
		e->generation = act_key(&e->write, &e->view, e->verdict, e->key);
		e->key_source = e->verdict.kind != VERDICT_EXECUTE ? "the record's"
		                : e->write.id.has_own_key          ? "the program's own"
		                                                   : "derived";
		if (strcmp(e->key_source, "derived") == 0 && !all->has_secret)
			e->key_source = NULL;
		return;
	}
	if (!known || e->verdict.generic_text)
		return;
	memcpy(e->key, e->view.key, sizeof(e->view.key));
	e->generation = e->view.generation;
	e->key_source = "the record's";
}

static int judge(const struct explaining *all, struct explained *e)
{
	struct stamp now = clock_now();

	e->doubt_resent = verdict_may_resend(e->write.rule, now, true, now);
	if (all->ledger_broken)
		return refuse_it(e, REASON_LEDGER_UNAVAILABLE, all->ledger_text);
	if (!all->ledger && all->process.acting == MODE_REPLAY)
		return refuse_it(e, REASON_LEDGER_UNAVAILABLE,
		                 "there is no ledger, and mode replay makes none");
	if (all->ledger && write_find(&e->write, now, &e->view) != LEDGER_OK)
		return refuse_it(e, REASON_LEDGER_UNAVAILABLE,
		                 "the ledger could not be read: run `sendonce ledger verify`");
	e->verdict = write_judge(&e->write, now, &e->view);
	decide(e, verdict_kind_name(e->verdict.kind), why(e));
	if (e->verdict.kind == VERDICT_REFUSE)
		tell_refusal(e, e->verdict.reason, NULL);
	find_key(all, e);
	return 0;
}

/* The modes that never hold a write back. */
static bool passes_in_mode(const struct explaining *all, struct explained *e)
{
	if (all->process.state == PROCESS_OFF)
		decide(e, "pass", "mode is off: it is sent as it is");
	else if (all->process.state == PROCESS_AUDIT)
		decide(e, "pass", "mode is audit: it is sent as it is and written down");
	else if (all->process.acting == MODE_INJECT)
		decide(e, "pass", "mode is inject: it is sent whatever is known, with a key");
	return e->decision != NULL;
}

static int judge_size(const struct explaining *all, struct explained *e)
{
	if (e->write.in.body.n <= (size_t)e->write.rule->max_request)
		return judge(all, e);
	if (e->write.rule->oversize == OVERSIZE_PASS)
		return decide(e, "pass",
		              "the body is larger than max_request: it is sent unprotected");
	return refuse_it(e, REASON_BODY_TOO_LARGE, NULL);
}

/* A body that a program would give by a callback is read here, so the second look decides. */
static const struct rule *choose(const struct explaining *all, struct explained *e)
{
	struct writing *w = &e->write;

	w->rule = choose_rule(&e->shadow, &all->process);
	if (w->rule && choose_is_open(&e->shadow, w->rule))
		w->rule = choose_read(&all->process, w->rule, &w->in);
	w->in.rule = w->rule;
	return w->rule;
}

static int identify(const struct explaining *all, struct explained *e)
{
	bool passes = passes_in_mode(all, e);
	int rc = identity_make(&e->write.in, &e->write.id);

	if (rc == IDENTITY_NOMEM)
		return cli_fail(CLI_CANNOT, all->command, "out of memory");
	if (rc == IDENTITY_OK) {
		rc = describe_all(all, e);
		return rc || passes ? rc : judge_size(all, e);
	}
	if (passes)
		return 0;
	return refuse_it(e, REASON_KEY_INVALID,
	                 rc == IDENTITY_NO_PLACE
	                         ? "the body has no place for the key"
	                         : "the program's own key is too long, not printable, or no text");
}

static int decide_unlisted(const struct explaining *all, struct explained *e)
{
	if (write_refuses_unlisted(&e->shadow, &all->process))
		return refuse_it(e, REASON_UNLISTED, NULL);
	if (replay_would_stop(&e->shadow, &all->process))
		return refuse_it(e, REASON_REPLAY_MISS, NULL);
	if (request_is_read(request_method(&e->shadow.options)))
		return decide(e, "pass", "no rule names it: it is sent as it is");
	if (all->process.policy->unlisted == UNLISTED_AUDIT)
		return decide(e, "pass",
		              "no rule names it: it is sent as it is and written down (unlisted: "
		              "audit)");
	return decide(e, "pass", "no rule names it: it is sent as it is, unprotected");
}

static int find_target(const struct explaining *all, struct explained *e)
{
	struct shadow *s = &e->shadow;

	s->flavour = &all->lib.flavour;
	s->options = e->line.options;
	s->handle = e->line.easy;
	if (request_target_update(&s->target, s->flavour, &s->options) != 0 ||
	    ambient_login(&s->ambient, &s->options, &s->target) != 0)
		return cli_fail(CLI_CANNOT, all->command, "out of memory");
	if (!s->target.valid)
		return cli_usage(all->command, "libcurl would send no HTTP request to `%s`",
		                 e->line.url.data);
	return 0;
}

int explain_request(const struct explaining *all, int argc, char **argv, struct explained *e)
{
	int n = curl_line_read(&e->line, &all->lib, argc, argv), rc;

	if (n < 0)
		return -cli_usage(all->command, "%s: %s", e->line.at, e->line.problem);
	e->write.process = &all->process;
	e->write.ledger = all->ledger;
	e->write.shadow = &e->shadow;
	rc = find_target(all, e);
	if (rc == 0)
		rc = gather(all, e);
	if (rc == 0)
		rc = choose(all, e) ? identify(all, e) : decide_unlisted(all, e);
	return rc ? -rc : n;
}

void explain_free(const struct explaining *all, struct explained *e)
{
	describe_free(&e->parts);
	describe_free(&e->must_match);
	describe_free(&e->account);
	gather_free(&e->write.own);
	payload_unref(e->form.body);
	free(e->form.type);
	capture_drop(&e->shadow.capture, &all->lib.flavour);
	ambient_free(&e->shadow.ambient);
	request_target_free(&e->shadow.target);
	curl_line_free(&e->line, &all->lib);
}
