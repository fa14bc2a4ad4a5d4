/* The -F parts of a request, made into libcurl's own form; what is sent of it is rendered by the
 * code that renders a program's. */
#include "cli/curl_line.h"

#include <stdlib.h>
#include <string.h>

/* The `;type=` or `;filename=` of a part that begins with `text`; cut off there. */
static char *take_param(char *text, const char *name)
{
	char *at = strstr(text, name), *end;

	if (!at)
		return NULL;
	*at = '\0';
	at += strlen(name);
	end = strchr(at, ';');
	if (end)
		*end = '\0';
	return at;
}

static int add_part(struct curl_line *line, const struct libcurl *lib, char *text, bool plain)
{
	curl_mimepart *part = lib->mime_addpart(line->mime);
	char *content = strchr(text, '='), *type = NULL, *filename = NULL;
	CURLcode code;

	*content++ = '\0';
	if (!plain && *content == '(')
		return curl_line_fail(line, "-F", "nested forms are not read here");
	if (!plain) {
		filename = take_param(content, ";filename=");
		type = take_param(content, ";type=");
	}
	code = part ? lib->mime_name(part, text) : CURLE_OUT_OF_MEMORY;
	if (!plain && (*content == '@' || *content == '<'))
		code = code ? code : lib->mime_filedata(part, content + 1);
	else
		code = code ? code : lib->mime_data(part, content, CURL_ZERO_TERMINATED);
	if (!code && !plain && *content == '<')
		code = lib->mime_filename(part, NULL);
	if (!code && filename)
		code = lib->mime_filename(part, filename);
	if (!code && type)
		code = lib->mime_type(part, type);
	return code ? curl_line_fail(line, "-F", "a part cannot be made: is its file there?") : 0;
}

int curl_form_make(struct curl_line *line, const struct libcurl *lib)
{
	int rc = 0;

	if (line->form_count == 0)
		return 0;
	line->easy = CURL_FN(&lib->flavour, easy_init)();
	line->mime = line->easy ? lib->mime_init(line->easy) : NULL;
	if (!line->mime)
		return curl_line_fail(line, "-F", "out of memory");
	for (size_t i = 0; i < line->form_count && rc == 0; i++) {
		char *copy = strdup(line->form[i].text);

		rc = copy ? add_part(line, lib, copy, line->form[i].plain) : -1;
		free(copy);
	}
	return rc;
}
