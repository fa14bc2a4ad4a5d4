/* What a program set on an easy handle, in the order it was set.
 *
 * libcurl cannot be asked for its options, so the setopt hook records each accepted call here.
 * The record is what the courier's own handle is built from, and where the request and the
 * program's callbacks are read. Types come from our own table of curl.h's numbers, so that a
 * libcurl before 7.73 (no curl_easy_option_by_id) works; an option that is not in the table is
 * kept as OPTION_UNKNOWN and makes the handle unfit for the courier. */
#ifndef SENDONCE_BASE_OPTIONS_H
#define SENDONCE_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/curlapi.h"

enum option_kind {
	OPTION_LONG,
	OPTION_OFF_T,
	OPTION_STRING,   /* copied, as libcurl does; may be null */
	OPTION_BLOB,     /* copied whatever its flags say */
	OPTION_SLIST,    /* libcurl keeps the pointer, so do we: read at perform */
	OPTION_FUNCTION, /* callback; may be null */
	OPTION_POINTER,  /* FILE*, userdata, CURLU*, share, mime, POSTFIELDS, ...; not copied */
	OPTION_UNKNOWN
};

struct option {
	CURLoption id;
	enum option_kind kind;
	union {
		long num;
		curl_off_t off;
		char *text;
		void *ptr;
		void (*fn)(void);
	} v;
	size_t size; /* bytes of OPTION_BLOB */
};

/* The HTTP method rules of libcurl, followed call by call: they depend on the order of calls
 * (POST=1, NOBODY=1, NOBODY=0 ends as GET), which the record of last values cannot tell. */
enum http_kind { HTTP_GET, HTTP_POST, HTTP_FORM, HTTP_MIME, HTTP_PUT, HTTP_HEAD };

struct options {
	struct option *list; /* each id once; setting an option again moves it to the end */
	size_t count;
	size_t room;
	uint64_t ever;       /* one bit for some ids each: of those that were ever in the list */
	enum http_kind kind; /* set.method, without CUSTOMREQUEST */
	bool no_body;        /* set.opt_no_body */
	bool upload; /* UPLOAD is set; request_settle says what another `kind` makes of it */
	bool puts;   /* with another `kind` it is known to be a PUT all the same */
	/* POSTFIELDS, COPYPOSTFIELDS and POSTFIELDSIZE(_LARGE) are kept here and not in the list.
	 */
	const char *post;     /* what POSTFIELDS points to, or `post_copy`; null: none */
	char *post_copy;      /* COPYPOSTFIELDS, copied at setopt */
	curl_off_t post_size; /* as set; POST_SIZE_UNSET (-1): strlen */
	unsigned change; /* goes up with each option that can change the target (URL, CURLU, PORT,
	                    ...) */
	bool failed;     /* an allocation failed: this handle cannot be protected */
};

enum option_kind option_kind_of(CURLoption id);
/* null when libcurl's name for it is not in our table */
const char *option_name_of(CURLoption id);

/* Record one accepted setopt; `word` is its third argument as passed. 0, or -1 out of memory
 * (then `failed` is set too). Follows libcurl: POSTFIELDS drops COPYPOSTFIELDS, a POSTFIELDSIZE
 * larger than the one before drops copied bytes, a null string unsets. */
int options_set(struct options *o, CURLoption id, uintptr_t word);

/* All zero but for what libcurl's defaults differ in; also what curl_easy_reset leaves. */
void options_init(struct options *o);

/* Last value, or null when never set (or reset since). Valid until the next options_set. */
const struct option *options_get(const struct options *o, CURLoption id);
long options_long(const struct options *o, CURLoption id, long fallback);
const char *options_text(const struct options *o, CURLoption id); /* null when unset */
void *options_pointer(const struct options *o, CURLoption id);    /* null when unset */
/* `unset` when unset: libcurl's own default where that is not null (stdout, stdin). */
void *options_pointer_or(const struct options *o, CURLoption id, void *unset);
void (*options_function(const struct options *o, CURLoption id))(void);

/* Deep; `to` holds nothing yet. 0, or -1 out of memory (`to` is then marked failed). */
int options_copy(struct options *to, const struct options *from);
void options_free(struct options *o);

#endif
