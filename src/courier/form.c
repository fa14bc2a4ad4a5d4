/* What the body of a form adds to the header lists.
 *
 * A form was rendered beforehand and goes out as a POST of known bytes; its Content-Type, boundary
 * and all, has to stand where libcurl writes it for a form: at the end, behind Content-Length. Both
 * are therefore given as the last lines of the program's own list, shared by the list with the key
 * and the one without. libcurl would send them with the GET that a redirect can make of a POST too,
 * so the lists are cut before them once such an answer has come. */
#include "courier/inside.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "courier/lines.h"

static int add(struct attempt *a, const char *name, const char *value)
{
	struct buf line = {0};
	struct curl_slist *more = NULL;

	buf_add_text(&line, name);
	buf_add_text(&line, ": ");
	buf_add_text(&line, value);
	if (!line.failed)
		more = CURL_FN(a->courier->fl, slist_append)(a->tail, line.data);
	buf_free(&line);
	if (!more)
		return COURIER_NOMEM;
	a->tail = more;
	return COURIER_OK;
}

static int make_tail(struct attempt *a, const struct courier_plan *plan)
{
	const struct curl_slist *own = options_pointer(plan->options, CURLOPT_HTTPHEADER);
	struct buf length = {0};
	int rc = COURIER_OK;

	buf_add_number(&length, plan->body_size);
	if (length.failed)
		rc = COURIER_NOMEM;
	else if (plan->body_size >= 0 && !lines_have(own, "Content-Length") &&
	         !lines_have(own, "Transfer-Encoding"))
		rc = add(a, "Content-Length", length.data);
	buf_free(&length);
	return rc ? rc : add(a, "Content-Type", plan->body_type);
}

static struct curl_slist *joined(struct curl_slist *list, struct curl_slist *tail)
{
	struct curl_slist *last = list;

	while (last && last->next)
		last = last->next;
	if (last)
		last->next = tail;
	return list ? list : tail;
}

int form_headers(struct attempt *a, const struct courier_plan *plan)
{
	int rc;

	if (!plan->body_type)
		return COURIER_OK;
	a->keep_post = options_long(plan->options, CURLOPT_POSTREDIR, 0);
	rc = make_tail(a, plan);
	a->headers = joined(a->headers, a->tail);
	a->bare = joined(a->bare, a->tail);
	return rc;
}

static struct curl_slist *cut(struct curl_slist *list, const struct curl_slist *tail)
{
	if (list == tail)
		return NULL;
	for (struct curl_slist *l = list; l; l = l->next) {
		if (l->next != tail)
			continue;
		l->next = NULL;
		break;
	}
	return list;
}

void form_cut(struct attempt *a)
{
	if (!a->tail || a->tail_off)
		return;
	a->tail_off = true;
	a->headers = cut(a->headers, a->tail);
	a->bare = cut(a->bare, a->tail);
}
