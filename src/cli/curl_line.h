/* A request written as arguments of the curl tool, made into what libcurl would be told. */
#ifndef SENDONCE_CLI_CURL_LINE_H
#define SENDONCE_CLI_CURL_LINE_H

#include "base/bytes.h"
#include "base/options.h"
#include "cli/libcurl.h"

enum { CURL_LINE_FORM_MAX = 64 };

struct curl_line {
	struct options options; /* as the setopt hook would have recorded them */
	struct curl_slist *headers;
	struct buf data;   /* of -d and its like */
	struct buf upload; /* of -T */
	struct buf url;
	struct {
		const char *text;
		bool plain; /* --form-string: @ and < mean nothing */
	} form[CURL_LINE_FORM_MAX];
	size_t form_count;
	bool has_data, has_upload, as_get, as_head, as_json;
	const char *method, *upload_name;
	curl_mime *mime;
	CURL *easy;          /* what the form hangs on */
	const char *problem; /* what is wrong, about the argument `at` */
	const char *at;
};

/* Reads argv up to the end or to `--next`; a first word `curl` is passed over. `line` is all zero
 * before and given to curl_line_free whatever comes. Returns how many arguments were read, or -1
 * with `problem` set. */
int curl_line_read(struct curl_line *line, const struct libcurl *lib, int argc, char **argv);
/* Sets `problem`; returns -1. */
int curl_line_fail(struct curl_line *line, const char *at, const char *problem);
/* curl_form.c: `mime` of `form`. 0, or -1 with `problem` set. */
int curl_form_make(struct curl_line *line, const struct libcurl *lib);
void curl_line_free(struct curl_line *line, const struct libcurl *lib);

#endif
