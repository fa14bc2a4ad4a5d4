/* See jar.h. Only what changed goes back: another handle of the same share may have got newer
 * values meanwhile. A cookie that the server deleted is put in once more, expired, which is also
 * how libcurl itself deletes one; such lines go last, because the next line put in clears them away
 * and libcurl would then read the cookie again from its file.
 *
 * Not promised: cookies of a share among handles that set none of the cookie options, with a
 * libcurl before 7.87, which lets the share alone switch cookies on. */
#include "intercept/jar.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "courier/courier.h"

enum { FIELDS = 7, EXPIRES = 4, NAME = 5, VALUE = 6 };

struct cookie {
	struct span field[FIELDS];
};

/* A line of COOKIELIST: seven fields with tabs between them. */
static bool split(const char *line, struct cookie *c)
{
	for (size_t i = 0; i < FIELDS; i++) {
		size_t n = i == VALUE ? strlen(line) : strcspn(line, "\t");

		c->field[i] = (struct span){line, n};
		if (i < VALUE && !line[n])
			return false;
		line += n + 1;
	}
	return true;
}

static bool same_cookie(const struct cookie *a, const struct cookie *b)
{
	return span_equal(a->field[0], b->field[0]) && span_equal(a->field[1], b->field[1]) &&
	       span_equal(a->field[2], b->field[2]) && span_equal(a->field[NAME], b->field[NAME]);
}

static bool has_line(const struct curl_slist *list, const char *line)
{
	for (; list; list = list->next) {
		if (strcmp(list->data, line) == 0)
			return true;
	}
	return false;
}

static bool has_cookie(const struct curl_slist *list, const struct cookie *wanted)
{
	struct cookie c;

	for (; list; list = list->next) {
		if (split(list->data, &c) && same_cookie(&c, wanted))
			return true;
	}
	return false;
}

static bool is_expired(const char *line)
{
	struct cookie c;

	return split(line, &c) && span_is(c.field[EXPIRES], "1");
}

static void put(struct shadow *s, const char *line)
{
	CURL_FN(s->flavour, easy_setopt)(s->handle, CURLOPT_COOKIELIST, line);
}

/* libcurl throws expired cookies out when it looks for some to send, which the program's handle
 * never does; when it puts one in, it does so too, and one that is there already changes nothing.
 */
static bool sweep(struct shadow *s, const struct curl_slist *list)
{
	const char *live = "ALL"; /* clears the jar */
	bool any = false;

	for (; list; list = list->next) {
		if (is_expired(list->data))
			any = true;
		else
			live = list->data;
	}
	if (any)
		put(s, live);
	return any;
}

struct curl_slist *jar_take(struct shadow *s)
{
	const struct options *o = &s->options;
	struct curl_slist *list = NULL;

	if (!courier_has_cookies(o))
		return NULL;
	/* The program's own handle never performs, so its cookie files are read by request. */
	if (options_text(o, CURLOPT_COOKIEFILE))
		CURL_FN(s->flavour, easy_setopt)(s->handle, CURLOPT_COOKIELIST, "RELOAD");
	CURL_FN(s->flavour, easy_getinfo)(s->handle, CURLINFO_COOKIELIST, &list);
	if (!sweep(s, list))
		return list;
	CURL_FN(s->flavour, slist_free_all)(list);
	list = NULL;
	CURL_FN(s->flavour, easy_getinfo)(s->handle, CURLINFO_COOKIELIST, &list);
	return list;
}

static void put_expired(struct shadow *s, const struct cookie *c)
{
	struct buf line = {0};

	for (size_t i = 0; i < FIELDS; i++) {
		if (i)
			buf_add_char(&line, '\t');
		if (i == EXPIRES)
			buf_add_char(&line, '1');
		else
			buf_add_span(&line, c->field[i]);
	}
	if (!line.failed)
		put(s, line.data);
	buf_free(&line);
}

void jar_return(struct shadow *s, struct attempt *attempt)
{
	const struct curl_slist *before, *after;
	struct cookie c;

	if (!courier_has_cookies(&s->options) || !attempt_cookies(attempt, &before, &after))
		return;
	for (int expired = 0; expired <= 1; expired++) {
		for (const struct curl_slist *l = after; l; l = l->next) {
			if (is_expired(l->data) == (expired == 1) && !has_line(before, l->data))
				put(s, l->data);
		}
	}
	for (; before; before = before->next) {
		if (split(before->data, &c) && !has_cookie(after, &c))
			put_expired(s, &c);
	}
}
