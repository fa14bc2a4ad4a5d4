/* A handle and a copy of it, in the orders programs perform them.
 *
 *     copies KIND ORDER URL OTHER
 *
 * KIND says what is on the handle that is copied, ORDER what is done then: letters, each a step.
 *
 *     o c d   perform the handle, its copy, a copy of the copy (made when it is first asked for)
 *     O C D   the same at OTHER
 *     m       the handle and its copy in one multi
 *     x       the handle and all it was given for its form is gone
 *     s       the copy gets a form of its own
 *     p       both are given a callback that only their own transfer can run
 *     k K     the copy, the copy of the copy is made
 *     r       the copy is reset
 *     u       a part of the form gets other contents
 *     g       the handle is to get something: its form is not sent any more
 *     n       the copy alone in a multi
 *
 * With an `i` in front the copy is made inside of a callback of the handle's first transfer. A line
 * a perform: who, code, status, body; and those of freed.h after each step. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "freed.h"

enum { HANDLES = 3 };

struct program {
	const char *url, *other, *body;
	size_t at;
	CURL *handle[HANDLES];
	char text[HANDLES][1024];
	size_t n[HANDLES];
	curl_mime *mime, *own;
	curl_mimepart *counted;
	struct freed freed;
	struct curl_httppost *form;
	struct curl_slist *headers;
	CURLU *parts;
	CURLSH *share;
	bool inside, unmovable;
};

static const char *const NAMES[] = {"original", "copy", "second"};

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
	struct program *p = ctx;
	size_t left = strlen(p->body) - p->at, take = left < size * n ? left : size * n;

	memcpy(out, p->body + p->at, take);
	p->at += take;
	return take;
}

static int on_seek(void *ctx, curl_off_t offset, int origin)
{
	((struct program *)ctx)->at = (size_t)offset;
	return origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

static void on_free(void *ctx)
{
	FREED[0](&((struct program *)ctx)->freed);
}

static int on_sockopt(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)fd, (void)purpose;
	return CURL_SOCKOPT_OK;
}

static size_t keep(struct program *p, int who, const char *data, size_t n)
{
	size_t room = sizeof(p->text[who]) - 1 - p->n[who], take = n < room ? n : room;

	memcpy(p->text[who] + p->n[who], data, take);
	p->n[who] += take;
	return n;
}

static struct program program = {.body = "an order of 24 characters"};

#define KEEP(who)                                                                                  \
	static size_t keep_##who(char *data, size_t size, size_t n, void *ctx)                     \
	{                                                                                          \
		return keep(ctx, who, data, size * n);                                             \
	}
KEEP(0)
KEEP(1)
KEEP(2)
static const curl_write_callback KEEPERS[] = {keep_0, keep_1, keep_2};

static void give_callbacks(struct program *p, int who)
{
	curl_easy_setopt(p->handle[who], CURLOPT_WRITEFUNCTION, KEEPERS[who]);
	curl_easy_setopt(p->handle[who], CURLOPT_WRITEDATA, p);
	if (p->unmovable)
		curl_easy_setopt(p->handle[who], CURLOPT_SOCKOPTFUNCTION, on_sockopt);
}

/* --- what is on it --- */

static void fields(struct program *p, CURL *e)
{
	curl_easy_setopt(e, CURLOPT_POSTFIELDS, p->body);
}

static void copied_fields(struct program *p, CURL *e)
{
	curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)strlen(p->body));
	curl_easy_setopt(e, CURLOPT_COPYPOSTFIELDS, p->body);
}

static void read_post(struct program *p, CURL *e)
{
	curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(e, CURLOPT_READDATA, p);
	curl_easy_setopt(e, CURLOPT_POST, 1L);
	curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)strlen(p->body));
}

static void upload(struct program *p, CURL *e)
{
	curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(e, CURLOPT_READDATA, p);
	curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
}

static void mime(struct program *p, CURL *e)
{
	curl_mimepart *part;

	p->mime = curl_mime_init(e);
	part = curl_mime_addpart(p->mime);
	curl_mime_name(part, "order");
	curl_mime_data(part, p->body, CURL_ZERO_TERMINATED);
	part = curl_mime_addpart(p->mime);
	curl_mime_name(part, "note");
	curl_mime_type(part, "text/x-note");
	curl_mime_data(part, "x", CURL_ZERO_TERMINATED);
	curl_easy_setopt(e, CURLOPT_MIMEPOST, p->mime);
}

static void callback_form(struct program *p, CURL *e, curl_seek_callback seek)
{
	curl_mimepart *part;

	p->mime = curl_mime_init(e);
	part = curl_mime_addpart(p->mime);
	curl_mime_name(part, "order");
	curl_mime_data_cb(part, (curl_off_t)strlen(p->body), on_read, seek, on_free, p);
	curl_easy_setopt(e, CURLOPT_MIMEPOST, p->mime);
}

static void mime_callback(struct program *p, CURL *e)
{
	callback_form(p, e, on_seek);
}

/* Nobody can rewind it. */
static void mime_once(struct program *p, CURL *e)
{
	callback_form(p, e, NULL);
}

static void mime_nested(struct program *p, CURL *e)
{
	curl_mime *inner = curl_mime_init(e);
	curl_mimepart *part = curl_mime_addpart(inner);

	curl_mime_data(part, p->body, CURL_ZERO_TERMINATED);
	curl_mime_encoder(part, "base64");
	p->mime = curl_mime_init(e);
	part = curl_mime_addpart(p->mime);
	curl_mime_subparts(part, inner);
	curl_easy_setopt(e, CURLOPT_MIMEPOST, p->mime);
}

static void mime_counted(struct program *p, CURL *e)
{
	mime(p, e);
	freed_part(&p->freed, p->mime, FREED[1]);
	freed_part(&p->freed, p->mime, FREED[2]);
	freed_part(&p->freed, p->mime, NULL);
	p->counted = freed_part(&p->freed, p->mime, FREED[1]);
}

static void mime_counted_inside(struct program *p, CURL *e)
{
	curl_mime *inner = curl_mime_init(e), *innermost = curl_mime_init(e);

	mime(p, e);
	freed_part(&p->freed, innermost, FREED[1]);
	curl_mime_subparts(curl_mime_addpart(inner), innermost);
	p->counted = freed_part(&p->freed, inner, FREED[2]);
	curl_mime_subparts(curl_mime_addpart(p->mime), inner);
}

/* As foreign function interfaces bind. */
static void mime_counted_by_name(struct program *p, CURL *e)
{
	__typeof__(&curl_mime_data_cb) data_cb;
	void *at = dlsym(dlopen("libcurl.so.4", RTLD_NOW), "curl_mime_data_cb");

	memcpy(&data_cb, &at, sizeof(at));
	mime(p, e);
	p->counted = curl_mime_addpart(p->mime);
	data_cb(p->counted, 0, freed_read, freed_seek, FREED[1], &p->freed);
}

static void mime_hundred(struct program *p, CURL *e)
{
	mime(p, e);
	for (int i = 0; i < FREED_FUNCTIONS; i++)
		p->counted = freed_part(&p->freed, p->mime, FREED[i]);
}

static void form(struct program *p, CURL *e)
{
	struct curl_httppost *last = NULL;

	curl_formadd(&p->form, &last, CURLFORM_COPYNAME, "order", CURLFORM_COPYCONTENTS, p->body,
	             CURLFORM_END);
	curl_easy_setopt(e, CURLOPT_HTTPPOST, p->form);
}

static void header_list(struct program *p, CURL *e)
{
	p->headers = curl_slist_append(NULL, "X-Tenant: one");
	p->headers = curl_slist_append(p->headers, "Content-Type: application/x-order");
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, p->headers);
	fields(p, e);
}

static void url_parts(struct program *p, CURL *e)
{
	p->parts = curl_url();
	curl_url_set(p->parts, CURLUPART_URL, p->url, 0);
	curl_easy_setopt(e, CURLOPT_URL, NULL);
	curl_easy_setopt(e, CURLOPT_CURLU, p->parts);
	fields(p, e);
}

/* A copy is in no share. */
static void shared(struct program *p, CURL *e)
{
	p->share = curl_share_init();
	curl_share_setopt(p->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
	curl_easy_setopt(e, CURLOPT_SHARE, p->share);
	curl_easy_setopt(e, CURLOPT_COOKIEFILE, "");
	fields(p, e);
}

static void shared_alone(struct program *p, CURL *e)
{
	p->share = curl_share_init();
	curl_share_setopt(p->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
	curl_easy_setopt(e, CURLOPT_SHARE, p->share);
	fields(p, e);
}

static void cookies(struct program *p, CURL *e)
{
	curl_easy_setopt(e, CURLOPT_COOKIEFILE, "");
	fields(p, e);
}

static void cookie_line(struct program *p, CURL *e)
{
	curl_easy_setopt(e, CURLOPT_COOKIELIST, "127.0.0.1\tFALSE\t/\tFALSE\t0\tmine\t1");
	fields(p, e);
}

static const struct {
	const char *name;
	void (*put)(struct program *p, CURL *e);
} KINDS[] = {
        {"fields", fields},
        {"copied-fields", copied_fields},
        {"read", read_post},
        {"upload", upload},
        {"mime", mime},
        {"mime-callback", mime_callback},
        {"mime-once", mime_once},
        {"mime-nested", mime_nested},
        {"mime-counted", mime_counted},
        {"mime-counted-inside", mime_counted_inside},
        {"mime-counted-by-name", mime_counted_by_name},
        {"mime-hundred", mime_hundred},
        {"form", form},
        {"headers", header_list},
        {"curlu", url_parts},
        {"share", shared},
        {"share-alone", shared_alone},
        {"cookies", cookies},
        {"cookie-line", cookie_line},
};

/* --- what is done --- */

static CURL *copy_of(struct program *p, int who)
{
	if (p->handle[who] || who == 0)
		return p->handle[who];
	p->handle[who] = curl_easy_duphandle(copy_of(p, who - 1));
	if (!p->handle[who])
		exit(71);
	give_callbacks(p, who);
	return p->handle[who];
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	(void)data;
	if (((struct program *)ctx)->inside)
		copy_of(ctx, 1);
	return size * n;
}

static void begin(struct program *p, int who, const char *url)
{
	p->at = p->n[who] = 0;
	memset(p->text[who], 0, sizeof(p->text[who]));
	if (url)
		curl_easy_setopt(p->handle[who], CURLOPT_URL, url);
}

static void print(const struct program *p, int who, CURLcode code)
{
	long status = 0;

	curl_easy_getinfo(p->handle[who], CURLINFO_RESPONSE_CODE, &status);
	printf("%s rc=%d status=%ld %s\n", NAMES[who], (int)code, status, p->text[who]);
	fflush(stdout);
}

static void perform(struct program *p, int who, bool other)
{
	CURL *e = copy_of(p, who);

	begin(p, who, p->parts ? NULL : other ? p->other : p->url);
	print(p, who, curl_easy_perform(e));
}

static void perform_in_multi(struct program *p, int first)
{
	CURLM *multi = curl_multi_init();
	int running = 1, left;
	CURLMsg *msg;

	copy_of(p, 1);
	for (int who = first; who < 2; who++) {
		begin(p, who, NULL);
		curl_multi_add_handle(multi, p->handle[who]);
	}
	while (running && curl_multi_perform(multi, &running) == CURLM_OK)
		curl_multi_poll(multi, NULL, 0, 100, NULL);
	while ((msg = curl_multi_info_read(multi, &left)))
		print(p, msg->easy_handle == p->handle[1], msg->data.result);
	for (int who = first; who < 2; who++)
		curl_multi_remove_handle(multi, p->handle[who]);
	curl_multi_cleanup(multi);
}

static void drop_original(struct program *p)
{
	copy_of(p, 1);
	curl_easy_cleanup(p->handle[0]);
	curl_mime_free(p->mime);
	p->handle[0] = NULL;
	p->mime = NULL;
}

static void own_form(struct program *p)
{
	curl_mimepart *part;

	p->own = curl_mime_init(copy_of(p, 1));
	part = curl_mime_addpart(p->own);
	curl_mime_name(part, "own");
	curl_mime_data(part, "y", CURL_ZERO_TERMINATED);
	curl_easy_setopt(p->handle[1], CURLOPT_MIMEPOST, p->own);
}

static void replace_contents(struct program *p)
{
	curl_mime_data_cb(p->counted, 0, freed_read, freed_seek, FREED[99], &p->freed);
	curl_mime_data_cb(p->counted, 0, freed_read, freed_seek, FREED[98], &p->freed);
	curl_mime_data_cb(p->counted, 0, NULL, NULL, FREED[97], &p->freed); /* nothing at all */
	curl_mime_data_cb(p->counted, 0, freed_read, freed_seek, FREED[1], &p->freed);
	curl_mime_data(p->counted, "z", CURL_ZERO_TERMINATED);
}

static void step(struct program *p, char what)
{
	static const char LETTERS[] = "ocdOCD";
	const char *at = strchr(LETTERS, what);

	if (at)
		perform(p, (int)(at - LETTERS) % HANDLES, at - LETTERS >= HANDLES);
	else if (what == 'm' || what == 'n')
		perform_in_multi(p, what == 'n');
	else if (what == 'k' || what == 'K')
		copy_of(p, what == 'k' ? 1 : 2);
	else if (what == 'r')
		curl_easy_reset(copy_of(p, 1));
	else if (what == 'g')
		curl_easy_setopt(p->handle[0], CURLOPT_HTTPGET, 1L);
	else if (what == 'u')
		replace_contents(p);
	else if (what == 'x')
		drop_original(p);
	else if (what == 's')
		own_form(p);
	else if (what != 'i' && what != 'p')
		exit(64);
}

static bool make(struct program *p, const char *kind)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++) {
		if (strcmp(KINDS[i].name, kind) != 0)
			continue;
		p->handle[0] = curl_easy_init();
		curl_easy_setopt(p->handle[0], CURLOPT_URL, p->url);
		curl_easy_setopt(p->handle[0], CURLOPT_HEADERFUNCTION, on_header);
		curl_easy_setopt(p->handle[0], CURLOPT_HEADERDATA, p);
		curl_easy_setopt(p->handle[0], CURLOPT_WRITEFUNCTION, on_body);
		give_callbacks(p, 0);
		KINDS[i].put(p, p->handle[0]);
		return true;
	}
	return false;
}

static void drop(struct program *p)
{
	for (int i = 0; i < HANDLES; i++) {
		curl_easy_cleanup(p->handle[i]);
		freed_tell(&p->freed);
	}
	curl_mime_free(p->mime);
	freed_tell(&p->freed);
	curl_mime_free(p->own);
	curl_formfree(p->form);
	curl_slist_free_all(p->headers);
	curl_url_cleanup(p->parts);
	if (p->share)
		curl_share_cleanup(p->share);
}

int main(int argc, char **argv)
{
	struct program *p = &program;

	if (argc != 5)
		return 64;
	curl_global_init(CURL_GLOBAL_ALL);
	p->url = argv[3];
	p->other = argv[4];
	p->inside = strchr(argv[2], 'i') != NULL;
	p->unmovable = strchr(argv[2], 'p') != NULL;
	if (!make(p, argv[1]))
		return 64;
	for (const char *what = argv[2]; *what; what++) {
		step(p, *what);
		freed_tell(&p->freed);
	}
	drop(p);
	curl_global_cleanup();
	return 0;
}
