/* A courier's handle that stays with a program's.
 *
 * What a server offered and what was agreed on (Digest's nonce) is kept in the easy handle. A
 * handle from the pool was reset and has none, so that each write would be challenged anew, which
 * the program's own handle would not be. Where the program says how it wants to log in, the handle
 * of a write that went well is kept, and taken for the next one of the same program's handle if
 * that is built from the same options: all of them are set again, also to other values, and none is
 * left over. What differs from write to write (URL, headers, body) is always set.
 *
 * Not promised: nonces across writes whose body comes from a callback or a form, or of handles with
 * cookies, whose engine cannot be emptied. */
#include "courier/inside.h"

#include <stdlib.h>
#include <string.h>

static bool stay_is_wanted(const struct courier_plan *plan)
{
	long either = options_long(plan->options, CURLOPT_HTTPAUTH, 0) |
	              options_long(plan->options, CURLOPT_PROXYAUTH, 0);
	enum http_kind kind = plan->options->kind;

	return plan->stay && either && (kind == HTTP_POST || kind == HTTP_GET) &&
	       !plan->options->no_body && !plan->options->upload &&
	       plan->body_kind != BODY_PAYLOAD && !courier_has_cookies(plan->options);
}

static bool stay_same(const struct option *a, const struct option *b)
{
	if (a->id != b->id)
		return false;
	switch (a->kind) {
	case OPTION_LONG:
	case OPTION_OFF_T:
		return true;
	case OPTION_STRING:
		return !a->v.text == !b->v.text;
	case OPTION_BLOB:
		return a->size == b->size && !a->v.ptr == !b->v.ptr &&
		       (!a->v.ptr || memcmp(a->v.ptr, b->v.ptr, a->size) == 0);
	default: /* lists are set again, and a list that is gone would not be */
		return !a->v.ptr == !b->v.ptr;
	}
}

/* The next option that the courier's handle is given; the order may differ in what it is not. */
static const struct option *stay_next(const struct options *o, size_t *at)
{
	while (*at < o->count) {
		const struct option *option = &o->list[(*at)++];
		if (build_replays(option->id) && option->id != CURLOPT_URL)
			return option;
	}
	return NULL;
}

static bool stay_same_options(const struct options *a, const struct options *b)
{
	const struct option *one, *two;
	size_t i = 0, j = 0;

	do {
		one = stay_next(a, &i);
		two = stay_next(b, &j);
	} while (one && two && stay_same(one, two));
	return !one && !two;
}

static bool stay_fits(const struct courier_stay *s, const struct courier_plan *plan)
{
	if (!s->easy || s->built.kind != plan->options->kind || s->fl != plan->flavour ||
	    s->no_stale_reuse != plan->no_stale_reuse || s->extra_count != plan->extra_count)
		return false;
	for (size_t i = 0; i < s->extra_count; i++)
		if (s->extra[i] != plan->extra[i].id)
			return false;
	return stay_same_options(&s->built, plan->options);
}

static int stay_note(struct courier_stay *s, const struct courier_plan *plan)
{
	if (plan->extra_count > sizeof s->extra / sizeof *s->extra)
		return -1;
	s->fl = plan->flavour;
	s->no_stale_reuse = plan->no_stale_reuse;
	s->extra_count = plan->extra_count;
	for (size_t i = 0; i < plan->extra_count; i++)
		s->extra[i] = plan->extra[i].id;
	return options_copy(&s->built, plan->options);
}

CURL *stay_take(struct attempt *a, const struct courier_plan *plan)
{
	CURL *easy = NULL;

	if (!stay_is_wanted(plan))
		return NULL;
	if (stay_fits(plan->stay, plan)) {
		easy = plan->stay->easy;
		plan->stay->easy = NULL;
		a->stays = true;
		return easy;
	}
	courier_stay_free(plan->stay);
	a->stays = stay_note(plan->stay, plan) == 0;
	return NULL;
}

/* By the driver: nothing of the attempt may be reached from the handle any more. */
void stay_keep(struct attempt *a, CURL *easy)
{
	__typeof__(&curl_easy_setopt) set = CURL_FN(a->courier->fl, easy_setopt);

	set(easy, CURLOPT_ERRORBUFFER, NULL);
	set(easy, CURLOPT_VERBOSE, 0L);
	set(easy, CURLOPT_HTTPHEADER, NULL);
	if (a->parts)
		set(easy, CURLOPT_CURLU, NULL);
	if (a->body) /* set to null it is a POST all the same */
		set(easy, CURLOPT_POSTFIELDS, NULL);
	a->kept = easy;
}

void courier_stay_back(struct attempt *a, struct courier_stay *stay)
{
	pthread_mutex_lock(&a->courier->lock);
	if (a->state == ATTEMPT_ENDED && a->kept && !stay->easy) {
		stay->easy = a->kept;
		a->kept = NULL;
	}
	pthread_mutex_unlock(&a->courier->lock);
}

void courier_stay_free(struct courier_stay *s)
{
	if (s->easy)
		CURL_FN(s->fl, easy_cleanup)(s->easy);
	options_free(&s->built);
	*s = (struct courier_stay){0};
}
