/* See inplace.h. The callbacks feed the same parts that the courier feeds: passes counts the wire
 * sends, the send asks the ledger, and what comes back goes onto a tape, from which the outcome is
 * computed and the answer stored. Nobody else reads that tape: who joins this write waits in the
 * ledger. The pieces are on the heap: a program's multi performs when it likes, and a callback may
 * jump out of a perform. */
#include "intercept/inplace.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/pid.h"
#include "intercept/inplaced.h"
#include "intercept/local.h"

enum { RENEW_EVERY_US = 5000000 };

/* --- what the chain tells --- */

bool inplace_in_child(const struct inplace *p)
{
	return p->send->pid != pid_own();
}

static int on_pass(void *ctx, const char *url)
{
	struct inplace *p = ctx;
	struct gate_pass pass;

	passes_begin(&p->passes, url, &pass);
	if (inplace_in_child(p)) /* a callback forked: the parent sends */
		return -1;
	if (lend_headers(&p->lend, pass.same_authority))
		return -1;
	return send_calls.gate(p->send, &pass);
}

static void on_unsent(void *ctx)
{
	struct inplace *p = ctx;

	p->unsent = p->passes.count == 1;
}

void inplace_tick(void *ctx)
{
	struct inplace *p = ctx;
	int64_t now = serve_now_us();

	if (now < p->renew_us || inplace_in_child(p))
		return;
	p->renew_us = now + RENEW_EVERY_US;
	send_calls.renew(p->send);
}

static void tee(struct inplace *p, enum tape_kind kind, const char *data, size_t n)
{
	struct tape_piece piece = {.kind = kind, .data = data, .n = n};

	piece.connect = kind == TAPE_HEADER && p->passes.opening;
	piece.request = passes_answering(&p->passes);
	p->fed = p->fed || !piece.connect;
	if (tape_add(p->tape, &piece) != 0)
		p->torn = true;
	inplace_tick(p);
}

static void on_header(void *ctx, const char *line, size_t n)
{
	struct inplace *p = ctx;

	if (passes_header(&p->passes, line, n))
		lend_answered(&p->lend, &p->passes);
	tee(p, TAPE_HEADER, line, n);
}

static void on_body(void *ctx, const char *data, size_t n)
{
	struct inplace *p = ctx;

	p->bytes += (int64_t)n;
	tee(p, TAPE_BODY, data, n);
}

static void on_debug(void *ctx, curl_infotype type, const char *data, size_t n)
{
	struct inplace *p = ctx;

	if (type == CURLINFO_HEADER_OUT)
		passes_request(&p->passes, data, n);
}

static void inplace_free(struct inplace *p)
{
	passes_free(&p->passes);
	tape_unref(p->tape);
	lend_free(&p->lend);
	free(p);
}

void inplace_tell_end(struct inplace *p, struct tape_end *end)
{
	struct info *info = info_new();

	if (info) {
		info_capture(info, p->shadow->flavour, p->shadow->handle);
		tape_info(p->tape, info);
	}
	send_calls.ended(p->send, p->tape, end);
	tape_finish(p->tape, end);
	send_calls.release(p->send);
	p->told = true;
}

/* The call that was under way here is gone, and what it owned with it. */
static void on_dropped(void *ctx)
{
	struct inplace *p = ctx;
	struct tape_end end = {.ended = true, .code = CURLE_ABORTED_BY_CALLBACK};

	if (!inplace_in_child(p)) {
		if (!p->told)
			inplace_tell_end(p, &end);
		send_leave(p->send, end.code, p->bytes);
	}
	inplace_free(p);
}

static const struct chain_calls calls = {
        .pass = on_pass,
        .unsent = on_unsent,
        .keeps = reask_keeps,
        .header = on_header,
        .body = on_body,
        .debug = on_debug,
        .tick = inplace_tick,
        .dropped = on_dropped,
};

/* --- which handles, and why --- */

bool inplace_can(const struct shadow *s)
{
	const struct options *o = &s->options;
	bool half_upload = o->upload && (o->kind != HTTP_PUT || o->no_body);

	return !o->failed && !options_long(o, CURLOPT_CONNECT_ONLY, 0) && !half_upload &&
	       !(shadow_lacks_form(s) && o->kind == HTTP_MIME);
}

void inplace_count(struct ledger *ledger, const char *reason)
{
	static const struct {
		const char *option;
		enum ledger_counter counter;
	} rows[] = {
	        {"SSL_CTX_FUNCTION", COUNT_in_place_ssl_ctx},
	        {"OPENSOCKETFUNCTION", COUNT_in_place_socket},
	        {"SOCKOPTFUNCTION", COUNT_in_place_socket},
	        {"CLOSESOCKETFUNCTION", COUNT_in_place_socket},
	        {"PREREQFUNCTION", COUNT_in_place_prereq},
	        {"RESOLVER_START_FUNCTION", COUNT_in_place_resolver},
	        {"TRAILERFUNCTION", COUNT_in_place_trailer},
	        {"HSTS", COUNT_in_place_hsts},
	        {"HSTS_CTRL", COUNT_in_place_hsts},
	        {"HSTSREADFUNCTION", COUNT_in_place_hsts},
	        {"HSTSWRITEFUNCTION", COUNT_in_place_hsts},
	};
	enum ledger_counter counter = COUNT_in_place_other;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strcmp(rows[i].option, reason) == 0)
			counter = rows[i].counter;
	}
	ledger_count(ledger, COUNT_in_place);
	ledger_count(ledger, counter);
}

/* --- the perform --- */

static struct inplace *inplace_new(struct writing *w, struct send *send, struct carried *carried)
{
	struct inplace *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->w = w;
	p->shadow = w->shadow;
	p->send = send;
	p->passes.first.port = options_long(&w->shadow->options, CURLOPT_PORT, 0);
	p->renew_us = serve_now_us() + RENEW_EVERY_US;
	p->tape = tape_new(send->look);
	if (lend_make(&p->lend, w, &p->chain, carried) && p->tape)
		return p;
	inplace_free(p);
	return NULL;
}

/* A stale connection would make a doubt of a write that never arrived. */
static CURLcode avoid_stale(struct inplace *p)
{
	if (p->w->rule->dedups || p->send->always)
		return CURLE_OK;
	if (chain_override(&p->chain, CURLOPT_MAXAGE_CONN, 2) == CURLE_OK)
		return CURLE_OK;
	return chain_override(&p->chain, CURLOPT_FRESH_CONNECT, 1);
}

/* Without PREREQ the record is `sent` before anything starts, on a connection of its own. */
int inplace_pass_before(struct inplace *p)
{
	struct buf url = {0};
	int rc;

	if (!p->chain.no_prereq)
		return 0;
	p->passes.by_lines = true;
	gather_url(&p->shadow->target, &url);
	rc = chain_override(&p->chain, CURLOPT_FRESH_CONNECT, 1) ||
	     chain_override(&p->chain, CURLOPT_FORBID_REUSE, 1) || on_pass(p, url.data);
	buf_free(&url);
	return rc;
}

/* False: nothing can be performed, and *code is what the call comes to. */
static bool prepare(struct inplace *p, CURLcode *code)
{
	struct shadow *s = p->shadow;
	CURLcode bad;

	*code = CURLE_OUT_OF_MEMORY;
	if (chain_begin(&p->chain, s, &calls, p) != 0)
		return false;
	p->chained = true;
	s->playing = NULL; /* what the program asks of its handle now is libcurl's to answer */
	bad = lend_all(&p->lend);
	if (bad != CURLE_OK) {
		*code = bad;
		return false;
	}
	return avoid_stale(p) == CURLE_OK && inplace_pass_before(p) == 0;
}

void inplace_unchain(struct inplace *p)
{
	if (!p->chained)
		return;
	chain_end(&p->chain);
	p->chained = false;
}

/* Without PREREQ only these prove that no byte of the request left. */
static bool never_sent(const struct inplace *p, CURLcode code)
{
	double sent = 1;

	if (p->unsent)
		return true;
	if (!p->chain.no_prereq || p->asked_again)
		return false;
	if (code != CURLE_COULDNT_RESOLVE_PROXY && code != CURLE_COULDNT_RESOLVE_HOST &&
	    code != CURLE_COULDNT_CONNECT && code != CURLE_SSL_CONNECT_ERROR &&
	    code != CURLE_PEER_FAILED_VERIFICATION)
		return false;
	CURL_FN(p->shadow->flavour, easy_getinfo)
	(p->shadow->handle, CURLINFO_PRETRANSFER_TIME, &sent);
	return sent <= 0;
}

void inplace_describe_end(const struct inplace *p, CURLcode code, struct tape_end *end)
{
	const char *text = options_pointer(&p->shadow->options, CURLOPT_ERRORBUFFER);

	*end = (struct tape_end){.ended = true, .code = code, .status = p->passes.status};
	end->stopped = never_sent(p, code);
	end->seen_at = passes_seen_at(&p->passes, code != CURLE_OK);
	/* FAILONERROR stops at the header block: its status is known, its body is not. */
	end->complete = !p->chain.lost && !p->torn &&
	                (code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR);
	if (text)
		strncpy(end->text, text, sizeof(end->text) - 1);
}

/* What the program gets where it is not libcurl's own end. */
static CURLcode explained(struct inplace *p, CURLcode code, const struct tape_end *end)
{
	if (end->code == code)
		return code;
	player_error(&p->w->serving.player, end->text);
	return end->code;
}

/* The ledger kept the gate shut: nothing was sent, and the program heard of nothing. */
static enum step shut_out(struct inplace *p)
{
	enum send_gate gate = send_gate(p->send);
	struct writing *w = p->w;

	send_silence(p->send);
	send_leave(p->send, CURLE_OK, 0);
	w->shadow->playing = &w->serving.playing;
	w->tally.reason = w->tally.served = NULL; /* whatever comes now is not in place */
	if (gate == GATE_LOST) {
		w->lost = true;
		w->stage = write_look;
		return STEP_AGAIN;
	}
	return refuse(w, REASON_LEDGER_UNAVAILABLE, NULL, false, false,
	              "the disk did not take the record");
}

static enum step finish(struct inplace *p, CURLcode code)
{
	struct writing *w = p->w;
	struct send *send = p->send;
	struct tape_end end;

	if (inplace_in_child(p)) {
		w->code = code;
		return STEP_DONE;
	}
	inplace_describe_end(p, code, &end);
	w->unsent = !send->gate_opened || end.stopped;
	if (code == CURLE_HTTP_RETURNED_ERROR)
		send->max_response = 0;
	inplace_tell_end(p, &end);
	w->code = explained(p, code, &end);
	if (send_gate(send) != GATE_NOT_SHUT && !p->fed)
		return shut_out(p);
	if ((code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR) && send_is_done(send))
		write_delivered(w, send->hold.id, (uint32_t)w->tally.generation);
	send_leave(send, w->code, p->bytes);
	return STEP_DONE;
}

/* What libcurl says of the time it was left is not what the program has set. */
static void own_words(struct inplace *p)
{
	int64_t patience_us;

	(void)serve_tick(&p->w->serving, true, &patience_us);
}

enum step inplace_performed(struct writing *w)
{
	struct inplace *p = w->inplace;
	enum step step;

	if (reask_is_due(p, w->native_code)) {
		w->stage = reask_wait;
		return STEP_AGAIN;
	}
	inplace_unchain(p);
	if (p->keeping && !inplace_in_child(p))
		return reask_show(p, w->native_code);
	if (p->asked_again && w->native_code == CURLE_OPERATION_TIMEDOUT)
		own_words(p);
	w->inplace = NULL;
	step = finish(p, w->native_code);
	w->unplayed = !w->shadow->playing; /* what getinfo tells is libcurl's own */
	inplace_free(p);
	return step;
}

enum step inplace_over(struct inplace *p, int64_t bytes)
{
	struct writing *w = p->w;

	w->inplace = NULL;
	if (!inplace_in_child(p))
		send_leave(p->send, w->code, bytes);
	inplace_free(p);
	return STEP_DONE;
}

void inplace_abandon(struct writing *w)
{
	struct inplace *p = w->inplace;

	if (w->stage == reask_wait && !inplace_in_child(p))
		reask_give_up(p);
	w->inplace = NULL;
	w->unplayed = !w->shadow->playing;
	inplace_unchain(p);
	on_dropped(p);
}

enum step inplace_send(struct writing *w, struct send *send, struct carried *carried)
{
	struct inplace *p = inplace_new(w, send, carried);

	if (!p) {
		send_drop(send);
		w->code = CURLE_OUT_OF_MEMORY;
		return STEP_DONE;
	}
	w->inplace = p;
	w->stage = inplace_performed;
	if (!send->always)
		local_add(send->hold.id, send, NULL, w->looped ? DRIVER_LOOP : DRIVER_CALL);
	return prepare(p, &w->native_code) ? STEP_NATIVE : STEP_AGAIN;
}
