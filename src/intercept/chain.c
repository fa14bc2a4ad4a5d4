/* See chain.h. The options are given back from the shadow's record and never read from libcurl,
 * which cannot be asked. Of options the program never set, libcurl's own default goes back.
 *
 * VERBOSE is switched on where request heads have to be seen; the debug callback then swallows what
 * a program that is not verbose never asked for. Not promised: the progress meter that libcurl
 * draws itself is left alone, so there is no tick under it. */
#include "intercept/chain.h"

#include <stdio.h>

#include "intercept/shadow.h"

enum { MAXAGE_DEFAULT = 118 };

static const struct options *options_of(const struct chain *c)
{
	return &c->shadow->options;
}

/* --- the callbacks --- */

static void *write_data(const struct options *o)
{
	const struct option *set = options_get(o, CURLOPT_WRITEDATA);

	return set ? set->v.ptr : stdout;
}

static size_t give(void (*fn)(void), char *data, size_t size, size_t count, void *arg)
{
	if (fn)
		return ((curl_write_callback)fn)(data, size, count, arg);
	return fwrite(data, size, count, arg);
}

static void tell_body(struct chain *c, const char *data, size_t n)
{
	if (n && c->calls->body)
		c->calls->body(c->ctx, data, n);
}

/* With CURLOPT_HEADER a header line comes here first, and then to the header callback: what comes
 * is held until it is known which of the two it was. */
static void release_held(struct chain *c)
{
	tell_body(c, c->held.data, c->held.n);
	buf_reset(&c->held);
}

static enum chain_keep keeps(const struct chain *c, const char *data, size_t n, bool line)
{
	return c->calls->keeps ? c->calls->keeps(c->ctx, data, n, line) : CHAIN_GIVE;
}

/* What a callback returns that takes nothing of `n` bytes. */
static size_t none_of(size_t n)
{
	return n == 0;
}

static size_t on_write(char *data, size_t size, size_t count, void *ctx)
{
	struct chain *c = ctx;
	const struct options *o = options_of(c);
	size_t n = size * count, took = n;
	enum chain_keep keep;

	release_held(c);
	keep = keeps(c, data, n, false);
	if (keep == CHAIN_CUT)
		return none_of(n);
	if (keep == CHAIN_GIVE)
		took = give(options_function(o, CURLOPT_WRITEFUNCTION), data, size, count,
		            write_data(o));
	if (took != n)
		return took;
	if (options_long(o, CURLOPT_HEADER, 0))
		buf_add(&c->held, data, n);
	else
		tell_body(c, data, n);
	if (c->held.failed)
		c->lost = true;
	return took;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
	struct chain *c = ctx;
	const struct options *o = options_of(c);
	void (*fn)(void) = options_function(o, CURLOPT_HEADERFUNCTION);
	void *arg = options_pointer(o, CURLOPT_HEADERDATA);
	size_t n = size * count, took = n;
	enum chain_keep keep = keeps(c, line, n, true);

	if (keep == CHAIN_CUT)
		return none_of(n);
	/* HEADERDATA without HEADERFUNCTION: the body's function with the header's pointer. */
	if (keep == CHAIN_KEEP)
		took = n;
	else if (!fn && arg)
		took = give(options_function(o, CURLOPT_WRITEFUNCTION), line, size, count, arg);
	else if (fn)
		took = give(fn, line, size, count, arg);
	if (took == n) {
		buf_reset(&c->held);
		c->calls->header(c->ctx, line, n);
	}
	return took;
}

/* The program's own is asked last: it sees a send only if there will be one. */
static int on_prereq(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct chain *c = ctx;
	struct shadow *s = c->shadow;
	curl_prereq_callback own;
	char *url = NULL;
	int rc;

	CURL_FN(s->flavour, easy_getinfo)(s->handle, CURLINFO_EFFECTIVE_URL, &url);
	if (c->calls->pass(c->ctx, url))
		return CURL_PREREQFUNC_ABORT;
	own = (curl_prereq_callback)options_function(&s->options, CURLOPT_PREREQFUNCTION);
	if (!own)
		return CURL_PREREQFUNC_OK;
	rc = own(options_pointer(&s->options, CURLOPT_PREREQDATA), ip, local_ip, port, local_port);
	if (rc != CURL_PREREQFUNC_OK && c->calls->unsent)
		c->calls->unsent(c->ctx);
	return rc;
}

static int on_debug(CURL *handle, curl_infotype type, char *data, size_t n, void *ctx)
{
	struct chain *c = ctx;
	const struct options *o = options_of(c);
	curl_debug_callback own = (curl_debug_callback)options_function(o, CURLOPT_DEBUGFUNCTION);
	struct player printer = {0};

	c->calls->debug(c->ctx, type, data, n);
	if (!options_long(o, CURLOPT_VERBOSE, 0))
		return 0;
	if (own)
		return own(handle, type, data, n, options_pointer(o, CURLOPT_DEBUGDATA));
	printer.sink.verbose = true;
	printer.sink.stderr_file = options_pointer(o, CURLOPT_STDERR);
	player_debug(&printer, type, data, n);
	return 0;
}

static int on_progress(void *ctx, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un)
{
	struct chain *c = ctx;
	const struct options *o = options_of(c);
	void *data = options_pointer(o, CURLOPT_XFERINFODATA);
	void (*fn)(void) = options_function(o, CURLOPT_XFERINFOFUNCTION);

	c->calls->tick(c->ctx);
	if (options_long(o, CURLOPT_NOPROGRESS, 1))
		return 0;
	if (fn)
		return ((curl_xferinfo_callback)fn)(data, dt, dn, ut, un);
	fn = options_function(o, CURLOPT_PROGRESSFUNCTION);
	if (!fn)
		return 0;
	return ((curl_progress_callback)fn)(data, (double)dt, (double)dn, (double)ut, (double)un);
}

/* --- taking and giving back --- */

static CURLcode set_word(const struct chain *c, CURL *handle, CURLoption id, uintptr_t word)
{
	return CURL_FN(c->shadow->flavour, easy_setopt)(handle, id, word);
}

bool chain_keeps(const struct chain *c, CURLoption id)
{
	for (size_t i = 0; i < c->taken_count; i++) {
		if (c->taken[i] == id)
			return true;
	}
	return false;
}

static bool note(struct chain *c, CURLoption id)
{
	if (chain_keeps(c, id))
		return true;
	if (c->taken_count == CHAIN_TAKEN_MAX)
		return false;
	c->taken[c->taken_count++] = id;
	return true;
}

CURLcode chain_override(struct chain *c, CURLoption id, uintptr_t word)
{
	CURLcode code = set_word(c, c->shadow->handle, id, word);

	if (code == CURLE_OK && !note(c, id))
		return CURLE_OUT_OF_MEMORY;
	return code;
}

static uintptr_t default_word(CURLoption id)
{
	switch (id) {
	case CURLOPT_WRITEDATA:
		return (uintptr_t)stdout;
	case CURLOPT_READDATA:
		return (uintptr_t)stdin;
	case CURLOPT_NOPROGRESS:
		return 1;
	case CURLOPT_MAXAGE_CONN:
		return MAXAGE_DEFAULT;
	case CURLOPT_INFILESIZE:
	case CURLOPT_INFILESIZE_LARGE:
		return (uintptr_t)-1;
	default:
		return 0;
	}
}

static uintptr_t word_of(const struct option *o)
{
	switch (o->kind) {
	case OPTION_LONG:
		return (uintptr_t)o->v.num;
	case OPTION_OFF_T:
		return (uintptr_t)o->v.off;
	case OPTION_FUNCTION:
		return (uintptr_t)o->v.fn;
	default:
		return (uintptr_t)o->v.ptr;
	}
}

CURLcode chain_override_body(struct chain *c, const char *body, curl_off_t n)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(c->shadow->flavour, easy_setopt);
	CURLcode code = set(c->shadow->handle, CURLOPT_POSTFIELDS, body);

	c->post_taken = true;
	return code ? code : set(c->shadow->handle, CURLOPT_POSTFIELDSIZE_LARGE, n);
}

CURLcode chain_override_form(struct chain *c, curl_off_t size)
{
	c->form_taken = true;
	return chain_override_body(c, NULL, size);
}

/* Sizes come as long and as curl_off_t and share one place: both are given back. */
CURLcode chain_override_size(struct chain *c, curl_off_t size)
{
	if (options_of(c)->kind != HTTP_PUT) {
		c->post_taken = true;
		return CURL_FN(c->shadow->flavour, easy_setopt)(c->shadow->handle,
		                                                CURLOPT_POSTFIELDSIZE_LARGE, size);
	}
	if (chain_override(c, CURLOPT_INFILESIZE, (uintptr_t)-1) != CURLE_OK)
		return CURLE_OUT_OF_MEMORY;
	return chain_override(c, CURLOPT_INFILESIZE_LARGE, (uintptr_t)size);
}

/* A larger size drops a copy that libcurl keeps, so the copy comes last. */
static void give_post_back(const struct chain *c, CURL *handle)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(c->shadow->flavour, easy_setopt);
	const struct options *o = options_of(c);

	if (!o->post_copy && o->post)
		set(handle, CURLOPT_POSTFIELDS, o->post);
	set(handle, CURLOPT_POSTFIELDSIZE_LARGE, o->post_size);
	if (o->post_copy)
		set(handle, CURLOPT_COPYPOSTFIELDS, o->post_copy);
}

/* The method that the program's form had set, or what it has set since. A form that was given back
 * to the handle in the middle of the transfer is set once more; a copy has its own already. */
static void give_form_back(const struct chain *c, CURL *handle)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(c->shadow->flavour, easy_setopt);
	const struct options *o = options_of(c);
	bool own = handle == c->shadow->handle;

	if (o->kind == HTTP_FORM)
		set(handle, CURLOPT_HTTPPOST, options_pointer(o, CURLOPT_HTTPPOST));
	if (o->kind == HTTP_MIME && own)
		set(handle, CURLOPT_MIMEPOST, NULL);
	if (o->kind == HTTP_MIME && own && !c->shadow->capture.mime)
		set(handle, CURLOPT_MIMEPOST, options_pointer(o, CURLOPT_MIMEPOST));
	if (o->kind == HTTP_GET)
		set(handle, CURLOPT_HTTPGET, 1L);
	if (o->kind == HTTP_PUT)
		set(handle, CURLOPT_UPLOAD, 1L);
	if (o->no_body)
		set(handle, CURLOPT_NOBODY, 1L);
}

/* First what was never set, then the rest in the program's order: XFERINFOFUNCTION and
 * PROGRESSFUNCTION share a flag in libcurl, and the last one set counts. */
static void give_back(const struct chain *c, CURL *handle)
{
	const struct options *o = options_of(c);

	if (c->post_taken && !(c->form_taken && handle != c->shadow->handle))
		give_post_back(c, handle);
	for (size_t i = 0; i < c->taken_count; i++) {
		if (!options_get(o, c->taken[i]))
			set_word(c, handle, c->taken[i], default_word(c->taken[i]));
	}
	for (size_t i = 0; i < o->count; i++) {
		if (chain_keeps(c, o->list[i].id))
			set_word(c, handle, o->list[i].id, word_of(&o->list[i]));
	}
	if (c->form_taken)
		give_form_back(c, handle);
}

static int take(struct chain *c, CURLoption function, CURLoption data, uintptr_t fn)
{
	return chain_override(c, function, fn) || chain_override(c, data, (uintptr_t)c);
}

/* A meter that libcurl draws itself stays libcurl's. */
static int take_progress(struct chain *c)
{
	const struct options *o = options_of(c);
	bool shown = !options_long(o, CURLOPT_NOPROGRESS, 1);

	if (shown && !options_function(o, CURLOPT_XFERINFOFUNCTION) &&
	    !options_function(o, CURLOPT_PROGRESSFUNCTION))
		return 0;
	if (!note(c, CURLOPT_PROGRESSFUNCTION))
		return -1;
	return take(c, CURLOPT_XFERINFOFUNCTION, CURLOPT_XFERINFODATA, (uintptr_t)on_progress) ||
	       chain_override(c, CURLOPT_NOPROGRESS, 0);
}

static int take_all(struct chain *c)
{
	const struct chain_calls *t = c->calls;
	int bad = 0;

	if (t->header)
		bad |= take(c, CURLOPT_HEADERFUNCTION, CURLOPT_HEADERDATA, (uintptr_t)on_header);
	if (t->body)
		bad |= take(c, CURLOPT_WRITEFUNCTION, CURLOPT_WRITEDATA, (uintptr_t)on_write);
	if (t->debug)
		bad |= take(c, CURLOPT_DEBUGFUNCTION, CURLOPT_DEBUGDATA, (uintptr_t)on_debug) |
		       (chain_override(c, CURLOPT_VERBOSE, 1) != CURLE_OK);
	if (t->tick)
		bad |= take_progress(c);
	if (t->pass)
		c->no_prereq = take(c, CURLOPT_PREREQFUNCTION, CURLOPT_PREREQDATA,
		                    (uintptr_t)on_prereq) != 0;
	return bad ? -1 : 0;
}

int chain_begin(struct chain *c, struct shadow *s, const struct chain_calls *calls, void *ctx)
{
	*c = (struct chain){.shadow = s, .calls = calls, .ctx = ctx};
	if (take_all(c) != 0) {
		give_back(c, s->handle);
		return -1;
	}
	s->chain = c;
	return 0;
}

void chain_end(struct chain *c)
{
	release_held(c);
	c->shadow->chain = NULL;
	give_back(c, c->shadow->handle);
	buf_free(&c->held);
}

void chain_was_reset(struct chain *c)
{
	c->taken_count = 0;
	c->post_taken = c->form_taken = false;
	c->lost = true;
}

void chain_dropped(struct chain *c)
{
	c->lost = true;
	chain_end(c);
	if (c->calls->dropped)
		c->calls->dropped(c->ctx);
}

void chain_give_copy(const struct chain *c, CURL *copy)
{
	give_back(c, copy);
}
