/* See fetch.h. Between two reads, and while a callback pauses, the program's deadlines and progress
 * callbacks go on as they do in a transfer that is connected. What ends the reading ends the call,
 * with libcurl's code and text: nothing was sent. Too large a body is refused, or goes to libcurl
 * as it is, what was read of it first. */
#include "intercept/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/redirect.h"
#include "intercept/unsent.h"
#include "intercept/versions.h"
#include "intercept/write.h"
#include "request/body.h"
#include "request/capture.h"

/* IN_A_ROW: what a program's multi is kept with before it may look after its other transfers. */
enum { PAUSED_US = 10000, LOOPED_PAUSED_US = 50000, ASKED_US = 1000, IN_A_ROW = 16 };

enum { CONTINUE = 100 /* HTTP status */ };

/* Between two steps: progress and deadlines. False: they have ended the call. */
static bool watch(struct writing *w, int64_t *patience_us)
{
	w->code = serve_tick(&w->serving, true, patience_us);
	return w->code == CURLE_OK;
}

/* libcurl reads a body once it is connected. One that shows nothing before that shows it now. */
static bool show_connection(struct writing *w)
{
	int64_t patience_us;

	return !w->serving.player.sink.ticks_late || watch(w, &patience_us);
}

/* A pause ends when the program says so; what a form waits for may come without a word. */
static enum step paused(struct writing *w, int64_t patience_us)
{
	int64_t slice = w->looped ? LOOPED_PAUSED_US : PAUSED_US;

	return write_wait(w,
	                  (struct wait){.kind = WAIT_TIME,
	                                .until_us = serve_now_us() +
	                                            (patience_us < slice ? patience_us : slice)});
}

static enum step breathe(struct writing *w)
{
	return write_wait(w, (struct wait){.kind = WAIT_TIME, .until_us = serve_now_us()});
}

static bool is_resumed(const struct writing *w)
{
	return w->serving.playing.resumed != w->resumed;
}

static enum step ended(struct writing *w, CURLcode code, const char *text)
{
	w->code = player_end(&w->serving.player, code, text);
	return STEP_DONE;
}

static enum step stopped(struct writing *w)
{
	return ended(w, w->code, NULL);
}

static enum step no_room(struct writing *w)
{
	snprintf(w->error.text, sizeof(w->error.text),
	         "there is neither memory nor disk to keep the request's body");
	return write_failed(w, REASON_LEDGER_UNAVAILABLE);
}

static enum step known(struct writing *w)
{
	w->serving.player.connected = false; /* while the body was read it counted as if */
	w->serving.player.status = 0;
	w->stage = write_identified;
	return STEP_AGAIN;
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

static enum step natively_done(struct writing *w)
{
	struct redirect *redirect = w->redirect;

	w->redirect = NULL;
	w->code = w->native_code;
	if (!redirect || !redirect_refuses(redirect, w))
		return STEP_DONE;
	w->unplayed = false;
	w->shadow->playing = &w->serving.playing;
	return STEP_AGAIN;
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
	w->redirect = !why && redirect_possible(s) ? redirect_begin(s) : NULL;
	w->unplayed = true;
	w->stage = natively_done;
	return true;
}

/* `read` null: nothing was read of it. */
static enum step oversize(struct writing *w, struct payload *read)
{
	struct shadow *s = w->shadow;

	if (w->rule->oversize == OVERSIZE_REFUSE && w->process->acting != MODE_INJECT)
		return write_failed(w, REASON_BODY_TOO_LARGE);
	if (body_has_stream(&s->options)) /* it is half read */
		return write_failed(w, REASON_BODY_TOO_LARGE);
	if (read) {
		w->lent = payload_seal(read) == 0 ? calloc(1, sizeof(*w->lent)) : NULL;
		if (!w->lent)
			return write_failed(w, REASON_BODY_TOO_LARGE);
		w->lent->read.payload = read;
		w->lent->source = w->source;
		lend(s, w->lent);
	}
	if (natively(w, "larger than max_request"))
		return STEP_NATIVE;
	return write_failed(w, REASON_BODY_TOO_LARGE);
}

enum step fetch_pass(struct writing *w)
{
	w->lent = calloc(1, sizeof(*w->lent));
	w->code = CURLE_OUT_OF_MEMORY;
	if (!w->lent)
		return STEP_DONE;
	w->lent->read.payload = w->payload;
	w->lent->source = w->source;
	w->lent->whole = true;
	lend(w->shadow, w->lent);
	return natively(w, NULL) ? STEP_NATIVE : STEP_DONE;
}

/* --- a read callback --- */

static enum step drained(struct writing *w)
{
	struct payload *before = NULL;

	if (payload_size(w->payload) == 0)
		before = unsent_take_stream(w->shadow, &w->source);
	unsent_forget(w->shadow);
	if (before) {
		payload_unref(w->payload);
		w->payload = before;
	}
	w->body_size = w->source.size;
	w->in.body = payload_bytes(w->payload);
	w->serving.player.sink.upload_size = w->source.size;
	return known(w);
}

static enum step read_over(struct writing *w, enum body_drained result);

static enum step read_stream(struct writing *w)
{
	size_t limit = (size_t)w->rule->max_request;
	enum body_drained result;
	int64_t patience_us = 0;

	for (int i = 0; i < IN_A_ROW || !w->looped; i++) {
		result = body_read(&w->source, limit, w->payload);
		w->resumed = w->serving.playing.resumed; /* what it said before it paused */
		if (result != BODY_MORE)
			return read_over(w, result);
		if (!watch(w, &patience_us))
			return stopped(w);
	}
	return breathe(w);
}

/* The progress callback may be what ends a pause: curl lets its stdin go on there, and pauses again
 * where nothing has come. libcurl would ask as fast as it can. */
static enum step stream_paused(struct writing *w)
{
	bool was_resumed = is_resumed(w);
	int64_t patience_us;

	if (!watch(w, &patience_us))
		return stopped(w);
	if (!is_resumed(w))
		return paused(w, patience_us);
	w->stage = read_stream;
	return was_resumed ? STEP_AGAIN : paused(w, ASKED_US);
}

static enum step read_over(struct writing *w, enum body_drained result)
{
	switch (result) {
	case BODY_DRAINED:
		return drained(w);
	case BODY_PAUSED:
		w->serving.player.ticked_us = 0; /* progress is shown after each read */
		w->stage = stream_paused;
		return STEP_AGAIN;
	case BODY_ABORTED:
		return ended(w, CURLE_ABORTED_BY_CALLBACK, "operation aborted by callback");
	case BODY_FUNNY:
		return ended(w, CURLE_READ_ERROR, "read function returned funny value");
	case BODY_OVERSIZE:
		return oversize(w, w->payload);
	default:
		return no_room(w);
	}
}

/* Programs ask in their read callback what the server has said so far (libs3 does). One that gets
 * to read after an Expect has heard 100 of nearly every server. */
static bool is_expected(const struct writing *w)
{
	const struct shadow *s = w->shadow;

	return body_is_expected(&s->options, w->source.size, versions_expect_by_size(s->flavour));
}

static enum step fetch_stream(struct writing *w)
{
	if (!show_connection(w))
		return stopped(w);
	w->source = body_source_of(&w->shadow->options);
	if (w->source.size > (curl_off_t)w->rule->max_request)
		return oversize(w, NULL);
	w->payload = payload_new();
	if (!w->payload)
		return no_room(w);
	w->serving.player.status = is_expected(w) ? CONTINUE : 0;
	w->stage = read_stream;
	return STEP_AGAIN;
}

/* --- a form --- */

/* A part that was read and not wound back has nothing more to give. */
static bool is_short(const struct captured *out)
{
	return out->size >= 0 && payload_size(out->body) < (size_t)out->size;
}

/* The same, as libcurl says it: of a curl_mime, and 8.7 and later of an HTTPPOST. */
static bool is_spent(const struct captured *out)
{
	return out->code == CURLE_SEND_FAIL_REWIND || out->code == CURLE_READ_ERROR;
}

static enum step rendered(struct writing *w, struct captured *out)
{
	if (is_short(out))
		unsent_take_form(w->shadow, out);
	unsent_forget(w->shadow);
	w->payload = out->body;
	w->body_size = out->size;
	w->body_type = out->type;
	w->in.body = payload_bytes(out->body);
	w->in.content_type = span_of(out->type);
	w->serving.player.sink.upload_size = out->size;
	return known(w);
}

static enum step no_form(struct writing *w)
{
	if (natively(w, "a form that could not be rendered"))
		return STEP_NATIVE;
	return ended(w, CURLE_SEND_FAIL_REWIND, NULL);
}

static enum step render_over(struct writing *w, enum capture_result result)
{
	struct captured out;

	result = capture_end(w->rendering, result, &out);
	w->rendering = NULL;
	switch (result) {
	case CAPTURE_DONE:
		return rendered(w, &out);
	case CAPTURE_FAILED:
		if (is_spent(&out) && unsent_take_form(w->shadow, &out))
			return rendered(w, &out);
		return ended(w, out.code, out.error[0] ? out.error : NULL);
	case CAPTURE_OVERSIZE:
		return oversize(w, NULL);
	case CAPTURE_CANNOT:
		return no_form(w);
	case CAPTURE_PAUSED:
		return stopped(w);
	default:
		return no_room(w);
	}
}

static void resume_if_told(struct writing *w)
{
	if (!is_resumed(w))
		return;
	w->resumed = w->serving.playing.resumed;
	capture_resume(w->rendering);
}

/* The program's read callbacks run in here. */
static enum step render_form(struct writing *w)
{
	enum capture_result result = CAPTURE_MORE;
	int64_t patience_us = 0;

	resume_if_told(w);
	for (int i = 0; result == CAPTURE_MORE && (i < IN_A_ROW || !w->looped); i++) {
		result = capture_step(w->rendering);
		w->resumed = w->serving.playing.resumed;
		if (result != CAPTURE_MORE && result != CAPTURE_PAUSED)
			return render_over(w, result);
		if (!watch(w, &patience_us))
			return render_over(w, CAPTURE_PAUSED);
		resume_if_told(w);
	}
	return result == CAPTURE_PAUSED ? paused(w, patience_us) : breathe(w);
}

/* Mode inject sends always, and what was read of a form may have no way back. */
static size_t form_limit(const struct writing *w)
{
	return w->process->acting == MODE_INJECT ? SIZE_MAX : (size_t)w->rule->max_request;
}

static enum step fetch_form(struct writing *w)
{
	struct shadow *s = w->shadow;
	enum capture_result why;

	if (!show_connection(w))
		return stopped(w);
	w->rendering =
	        capture_begin(&s->capture, s->flavour, s->handle, &s->options, form_limit(w), &why);
	w->resumed = w->serving.playing.resumed;
	if (!w->rendering)
		return why == CAPTURE_CANNOT ? no_form(w) : no_room(w);
	w->stage = render_form;
	return STEP_AGAIN;
}

/* --- for everybody --- */

enum step fetch_body(struct writing *w)
{
	switch (request_body_kind(&w->shadow->options)) {
	case REQUEST_READ:
	case REQUEST_UPLOAD:
		return fetch_stream(w);
	case REQUEST_MIME:
	case REQUEST_FORMPOST:
		return fetch_form(w);
	default:
		break;
	}
	return w->in.body.n > (size_t)w->rule->max_request ? oversize(w, NULL) : known(w);
}

static void keep_unsent(struct writing *w)
{
	if (w->body_type)
		unsent_keep_form(w->shadow, w->payload, w->body_size, w->body_type);
	else
		unsent_keep_stream(w->shadow, w->payload);
	w->body_type = NULL;
}

void fetch_end(struct writing *w)
{
	if (w->rendering)
		capture_end(w->rendering, CAPTURE_PAUSED, &(struct captured){0});
	if (w->redirect)
		redirect_abandon(w->redirect);
	if (w->lent)
		take_back(w->shadow);
	free(w->lent);
	if (w->payload && w->unsent)
		keep_unsent(w);
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
	if (request_body_kind(&s->options) != REQUEST_MIME) /* most requests */
		return true;
	if (s->unsent.type)
		unsent_forget(s);
	if (!capture_give_back(&s->capture, s->flavour, s->handle, &s->options))
		return false;
	capture_note_use(&s->capture);
	return true;
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
