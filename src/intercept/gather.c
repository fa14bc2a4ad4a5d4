/* See gather.h. The options are walked in the order they were set, because several of them share
 * one place in libcurl (USERPWD and USERNAME, TIMEOUT and TIMEOUT_MS): the last one set wins. */
#include "intercept/gather.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "courier/courier.h"
#include "intercept/versions.h"

enum { CONNECT_GRACE_US = 100000 };

static bool add_room(struct gathered *own)
{
	bool first = own->headers == own->first;
	size_t room = own->room ? own->room * 2 : GATHERED_FIRST;
	struct header_view *more = own->first;

	if (own->room)
		more = realloc(first ? NULL : own->headers, room * sizeof(*more));
	if (!more)
		return false;
	if (first)
		memcpy(more, own->first, sizeof(own->first));
	own->headers = more;
	own->room = room;
	return true;
}

static void add_header(void *ctx, const struct request_header *header)
{
	struct gathered *own = ctx;

	if (own->count == own->room && !add_room(own)) {
		own->failed = true;
		return;
	}
	own->headers[own->count++] = (struct header_view){header->name, header->value};
}

static struct span find_header(const struct gathered *own, const char *name)
{
	for (size_t i = 0; i < own->count; i++) {
		if (span_is_nocase(own->headers[i].name, name))
			return own->headers[i].value;
	}
	return (struct span){0};
}

static void split_userpwd(struct gathered *own, const char *text, struct credential_view *c)
{
	char *colon;

	free(own->userpwd);
	own->userpwd = text ? strdup(text) : NULL;
	if (text && !own->userpwd)
		own->failed = true;
	colon = own->userpwd ? strchr(own->userpwd, ':') : NULL;
	if (colon)
		*colon = '\0';
	c->user = span_of(own->userpwd);
	c->password = span_of(colon ? colon + 1 : NULL);
}

static void gather_credentials(const struct shadow *s, struct gathered *own,
                               struct credential_view *c)
{
	const struct options *o = &s->options;

	*c = (struct credential_view){0};
	for (size_t i = 0; i < o->count; i++) {
		const struct option *option = &o->list[i];
		if (option->id == CURLOPT_USERPWD)
			split_userpwd(own, option->v.text, c);
		else if (option->id == CURLOPT_USERNAME)
			c->user = span_of(option->v.text);
		else if (option->id == CURLOPT_PASSWORD)
			c->password = span_of(option->v.text);
	}
	if (!c->user.n && !c->password.n) {
		c->user = span_of(s->target.user);
		c->password = span_of(s->target.password);
	}
	if (s->ambient.user || s->ambient.password) {
		c->user = span_of(s->ambient.user);
		c->password = span_of(s->ambient.password);
	}
	c->digest = options_long(o, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) == (long)CURLAUTH_DIGEST;
	c->bearer = span_of(options_text(o, CURLOPT_XOAUTH2_BEARER));
	c->client_cert = span_of(options_text(o, CURLOPT_SSLCERT));
}

int gather_identity(const struct shadow *s, struct gathered *own, struct identity_in *in)
{
	const struct options *o = &s->options;

	own->count = 0;
	request_headers(o, own->range, add_header, own);
	gather_credentials(s, own, &in->credentials);
	in->method = span_of(request_method(o));
	in->scheme = span_of(s->target.scheme);
	in->host = span_of(s->target.host);
	in->path = span_of(s->target.path);
	in->query = span_of(s->target.query);
	in->port = s->target.port;
	in->unix_socket = span_of(options_text(o, CURLOPT_UNIX_SOCKET_PATH));
	if (!in->unix_socket.n)
		in->unix_socket = span_of(options_text(o, CURLOPT_ABSTRACT_UNIX_SOCKET));
	in->headers = own->headers;
	in->header_count = own->count;
	in->content_type = find_header(own, "Content-Type");
	in->body = request_body_bytes(o);
	return own->failed ? -1 : 0;
}

void gather_free(struct gathered *own)
{
	if (own->headers != own->first)
		free(own->headers);
	free(own->userpwd);
	memset(own, 0, offsetof(struct gathered, first));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool gather_trace(const struct gathered *own, uint8_t out[16])
{
	struct span value = span_trim(find_header(own, "traceparent"));

	if (value.n < 55 || value.p[2] != '-' || value.p[35] != '-')
		return false;
	for (size_t i = 0; i < 16; i++) {
		int high = hex_digit(value.p[3 + 2 * i]), low = hex_digit(value.p[4 + 2 * i]);
		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

const char *gather_obstacle(const struct shadow *s)
{
	const struct options *o = &s->options;

	if (o->failed)
		return "out of memory";
	if (options_long(o, CURLOPT_CONNECT_ONLY, 0))
		return "CONNECT_ONLY";
	if (shadow_lacks_form(s) && request_body_kind(o) == REQUEST_MIME)
		return "form of a copied handle";
	return courier_refuses(o);
}

void gather_url(const struct request_target *t, struct buf *out)
{
	bool usual = t->port == (strcmp(t->scheme, "https") == 0 ? 443 : 80);

	buf_add_text(out, t->scheme);
	buf_add_text(out, "://");
	buf_add_text(out, t->host);
	if (!usual) {
		buf_add_char(out, ':');
		buf_add_number(out, t->port);
	}
	buf_add_text(out, t->path);
	if (t->query) {
		buf_add_char(out, '?');
		buf_add_text(out, t->query);
	}
}

/* TIMEOUT and its like come in seconds and in milliseconds and share one place. */
static int64_t gather_duration(const struct options *o, CURLoption seconds, CURLoption millis)
{
	int64_t us = 0;

	for (size_t i = 0; i < o->count; i++) {
		if (o->list[i].id == seconds)
			us = (int64_t)o->list[i].v.num * 1000000;
		else if (o->list[i].id == millis)
			us = (int64_t)o->list[i].v.num * 1000;
	}
	return us;
}

/* The courier's handle has the same limit and ends in libcurl's own words; it is given a moment to.
 * Who joined somebody else's sending has only this one. */
static int64_t gather_connect_limit(const struct options *o)
{
	int64_t us = gather_duration(o, CURLOPT_CONNECTTIMEOUT, CURLOPT_CONNECTTIMEOUT_MS);

	return us ? us + CONNECT_GRACE_US : 0;
}

static curl_off_t gather_max_filesize(const struct options *o)
{
	curl_off_t max = 0;

	for (size_t i = 0; i < o->count; i++) {
		if (o->list[i].id == CURLOPT_MAXFILESIZE)
			max = o->list[i].v.num;
		else if (o->list[i].id == CURLOPT_MAXFILESIZE_LARGE)
			max = o->list[i].v.off;
	}
	return max;
}

static bool has_text(const struct options *o, CURLoption id)
{
	return options_text(o, id) != NULL;
}

void gather_sink(const struct shadow *s, struct player_sink *sink)
{
	const struct options *o = &s->options;

	*sink = (struct player_sink){
	        .handle = s->handle,
	        .write = (curl_write_callback)options_function(o, CURLOPT_WRITEFUNCTION),
	        .write_data = options_pointer_or(o, CURLOPT_WRITEDATA, stdout),
	        .header = (curl_write_callback)options_function(o, CURLOPT_HEADERFUNCTION),
	        .header_data = options_pointer(o, CURLOPT_HEADERDATA),
	        .header_in_body = options_long(o, CURLOPT_HEADER, 0) != 0,
	        .fail_on_error = options_long(o, CURLOPT_FAILONERROR, 0) != 0,
	        .resumed = request_body_kind(o) == REQUEST_NO_BODY && request_resumed_from(o) != 0,
	        .has_password = has_text(o, CURLOPT_USERPWD) || has_text(o, CURLOPT_USERNAME) ||
	                        has_text(o, CURLOPT_XOAUTH2_BEARER) || s->target.user != NULL ||
	                        s->ambient.user != NULL,
	        .has_proxy_password =
	                has_text(o, CURLOPT_PROXYUSERPWD) || has_text(o, CURLOPT_PROXYUSERNAME),
	        .max_filesize = gather_max_filesize(o),
	        .no_progress = options_long(o, CURLOPT_NOPROGRESS, 1) != 0,
	        .xferinfo = (curl_xferinfo_callback)options_function(o, CURLOPT_XFERINFOFUNCTION),
	        .progress = (curl_progress_callback)options_function(o, CURLOPT_PROGRESSFUNCTION),
	        .progress_data = options_pointer(o, CURLOPT_XFERINFODATA),
	        .error_buffer = options_pointer(o, CURLOPT_ERRORBUFFER),
	        .verbose = options_long(o, CURLOPT_VERBOSE, 0) != 0,
	        .debug = (curl_debug_callback)options_function(o, CURLOPT_DEBUGFUNCTION),
	        .debug_data = options_pointer(o, CURLOPT_DEBUGDATA),
	        .stderr_file = options_pointer(o, CURLOPT_STDERR),
	        .timeout_us = gather_duration(o, CURLOPT_TIMEOUT, CURLOPT_TIMEOUT_MS),
	        .connect_timeout_us = gather_connect_limit(o),
	        .low_speed_limit = options_long(o, CURLOPT_LOW_SPEED_LIMIT, 0),
	        .low_speed_time = options_long(o, CURLOPT_LOW_SPEED_TIME, 0),
	        .upload_size = (curl_off_t)request_body_bytes(o).n,
	        .resumed_through_416 = CURL_HAS(s->flavour, multi_get_handles),
	        .counts_late = CURL_HAS(s->flavour, multi_waitfds),
	};
	sink->ticks_late = !sink->no_progress && versions_tick_late(s->flavour);
}

void gather_sink_again(const struct shadow *s, struct player_sink *sink)
{
	struct player_sink now;

	gather_sink(s, &now);
	now.resumed = now.resumed && sink->resumed;
	now.upload_size = sink->upload_size;
	now.pace = sink->pace;
	*sink = now;
}
