/* Building the courier's own handle from what the program set on its.
 *
 * Options are replayed in the order they were set. Left out are those that belong to the program's
 * side of the wire (the player honours them), those that would make libcurl write the program's
 * files, callbacks and data pointers, and the method, which depends on the order of calls and is
 * built from the recorded outcome instead. Lists are copied with their quirks ("Name:" and "Name;"
 * mean something to libcurl). A handle with a callback that only the program could run is refused:
 * no program code runs on a thread that drives. */
#include "courier/inside.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The player's, or set from elsewhere. */
static bool build_leaves_out(CURLoption id)
{
	switch (id) {
	case CURLOPT_POST:
	case CURLOPT_HTTPGET:
	case CURLOPT_NOBODY:
	case CURLOPT_UPLOAD:
	case CURLOPT_PUT:
	case CURLOPT_HEADER:
	case CURLOPT_FAILONERROR:
	case CURLOPT_MAXFILESIZE:
	case CURLOPT_MAXFILESIZE_LARGE:
	case CURLOPT_TIMEOUT:
	case CURLOPT_TIMEOUT_MS:
	case CURLOPT_CONNECTTIMEOUT:
	case CURLOPT_LOW_SPEED_TIME:
	case CURLOPT_CONNECTTIMEOUT_MS:
	case CURLOPT_LOW_SPEED_LIMIT:
	case CURLOPT_NOSIGNAL:
	case CURLOPT_NOPROGRESS:
	case CURLOPT_POSTFIELDSIZE:
	case CURLOPT_INFILESIZE:
	case CURLOPT_POSTFIELDSIZE_LARGE:
	case CURLOPT_INFILESIZE_LARGE:
	case CURLOPT_CONNECT_ONLY:
	case CURLOPT_COOKIESESSION:
	case CURLOPT_COOKIEFILE:
	case CURLOPT_COOKIEJAR:
	case CURLOPT_COOKIELIST:
	case CURLOPT_HSTS:
	case CURLOPT_HSTS_CTRL:
	case CURLOPT_ALTSVC:
	case CURLOPT_ALTSVC_CTRL:
	case CURLOPT_HTTPHEADER:
	case CURLOPT_MAXCONNECTS:
	case CURLOPT_DNS_USE_GLOBAL_CACHE:
		return true;
	default:
		return false;
	}
}

/* Callbacks whose work the player does on the program's thread. */
static bool build_is_played(CURLoption id)
{
	switch (id) {
	case CURLOPT_WRITEFUNCTION:
	case CURLOPT_HEADERFUNCTION:
	case CURLOPT_READFUNCTION:
	case CURLOPT_SEEKFUNCTION:
	case CURLOPT_IOCTLFUNCTION:
	case CURLOPT_XFERINFOFUNCTION:
	case CURLOPT_PROGRESSFUNCTION:
	case CURLOPT_DEBUGFUNCTION:
		return true;
	default:
		return false;
	}
}

/* HSTS would turn http into https before the write leaves, and alt-svc leads it elsewhere.
 * Negotiate alone means the Kerberos identity of the process, which is no account we can know. */
static bool build_refuses_number(const struct option *o)
{
	switch (o->id) {
	case CURLOPT_CONNECT_ONLY:
	case CURLOPT_HSTS_CTRL:
	case CURLOPT_ALTSVC_CTRL:
		return true;
	case CURLOPT_HTTPAUTH:
	case CURLOPT_PROXYAUTH:
		return ((unsigned long)o->v.num & ~CURLAUTH_ONLY) == CURLAUTH_NEGOTIATE;
	default:
		return false;
	}
}

static bool build_refuses(const struct option *o)
{
	switch (o->kind) {
	case OPTION_UNKNOWN:
		return true;
	case OPTION_FUNCTION:
		return o->v.fn && !build_is_played(o->id);
	case OPTION_LONG:
		return o->v.num && build_refuses_number(o);
	case OPTION_STRING:
		return o->v.text && (o->id == CURLOPT_HSTS || o->id == CURLOPT_ALTSVC);
	default:
		return false;
	}
}

static const char *build_name(CURLoption id)
{
	const char *name = option_name_of(id);

	return name ? name : "unknown option";
}

/* Even a POST of fields is wound forward by the program's callbacks. */
static bool build_refuses_resume(const struct options *options, const struct option *o)
{
	bool sends = options->upload || (options->kind != HTTP_GET && !options->no_body);

	if (o->id != CURLOPT_RESUME_FROM && o->id != CURLOPT_RESUME_FROM_LARGE)
		return false;
	return sends && (o->kind == OPTION_LONG ? o->v.num != 0 : o->v.off != 0);
}

const char *courier_refuses(const struct options *options)
{
	if (options->failed)
		return "out of memory";
	for (size_t i = 0; i < options->count; i++) {
		const struct option *o = &options->list[i];

		if (build_refuses(o) || build_refuses_resume(options, o))
			return build_name(o->id);
	}
	/* which of the two is sent depends on the version */
	return options->upload && (options->kind != HTTP_PUT || options->no_body) ? "UPLOAD" : NULL;
}

bool build_replays(CURLoption id)
{
	return !build_leaves_out(id);
}

/* A copy with a NUL behind it; null: no memory. */
static char *build_text(struct attempt *a, struct span s)
{
	char *text = a->room + a->room_used;

	if (s.n >= ATTEMPT_ROOM - a->room_used)
		text = malloc(s.n + 1);
	else
		a->room_used += s.n + 1;
	if (!text)
		return NULL;
	if (s.n)
		memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	return text;
}

static void build_drop_text(const struct attempt *a, char *text)
{
	if ((uintptr_t)text - (uintptr_t)a->room >= ATTEMPT_ROOM)
		free(text);
}

static int build_list(struct attempt *a, const struct option *o)
{
	const struct header_edit as_it_is = {0};
	struct lines *more = realloc(a->lists, (a->list_count + 1) * sizeof *more), *copy;

	if (!more)
		return COURIER_NOMEM;
	a->lists = more;
	copy = &a->lists[a->list_count];
	*copy = (struct lines){0};
	if (lines_make(o->v.ptr, &as_it_is, copy))
		return COURIER_NOMEM;
	a->list_count++;
	return CURL_FN(a->courier->fl, easy_setopt)(a->easy, o->id, copy->headers) ? COURIER_CANNOT
	                                                                           : COURIER_OK;
}

static int build_code(CURLcode code)
{
	if (code == CURLE_OUT_OF_MEMORY)
		return COURIER_NOMEM;
	return code ? COURIER_CANNOT : COURIER_OK;
}

static int build_blob(struct attempt *a, const struct option *o)
{
	struct curl_blob blob = {o->v.ptr, o->size, CURL_BLOB_COPY};

	return build_code(
	        CURL_FN(a->courier->fl, easy_setopt)(a->easy, o->id, o->v.ptr ? &blob : NULL));
}

static int build_option(struct attempt *a, const struct option *o)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);

	switch (o->kind) {
	case OPTION_LONG:
		return build_code(set(a->easy, o->id, o->v.num));
	case OPTION_OFF_T:
		return build_code(set(a->easy, o->id, o->v.off));
	case OPTION_STRING:
		return build_code(set(a->easy, o->id, o->v.text));
	case OPTION_BLOB:
		return build_blob(a, o);
	case OPTION_SLIST:
		return o->v.ptr ? build_list(a, o) : COURIER_OK;
	case OPTION_UNKNOWN:
		return COURIER_CANNOT;
	default:
		return COURIER_OK; /* callbacks and data pointers: never replayed */
	}
}

static int build_options(struct attempt *a, const struct courier_plan *plan)
{
	int rc = COURIER_OK;

	for (size_t i = 0; i < plan->options->count && !rc; i++)
		if (build_replays(plan->options->list[i].id))
			rc = build_option(a, &plan->options->list[i]);
	for (size_t i = 0; i < plan->extra_count && !rc; i++)
		rc = build_option(a, &plan->extra[i]);
	return rc;
}

static int build_preface(struct attempt *a, const struct courier_plan *plan)
{
	struct tape_piece p = {.kind = TAPE_DEBUG, .debug = CURLINFO_TEXT};

	if (!a->verbose || !plan->preface)
		return COURIER_OK;
	p.data = plan->preface;
	p.n = strlen(plan->preface);
	a->unshown = true;
	return tape_add(a->tape, &p) ? COURIER_NOMEM : COURIER_OK;
}

static int build_proxies(struct attempt *a, const struct courier_plan *plan)
{
	if (!plan->proxy[0] || !plan->proxy[1])
		return COURIER_OK;
	a->proxy[0] = strdup(plan->proxy[0]);
	a->proxy[1] = strdup(plan->proxy[1]);
	return a->proxy[0] && a->proxy[1] ? COURIER_OK : COURIER_NOMEM;
}

/* A CURLU is the program's to change while we send, so a copy is used; its text may be no good as a
 * URL (spaces). */
static int build_parts(struct attempt *a, CURLU *given)
{
	const struct flavour *fl = a->courier->fl;
	char *whole = NULL;

	if (!CURL_HAS(fl, url_get) || !CURL_HAS(fl, url_dup) ||
	    CURL_FN(fl, url_get)(given, CURLUPART_URL, &whole, 0))
		return COURIER_CANNOT;
	a->url = build_text(a, span_of(whole));
	CURL_FN(fl, free)(whole);
	a->parts = CURL_FN(fl, url_dup)(given);
	if (!a->url || !a->parts)
		return COURIER_NOMEM;
	return build_code(CURL_FN(fl, easy_setopt)(a->easy, CURLOPT_CURLU, a->parts));
}

/* A URL of ours wins over CURLU, and that over URL. */
static int build_url(struct attempt *a, const struct courier_plan *plan)
{
	const struct options *options = plan->options;
	CURLU *u = plan->url ? NULL : options_pointer(options, CURLOPT_CURLU);
	const char *text = plan->url ? plan->url : options_text(options, CURLOPT_URL);
	int rc = u ? build_parts(a, u) : COURIER_OK;

	if (rc)
		return rc;
	if (!u && text)
		a->url = build_text(a, span_of(text));
	if (!a->url)
		return text ? COURIER_NOMEM : COURIER_CANNOT;
	a->passes.first.port = options_long(options, CURLOPT_PORT, 0);
	if (plan->request_target && CURL_FN(a->courier->fl, easy_setopt)(
	                                    a->easy, CURLOPT_REQUEST_TARGET, plan->request_target))
		return COURIER_CANNOT;
	if (u)
		return COURIER_OK;
	return build_code(CURL_FN(a->courier->fl, easy_setopt)(a->easy, CURLOPT_URL, a->url));
}

/* Two lists: as the program wants it plus the key, and one without it for other authorities. */
static int build_headers(struct attempt *a, const struct courier_plan *plan)
{
	const struct curl_slist *own = options_pointer(plan->options, CURLOPT_HTTPHEADER);
	struct header_edit edit = plan->edit;
	struct lines_form form = {0};
	int failed = 0;

	if (plan->body_type) {
		a->keep_post = options_long(plan->options, CURLOPT_POSTREDIR, 0);
		failed = lines_form(&form, own, plan->body_size, plan->body_type, &edit);
	}
	failed = failed || lines_make(own, &edit, &a->lines);
	lines_form_free(&form);
	if (failed)
		return COURIER_NOMEM;
	return build_code(CURL_FN(a->courier->fl, easy_setopt)(a->easy, CURLOPT_HTTPHEADER,
	                                                       a->lines.headers));
}

static int build_body(struct attempt *a, const struct courier_plan *plan)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);
	size_t n = plan->body_kind == BODY_BYTES ? plan->body.n : 0;

	a->body = build_text(a, (struct span){plan->body.p, n});
	if (!a->body)
		return COURIER_NOMEM;
	if (set(a->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n))
		return COURIER_CANNOT;
	return build_code(set(a->easy, CURLOPT_POSTFIELDS, a->body));
}

/* Sent by a read callback, as the program's libcurl would: what was announced stays announced, also
 * where fewer bytes came. */
static int build_payload(struct attempt *a, const struct courier_plan *plan, CURLoption size)
{
	if (plan->body_kind != BODY_PAYLOAD)
		return COURIER_CANNOT;
	a->payload = payload_ref(plan->payload);
	return build_code(CURL_FN(a->courier->fl, easy_setopt)(a->easy, size, plan->body_size));
}

static CURLoption build_method_option(const struct options *o)
{
	if (o->no_body)
		return CURLOPT_NOBODY;
	if (o->kind == HTTP_PUT)
		return CURLOPT_UPLOAD;
	return o->kind == HTTP_GET || o->kind == HTTP_HEAD ? CURLOPT_HTTPGET : CURLOPT_POST;
}

/* The order matters: POST and HTTPGET switch NOBODY off, POSTFIELDS does not, so that a program's
 * NOBODY followed by POSTFIELDS sends its body and reads no answer body. */
static int build_method(struct attempt *a, const struct courier_plan *plan)
{
	const struct options *o = plan->options;
	CURLcode code = CURL_FN(a->courier->fl, easy_setopt)(a->easy, build_method_option(o), 1L);

	if (code)
		return build_code(code);
	if (o->kind == HTTP_PUT)
		return build_payload(a, plan, CURLOPT_INFILESIZE_LARGE);
	if (o->kind == HTTP_POST && plan->body_kind != BODY_PAYLOAD)
		return build_body(a, plan);
	if (o->kind == HTTP_POST || o->kind == HTTP_FORM || o->kind == HTTP_MIME)
		return build_payload(a, plan, CURLOPT_POSTFIELDSIZE_LARGE);
	return plan->body_kind == BODY_NONE ? COURIER_OK : COURIER_CANNOT;
}

/* The program's own limit for connecting, so that it ends in libcurl's own words; nothing has left
 * then. Seconds and milliseconds share one place: the last one set counts. */
static long build_connect_ms(const struct options *o)
{
	long ms = 0;

	for (size_t i = 0; i < o->count; i++) {
		if (o->list[i].id == CURLOPT_CONNECTTIMEOUT)
			ms = o->list[i].v.num < LONG_MAX / 1000 ? o->list[i].v.num * 1000 : 0;
		else if (o->list[i].id == CURLOPT_CONNECTTIMEOUT_MS)
			ms = o->list[i].v.num;
	}
	return ms;
}

static int build_own(struct attempt *a, const struct courier_plan *plan)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);
	bool progress = !options_long(plan->options, CURLOPT_NOPROGRESS, 1) ||
	                options_long(plan->options, CURLOPT_LOW_SPEED_LIMIT, 0);

	a->follows = options_long(plan->options, CURLOPT_FOLLOWLOCATION, 0) != 0;
	a->verbose = options_long(plan->options, CURLOPT_VERBOSE, 0) != 0;
	a->connects = plan->no_stale_reuse ||
	              options_long(plan->options, CURLOPT_FRESH_CONNECT, 0) ||
	              options_long(plan->options, CURLOPT_PIPEWAIT, 0);
	if (progress && set(a->easy, CURLOPT_NOPROGRESS, 0L))
		return COURIER_CANNOT;
	if (set(a->easy, CURLOPT_CONNECTTIMEOUT_MS, build_connect_ms(plan->options)))
		return COURIER_CANNOT;
	if (plan->no_stale_reuse && set(a->easy, CURLOPT_MAXAGE_CONN, 2L) &&
	    set(a->easy, CURLOPT_FRESH_CONNECT, 1L))
		return COURIER_CANNOT;
	return gate_install(a);
}

int build_handle(struct attempt *a, const struct courier_plan *plan)
{
	int rc = COURIER_CANNOT;

	if (courier_refuses(plan->options))
		return rc;
	a->easy = stay_take(a, plan);
	if (!a->easy)
		a->easy = courier_take_easy(a->courier);
	if (!a->easy)
		return COURIER_NOMEM;
	rc = build_options(a, plan);
	rc = rc ? rc : build_proxies(a, plan);
	rc = rc ? rc : build_url(a, plan);
	rc = rc ? rc : build_headers(a, plan);
	rc = rc ? rc : build_method(a, plan);
	rc = rc ? rc : cookies_install(a, plan);
	rc = rc ? rc : build_own(a, plan);
	return rc ? rc : build_preface(a, plan);
}

/* Everything but the easy handle, which whoever drives has taken back. */
void build_free(struct attempt *a)
{
	__typeof__(&curl_slist_free_all) drop = CURL_FN(a->courier->fl, slist_free_all);

	for (size_t i = 0; i < a->list_count; i++)
		lines_free(&a->lists[i]);
	free(a->lists);
	lines_free(&a->lines);
	drop(a->cookies);
	payload_unref(a->payload);
	drop(a->old_cookies);
	build_drop_text(a, a->body);
	build_drop_text(a, a->url);
	free(a->proxy[0]);
	free(a->proxy[1]);
	if (a->parts)
		CURL_FN(a->courier->fl, url_cleanup)(a->parts);
	passes_free(&a->passes);
}
