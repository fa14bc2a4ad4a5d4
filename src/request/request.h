/* The request a program is about to make, as libcurl would send it.
 *
 * Method rules are libcurl's (NOBODY without CUSTOMREQUEST is a HEAD, with one the method decides);
 * the target is parsed by the host's own libcurl (CURLU), once per change of the options that shape
 * it, and cached in `struct request_target`. */
#ifndef SENDONCE_REQUEST_REQUEST_H
#define SENDONCE_REQUEST_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/curlapi.h"
#include "base/options.h"

struct url_parts;

/* Parsed URL; texts are NUL-terminated and stay as long as this is not updated or freed. `valid`
 * false: libcurl would not send HTTP to it. */
struct request_target {
	unsigned change; /* options.change it was made from, plus one; 0: never made */
	unsigned made;   /* how often it was made: what was found out about it holds as long */
	bool from_curlu; /* which the program changes without telling: made each time */
	bool valid;
	/* lower-case scheme and host; path as it will be sent, without query */
	const char *scheme, *host, *path;
	const char *query;           /* null: none */
	const char *user, *password; /* userinfo; null: none */
	unsigned port;
	struct url_parts *parts; /* whose the texts are, but for these: REQUEST_TARGET's */
	char *own_path, *own_query;
};
/* 0, or -1 out of memory. Cheap when nothing changed. */
int request_target_update(struct request_target *t, const struct flavour *fl,
                          const struct options *options);
void request_target_free(struct request_target *t);

enum request_body {
	REQUEST_NO_BODY,
	REQUEST_FIELDS,   /* POSTFIELDS or COPYPOSTFIELDS: bytes known */
	REQUEST_READ,     /* read callback: body.h */
	REQUEST_MIME,     /* MIMEPOST: capture.h */
	REQUEST_FORMPOST, /* HTTPPOST */
	REQUEST_UPLOAD    /* UPLOAD / PUT */
};

/* Before the functions below are asked: what this libcurl makes of UPLOAD with another kind of
 * request set after it. Costs nothing where a program has not set both. May be called again and
 * again. */
void request_settle(struct options *options, const struct flavour *fl);

/* "POST", "PUT", CUSTOMREQUEST's text, ... Borrowed from `options`. */
const char *request_method(const struct options *options);
enum request_body request_body_kind(const struct options *options);
/* The bytes of REQUEST_FIELDS as libcurl would send them: POSTFIELDSIZE(_LARGE), -1 means strlen,
 * NUL bytes inside are kept. Borrowed from the options or the program. p is null when there is no
 * body at all; an empty body has a p. */
struct span request_body_bytes(const struct options *options);
/* True for a HEAD, GET, OPTIONS or TRACE: what is let through when nothing else is known. */
bool request_is_read(const char *method);

/* One header line as libcurl would send it ("Name: value" cut in two; "Name;" is an empty value;
 * "Name:" removes). Borrowed from the list. */
struct request_header {
	struct span name, value;
};
/* Calls `each` for every header the program's HTTPHEADER list makes libcurl send, then for those
 * libcurl adds from options (Content-Type of a POST, COOKIE, USERAGENT, REFERER, ACCEPT_ENCODING).
 * What is made of credentials (USERPWD, XOAUTH2_BEARER) is in struct credential_view. `range` is
 * the caller's, for the text of a range, and lives as long as the headers are used. */
/* RESUME_FROM or RESUME_FROM_LARGE, which go before RANGE; 0: not set. */
long long request_resumed_from(const struct options *options);
enum { REQUEST_RANGE = 256 };
typedef void request_each(void *ctx, const struct request_header *header);
void request_headers(const struct options *options, char range[REQUEST_RANGE], request_each *each,
                     void *ctx);

#endif
