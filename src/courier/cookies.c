/* Cookies on their way to the courier's handle.
 *
 * The program's handle keeps the jar; a write gets a copy of it as COOKIELIST lines, and what the
 * transfer left behind goes back the same way (intercept/jar.c). Whether there is an engine at all
 * follows libcurl 7.87 and later: COOKIEFILE, COOKIEJAR and COOKIELIST start one, COOKIEFILE NULL
 * ends it, a share alone does not start one. */
#include "courier/inside.h"

bool courier_has_cookies(const struct options *o)
{
	bool engine = false, shared = false;

	for (size_t i = 0; i < o->count; i++) {
		const struct option *option = &o->list[i];

		if (option->id == CURLOPT_COOKIEFILE)
			engine = option->v.text != NULL;
		else if (option->id == CURLOPT_SHARE)
			shared = option->v.ptr != NULL;
		else if (option->id == CURLOPT_COOKIEJAR ||
		         (option->id == CURLOPT_COOKIELIST && !shared))
			engine = engine || option->v.text;
	}
	return engine;
}

int cookies_install(struct attempt *a, const struct courier_plan *plan)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);

	a->cookie_engine = courier_has_cookies(plan->options);
	if (!a->cookie_engine)
		return COURIER_OK;
	if (set(a->easy, CURLOPT_COOKIEFILE, ""))
		return COURIER_CANNOT;
	for (const struct curl_slist *line = plan->cookies; line; line = line->next) {
		struct curl_slist *more =
		        CURL_FN(a->courier->fl, slist_append)(a->old_cookies, line->data);

		if (!more)
			return COURIER_NOMEM;
		a->old_cookies = more;
		(void)set(a->easy, CURLOPT_COOKIELIST, line->data); /* one may have expired */
	}
	return COURIER_OK;
}
