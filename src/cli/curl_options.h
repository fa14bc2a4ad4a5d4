/* The options of the curl tool that explain knows. */
#ifndef SENDONCE_CLI_CURL_OPTIONS_H
#define SENDONCE_CLI_CURL_OPTIONS_H

#include <stdbool.h>

#include "base/curlapi.h"

enum curl_kind {
	CURL_PASS, /* has no value and no meaning here */
	CURL_PASS_VALUE,
	CURL_METHOD,
	CURL_HEADER,
	CURL_DATA,
	CURL_DATA_RAW,
	CURL_DATA_BINARY,
	CURL_DATA_URLENCODE,
	CURL_JSON,
	CURL_FORM,
	CURL_FORM_STRING,
	CURL_UPLOAD,
	CURL_URL,
	CURL_GET,
	CURL_HEAD,
	CURL_COOKIE,
	CURL_COMPRESSED,
	CURL_TEXT, /* a string option of libcurl's */
	CURL_FLAG  /* a number option of libcurl's, set to `value` */
};

struct curl_row {
	char letter;
	const char *name;
	enum curl_kind kind;
	CURLoption option;
	long value;
};

/* Null: explain does not know it. `letter` is of -x, `name` of --name. */
const struct curl_row *curl_row_of_letter(char letter);
const struct curl_row *curl_row_of_name(const char *name);
bool curl_row_has_value(const struct curl_row *row);

#endif
