/* One transfer with one peculiarity, printed as a transcript: what libcurl said to the program.
 *
 *     diff CASE URL [TIMES]
 *
 * The tests run it natively and under the preload, against a URL that a rule names and one that
 * none names, and compare. So nothing is printed that differs between two native runs: body bytes
 * are summed up instead of shown chunk by chunk, and of the times only their order is told. */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
	CURL *curl;
	struct curl_slist *list;
	CURLU *parts;
	bool again, pause_header, nested;
	long auth_then; /* HTTPAUTH of the second transfer; 0: as it was */
	size_t body, chunk_max, header_lines;
	char text[512];
	size_t text_length;
	bool pause_next, paused;
	int ticks_paused;
	long read_code; /* what the read callback was told of the answer; -1: it has not run */
	char error[CURL_ERROR_SIZE];
	FILE *file;
};

static const char *url;

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct seen *s = ctx;
	size_t length = size * n;
	if (s->pause_next) {
		s->pause_next = false;
		s->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	if (s->nested) {
		printf("nested %d %d\n", (int)curl_easy_perform(s->curl),
		       (int)curl_easy_send(s->curl, data, 0, &n));
		s->nested = false;
	}
	s->body += length;
	if (length > s->chunk_max)
		s->chunk_max = length;
	size_t room = sizeof(s->text) - 1 - s->text_length;
	size_t take = length < room ? length : room;
	memcpy(s->text + s->text_length, data, take);
	s->text_length += take;
	return length;
}

static size_t on_body_refuse(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)size, (void)n, (void)ctx;
	return 0;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct seen *s = ctx;
	if (s->pause_header && s->header_lines == 2) {
		s->pause_header = false;
		s->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	printf("header %.*s", (int)(size * n), data);
	s->header_lines++;
	return size * n;
}

static int on_progress(void *ctx, curl_off_t dl_all, curl_off_t dl, curl_off_t ul_all,
                       curl_off_t ul)
{
	struct seen *s = ctx;
	(void)dl_all, (void)dl, (void)ul_all, (void)ul;
	if (!s->paused)
		return 0;
	if (++s->ticks_paused == 2) {
		s->paused = false;
		curl_easy_pause(s->curl, CURLPAUSE_CONT);
	}
	return 0;
}

/* Ends the transfer once all of the request is away and some time has passed. */
static int on_progress_abort(void *ctx, curl_off_t dl_all, curl_off_t dl, curl_off_t ul_all,
                             curl_off_t ul)
{
	struct seen *s = ctx;
	(void)dl_all, (void)dl, (void)ul_all;
	double total = 0;
	curl_easy_getinfo(s->curl, CURLINFO_TOTAL_TIME, &total);
	return ul > 0 && total > 0.3;
}

#include "diff_cases.h"
#include "diff_options.h"

/* --- the transcript --- */

static void print_numbers(CURL *curl)
{
	static const struct {
		const char *name;
		CURLINFO info;
	} longs[] =
	        {
	                {"response_code", CURLINFO_RESPONSE_CODE},
	                {"connectcode", CURLINFO_HTTP_CONNECTCODE},
	                {"header_size", CURLINFO_HEADER_SIZE},
	                {"verify", CURLINFO_SSL_VERIFYRESULT},
	                {"filetime", CURLINFO_FILETIME},
	                {"redirects", CURLINFO_REDIRECT_COUNT},
	                {"httpauth", CURLINFO_HTTPAUTH_AVAIL},
	                {"proxyauth", CURLINFO_PROXYAUTH_AVAIL},
	                {"errno", CURLINFO_OS_ERRNO},
	                {"connects", CURLINFO_NUM_CONNECTS},
	                {"port", CURLINFO_PRIMARY_PORT},
	                {"unmet", CURLINFO_CONDITION_UNMET},
	                {"http_version", CURLINFO_HTTP_VERSION},
	        },
	  sizes[] = {
	          {"up", CURLINFO_SIZE_UPLOAD_T},
	          {"down", CURLINFO_SIZE_DOWNLOAD_T},
	          {"length_down", CURLINFO_CONTENT_LENGTH_DOWNLOAD_T},
	          {"length_up", CURLINFO_CONTENT_LENGTH_UPLOAD_T},
	          {"retry_after", CURLINFO_RETRY_AFTER},
	  };
	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
		long value = -99;
		curl_easy_getinfo(curl, longs[i].info, &value);
		printf("info %s %ld\n", longs[i].name, value);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		curl_off_t value = -99;
		curl_easy_getinfo(curl, sizes[i].info, &value);
		printf("info %s %" CURL_FORMAT_CURL_OFF_T "\n", sizes[i].name, value);
	}
}

static void print_texts(CURL *curl)
{
	static const struct {
		const char *name;
		CURLINFO info;
	} texts[] = {
	        {"url", CURLINFO_EFFECTIVE_URL},       {"type", CURLINFO_CONTENT_TYPE},
	        {"redirect", CURLINFO_REDIRECT_URL},   {"ip", CURLINFO_PRIMARY_IP},
	        {"local_ip", CURLINFO_LOCAL_IP},       {"scheme", CURLINFO_SCHEME},
	        {"method", CURLINFO_EFFECTIVE_METHOD}, {"private", CURLINFO_PRIVATE},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *value = NULL;
		curl_easy_getinfo(curl, texts[i].info, &value);
		printf("info %s %s\n", texts[i].name, value ? value : "(null)");
	}
}

static void print_times(CURL *curl)
{
	static const CURLINFO order[] = {CURLINFO_NAMELOOKUP_TIME_T, CURLINFO_CONNECT_TIME_T,
	                                 CURLINFO_PRETRANSFER_TIME_T, CURLINFO_TOTAL_TIME_T};
	curl_off_t before = 0, value = 0;
	bool ordered = true;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		curl_easy_getinfo(curl, order[i], &value);
		ordered = ordered && value >= before;
		before = value;
	}
	printf("info times %s\n", ordered && value > 0 ? "ordered" : "wrong");
}

static void print_next(CURL *curl, unsigned origin, int request)
{
	struct curl_header *h = curl_easy_nextheader(curl, origin, request, NULL);
	for (int count = 0; h && count < 100; count++) {
		printf("next %u.%d %s=%s %zu/%zu\n", origin, request, h->name, h->value, h->index,
		       h->amount);
		h = curl_easy_nextheader(curl, origin, request, h);
	}
}

static void print_header_api(CURL *curl)
{
	struct curl_header *h = NULL;
	CURLHcode rc = curl_easy_header(curl, "content-type", 0, CURLH_HEADER, -1, &h);
	printf("headerapi %d %s\n", (int)rc, rc == CURLHE_OK ? h->value : "");
	for (unsigned origin = CURLH_HEADER; origin <= CURLH_PSEUDO; origin *= 2) {
		for (int request = -1; request < 3; request++)
			print_next(curl, origin, request);
	}
}

static void print_cookies(CURL *curl)
{
	struct curl_slist *cookies = NULL;
	curl_easy_getinfo(curl, CURLINFO_COOKIELIST, &cookies);
	for (struct curl_slist *c = cookies; c; c = c->next)
		printf("cookie %s\n", c->data);
	curl_slist_free_all(cookies);
}

static void print_file(FILE *file)
{
	char text[4096];
	rewind(file);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	printf("file %s\n", text);
	fclose(file);
}

static void print_end(struct seen *s, CURLcode rc)
{
	printf("\nrc %d\nerror %s\n", (int)rc, s->error);
	printf("body %zu %s\nchunks %s\n", s->body, s->text,
	       s->chunk_max <= CURL_MAX_WRITE_SIZE ? "small" : "too large");
	if (s->ticks_paused)
		puts("paused and went on");
	if (s->read_code >= 0)
		printf("read at %ld\n", s->read_code);
	print_numbers(s->curl);
	print_texts(s->curl);
	print_times(s->curl);
	print_header_api(s->curl);
	print_cookies(s->curl);
	if (s->file)
		print_file(s->file);
	s->file = NULL;
}

static void set_common(struct seen *s)
{
	curl_easy_setopt(s->curl, CURLOPT_URL, url);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, "{\"amount\":5}");
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(s->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(s->curl, CURLOPT_HEADERDATA, s);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->error);
	curl_easy_setopt(s->curl, CURLOPT_PRIVATE, "mine");
}

static void set_simple(struct seen *s, const struct simple *c)
{
	const char *text = c->text && c->text[0] == '$' ? getenv(c->text + 1) : c->text;
	if (c->option == CURLOPT_MAXREDIRS || c->option == CURLOPT_POSTREDIR ||
	    c->option == CURLOPT_AUTOREFERER)
		set_follow(s);
	if (c->text)
		curl_easy_setopt(s->curl, c->option, text);
	else if (c->option > CURLOPTTYPE_OFF_T)
		curl_easy_setopt(s->curl, c->option, (curl_off_t)c->number);
	else
		curl_easy_setopt(s->curl, c->option, c->number);
}

static const struct simple *find_simple(const char *name)
{
	for (size_t i = 0; i < sizeof(simple_cases) / sizeof(simple_cases[0]); i++) {
		if (strcmp(simple_cases[i].name, name) == 0)
			return &simple_cases[i];
	}
	return NULL;
}

static const struct peculiarity *find_peculiarity(const char *name)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, name) == 0)
			return &cases[i];
	}
	return NULL;
}

static void set_before(struct seen *s, const char *name)
{
	s->curl = curl_easy_init();
	if (!s->curl)
		exit(70);
	if (strcmp(name, "reset") == 0) {
		curl_easy_setopt(s->curl, CURLOPT_CUSTOMREQUEST, "DELETE");
		curl_easy_setopt(s->curl, CURLOPT_HEADER, 1L);
		curl_easy_setopt(s->curl, CURLOPT_COPYPOSTFIELDS, "forgotten");
		curl_easy_reset(s->curl);
	}
	set_common(s);
	if (find_peculiarity(name))
		find_peculiarity(name)->set(s);
	else
		set_simple(s, find_simple(name));
	if (strcmp(name, "duphandle") == 0) {
		CURL *copy = curl_easy_duphandle(s->curl);
		curl_easy_cleanup(s->curl);
		s->curl = copy;
	}
}

static void transfer(struct seen *s, const char *name)
{
	memset(s, 0, sizeof(*s));
	s->read_code = -1;
	set_before(s, name);
	print_end(s, curl_easy_perform(s->curl));
	if (s->again) {
		curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, "{\"amount\":6}");
		if (s->auth_then)
			curl_easy_setopt(s->curl, CURLOPT_HTTPAUTH, s->auth_then);
		print_end(s, curl_easy_perform(s->curl));
	}
	curl_easy_cleanup(s->curl);
	curl_slist_free_all(s->list);
	curl_url_cleanup(s->parts);
}

int main(int argc, char **argv)
{
	static struct seen seen;
	if (argc < 3 || (!find_peculiarity(argv[1]) && !find_simple(argv[1])))
		return 64;
	setvbuf(stdout, NULL, _IONBF, 0);
	url = argv[2];
	curl_global_init(CURL_GLOBAL_ALL);
	for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 1); i++)
		transfer(&seen, argv[1]);
	curl_global_cleanup();
	return 0;
}
