/* See carry.h. Where the request holds the very key already nothing is changed. A body that gets
 * longer keeps what the program announced of it, plus what was added; a Content-Length of the
 * program's own goes, so that libcurl writes the right one. */
#include "intercept/carry.h"

#include <stdlib.h>
#include <string.h>

#include "base/httpdate.h"
#include "identity/carry.h"

/* An older date is no first send of now. */
static const int64_t OWN_TIME_MAX_US = INT64_C(86400) * 1000000;

void carried_free(struct carried *c)
{
	buf_free(&c->key_line);
	buf_free(&c->time_line);
	free(c->url);
	buf_free(&c->body);
	payload_unref(c->payload);
	*c = (struct carried){0};
}

void carried_move(struct carried *to, struct carried *from)
{
	*to = *from;
	if (from->key_line.data == from->room)
		to->key_line.data = to->room;
	if (to->edit.add[0])
		to->edit.add[0] = to->key_line.data;
	*from = (struct carried){0};
}

static int carry_header(const struct writing *w, const char *key, struct carried *out)
{
	struct buf *line = &out->key_line;

	*line = buf_in(out->room, sizeof(out->room));
	buf_add_text(line, w->rule->carrier_name);
	buf_add_text(line, ": ");
	buf_add_text(line, key);
	out->edit.add[0] = line->data;
	return line->failed ? -1 : 0;
}

/* A text of the program's URL, which may be in its CURLU; null: none. */
static char *program_url(const struct shadow *s)
{
	CURLU *u = options_pointer(&s->options, CURLOPT_CURLU);
	const char *text = options_text(&s->options, CURLOPT_URL);
	char *whole = NULL, *copy;

	if (!u)
		return text ? strdup(text) : NULL;
	if (!CURL_HAS(s->flavour, url_get) ||
	    CURL_FN(s->flavour, url_get)(u, CURLUPART_URL, &whole, 0))
		return NULL;
	copy = strdup(whole);
	CURL_FN(s->flavour, free)(whole);
	return copy;
}

static int carry_query(const struct writing *w, const char *key, struct carried *out)
{
	const char *target = options_text(&w->shadow->options, CURLOPT_REQUEST_TARGET);
	char *url = target ? strdup(target) : program_url(w->shadow);
	struct buf made = {0};

	if (!url)
		return -1;
	carry_url_with(span_of(url), span_of(w->rule->carrier_name), span_of(key), &made);
	free(url);
	out->url = made.data;
	out->is_target = target != NULL;
	return made.failed ? -1 : 0;
}

/* In the pieces the program gave, as far as they are the same. */
static int make_payload(const struct payload *from, struct span body, struct carried *out)
{
	struct span old = payload_bytes(from);
	size_t same = 0, at = 0;
	int rc = 0;

	out->payload = payload_new();
	if (!out->payload)
		return -1;
	while (same < old.n && same < body.n && old.p[same] == body.p[same])
		same++;
	while (!rc && at < same && at + payload_piece(from, at) <= same) {
		size_t piece = payload_piece(from, at);

		rc = payload_add(out->payload, body.p + at, piece);
		at += piece;
	}
	if (!rc && at < body.n)
		rc = payload_add(out->payload, body.p + at, body.n - at);
	return rc ? rc : payload_seal(out->payload);
}

static int carry_json(const struct writing *w, const char *key, struct carried *out)
{
	struct span old = w->in.body;
	size_t n;
	int rc = 0;

	if (carry_json_with(old, span_of(w->rule->carrier_name), span_of(key), &out->body) != 0 ||
	    out->body.failed)
		return -1;
	out->has_body = true;
	for (n = 0; out->edit.drop[n]; n++)
		;
	out->edit.drop[n] = "Content-Length";
	if (!w->payload)
		return 0;
	out->size = w->body_size;
	if (out->size >= 0)
		out->size += (curl_off_t)out->body.n - (curl_off_t)old.n;
	rc = make_payload(w->payload, span_buf(&out->body), out);
	buf_free(&out->body);
	return rc;
}

static int carry_in(const struct writing *w, const char *key, struct carried *out)
{
	switch (w->rule->carrier) {
	case CARRIER_HEADER:
		return carry_header(w, key, out);
	case CARRIER_QUERY:
		return carry_query(w, key, out);
	case CARRIER_JSON:
		return carry_json(w, key, out);
	case CARRIER_NONE:
		break;
	}
	return 0;
}

/* The program's own date, if it has one. */
static bool own_time(const struct writing *w, int64_t *wall_us)
{
	for (size_t i = 0; i < w->own.count; i++) {
		const struct header_view *h = &w->own.headers[i];

		if (span_is_nocase(h->name, w->rule->first_sent))
			return httpdate_read(span_trim(h->value), wall_us);
	}
	return false;
}

struct stamp carry_time(const struct writing *w, const struct record_view *view,
                        uint32_t generation)
{
	struct stamp now = clock_now();
	int64_t then, ago;

	if (!w->rule->first_sent)
		return (struct stamp){0};
	if (view->state != REC_NONE && view->generation == generation && view->first_sent.wall_us)
		return view->first_sent;
	if (!w->id.has_own_key || !own_time(w, &then))
		return now;
	ago = now.wall_us - then;
	if (ago < 0 || ago > OWN_TIME_MAX_US)
		return now;
	now.wall_us -= ago;
	now.boot_us -= ago < now.boot_us ? ago : now.boot_us;
	return now;
}

static int carry_first_sent(const struct writing *w, int64_t first_sent, struct carried *out)
{
	char date[HTTPDATE_ROOM];
	struct buf *line = &out->time_line;

	httpdate_write(date, first_sent);
	buf_add_text(line, w->rule->first_sent);
	buf_add_text(line, ": ");
	buf_add_text(line, date);
	out->edit.add[1] = line->data;
	return line->failed ? -1 : 0;
}

static void strip_names(const struct writing *w, struct header_edit *edit)
{
	const struct policy *policy = w->process->policy;
	const struct policy_source *const from[] = {&policy->scope_from, &policy->run_from,
	                                            &policy->step_from};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		if (from[i]->header && from[i]->strip)
			edit->drop[n++] = from[i]->header;
	}
}

int carry_key(const struct writing *w, const char *key, int64_t first_sent, struct carried *out)
{
	bool own = w->id.has_own_key && strcmp(key, w->id.own_key_text) == 0;
	int64_t ignored;
	int rc = 0;

	*out = (struct carried){0};
	strip_names(w, &out->edit);
	if (w->rule->carrier == CARRIER_HEADER)
		out->edit.key_name = w->rule->carrier_name;
	if (!*key)
		return 0;
	if (!own)
		rc = carry_in(w, key, out);
	if (rc == 0 && w->rule->first_sent && !(own && own_time(w, &ignored)))
		rc = carry_first_sent(w, first_sent, out);
	return rc;
}

void carry_plan(const struct carried *c, struct courier_plan *plan)
{
	plan->edit = c->edit;
	if (c->is_target)
		plan->request_target = c->url;
	else
		plan->url = c->url;
	if (!c->has_body)
		return;
	if (c->payload) {
		plan->payload = c->payload;
		plan->body_size = c->size;
	} else {
		plan->body = span_buf(&c->body);
	}
}
