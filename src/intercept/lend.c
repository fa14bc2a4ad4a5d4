/* See lend.h. Everything is set through the chain, which gives it back.
 *
 * A form was rendered before, and those bytes go out, as a POST that is read: what a part's
 * callback gave it cannot give again. The program's curl_mime stays where it was rendered. As in
 * the courier's lists, Content-Length and Content-Type stand last, where libcurl writes them for a
 * form, and are left out where a redirect makes a GET of it. */
#include "intercept/lend.h"

#include <string.h>
#include <strings.h>

/* --- the headers --- */

static bool is_form(const struct writing *w)
{
	return w->payload && w->body_type;
}

/* Of a copied handle libcurl has a form of its own, as a rule, which nobody could give back to it.
 */
static bool goes_as_it_is(const struct writing *w)
{
	return is_form(w) && w->shadow->foreign_form && !w->shadow->capture.heard &&
	       w->shadow->options.kind == HTTP_MIME;
}

static bool make_lists(struct lend *l)
{
	struct header_edit edit = l->carried.edit;
	struct lines_form form = {0};
	int failed = 0;

	l->copied = options_pointer(&l->shadow->options, CURLOPT_HTTPHEADER);
	if (l->form)
		failed = lines_form(&form, l->copied, l->w->body_size, l->w->body_type, &edit);
	if (l->bodyless)
		memset(edit.last, 0, sizeof(edit.last));
	failed = failed || lines_make(l->copied, &edit, &l->lines);
	lines_form_free(&form);
	return !failed;
}

/* libcurl may still hold the lists it was given. */
static void remake_lists(struct lend *l)
{
	if (l->old_count == LEND_OLD)
		return;
	l->old[l->old_count++] = l->lines;
	l->lines = (struct lines){0};
	if (!make_lists(l))
		l->chain->lost = true;
}

CURLcode lend_headers(struct lend *l, bool same_authority)
{
	/* The program may give its handle another list in one of its callbacks. */
	if (l->copied != options_pointer(&l->shadow->options, CURLOPT_HTTPHEADER))
		remake_lists(l);
	return chain_override(l->chain, CURLOPT_HTTPHEADER,
	                      (uintptr_t)(same_authority ? l->lines.headers : l->lines.bare));
}

void lend_answered(struct lend *l, const struct passes *passes)
{
	long keep = options_long(&l->shadow->options, CURLOPT_POSTREDIR, 0);

	if (!l->form || l->bodyless || passes->opening || !passes_drops_body(passes, keep))
		return;
	l->bodyless = true;
	remake_lists(l);
}

/* --- URL and body --- */

/* A URL or a target with the key in its query. CURLU would win over it. */
static CURLcode lend_url(struct lend *l)
{
	const struct carried *c = &l->carried;
	CURLcode code;

	if (!c->url)
		return CURLE_OK;
	if (c->is_target)
		return chain_override(l->chain, CURLOPT_REQUEST_TARGET, (uintptr_t)c->url);
	code = chain_override(l->chain, CURLOPT_URL, (uintptr_t)c->url);
	if (code == CURLE_OK && options_pointer(&l->shadow->options, CURLOPT_CURLU))
		code = chain_override(l->chain, CURLOPT_CURLU, 0);
	return code;
}

/* The bytes that were read, from the beginning, as often as libcurl wants them. */
static CURLcode lend_reader(struct lend *l, struct payload *payload)
{
	const struct {
		CURLoption id;
		uintptr_t word;
	} lent[] = {
	        {CURLOPT_READFUNCTION, (uintptr_t)fetch_read},
	        {CURLOPT_READDATA, (uintptr_t)&l->reader},
	        {CURLOPT_SEEKFUNCTION, (uintptr_t)fetch_seek},
	        {CURLOPT_SEEKDATA, (uintptr_t)&l->reader},
	};
	CURLcode code = CURLE_OK;

	l->reader.payload = payload;
	for (size_t i = 0; i < sizeof(lent) / sizeof(*lent) && code == CURLE_OK; i++)
		code = chain_override(l->chain, lent[i].id, lent[i].word);
	return code;
}

static CURLcode lend_body(struct lend *l)
{
	const struct carried *c = &l->carried;
	struct writing *w = l->w;
	CURLcode code;

	if (l->form) {
		code = chain_override_form(l->chain, w->body_size);
		return code ? code : lend_reader(l, w->payload);
	}
	if (!fetch_give_form(l->shadow))
		return CURLE_SEND_FAIL_REWIND;
	if (c->has_body && !c->payload)
		return chain_override_body(l->chain, c->body.data, (curl_off_t)c->body.n);
	if (!w->payload || goes_as_it_is(w))
		return CURLE_OK;
	if (!c->payload)
		return lend_reader(l, w->payload);
	code = chain_override_size(l->chain, c->size);
	return code ? code : lend_reader(l, c->payload);
}

CURLcode lend_all(struct lend *l)
{
	CURLcode code = lend_body(l);

	if (code == CURLE_OK)
		code = lend_url(l);
	if (code == CURLE_OK)
		code = chain_override(l->chain, CURLOPT_HTTPHEADER, (uintptr_t)l->lines.headers);
	return code;
}

/* --- its life --- */

bool lend_make(struct lend *l, struct writing *w, struct chain *chain, struct carried *carried)
{
	*l = (struct lend){.chain = chain,
	                   .w = w,
	                   .shadow = w->shadow,
	                   .form = is_form(w) && !goes_as_it_is(w)};
	carried_move(&l->carried, carried);
	return make_lists(l);
}

void lend_free(struct lend *l)
{
	lines_free(&l->lines);
	for (unsigned i = 0; i < l->old_count; i++)
		lines_free(&l->old[i]);
	carried_free(&l->carried);
}
