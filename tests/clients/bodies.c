/* A small program that sends each kind of body that libcurl knows, in the ways programs do it.
 *
 * It knows nothing of sendonce. `bodies KIND URL [option...]` performs the same request --tries
 * times on one handle, winding its own stream back before each, and prints a line for each try as
 * `post` does. The kinds are rows of a table: how the handle is set up, and how the callback
 * behaves. */
#define CURL_DISABLE_DEPRECATION /* old options are in use */
#include <curl/curl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 256 * 1024 };
enum manner { GIVE, SHORT, ABORT, ABORT_LATER, FUNNY, PAUSE, SLOW, JUMP };

struct client {
	const char *kind, *url, *file;
	CURL *curl;
	curl_mime *mime;
	struct curl_httppost *form, *last;
	struct curl_slist *headers;
	FILE *stream;
	char *body;
	size_t size, at, step;
	enum manner manner;
	bool seekable, fresh, keep_position, copy, sockopt, digest, free_form;
	unsigned reads, paused, ticks;
	long tries, timeout_ms, first_timeout_ms;
	const char *native_url; /* every second try goes there */
	char answer[ANSWER_MAX], verdict[128], type[128], error[CURL_ERROR_SIZE];
	size_t answer_size;
	bool replayed;
};

/* --- what comes back --- */

static size_t on_answer(char *data, size_t size, size_t n, void *ctx)
{
	struct client *c = ctx;
	size_t room = sizeof(c->answer) - c->answer_size, take = size * n < room ? size * n : room;

	memcpy(c->answer + c->answer_size, data, take);
	c->answer_size += take;
	return size * n;
}

static void take_header(char *out, size_t room, const char *line, size_t n, const char *name)
{
	size_t length = strlen(name);

	if (n < length + 4 || strncasecmp(line, name, length) != 0 || line[length] != ':')
		return;
	snprintf(out, room, "%.*s", (int)(n - length - 4), line + length + 2);
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct client *c = ctx;
	char flag[16] = "";

	take_header(c->verdict, sizeof(c->verdict), line, size * n, "Sendonce-Verdict");
	take_header(c->type, sizeof(c->type), line, size * n, "Content-Type");
	take_header(flag, sizeof(flag), line, size * n, "Idempotent-Replayed");
	c->replayed = c->replayed || strcmp(flag, "true") == 0;
	return size * n;
}

/* --- what goes out --- */

static jmp_buf out_of_perform;

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
	struct client *c = ctx;
	size_t left = c->size - c->at, room = size * n;

	c->reads++;
	if (c->manner == ABORT || (c->manner == ABORT_LATER && c->at))
		return CURL_READFUNC_ABORT;
	if (c->manner == JUMP)
		longjmp(out_of_perform, 1);
	if (c->manner == FUNNY)
		return room + 1;
	if (c->manner == PAUSE && c->reads == 2) {
		c->paused = 1;
		return CURL_READFUNC_PAUSE;
	}
	if (c->manner == SLOW)
		usleep(300000);
	if (c->manner == SHORT)
		left = left > 3 ? left - 3 : 0;
	if (c->step && left > c->step)
		left = c->step;
	if (left > room)
		left = room;
	memcpy(out, c->body + c->at, left);
	c->at += left;
	return left;
}

static int on_seek(void *ctx, curl_off_t offset, int origin)
{
	struct client *c = ctx;

	if (origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	c->at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static curlioerr on_ioctl(CURL *curl, int command, void *ctx)
{
	(void)curl;
	if (command == CURLIOCMD_RESTARTREAD)
		((struct client *)ctx)->at = 0;
	return CURLIOE_OK;
}

static int on_progress(void *ctx, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un)
{
	struct client *c = ctx;

	(void)dt, (void)dn, (void)ut, (void)un;
	c->ticks++;
	if (c->paused) {
		c->paused = 0;
		curl_easy_pause(c->curl, CURLPAUSE_CONT);
	}
	return 0;
}

/* A program's own way with sockets. */
static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)fd, (void)purpose;
	return CURL_SOCKOPT_OK;
}

static void set_read(struct client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(c->curl, CURLOPT_READDATA, c);
	if (c->seekable) {
		curl_easy_setopt(c->curl, CURLOPT_SEEKFUNCTION, on_seek);
		curl_easy_setopt(c->curl, CURLOPT_SEEKDATA, c);
	}
}

static void post_read(struct client *c)
{
	set_read(c);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)c->size);
}

static void post_ioctl(struct client *c)
{
	post_read(c);
	curl_easy_setopt(c->curl, CURLOPT_IOCTLFUNCTION, on_ioctl);
	curl_easy_setopt(c->curl, CURLOPT_IOCTLDATA, c);
}

static void post_chunked(struct client *c)
{
	set_read(c);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
}

/* In chunks by the program's own header, though the size is known. */
static void post_own_chunks(struct client *c)
{
	post_read(c);
	c->headers = curl_slist_append(c->headers, "Transfer-Encoding: chunked");
}

static void upload(struct client *c)
{
	set_read(c);
	curl_easy_setopt(c->curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(c->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)c->size);
}

static void upload_empty(struct client *c)
{
	c->size = 0;
	upload(c);
}

static void upload_chunked(struct client *c)
{
	set_read(c);
	curl_easy_setopt(c->curl, CURLOPT_UPLOAD, 1L);
}

static void upload_patch(struct client *c)
{
	upload(c);
	curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, "PATCH");
}

/* libcurl's own fread on a FILE of the program's. */
static void post_file(struct client *c)
{
	c->stream = fmemopen(c->body, c->size, "r");
	curl_easy_setopt(c->curl, CURLOPT_READDATA, c->stream);
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->size);
}

static void upload_file(struct client *c)
{
	c->stream = fmemopen(c->body, c->size, "r");
	curl_easy_setopt(c->curl, CURLOPT_READDATA, c->stream);
	curl_easy_setopt(c->curl, CURLOPT_PUT, 1L);
	curl_easy_setopt(c->curl, CURLOPT_INFILESIZE, (long)c->size);
}

static void post_stdin(struct client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
}

static curl_mimepart *part(struct client *c, const char *name)
{
	curl_mimepart *p;

	if (!c->mime)
		c->mime = curl_mime_init(c->curl);
	p = curl_mime_addpart(c->mime);
	curl_mime_name(p, name);
	return p;
}

static void set_mime(struct client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_MIMEPOST, c->mime);
}

static void mime_fields(struct client *c)
{
	curl_mime_data(part(c, "order"), c->body, c->size);
	curl_mime_data(part(c, "na\"me"), "x", CURL_ZERO_TERMINATED);
	set_mime(c);
}

static void mime_file(struct client *c)
{
	curl_mime_filedata(part(c, "file"), c->file);
	set_mime(c);
}

static void mime_callback(struct client *c)
{
	curl_mime_data_cb(part(c, "order"), (curl_off_t)c->size, on_read,
	                  c->seekable ? on_seek : NULL, NULL, c);
	set_mime(c);
}

static void mime_chunked(struct client *c)
{
	curl_mime_data_cb(part(c, "order"), -1, on_read, c->seekable ? on_seek : NULL, NULL, c);
	curl_mime_data(part(c, "more"), "x", CURL_ZERO_TERMINATED);
	set_mime(c);
}

static void mime_nested(struct client *c)
{
	curl_mime *inner = curl_mime_init(c->curl);
	curl_mimepart *p = curl_mime_addpart(inner);

	curl_mime_data(p, c->body, c->size);
	curl_mime_encoder(p, "base64");
	curl_mime_type(p, "text/x-order");
	curl_mime_subparts(part(c, "inner"), inner);
	set_mime(c);
}

static void mime_type(struct client *c)
{
	c->headers = curl_slist_append(c->headers, "Content-Type: multipart/related");
	c->headers = curl_slist_append(c->headers, "X-After: 1");
	mime_fields(c);
}

static void add_form(struct client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_HTTPPOST, c->form);
}

static void form(struct client *c)
{
	curl_formadd(&c->form, &c->last, CURLFORM_COPYNAME, "order", CURLFORM_PTRCONTENTS, c->body,
	             CURLFORM_CONTENTLEN, (curl_off_t)c->size, CURLFORM_END);
	curl_formadd(&c->form, &c->last, CURLFORM_COPYNAME, "buffer", CURLFORM_BUFFER, "b.txt",
	             CURLFORM_BUFFERPTR, "xyz", CURLFORM_BUFFERLENGTH, 3L, CURLFORM_END);
	add_form(c);
}

static void form_file(struct client *c)
{
	curl_formadd(&c->form, &c->last, CURLFORM_COPYNAME, "file", CURLFORM_FILE, c->file,
	             CURLFORM_END);
	add_form(c);
}

static void form_stream(struct client *c)
{
	set_read(c);
	curl_formadd(&c->form, &c->last, CURLFORM_COPYNAME, "order", CURLFORM_STREAM, c,
	             CURLFORM_CONTENTLEN, (curl_off_t)c->size, CURLFORM_FILENAME, "s",
	             CURLFORM_END);
	add_form(c);
}

static const struct {
	const char *kind;
	void (*set)(struct client *c);
} kinds[] = {
        {"post-read", post_read},
        {"post-ioctl", post_ioctl},
        {"post-chunked", post_chunked},
        {"post-own-chunks", post_own_chunks},
        {"post-file", post_file},
        {"post-stdin", post_stdin},
        {"upload", upload},
        {"upload-empty", upload_empty},
        {"upload-chunked", upload_chunked},
        {"upload-patch", upload_patch},
        {"upload-file", upload_file},
        {"mime-fields", mime_fields},
        {"mime-file", mime_file},
        {"mime-callback", mime_callback},
        {"mime-chunked", mime_chunked},
        {"mime-nested", mime_nested},
        {"mime-type", mime_type},
        {"form", form},
        {"form-file", form_file},
        {"form-stream", form_stream},
};

static bool set_kind(struct client *c)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].kind, c->kind) != 0)
			continue;
		kinds[i].set(c);
		return true;
	}
	return false;
}

/* --- one try --- */

static void set_rest(struct client *c)
{
	curl_easy_setopt(c->curl, CURLOPT_URL, c->url);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_answer);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, c);
	curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, c->manner == PAUSE ? 0L : 1L);
	if (c->digest)
		curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
	if (c->sockopt)
		curl_easy_setopt(c->curl, CURLOPT_SOCKOPTFUNCTION, on_socket);
	if (c->headers)
		curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
}

static void make(struct client *c)
{
	c->curl = curl_easy_init();
	if (!c->curl || !set_kind(c))
		exit(64);
	set_rest(c);
}

static void drop(struct client *c)
{
	curl_easy_cleanup(c->curl);
	curl_mime_free(c->mime);
	curl_formfree(c->form);
	curl_slist_free_all(c->headers);
	if (c->stream)
		fclose(c->stream);
	c->mime = NULL;
	c->form = c->last = NULL;
	c->headers = NULL;
	c->stream = NULL;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void print_text(const char *name, const char *text, size_t n)
{
	printf("\t%s=", name);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < ' ' || c > '~' || c == '%')
			printf("%%%02x", c);
		else
			putchar(c);
	}
}

static void print(struct client *c, long number, CURLcode rc, long ms)
{
	long status = 0;
	curl_off_t sent = 0;

	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(c->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	printf("try=%ld\trc=%d\tstatus=%ld\treplayed=%d\tms=%ld\treads=%u\tsent=%ld", number,
	       (int)rc, status, c->replayed ? 1 : 0, ms, c->reads, (long)sent);
	print_text("verdict", c->verdict, strlen(c->verdict));
	print_text("type", c->type, strlen(c->type));
	print_text("error", c->error, strlen(c->error));
	print_text("body", c->answer, c->answer_size);
	putchar('\n');
	fflush(stdout);
}

/* A copy of the handle performs, and the handle itself the next time. */
static CURLcode perform_copy(struct client *c)
{
	CURL *copy = curl_easy_duphandle(c->curl);
	CURLcode rc = copy ? curl_easy_perform(copy) : CURLE_OUT_OF_MEMORY;

	curl_easy_cleanup(copy);
	return rc;
}

static void try(struct client *c, long number)
{
	bool elsewhere = c->native_url && number % 2 == 0;
	long from;
	CURLcode rc;

	if (!c->keep_position) {
		c->at = 0;
		if (c->stream)
			rewind(c->stream);
	}
	if (c->free_form && number > 1) { /* and does not say so: libcurl takes note */
		curl_mime_free(c->mime);
		c->mime = NULL;
	}
	if (c->mime && number > 1)
		set_mime(c); /* the same again, as many programs do */
	curl_easy_setopt(c->curl, CURLOPT_URL, elsewhere ? c->native_url : c->url);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS,
	                 number == 1 && c->first_timeout_ms ? c->first_timeout_ms : c->timeout_ms);
	c->answer_size = c->reads = c->paused = 0;
	c->verdict[0] = c->type[0] = c->error[0] = '\0';
	c->replayed = false;
	from = now_ms();
	rc = c->copy && number % 2 == 0 ? perform_copy(c) : curl_easy_perform(c->curl);
	print(c, number, rc, now_ms() - from);
}

/* The callback jumps out of the perform, and the program begins anew. */
static void jump(struct client *c)
{
	if (setjmp(out_of_perform) == 0) {
		try(c, 0);
		exit(65);
	}
	c->manner = GIVE;
	drop(c);
	make(c);
}

static void fill(struct client *c)
{
	c->body = malloc(c->size + 1);
	if (!c->body)
		exit(70);
	for (size_t i = 0; i < c->size; i++)
		c->body[i] = (char)('a' + i % 26);
	c->body[c->size] = '\0';
}

static bool read_option(struct client *c, const char *name, const char *value)
{
	static const char *const manners[] = {"give",  "short", "abort", "abort-later",
	                                      "funny", "pause", "slow",  "jump"};
	struct {
		const char *name;
		long *number;
		size_t *size;
		const char **text;
	} const rows[] = {
	        {"--tries", &c->tries, NULL, NULL},
	        {"--timeout-ms", &c->timeout_ms, NULL, NULL},
	        {"--first-timeout-ms", &c->first_timeout_ms, NULL, NULL},
	        {"--size", NULL, &c->size, NULL},
	        {"--step", NULL, &c->step, NULL},
	        {"--file", NULL, NULL, &c->file},
	        {"--native-url", NULL, NULL, &c->native_url},
	};

	for (size_t i = 0; i < sizeof(manners) / sizeof(*manners); i++) {
		if (strcmp(name, "--manner") == 0 && strcmp(value, manners[i]) == 0) {
			c->manner = (enum manner)i;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strcmp(name, rows[i].name) != 0)
			continue;
		if (rows[i].text)
			*rows[i].text = value;
		else if (rows[i].size)
			*rows[i].size = (size_t)strtol(value, NULL, 10);
		else
			*rows[i].number = strtol(value, NULL, 10);
		return true;
	}
	return false;
}

static bool read_flag(struct client *c, const char *name)
{
	struct {
		const char *name;
		bool *flag;
	} const flags[] = {{"--seek", &c->seekable},      {"--new", &c->fresh},
	                   {"--copy", &c->copy},          {"--sockopt", &c->sockopt},
	                   {"--digest", &c->digest},      {"--keep-position", &c->keep_position},
	                   {"--free-form", &c->free_form}};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (strcmp(name, flags[i].name) == 0)
			return *flags[i].flag = true;
	}
	return false;
}

int main(int argc, char **argv)
{
	static struct client c = {.size = 40, .tries = 1};

	if (argc < 3)
		return 64;
	c.kind = argv[1];
	c.url = argv[2];
	for (int i = 3; i < argc; i++) {
		if (read_flag(&c, argv[i]))
			continue;
		if (i + 1 >= argc || !read_option(&c, argv[i], argv[i + 1]))
			return 64;
		i++;
	}
	curl_global_init(CURL_GLOBAL_ALL);
	fill(&c);
	make(&c);
	if (c.manner == JUMP)
		jump(&c);
	for (long i = 1; i <= c.tries; i++) {
		if (i > 1 && c.fresh)
			drop(&c), make(&c);
		try(&c, i);
	}
	drop(&c);
	free(c.body);
	curl_global_cleanup();
	return 0;
}
