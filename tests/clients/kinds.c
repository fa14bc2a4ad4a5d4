/* One write in C, with a body of every kind that libcurl knows.
 *
 * usage: kinds KIND URL SECONDS USER:PASSWORD-or-nothing BODY
 *
 * KINDS is the table; each entry puts the body on the handle its own way, everything else is the
 * same for all. It prints what the scripts print: the answer, then `saw status=S code=C`. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct body {
	const char *text;
	size_t length, at;
	FILE *file;
	curl_mime *mime;
	struct curl_httppost *form;
};

static size_t body_read(char *out, size_t size, size_t n, void *ctx)
{
	struct body *b = ctx;
	size_t left = b->length - b->at;
	size_t take = left < size * n ? left : size * n;
	memcpy(out, b->text + b->at, take);
	b->at += take;
	return take;
}

static int body_seek(void *ctx, curl_off_t offset, int origin)
{
	struct body *b = ctx;
	if (origin != SEEK_SET || offset < 0 || (size_t)offset > b->length)
		return CURL_SEEKFUNC_FAIL;
	b->at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static void use_callbacks(CURL *curl, struct body *b)
{
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, body_read);
	curl_easy_setopt(curl, CURLOPT_READDATA, b);
	curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, body_seek);
	curl_easy_setopt(curl, CURLOPT_SEEKDATA, b);
}

/* Nothing but a FILE: libcurl reads it with fread() and rewinds it with fseek(). */
static void use_file(CURL *curl, struct body *b)
{
	b->file = tmpfile();
	if (!b->file || fwrite(b->text, 1, b->length, b->file) != b->length)
		exit(70);
	rewind(b->file);
	curl_easy_setopt(curl, CURLOPT_READDATA, b->file);
}

static void put_fields(CURL *curl, struct body *b)
{
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, b->text);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)b->length);
}

static void put_copy(CURL *curl, struct body *b)
{
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)b->length);
	curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, b->text);
}

static void put_empty(CURL *curl, struct body *b)
{
	(void)b;
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
}

static void put_delete(CURL *curl, struct body *b)
{
	(void)b;
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
}

static void put_patch(CURL *curl, struct body *b)
{
	put_fields(curl, b);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "PATCH");
}

static void put_read(CURL *curl, struct body *b)
{
	use_callbacks(curl, b);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)b->length);
}

static void put_read_chunked(CURL *curl, struct body *b)
{
	use_callbacks(curl, b);
	curl_easy_setopt(curl, CURLOPT_POST, 1L); /* no size: libcurl sends it in chunks */
}

static void put_read_file(CURL *curl, struct body *b)
{
	use_file(curl, b);
	curl_easy_setopt(curl, CURLOPT_POST, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)b->length);
}

static void put_upload(CURL *curl, struct body *b)
{
	use_callbacks(curl, b);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)b->length);
}

static void put_upload_chunked(CURL *curl, struct body *b)
{
	use_callbacks(curl, b);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
}

static void put_upload_file(CURL *curl, struct body *b)
{
	use_file(curl, b);
	curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(curl, CURLOPT_INFILESIZE, (long)b->length);
}

static curl_mimepart *mime_part(CURL *curl, struct body *b)
{
	b->mime = curl_mime_init(curl);
	curl_mimepart *note = curl_mime_addpart(b->mime);
	curl_mime_name(note, "note");
	curl_mime_data(note, "hello", CURL_ZERO_TERMINATED);
	curl_mimepart *part = curl_mime_addpart(b->mime);
	curl_mime_name(part, "order");
	curl_mime_type(part, "application/json");
	return part;
}

static void put_mime(CURL *curl, struct body *b)
{
	curl_mime_data(mime_part(curl, b), b->text, b->length);
	curl_easy_setopt(curl, CURLOPT_MIMEPOST, b->mime);
}

static void put_mime_read(CURL *curl, struct body *b)
{
	curl_mime_data_cb(mime_part(curl, b), (curl_off_t)b->length, body_read, body_seek, NULL, b);
	curl_easy_setopt(curl, CURLOPT_MIMEPOST, b->mime);
}

static void put_form(CURL *curl, struct body *b)
{
	struct curl_httppost *last = NULL;
	curl_formadd(&b->form, &last, CURLFORM_COPYNAME, "note", CURLFORM_COPYCONTENTS, "hello",
	             CURLFORM_END);
	curl_formadd(&b->form, &last, CURLFORM_PTRNAME, "order", CURLFORM_PTRCONTENTS, b->text,
	             CURLFORM_CONTENTLEN, (curl_off_t)b->length, CURLFORM_CONTENTTYPE,
	             "application/json", CURLFORM_END);
	curl_easy_setopt(curl, CURLOPT_HTTPPOST, b->form);
}

static const struct kind {
	const char *name;
	void (*put)(CURL *curl, struct body *b);
	const char *header;
} KINDS[] = {
        {"fields", put_fields, "Content-Type: application/json"},
        {"copy", put_copy, "Content-Type: application/json"},
        {"empty", put_empty, NULL},
        {"delete", put_delete, NULL},
        {"patch", put_patch, "Content-Type: application/json"},
        {"read", put_read, "Content-Type: application/json"},
        {"read-chunked", put_read_chunked, "Content-Type: application/json"},
        {"read-file", put_read_file, "Content-Type: application/json"},
        {"upload", put_upload, NULL},
        {"upload-chunked", put_upload_chunked, NULL},
        {"upload-file", put_upload_file, NULL},
        {"mime", put_mime, NULL},
        {"mime-read", put_mime_read, NULL},
        {"form", put_form, NULL},
};

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
		if (strcmp(KINDS[i].name, name) == 0)
			return &KINDS[i];
	return NULL;
}

static void set_options(CURL *curl, char **argv, char *error)
{
	curl_easy_setopt(curl, CURLOPT_URL, argv[2]);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, strtol(argv[3], NULL, 10));
	if (argv[4][0])
		curl_easy_setopt(curl, CURLOPT_USERPWD, argv[4]);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc == 6 ? kind_find(argv[1]) : NULL;
	CURL *curl =
	        kind && curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK ? curl_easy_init() : NULL;
	if (!curl)
		return 64;
	char error[CURL_ERROR_SIZE] = "";
	struct body body = {.text = argv[5], .length = strlen(argv[5])};
	struct curl_slist *headers = kind->header ? curl_slist_append(NULL, kind->header) : NULL;
	set_options(curl, argv, error);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	kind->put(curl, &body);
	CURLcode code =
	        curl_easy_perform(curl); /* the answer goes to stdout, as without WRITEDATA */
	long status = 0;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	printf("\nsaw status=%ld code=%d\n", status, (int)code);
	if (code != CURLE_OK)
		fprintf(stderr, "%s\n", error);
	curl_easy_cleanup(curl);
	curl_mime_free(body.mime);
	curl_formfree(body.form);
	curl_slist_free_all(headers);
	if (body.file)
		fclose(body.file);
	curl_global_cleanup();
	return code != CURLE_OK ? 1 : status >= 400 ? 22 : 0;
}
