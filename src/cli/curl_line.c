/* See curl_line.h. Options that shape the request do what the curl tool does with them: -d joins
 * with & and drops line ends of a file, -G moves the data into the CURL_URL, -T names the file at a
 * CURL_URL that ends in a slash. Options that only shape how it is sent or shown are known and
 * passed over. Any other option is an error: a request that is explained wrongly is worse than
 * none.
 *
 * Not done: -K files, CURL_URL globbing, several URLs, nested forms, -H @file, what -n finds is
 * found later, by the code the library finds it with. */
#include "cli/curl_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/curl_options.h"

int curl_line_fail(struct curl_line *line, const char *at, const char *problem)
{
	line->at = at;
	line->problem = problem;
	return -1;
}

/* --- values --- */

static int read_file(struct curl_line *line, const char *path, struct buf *out)
{
	char piece[16384];
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
	size_t n;
	bool bad;

	if (!file)
		return curl_line_fail(line, path, strerror(errno));
	while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
		buf_add(out, piece, n);
	bad = ferror(file) || out->failed;
	if (file != stdin)
		fclose(file);
	return bad ? curl_line_fail(line, path, "cannot be read") : 0;
}

static int add_header(struct curl_line *line, const char *text)
{
	struct curl_slist **end = &line->headers, *made = calloc(1, sizeof(*made));

	if (*text == '@') {
		free(made);
		return curl_line_fail(line, text,
		                      "headers from a file are not read here: write them out");
	}
	if (made)
		made->data = strdup(text);
	if (!made || !made->data) {
		free(made);
		return curl_line_fail(line, text, "out of memory");
	}
	while (*end)
		end = &(*end)->next;
	*end = made;
	return 0;
}

/* -d text of a file has no line ends. */
static void drop_line_ends(struct buf *b, size_t from)
{
	size_t to = from;

	for (size_t i = from; i < b->n; i++)
		if (b->data[i] != '\r' && b->data[i] != '\n' && b->data[i] != '\0')
			b->data[to++] = b->data[i];
	b->n = to;
}

static int add_data(struct curl_line *line, const char *text, enum curl_kind kind)
{
	size_t from;

	if (line->has_data && kind != CURL_JSON)
		buf_add_char(&line->data, '&');
	line->has_data = true;
	line->as_json = line->as_json || kind == CURL_JSON;
	from = line->data.n;
	if (*text != '@' || kind == CURL_DATA_RAW) {
		buf_add_text(&line->data, text);
		return line->data.failed ? curl_line_fail(line, text, "out of memory") : 0;
	}
	if (read_file(line, text + 1, &line->data))
		return -1;
	if (kind == CURL_DATA)
		drop_line_ends(&line->data, from);
	return 0;
}

static void add_encoded(struct buf *out, const char *text, size_t n)
{
	static const char plain[] = "-._~";
	char hex[3];

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr(plain, c))) {
			buf_add_char(out, c);
			continue;
		}
		hex_encode(hex, &c, 1);
		for (char *h = hex; *h; h++)
			*h = (char)(*h >= 'a' ? *h - 'a' + 'A' : *h);
		buf_add_char(out, '%');
		buf_add_text(out, hex);
	}
}

/* content, =content, name=content, @file, name@file */
static int add_urlencoded(struct curl_line *line, const char *text)
{
	const char *mark = strpbrk(text, "=@");
	struct buf file = {0};
	int rc = 0;

	if (line->has_data)
		buf_add_char(&line->data, '&');
	line->has_data = true;
	if (mark && mark != text) {
		buf_add(&line->data, text, (size_t)(mark - text));
		buf_add_char(&line->data, '=');
	}
	if (mark && *mark == '@') {
		rc = read_file(line, mark + 1, &file);
		add_encoded(&line->data, file.data ? file.data : "", file.n);
		buf_free(&file);
		return rc;
	}
	text = mark ? mark + 1 : text;
	add_encoded(&line->data, text, strlen(text));
	return 0;
}

static int add_form(struct curl_line *line, const char *text, bool plain)
{
	if (line->form_count == CURL_LINE_FORM_MAX)
		return curl_line_fail(line, text, "more than 64 form parts");
	if (!strchr(text, '='))
		return curl_line_fail(line, text, "is no form part: write name=content");
	line->form[line->form_count].text = text;
	line->form[line->form_count++].plain = plain;
	return 0;
}

static int set_text(struct curl_line *line, CURLoption option, const char *text)
{
	return options_set(&line->options, option, (uintptr_t)text) == 0
	               ? 0
	               : curl_line_fail(line, text, "out of memory");
}

static int set_url(struct curl_line *line, const char *text)
{
	if (line->url.n)
		return curl_line_fail(line, text,
		                      "is a second URL: one request at a time, or --next");
	buf_add_text(&line->url, text);
	return line->url.failed ? curl_line_fail(line, text, "out of memory") : 0;
}

static int set_upload(struct curl_line *line, const char *text)
{
	line->has_upload = true;
	line->upload_name = text;
	return read_file(line, text, &line->upload);
}

static int set_cookie(struct curl_line *line, const char *text)
{
	if (!strchr(text, '='))
		return curl_line_fail(line, text,
		                      "cookie files are not read here: give NAME=VALUE");
	return set_text(line, CURLOPT_COOKIE, text);
}

static int apply(struct curl_line *line, const struct curl_row *row, const char *value)
{
	switch (row->kind) {
	case CURL_METHOD:
		line->method = value;
		return 0;
	case CURL_HEADER:
		return add_header(line, value);
	case CURL_DATA:
	case CURL_DATA_RAW:
	case CURL_DATA_BINARY:
	case CURL_JSON:
		return add_data(line, value, row->kind);
	case CURL_DATA_URLENCODE:
		return add_urlencoded(line, value);
	case CURL_FORM:
	case CURL_FORM_STRING:
		return add_form(line, value, row->kind == CURL_FORM_STRING);
	case CURL_UPLOAD:
		return set_upload(line, value);
	case CURL_URL:
		return set_url(line, value);
	case CURL_GET:
		line->as_get = true;
		return 0;
	case CURL_HEAD:
		line->as_head = true;
		return 0;
	case CURL_COOKIE:
		return set_cookie(line, value);
	case CURL_COMPRESSED:
		return set_text(line, CURLOPT_ACCEPT_ENCODING, "deflate, gzip");
	case CURL_TEXT:
		return set_text(line, row->option, value);
	case CURL_FLAG:
		options_set(&line->options, row->option, (uintptr_t)row->value);
		return 0;
	case CURL_PASS:
	case CURL_PASS_VALUE:
		break;
	}
	return 0;
}

/* --- the arguments --- */

/* -sSXPOST: letters until one that has a value, which is the rest or the next argument. Returns how
 * many arguments that were. */
static int read_letters(struct curl_line *line, int argc, char **argv)
{
	for (const char *at = argv[0] + 1; *at; at++) {
		const struct curl_row *row = curl_row_of_letter(*at);

		if (!row)
			return curl_line_fail(line, argv[0],
			                      "is no option of curl that is known here");
		if (!curl_row_has_value(row)) {
			if (apply(line, row, NULL))
				return -1;
			continue;
		}
		if (at[1])
			return apply(line, row, at + 1) ? -1 : 1;
		if (argc < 2)
			return curl_line_fail(line, argv[0], "needs a value");
		return apply(line, row, argv[1]) ? -1 : 2;
	}
	return 1;
}

static int read_name(struct curl_line *line, int argc, char **argv)
{
	const struct curl_row *row = curl_row_of_name(argv[0] + 2);

	if (!row)
		return curl_line_fail(line, argv[0], "is no option of curl that is known here");
	if (!curl_row_has_value(row))
		return apply(line, row, NULL) ? -1 : 1;
	if (argc < 2)
		return curl_line_fail(line, argv[0], "needs a value");
	return apply(line, row, argv[1]) ? -1 : 2;
}

static int read_one(struct curl_line *line, int argc, char **argv)
{
	if (argv[0][0] != '-' || !argv[0][1])
		return set_url(line, argv[0]) ? -1 : 1;
	return argv[0][1] == '-' ? read_name(line, argc, argv) : read_letters(line, argc, argv);
}

static bool is_next(const char *text)
{
	return strcmp(text, "--next") == 0 || strcmp(text, "-:") == 0;
}

static bool is_curl(const char *text)
{
	const char *slash = strrchr(text, '/');

	return strcmp(slash ? slash + 1 : text, "curl") == 0;
}

/* --- the request --- */

static void move_data_to_url(struct curl_line *line)
{
	if (line->has_data) {
		buf_add_char(&line->url, strchr(line->url.data, '?') ? '&' : '?');
		buf_add(&line->url, line->data.data ? line->data.data : "", line->data.n);
	}
	line->has_data = false;
}

static void name_upload(struct curl_line *line)
{
	const char *slash = strrchr(line->upload_name, '/');

	if (line->url.data[line->url.n - 1] == '/' && strcmp(line->upload_name, "-") != 0)
		buf_add_text(&line->url, slash ? slash + 1 : line->upload_name);
}

static bool has_header(const struct curl_line *line, const char *name)
{
	size_t n = strlen(name);

	for (const struct curl_slist *h = line->headers; h; h = h->next)
		if (strncasecmp(h->data, name, n) == 0 && (h->data[n] == ':' || h->data[n] == ';'))
			return true;
	return false;
}

static int set_body(struct curl_line *line)
{
	struct options *o = &line->options;

	if (line->has_upload) {
		options_set(o, CURLOPT_UPLOAD, 1);
		return options_set(o, CURLOPT_INFILESIZE_LARGE, (uintptr_t)line->upload.n);
	}
	if (line->as_head)
		return options_set(o, CURLOPT_NOBODY, 1);
	if (line->mime)
		return options_set(o, CURLOPT_MIMEPOST, (uintptr_t)line->mime);
	if (!line->has_data)
		return 0;
	options_set(o, CURLOPT_POSTFIELDS, (uintptr_t)(line->data.data ? line->data.data : ""));
	return options_set(o, CURLOPT_POSTFIELDSIZE_LARGE, (uintptr_t)line->data.n);
}

static int set_request(struct curl_line *line)
{
	int rc = 0;

	if (!line->url.n)
		return curl_line_fail(line, "the request", "has no URL");
	if (line->as_get)
		move_data_to_url(line);
	if (line->has_upload)
		name_upload(line);
	if (line->as_json && !has_header(line, "Content-Type"))
		rc = add_header(line, "Content-Type: application/json");
	if (line->as_json && !has_header(line, "Accept") && rc == 0)
		rc = add_header(line, "Accept: application/json");
	if (rc)
		return rc;
	if (set_text(line, CURLOPT_URL, line->url.data) || set_body(line))
		return curl_line_fail(line, "the request", "out of memory");
	if (line->method)
		rc = set_text(line, CURLOPT_CUSTOMREQUEST, line->method);
	if (rc == 0 && line->headers)
		rc = options_set(&line->options, CURLOPT_HTTPHEADER, (uintptr_t)line->headers);
	return rc;
}

int curl_line_read(struct curl_line *line, const struct libcurl *lib, int argc, char **argv)
{
	int i = argc > 0 && is_curl(argv[0]) ? 1 : 0;

	options_init(&line->options);
	while (i < argc && !is_next(argv[i])) {
		int n = read_one(line, argc - i, argv + i);

		if (n < 0)
			return -1;
		i += n;
	}
	if (curl_form_make(line, lib) || set_request(line))
		return line->problem ? -1 : curl_line_fail(line, "the request", "out of memory");
	return i;
}

void curl_line_free(struct curl_line *line, const struct libcurl *lib)
{
	while (line->headers) {
		struct curl_slist *next = line->headers->next;

		free(line->headers->data);
		free(line->headers);
		line->headers = next;
	}
	if (line->mime)
		lib->mime_free(line->mime);
	if (line->easy)
		CURL_FN(&lib->flavour, easy_cleanup)(line->easy);
	options_free(&line->options);
	buf_free(&line->data);
	buf_free(&line->upload);
	buf_free(&line->url);
}
