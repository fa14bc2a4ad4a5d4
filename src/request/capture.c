/* See capture.h. A rendering has a listener, a connection and a CURLM of its own, all gone when it
 * is over; only the easy handle stays, since libcurl's bookkeeping of the form hangs on it. Not
 * everything of the program's handle shapes its form: the content headers, the way names are
 * escaped, the read callback that HTTPPOST streams take. All else stays at libcurl's defaults: no
 * proxy, no cookies, no credentials are ever seen here.
 *
 * A form that libcurl itself has read on the program's handle is at its end, and a handle it comes
 * to fresh does not know that. A first request is then made to find the end, and the second one
 * rewinds it. In the other direction a request is begun, which rewinds, and dropped before its
 * body.
 *
 * Not promised: to tell a form of libcurl 8 that has less than it announced from one that pauses.
 * It is waited for until the program's deadline, which ends it as it would natively. */
#include "request/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "request/listener.h"
#include "request/release.h"
#include "request/rendered.h"

enum { BLOCK = 65536, IDLE_TURNS = 4, PRIME_TURNS = 64 };
enum purpose { FOR_BODY, FOR_HEAD, FOR_END };
enum touched {
	TOUCHED_FORM,    /* it is attached, and for FOR_HEAD rewound */
	TOUCHED_STUCK,   /* attached; a part of it cannot be rewound */
	TOUCHED_NOTHING, /* the program has freed it */
	TOUCHED_NOT      /* it could not be asked */
};

struct rendering {
	const struct flavour *fl;
	struct capture *capture;
	CURLM *multi;
	char *block; /* what is read at once */
	struct listener listener;
	struct curl_slist *headers;
	enum purpose purpose;
	struct rendered rendered;
	size_t limit;
	bool whole, ended, moved, answered;
	unsigned idle; /* turns in which nothing moved */
	char error[CURL_ERROR_SIZE];
	CURLcode code;
};

/* --- the handle --- */

static size_t on_answer(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static bool shapes_form(const char *line)
{
	static const char *const names[] = {"Content-Type", "Content-Disposition",
	                                    "Content-Transfer-Encoding"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i]);

		if (strncasecmp(line, names[i], n) == 0 && (line[n] == ':' || line[n] == ';'))
			return true;
	}
	return false;
}

static bool add_header(struct rendering *r, const char *line)
{
	struct curl_slist *more = CURL_FN(r->fl, slist_append)(r->headers, line);

	r->headers = more ? more : r->headers;
	return more != NULL;
}

static bool make_headers(struct rendering *r, const struct options *o)
{
	const struct curl_slist *l = options_pointer(o, CURLOPT_HTTPHEADER);
	bool ok = add_header(r, "Expect: 100-continue");

	for (; ok && l; l = l->next) {
		if (shapes_form(l->data))
			ok = add_header(r, l->data);
	}
	return ok;
}

static int set_form(struct rendering *r, const struct options *o)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(r->fl, easy_setopt);
	CURL *e = r->capture->easy;
	int bad = 0;

	if (options_get(o, CURLOPT_MIME_OPTIONS))
		bad |= (int)set(e, CURLOPT_MIME_OPTIONS, options_long(o, CURLOPT_MIME_OPTIONS, 0));
	if (options_get(o, CURLOPT_UPLOAD_BUFFERSIZE))
		bad |= (int)set(e, CURLOPT_UPLOAD_BUFFERSIZE,
		                options_long(o, CURLOPT_UPLOAD_BUFFERSIZE, BLOCK));
	bad |= (int)set(e, CURLOPT_READFUNCTION, options_function(o, CURLOPT_READFUNCTION));
	if (o->kind == HTTP_FORM)
		bad |= (int)set(e, CURLOPT_HTTPPOST, options_pointer(o, CURLOPT_HTTPPOST));
	return bad;
}

/* 0, or what libcurl would not take. */
static int set_handle(struct rendering *r, const struct options *o)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(r->fl, easy_setopt);
	CURL *e = r->capture->easy;
	int bad = 0;

	bad |= (int)set(e, CURLOPT_URL, "http://localhost/");
	bad |= (int)set(e, CURLOPT_ABSTRACT_UNIX_SOCKET, r->listener.name);
	bad |= (int)set(e, CURLOPT_PROXY, "") | (int)set(e, CURLOPT_NOSIGNAL, 1L);
	bad |= (int)set(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	bad |= (int)set(e, CURLOPT_OPENSOCKETFUNCTION, listener_socket);
	bad |= (int)set(e, CURLOPT_WRITEFUNCTION, on_answer);
	bad |= (int)set(e, CURLOPT_ERRORBUFFER, r->error);
	bad |= (int)set(e, CURLOPT_HTTPHEADER, r->headers);
	return bad | set_form(r, o);
}

static bool start(struct rendering *r)
{
	r->block = malloc(BLOCK);
	return r->block && listener_open(&r->listener);
}

static bool begin(struct rendering *r, const struct options *o)
{
	if (!make_headers(r, o) || set_handle(r, o))
		return false;
	r->multi = CURL_FN(r->fl, multi_init)();
	return r->multi && !CURL_FN(r->fl, multi_add_handle)(r->multi, r->capture->easy);
}

static void end(struct rendering *r)
{
	CURL *e = r->capture->easy;

	if (r->multi) {
		CURL_FN(r->fl, multi_remove_handle)(r->multi, e);
		CURL_FN(r->fl, multi_cleanup)(r->multi);
	}
	CURL_FN(r->fl, easy_setopt)(e, CURLOPT_HTTPHEADER, NULL);
	CURL_FN(r->fl, easy_setopt)(e, CURLOPT_ERRORBUFFER, NULL);
	if (r->headers)
		CURL_FN(r->fl, slist_free_all)(r->headers);
	listener_close(&r->listener);
	free(r->block);
	rendered_free(&r->rendered);
}

/* --- the loop --- */

static void say(struct rendering *r, const char *text)
{
	ssize_t sent = send(r->listener.peer, text, strlen(text), MSG_NOSIGNAL);

	(void)sent; /* a connection that just opened has room for a line */
}

/* Once. It leaves the connection open: a form that merely pauses then goes on when it may. */
static void answer(struct rendering *r)
{
	if (!r->answered)
		say(r, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	r->answered = true;
}

static enum capture_result feed(struct rendering *r, const char *data, size_t n)
{
	bool had_head = rendered_has_head(&r->rendered);

	switch (rendered_feed(&r->rendered, data, n)) {
	case RENDERED_NO_MEMORY:
		return CAPTURE_NO_MEMORY;
	case RENDERED_BAD:
		return CAPTURE_CANNOT;
	case RENDERED_WHOLE:
		r->whole = true;
		answer(r);
		break;
	default:
		break;
	}
	if (r->purpose != FOR_HEAD && !had_head && rendered_has_head(&r->rendered))
		say(r, "HTTP/1.1 100 Continue\r\n\r\n");
	return payload_size(r->rendered.body) > r->limit ? CAPTURE_OVERSIZE : CAPTURE_DONE;
}

static enum capture_result take(struct rendering *r)
{
	ssize_t n;

	if (!listener_accept(&r->listener))
		return CAPTURE_DONE;
	n = r->whole ? 0 : recv(r->listener.peer, r->block, BLOCK, MSG_DONTWAIT);
	if (n <= 0)
		return CAPTURE_DONE;
	r->moved = true;
	return feed(r, r->block, (size_t)n);
}

static void reap(struct rendering *r)
{
	struct CURLMsg *m;
	int left;

	while ((m = CURL_FN(r->fl, multi_info_read)(r->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		r->ended = true;
		r->code = m->data.result;
	}
}

/* One step of both ends. */
static enum capture_result turn(struct rendering *r)
{
	int running;

	r->moved = false;
	if (CURL_FN(r->fl, multi_perform)(r->multi, &running))
		return CAPTURE_CANNOT;
	reap(r);
	return take(r);
}

static enum capture_result outcome(const struct rendering *r)
{
	if (r->code)
		return CAPTURE_FAILED;
	if (rendered_is_short(&r->rendered))
		return CAPTURE_DONE;
	return r->whole ? CAPTURE_DONE : CAPTURE_CANNOT;
}

/* Until the request is whole and libcurl content. Where nothing moves, libcurl may have no more of
 * the form than it gave, though it announced more: an answer tells, for then it is content too. */
enum capture_result capture_step(struct rendering *r)
{
	enum capture_result result;

	if (!r->ended) {
		result = turn(r);
		if (result != CAPTURE_DONE)
			return result;
		r->idle = r->moved || r->ended ? 0 : r->idle + 1;
		if (r->idle > IDLE_TURNS && rendered_has_head(&r->rendered))
			answer(r);
	}
	if (!r->ended)
		return r->idle > IDLE_TURNS ? CAPTURE_PAUSED : CAPTURE_MORE;
	while (!r->whole && take(r) == CAPTURE_DONE && r->moved)
		r->moved = false;
	return outcome(r);
}

void capture_resume(struct rendering *r)
{
	CURL_FN(r->fl, easy_pause)(r->capture->easy, CURLPAUSE_CONT);
}

/* A request that is begun and dropped: FOR_HEAD before its body, which leaves the form rewound, or
 * FOR_END once the form was asked for bytes. */
static enum touched touch(struct capture *c, const struct flavour *fl, const struct options *o,
                          enum purpose purpose)
{
	struct payload *nowhere = payload_new();
	struct rendering r = {.fl = fl,
	                      .capture = c,
	                      .listener = LISTENER_NONE,
	                      .purpose = purpose,
	                      .limit = SIZE_MAX,
	                      .rendered = {.body = nowhere}};
	unsigned after = 0;
	enum touched touched = TOUCHED_NOTHING;
	bool began;

	began = nowhere && start(&r) && begin(&r, o);
	if (began) {
		for (unsigned i = 0; i < PRIME_TURNS && !r.ended && after < IDLE_TURNS; i++) {
			if (turn(&r) != CAPTURE_DONE)
				break;
			if (rendered_has_head(&r.rendered) && purpose == FOR_HEAD)
				break;
			after += rendered_has_head(&r.rendered) && !r.moved;
		}
	}
	if (r.rendered.type && strcasestr(r.rendered.type, "boundary="))
		touched = TOUCHED_FORM;
	else if (!began || r.code)
		touched = r.code == CURLE_SEND_FAIL_REWIND ? TOUCHED_STUCK : TOUCHED_NOT;
	end(&r);
	payload_unref(nowhere);
	return touched;
}

/* --- the form --- */

static CURL *make_easy(struct capture *c, const struct flavour *fl)
{
	if (c->busy && c->easy) { /* left behind in the middle: not to be used or freed again */
		release_form(fl, c->easy, c->heard);
		*c = (struct capture){.used = true, .lost = c->lost};
	}
	if (!c->easy)
		c->easy = CURL_FN(fl, easy_init)();
	return c->easy;
}

/* Move the form from the program's handle to ours. */
static bool move(struct capture *c, const struct flavour *fl, CURL *program,
                 const struct options *o)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(fl, easy_setopt);
	curl_mime *mime = options_pointer(o, CURLOPT_MIMEPOST);

	if (set(program, CURLOPT_MIMEPOST, NULL) || set(c->easy, CURLOPT_MIMEPOST, mime)) {
		c->lost = set(program, CURLOPT_MIMEPOST, mime) != CURLE_OK;
		return false;
	}
	c->mime = mime;
	c->stuck = false;
	return true;
}

static bool attach(struct capture *c, const struct flavour *fl, CURL *program,
                   const struct options *o)
{
	curl_mime *mime = options_pointer(o, CURLOPT_MIMEPOST);

	if (o->kind != HTTP_MIME || (mime && c->mime == mime))
		return true;
	if (!c->copied && !move(c, fl, program, o))
		return false;
	if (c->used)
		touch(c, fl, o, FOR_END);
	c->used = false;
	return true;
}

static enum capture_result hand_over(struct rendering *r, struct captured *out)
{
	out->type = r->rendered.type ? r->rendered.type : strdup("");
	r->rendered.type = NULL;
	out->size = r->rendered.length;
	if (!out->type || payload_seal(r->rendered.body) != 0)
		return CAPTURE_NO_MEMORY;
	out->body = payload_ref(r->rendered.body);
	return CAPTURE_DONE;
}

struct rendering *capture_begin(struct capture *c, const struct flavour *fl, CURL *program,
                                const struct options *options, size_t limit,
                                enum capture_result *why)
{
	struct rendering *r = calloc(1, sizeof(*r));

	*why = CAPTURE_NO_MEMORY;
	if (!r)
		return NULL;
	c->read = c->copied;
	*r = (struct rendering){.fl = fl, .capture = c, .listener = LISTENER_NONE, .limit = limit};
	r->rendered.body = payload_new();
	if (!r->rendered.body || !make_easy(c, fl)) {
		payload_unref(r->rendered.body);
		free(r);
		return NULL;
	}
	c->busy = true;
	if (start(r) && attach(c, fl, program, options) && begin(r, options))
		return r;
	*why = capture_end(r, CAPTURE_CANNOT, &(struct captured){0});
	return NULL;
}

enum capture_result capture_end(struct rendering *r, enum capture_result result,
                                struct captured *out)
{
	struct payload *body = r->rendered.body;

	*out = (struct captured){.code = r->code};
	if (result == CAPTURE_DONE)
		result = hand_over(r, out);
	memcpy(out->error, r->error, sizeof(out->error));
	end(r);
	r->capture->busy = false;
	free(r);
	payload_unref(body);
	if (result != CAPTURE_DONE) {
		free(out->type);
		out->type = NULL;
	}
	return result;
}

/* One that nothing was read of goes back as it came: nobody has anything to rewind. */
static void put_back(struct capture *c, const struct flavour *fl, CURL *program)
{
	release_form(fl, c->easy, false);
	CURL_FN(fl, easy_setopt)(program, CURLOPT_MIMEPOST, c->mime);
	c->mime = NULL;
}

bool capture_copy(struct capture *to, struct capture *from, const struct flavour *fl, CURL *program,
                  const struct options *options)
{
	bool untouched = !from->mime && !from->copied && !from->used;

	if (options->kind != HTTP_MIME && (from->mime || from->heard) && !from->busy) {
		to->easy = release_copy(fl, from->easy);
		to->copied = to->heard = to->easy != NULL;
	}
	if (options->kind != HTTP_MIME || from->busy || !release_is_unheard() ||
	    !make_easy(from, fl) || !attach(from, fl, program, options))
		return false;
	to->easy = release_copy(fl, from->easy);
	to->copied = to->easy != NULL;
	if (untouched)
		put_back(from, fl, program);
	return to->copied;
}

void capture_note_copy(struct capture *to, const struct capture *from)
{
	to->lost = from->lost;
	to->heard = to->heard || (from->lost && to->copied);
}

bool capture_keeps(struct capture *c, const struct flavour *fl, const curl_mime *mime)
{
	if (c->copied && !c->busy)
		release_form(fl, c->easy, c->heard);
	c->copied = c->read = c->heard = false;
	if (!c->mime || c->busy)
		return false;
	/* The address may be that of a new form, the old one freed: then it is attached here. */
	if (mime == c->mime &&
	    CURL_FN(fl, easy_setopt)(c->easy, CURLOPT_MIMEPOST, mime) == CURLE_OK)
		return true;
	release_form(fl, c->easy, false);
	c->mime = NULL;
	c->stuck = false;
	return false;
}

bool capture_give_back(struct capture *c, const struct flavour *fl, CURL *program,
                       const struct options *options)
{
	curl_mime *mime = c->mime;
	enum touched touched;

	if (options->kind != HTTP_MIME)
		return true;
	if ((!mime && !c->read) || c->busy || c->lost)
		return !c->stuck && !c->lost;
	touched = touch(c, fl, options, FOR_HEAD);
	if (touched == TOUCHED_NOT) /* no descriptor left, or the like: it stays */
		return false;
	if (c->copied) {
		c->read = false;
		c->stuck = touched == TOUCHED_STUCK;
		return !c->stuck;
	}
	release_form(fl, c->easy, false);
	c->mime = NULL;
	c->used = c->stuck = touched == TOUCHED_STUCK;
	if (touched != TOUCHED_NOTHING)
		c->lost = CURL_FN(fl, easy_setopt)(program, CURLOPT_MIMEPOST, mime) != CURLE_OK;
	return !c->stuck && !c->lost;
}

void capture_note_use(struct capture *c)
{
	c->used = true;
}

void capture_drop(struct capture *c, const struct flavour *fl)
{
	if (c->easy)
		release_form(fl, c->easy, c->heard);
	if (c->easy && !c->busy)
		CURL_FN(fl, easy_cleanup)(c->easy);
	*c = (struct capture){0};
}
