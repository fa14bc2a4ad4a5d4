/* Method and body, by the rules of libcurl's Curl_http_method and Curl_http_bodysend.
 *
 * `options` follows what the calls of setopt made of libcurl's own state; here it is only read.
 * NOBODY goes before all kinds: it takes away a POSTFIELDS too, and CUSTOMREQUEST then names the
 * method of a request without a body. A handle that has UPLOAD on and another kind set afterwards
 * is an upload for some libcurls and of that other kind for the rest (upload.c). Where it is not
 * known, or an upload, the body is said to be an upload's, so that nobody relies on bytes that
 * might not be sent. */
#include "request/request.h"

#include <string.h>

static enum http_kind kind_of(const struct options *o)
{
	return o->no_body ? HTTP_HEAD : o->kind;
}

/* UPLOAD was set, and something after it without unsetting it. */
static bool is_half_upload(const struct options *o)
{
	return o->upload && kind_of(o) != HTTP_PUT;
}

const char *request_method(const struct options *options)
{
	const char *custom = options_text(options, CURLOPT_CUSTOMREQUEST);

	if (custom)
		return custom;
	if (options->puts && is_half_upload(options) && !options->no_body)
		return "PUT";
	switch (kind_of(options)) {
	case HTTP_POST:
	case HTTP_FORM:
	case HTTP_MIME:
		return "POST";
	case HTTP_PUT:
		return "PUT";
	case HTTP_HEAD:
		return "HEAD";
	case HTTP_GET:
		break;
	}
	return "GET";
}

/* Without POSTFIELDS a POST reads from the callback, unless its size is said to be 0. */
enum request_body request_body_kind(const struct options *options)
{
	if (is_half_upload(options))
		return REQUEST_UPLOAD;
	switch (kind_of(options)) {
	case HTTP_POST:
		return options->post || options->post_size == 0 ? REQUEST_FIELDS : REQUEST_READ;
	case HTTP_FORM:
		return REQUEST_FORMPOST;
	case HTTP_MIME:
		return REQUEST_MIME;
	case HTTP_PUT:
		return REQUEST_UPLOAD;
	case HTTP_GET:
	case HTTP_HEAD:
		break;
	}
	return REQUEST_NO_BODY;
}

struct span request_body_bytes(const struct options *options)
{
	if (request_body_kind(options) != REQUEST_FIELDS)
		return (struct span){0};
	if (!options->post)
		return (struct span){"", 0};
	if (options->post_size < 0)
		return span_of(options->post);
	return (struct span){options->post, (size_t)options->post_size};
}

bool request_is_read(const char *method)
{
	static const char *const reads[] = {"GET", "HEAD", "OPTIONS", "TRACE"};

	for (size_t i = 0; method && i < sizeof reads / sizeof *reads; i++) {
		if (strcmp(method, reads[i]) == 0)
			return true;
	}
	return false;
}
