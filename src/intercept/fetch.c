/* See fetch.h. Between two reads, and while a callback pauses, the program's deadlines and progress
 * callbacks go on as they do in a transfer that is connected. What ends the reading ends the call,
 * with libcurl's code and text: nothing was sent. Too large a body is refused, or goes to libcurl
 * as it is, what was read of it first. */
#include "intercept/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "intercept/redirect.h"
#include "intercept/write.h"
#include "request/body.h"
#include "request/capture.h"

enum { PAUSED_SLICE_US = 10000 };

static void nap(int64_t us)
{
	struct timespec t = {0, (us < PAUSED_SLICE_US ? us : PAUSED_SLICE_US) * 1000};

	if (us > 0)
		nanosleep(&t, NULL);
}

static bool watch(void *ctx, bool paused, bool *resume)
{
	struct writing *w = ctx;
	unsigned resumed = w->serving.playing.resumed;
	int64_t patience;

	w->code = serve_tick(&w->serving, true, &patience);
	if (w->code != CURLE_OK)
		return false;
	*resume = w->serving.playing.resumed != resumed;
	if (paused && !*resume)
		nap(patience);
	return true;
}

static enum verdict_reason ended(struct writing *w, CURLcode code, const char *text)
{
	w->code = player_end(&w->serving.player, code, text);
	w->over = true;
	return REASON_NONE;
}

static enum verdict_reason no_room(struct ledger_error *error)
{
	snprintf(error->text, sizeof(error->text),
	         "there is neither memory nor disk to keep the request's body");
	return REASON_LEDGER_UNAVAILABLE;
}

/* --- as libcurl alone would send it --- */

/* What was read already, then the program's own callback. */
struct lent {
	struct fetch_reader read;
	struct body_source source;
	bool whole; /* there is no more to come */
	curl_seek_callback seek;
	void *seek_data;
};

static size_t lent_read(char *out, size_t size, size_t n, void *ctx)
{
	struct lent *l = ctx;
	size_t got = fetch_read(out, size, n, &l->read);

	return got || l->whole ? got : l->source.read(out, size, n, l->source.data);
}

/* The program's stream begins where the body does. */
static int lent_seek(void *ctx, curl_off_t offset, int origin)
{
	struct lent *l = ctx;

	l->read.at = payload_size(l->read.payload);
	l->whole = false;
	return l->seek(l->seek_data, offset, origin);
}

static void lend(struct shadow *s, struct lent *l)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(s->flavour, easy_setopt);

	l->seek = (curl_seek_callback)options_function(&s->options, CURLOPT_SEEKFUNCTION);
	l->seek_data = options_pointer(&s->options, CURLOPT_SEEKDATA);
	set(s->handle, CURLOPT_READFUNCTION, lent_read);
	set(s->handle, CURLOPT_READDATA, l);
	if (l->seek) {
		set(s->handle, CURLOPT_SEEKFUNCTION, lent_seek);
		set(s->handle, CURLOPT_SEEKDATA, l);
	}
}

static void take_back(struct shadow *s)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(s->flavour, easy_setopt);
	const struct option *data = options_get(&s->options, CURLOPT_READDATA);

	set(s->handle, CURLOPT_READFUNCTION, options_function(&s->options, CURLOPT_READFUNCTION));
	set(s->handle, CURLOPT_READDATA, data ? data->v.ptr : (void *)stdin);
	set(s->handle, CURLOPT_SEEKFUNCTION, options_function(&s->options, CURLOPT_SEEKFUNCTION));
	set(s->handle, CURLOPT_SEEKDATA, options_pointer(&s->options, CURLOPT_SEEKDATA));
}

/* On the program's own handle, as it came; and that is said, if there is something to say. False:
 * it cannot be sent again, or not at all. */
static bool natively(struct writing *w, const char *why)
{
	struct shadow *s = w->shadow;

	if (w->process->acting == MODE_REPLAY || !fetch_give_form(s))
		return false;
	if (why)
		write_unprotected(s, w->process, w->rule, why);
	s->playing = NULL; /* what the program asks of its handle now is libcurl's to answer */
	w->code = !why && redirect_possible(s) ? redirect_perform(s)
	                                       : CURL_FN(s->flavour, easy_perform)(s->handle);
	w->unplayed = w->over = true;
	return true;
}

/* `read` null: nothing was read of it. */
static enum verdict_reason oversize(struct writing *w, struct payload *read)
{
	struct shadow *s = w->shadow;
	bool sent;
	struct lent *l = NULL; /* on the heap: a callback may jump out of the perform */

	if (w->rule->oversize == OVERSIZE_REFUSE && w->process->acting != MODE_INJECT)
		return REASON_BODY_TOO_LARGE;
	if (capture_has_stream(&s->options)) /* it is half read */
		return REASON_BODY_TOO_LARGE;
	if (read) {
		l = payload_seal(read) == 0 ? calloc(1, sizeof(*l)) : NULL;
		if (!l)
			return REASON_BODY_TOO_LARGE;
		l->read.payload = read;
		l->source = body_source_of(&s->options);
		lend(s, l);
	}
	sent = natively(w, "larger than max_request");
	if (l)
		take_back(s);
	free(l);
	return sent ? REASON_NONE : REASON_BODY_TOO_LARGE;
}

void fetch_pass(struct writing *w)
{
	struct shadow *s = w->shadow;
	struct lent *l = calloc(1, sizeof(*l)); /* on the heap, as above */

	w->over = true;
	w->code = CURLE_OUT_OF_MEMORY;
	if (!l)
		return;
	l->read.payload = w->payload;
	l->source = body_source_of(&s->options);
	l->whole = true;
	lend(s, l);
	natively(w, NULL);
	take_back(s);
	free(l);
}

/* --- a read callback --- */

static bool is_same_source(const struct unsent *u, const struct body_source *s)
{
	return u->payload && u->read == s->read && u->data == s->data && u->size == s->size;
}

static void forget_unsent(struct shadow *s)
{
	payload_unref(s->unsent.payload);
	s->unsent = (struct unsent){0};
}

/* The last call read the body and could not send a byte of it. A program that did not wind its
 * stream back means that one. */
static void use_unsent(struct writing *w, const struct body_source *source)
{
	struct unsent *u = &w->shadow->unsent;

	if (payload_size(w->payload) == 0 && is_same_source(u, source)) {
		payload_unref(w->payload);
		w->payload = payload_ref(u->payload);
	}
	forget_unsent(w->shadow);
}

static enum verdict_reason drained(struct writing *w, const struct body_source *source)
{
	use_unsent(w, source);
	w->body_size = source->size;
	w->in.body = payload_bytes(w->payload);
	w->serving.player.sink.upload_size = source->size > 0 ? source->size : 0;
	return REASON_NONE;
}

static enum verdict_reason fetch_stream(struct writing *w, struct ledger_error *error)
{
	struct body_source source = body_source_of(&w->shadow->options);
	size_t limit = (size_t)w->rule->max_request;

	if (source.size > (curl_off_t)limit)
		return oversize(w, NULL);
	w->payload = payload_new();
	if (!w->payload)
		return no_room(error);
	switch (body_drain(&source, limit, watch, w, w->payload)) {
	case BODY_DRAINED:
		return drained(w, &source);
	case BODY_ABORTED:
		return ended(w, CURLE_ABORTED_BY_CALLBACK, "operation aborted by callback");
	case BODY_FUNNY:
		return ended(w, CURLE_READ_ERROR, "read function returned funny value");
	case BODY_OVERSIZE:
		return oversize(w, w->payload);
	case BODY_STOPPED:
		return ended(w, w->code, NULL);
	case BODY_NO_MEMORY:
		break;
	}
	return no_room(error);
}

/* --- a form --- */

static enum verdict_reason rendered(struct writing *w, const struct captured *out)
{
	w->payload = out->body;
	w->body_size = out->size;
	w->body_type = out->type;
	w->in.body = payload_bytes(out->body);
	w->in.content_type = span_of(out->type);
	w->serving.player.sink.upload_size = out->size > 0 ? out->size : 0;
	return REASON_NONE;
}

static enum verdict_reason fetch_form(struct writing *w, struct ledger_error *error)
{
	struct shadow *s = w->shadow;
	struct captured out;

	switch (capture_render(&s->capture, s->flavour, s->handle, &s->options,
	                       (size_t)w->rule->max_request, watch, w, &out)) {
	case CAPTURE_DONE:
		return rendered(w, &out);
	case CAPTURE_FAILED:
		return ended(w, out.code, out.error[0] ? out.error : NULL);
	case CAPTURE_OVERSIZE:
		return oversize(w, NULL);
	case CAPTURE_STOPPED:
		return ended(w, w->code, NULL);
	case CAPTURE_CANNOT:
		if (natively(w, "a form that could not be rendered"))
			return REASON_NONE;
		return ended(w, CURLE_SEND_FAIL_REWIND, NULL);
	case CAPTURE_NO_MEMORY:
		break;
	}
	return no_room(error);
}

/* --- for everybody --- */

enum verdict_reason fetch_body(struct writing *w, struct ledger_error *error)
{
	switch (request_body_kind(&w->shadow->options)) {
	case REQUEST_READ:
	case REQUEST_UPLOAD:
		return fetch_stream(w, error);
	case REQUEST_MIME:
	case REQUEST_FORMPOST:
		return fetch_form(w, error);
	default:
		break;
	}
	return w->in.body.n > (size_t)w->rule->max_request ? oversize(w, NULL) : REASON_NONE;
}

void fetch_end(struct writing *w)
{
	struct body_source source;

	if (w->payload && w->unsent && !w->body_type) {
		source = body_source_of(&w->shadow->options);
		forget_unsent(w->shadow);
		w->shadow->unsent = (struct unsent){.payload = payload_ref(w->payload),
		                                    .read = source.read,
		                                    .data = source.data,
		                                    .size = source.size};
	}
	payload_unref(w->payload);
	free(w->body_type);
}

void fetch_plan(const struct writing *w, struct courier_plan *plan)
{
	plan->body = w->in.body;
	plan->body_kind = w->payload ? BODY_PAYLOAD : BODY_BYTES;
	plan->payload = w->payload;
	plan->body_size = w->body_size;
	plan->body_type = w->body_type;
	if (request_body_kind(&w->shadow->options) == REQUEST_NO_BODY)
		plan->body_kind = BODY_NONE;
}

bool fetch_give_form(struct shadow *s)
{
	bool ours = request_body_kind(&s->options) == REQUEST_MIME;
	bool good = capture_give_back(&s->capture, s->flavour, s->handle, &s->options);

	if (ours && good)
		capture_note_use(&s->capture);
	return good || !ours;
}

size_t fetch_read(char *out, size_t size, size_t n, void *reader)
{
	struct fetch_reader *r = reader;
	size_t give = payload_piece(r->payload, r->at);

	if (give > size * n)
		give = size * n;
	if (give)
		memcpy(out, payload_bytes(r->payload).p + r->at, give);
	r->at += give;
	return give;
}

int fetch_seek(void *reader, curl_off_t offset, int origin)
{
	struct fetch_reader *r = reader;

	if (origin != SEEK_SET || offset < 0 || (size_t)offset > payload_size(r->payload))
		return CURL_SEEKFUNC_CANTSEEK;
	r->at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}
