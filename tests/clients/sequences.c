/* What becomes of a request whose method and body were set in several ways, one after the other.
 *
 *     sequences URL OTHER [--tries N] [--in-place] [--multi] < LINES
 *
 * A line is a sequence of words, each a call of curl_easy_setopt on a handle of the line's own:
 * UPLOAD=1, POSTFIELDS=abc, NOBODY=0, CUSTOMREQUEST=PATCH, MIMEPOST, ... It is performed at URL/N,
 * N the line's number. GO, GO2 and FREE perform it in between, at URL/N?go, URL/N?again and at
 * OTHER/N. What is printed is a line of codes and status, a pair for each perform. Every handle has
 * a read callback with ten bytes and says so by INFILESIZE. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
	const char *url, *other;
	int tries, number;
	bool in_place, multi;
	size_t at;
	CURL *curl;
	curl_mime *mime;
	struct curl_httppost *form;
	struct curl_slist *headers;
};

static const char BODY[] = "0123456789";

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
	struct program *p = ctx;
	size_t left = sizeof(BODY) - 1 - p->at, take = left < size * n ? left : size * n;

	memcpy(out, BODY + p->at, take);
	p->at += take;
	return take;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static int on_sockopt(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)fd, (void)purpose;
	return CURL_SOCKOPT_OK;
}

static void set_mime(struct program *p, const char *unused)
{
	curl_mimepart *part;

	(void)unused;
	if (!p->mime) {
		p->mime = curl_mime_init(p->curl);
		part = curl_mime_addpart(p->mime);
		curl_mime_name(part, "m");
		curl_mime_data(part, "mime", CURL_ZERO_TERMINATED);
	}
	curl_easy_setopt(p->curl, CURLOPT_MIMEPOST, p->mime);
}

static void set_form(struct program *p, const char *unused)
{
	struct curl_httppost *last = NULL;

	(void)unused;
	if (!p->form)
		curl_formadd(&p->form, &last, CURLFORM_COPYNAME, "f", CURLFORM_COPYCONTENTS, "form",
		             CURLFORM_END);
	curl_easy_setopt(p->curl, CURLOPT_HTTPPOST, p->form);
}

static void set_no_form(struct program *p, const char *unused)
{
	(void)unused;
	curl_easy_setopt(p->curl, CURLOPT_MIMEPOST, NULL);
}

static const struct {
	const char *name;
	CURLoption id;
	bool is_text;
	void (*set)(struct program *p, const char *value);
} CALLS[] = {
        {"UPLOAD", CURLOPT_UPLOAD, false, NULL},
        {"PUT", CURLOPT_PUT, false, NULL},
        {"POST", CURLOPT_POST, false, NULL},
        {"HTTPGET", CURLOPT_HTTPGET, false, NULL},
        {"NOBODY", CURLOPT_NOBODY, false, NULL},
        {"POSTFIELDSIZE", CURLOPT_POSTFIELDSIZE, false, NULL},
        {"INFILESIZE", CURLOPT_INFILESIZE, false, NULL},
        {"POSTFIELDS", CURLOPT_POSTFIELDS, true, NULL},
        {"COPYPOSTFIELDS", CURLOPT_COPYPOSTFIELDS, true, NULL},
        {"CUSTOMREQUEST", CURLOPT_CUSTOMREQUEST, true, NULL},
        {"MIMEPOST", CURLOPT_MIMEPOST, false, set_mime},
        {"HTTPPOST", CURLOPT_HTTPPOST, false, set_form},
        {"NO_MIMEPOST", CURLOPT_MIMEPOST, false, set_no_form},
};

static void call(struct program *p, const char *word)
{
	static char kept[64][64];
	static size_t next;
	size_t n = strcspn(word, "=");
	const char *value = word[n] ? word + n + 1 : NULL;

	for (size_t i = 0; i < sizeof(CALLS) / sizeof(*CALLS); i++) {
		if (strlen(CALLS[i].name) != n || strncmp(CALLS[i].name, word, n) != 0)
			continue;
		if (CALLS[i].set) {
			CALLS[i].set(p, value);
		} else if (!CALLS[i].is_text) {
			curl_easy_setopt(p->curl, CALLS[i].id, strtol(value, NULL, 10));
		} else if (!value) {
			curl_easy_setopt(p->curl, CALLS[i].id, NULL);
		} else {
			next = (next + 1) % 64;
			snprintf(kept[next], sizeof(kept[next]), "%s", value);
			curl_easy_setopt(p->curl, CALLS[i].id, kept[next]);
		}
		return;
	}
	fprintf(stderr, "%s?\n", word);
	exit(64);
}

static CURLcode in_multi(CURL *curl)
{
	CURLM *multi = curl_multi_init();
	CURLcode code = CURLE_FAILED_INIT;
	int running = 1, left;
	CURLMsg *msg;

	curl_multi_add_handle(multi, curl);
	while (running && curl_multi_perform(multi, &running) == CURLM_OK)
		if (running)
			curl_multi_poll(multi, NULL, 0, 100, NULL);
	while ((msg = curl_multi_info_read(multi, &left)))
		code = msg->data.result;
	curl_multi_remove_handle(multi, curl);
	curl_multi_cleanup(multi);
	return code;
}

static void make(struct program *p)
{
	p->curl = curl_easy_init();
	p->mime = NULL;
	p->form = NULL;
	curl_easy_setopt(p->curl, CURLOPT_TIMEOUT, 10L);
	curl_easy_setopt(p->curl, CURLOPT_HTTPHEADER, p->headers);
	curl_easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(p->curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(p->curl, CURLOPT_READDATA, p);
	curl_easy_setopt(p->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)sizeof(BODY) - 1);
	if (p->in_place)
		curl_easy_setopt(p->curl, CURLOPT_SOCKOPTFUNCTION, on_sockopt);
}

static void perform(struct program *p, const char *base, const char *query)
{
	char url[256];
	long status = 0;
	CURLcode code;

	snprintf(url, sizeof(url), "%s/%d%s", base, p->number, query);
	curl_easy_setopt(p->curl, CURLOPT_URL, url);
	p->at = 0;
	code = p->multi ? in_multi(p->curl) : curl_easy_perform(p->curl);
	curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	printf("%d/%ld ", (int)code, status);
}

static void run(struct program *p, char *line)
{
	char *save = NULL;

	make(p);
	for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		if (strncmp(word, "GO", 2) == 0)
			perform(p, p->url, word[2] ? "?again" : "?go");
		else if (strcmp(word, "FREE") == 0)
			perform(p, p->other, "");
		else
			call(p, word);
	}
	for (int i = 0; i < p->tries; i++)
		perform(p, p->url, "");
	printf("\n");
	fflush(stdout);
	curl_easy_cleanup(p->curl);
	curl_mime_free(p->mime);
	curl_formfree(p->form);
}

int main(int argc, char **argv)
{
	struct program p = {.tries = 1};
	char line[1024];

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--tries") == 0 && i + 1 < argc)
			p.tries = atoi(argv[++i]);
		else if (strcmp(argv[i], "--in-place") == 0)
			p.in_place = true;
		else if (strcmp(argv[i], "--multi") == 0)
			p.multi = true;
		else if (!p.url)
			p.url = argv[i];
		else
			p.other = argv[i];
	}
	if (!p.url || !p.other)
		return 64;
	curl_global_init(CURL_GLOBAL_ALL);
	p.headers = curl_slist_append(NULL, "Expect:");
	for (; fgets(line, sizeof(line), stdin); p.number++)
		run(&p, line);
	curl_slist_free_all(p.headers);
	curl_global_cleanup();
	return 0;
}
