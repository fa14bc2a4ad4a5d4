/* A small program that writes over HTTP with libcurl, as the programs of this world do.
 *
 * It knows nothing of sendonce. Each try is printed as one line of tab-separated name=value pairs,
 * so that the tests can compare a run under the preload with a native one. Options are read into
 * `struct plan`, `client_make` turns the plan into a handle, and `client_try` performs it once. */
#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "post_loops.h"

enum { BODY_MAX = 64 * 1024, ANSWER_MAX = 256 * 1024, TIMEOUTS = 16 };

struct plan {
	const char *url, *kind, *method, *user, *proxy, *cafile;
	const char *loop; /* null: curl_easy_perform */
	char body[BODY_MAX];
	size_t body_length;
	long size; /* of POSTFIELDSIZE; -2: the body's own length */
	bool copy, large, fresh, failonerror, follow, digest, vary, keep, in_place, encoding;
	long tries, threads, gap_ms, connect_timeout_ms;
	long timeouts[TIMEOUTS];
	int timeout_count;
	struct curl_slist *headers;
};

struct client {
	const struct plan *plan;
	CURL *curl;
	curl_mime *mime;
	char body[BODY_MAX];
	size_t body_length, body_read;
	char answer[ANSWER_MAX];
	size_t answer_length;
	char verdict[128], content_type[128];
	bool replayed;
	char error[CURL_ERROR_SIZE];
	int thread;
};

static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct client *c = ctx;
	size_t length = size * n;
	size_t room = sizeof(c->answer) - 1 - c->answer_length;
	size_t take = length < room ? length : room;
	memcpy(c->answer + c->answer_length, data, take);
	c->answer_length += take;
	return length;
}

static void header_value(char *out, size_t room, const char *line, size_t n, const char *name)
{
	size_t length = strlen(name);
	if (n <= length + 2 || strncasecmp(line, name, length) != 0 || line[length] != ':')
		return;
	const char *from = line + length + 1;
	const char *end = line + n;
	while (from < end && *from == ' ')
		from++;
	while (end > from && (end[-1] == '\r' || end[-1] == '\n'))
		end--;
	snprintf(out, room, "%.*s", (int)(end - from), from);
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct client *c = ctx;
	char flag[16] = "";
	header_value(c->verdict, sizeof(c->verdict), data, size * n, "Sendonce-Verdict");
	header_value(c->content_type, sizeof(c->content_type), data, size * n, "Content-Type");
	header_value(flag, sizeof(flag), data, size * n, "Idempotent-Replayed");
	if (flag[0])
		c->replayed = strcmp(flag, "true") == 0;
	return size * n;
}

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
	struct client *c = ctx;
	size_t left = c->body_length - c->body_read;
	size_t take = left < size * n ? left : size * n;
	memcpy(out, c->body + c->body_read, take);
	c->body_read += take;
	return take;
}

static void client_fields(struct client *c)
{
	const struct plan *p = c->plan;
	long size = p->size == -2 ? (long)c->body_length : p->size;
	if (p->large)
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	else
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, size);
	if (!p->copy) {
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, c->body);
		return;
	}
	char *scratch = malloc(c->body_length + 1);
	if (!scratch)
		exit(70);
	memcpy(scratch, c->body, c->body_length + 1);
	curl_easy_setopt(c->curl, CURLOPT_COPYPOSTFIELDS, scratch);
	memset(scratch, '#', c->body_length); /* what was copied must not change any more */
	free(scratch);
}

static void client_body(struct client *c)
{
	const char *kind = c->plan->kind;
	if (strcmp(kind, "fields") == 0)
		client_fields(c);
	if (strcmp(kind, "empty") == 0)
		curl_easy_setopt(c->curl, CURLOPT_POST, 1L),
		        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, 0L);
	if (strcmp(kind, "read") == 0 || strcmp(kind, "upload") == 0) {
		bool post = kind[0] == 'r';
		curl_easy_setopt(c->curl, post ? CURLOPT_POST : CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c->curl, CURLOPT_READFUNCTION, on_read);
		curl_easy_setopt(c->curl, CURLOPT_READDATA, c);
		if (post)
			curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)c->body_length);
		else
			curl_easy_setopt(c->curl, CURLOPT_INFILESIZE, (long)c->body_length);
	}
	if (strcmp(kind, "mime") == 0) {
		c->mime = curl_mime_init(c->curl);
		curl_mimepart *part = curl_mime_addpart(c->mime);
		curl_mime_name(part, "order");
		curl_mime_data(part, c->body, c->body_length);
		curl_easy_setopt(c->curl, CURLOPT_MIMEPOST, c->mime);
	}
}

/* A callback that only the handle's own transfer can run. */
static int on_sockopt(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)fd, (void)purpose;
	return CURL_SOCKOPT_OK;
}

static void client_options(struct client *c)
{
	const struct plan *p = c->plan;
	curl_easy_setopt(c->curl, CURLOPT_URL, p->url);
	curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(c->curl, CURLOPT_FAILONERROR, p->failonerror ? 1L : 0L);
	curl_easy_setopt(c->curl, CURLOPT_FOLLOWLOCATION, p->follow ? 1L : 0L);
	curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, p->connect_timeout_ms);
	if (p->in_place)
		curl_easy_setopt(c->curl, CURLOPT_SOCKOPTFUNCTION, on_sockopt);
	if (p->encoding)
		curl_easy_setopt(c->curl, CURLOPT_ACCEPT_ENCODING, "");
	if (p->headers)
		curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, p->headers);
	if (p->user)
		curl_easy_setopt(c->curl, CURLOPT_USERPWD, p->user);
	if (p->digest)
		curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
	if (p->proxy) {
		curl_easy_setopt(c->curl, CURLOPT_PROXY, p->proxy);
		curl_easy_setopt(c->curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
	}
	if (p->cafile)
		curl_easy_setopt(c->curl, CURLOPT_CAINFO, p->cafile);
}

static void client_make(struct client *c)
{
	c->curl = curl_easy_init();
	if (!c->curl)
		exit(70);
	client_options(c);
	client_body(c);
	if (c->plan->method)
		curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, c->plan->method);
}

static void client_drop(struct client *c)
{
	curl_easy_cleanup(c->curl);
	curl_mime_free(c->mime);
	c->mime = NULL;
}

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Percent-encoded where a line could not carry it. */
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

static void client_print(struct client *c, long number, CURLcode rc, long ms)
{
	long status = 0;
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	pthread_mutex_lock(&print_lock);
	printf("thread=%d\ttry=%ld\trc=%d\tstatus=%ld\treplayed=%d\tms=%ld", c->thread, number,
	       (int)rc, status, c->replayed ? 1 : 0, ms);
	print_text("verdict", c->verdict, strlen(c->verdict));
	print_text("type", c->content_type, strlen(c->content_type));
	print_text("error", c->error, strlen(c->error));
	print_text("body", c->answer, c->answer_length);
	putchar('\n');
	fflush(stdout);
	pthread_mutex_unlock(&print_lock);
}

static void client_try(struct client *c, long number)
{
	const struct plan *p = c->plan;
	int at = number <= p->timeout_count ? (int)number - 1 : p->timeout_count - 1;
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, at < 0 ? 0L : p->timeouts[at]);
	c->answer_length = c->body_read = 0;
	c->replayed = false;
	c->verdict[0] = c->content_type[0] = c->error[0] = 0;
	long from = now_ms();
	CURLcode rc =
	        p->loop ? loops_perform(p->loop, c->curl, p->keep) : curl_easy_perform(c->curl);
	client_print(c, number, rc, now_ms() - from);
}

static void client_vary(struct client *c, long number)
{
	int n = snprintf(c->body, sizeof(c->body), "{\"thread\":%d,\"n\":%ld}", c->thread, number);
	c->body_length = (size_t)n;
	client_fields(c);
}

static void *client_run(void *ctx)
{
	struct client *c = ctx;
	const struct plan *p = c->plan;
	memcpy(c->body, p->body, sizeof(c->body));
	c->body_length = p->body_length;
	client_make(c);
	for (long i = 1; i <= p->tries; i++) {
		if (i > 1 && p->gap_ms)
			usleep((useconds_t)p->gap_ms * 1000);
		if (i > 1 && p->fresh)
			client_drop(c), client_make(c);
		if (p->vary)
			client_vary(c, i);
		client_try(c, i);
	}
	client_drop(c);
	return NULL;
}

static void plan_hex(struct plan *p, const char *hex)
{
	p->body_length = strlen(hex) / 2;
	for (size_t i = 0; i < p->body_length && i < sizeof(p->body) - 1; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
		p->body[i] = (char)strtol(two, NULL, 16);
	}
	p->body[p->body_length] = 0;
}

static void plan_text(struct plan *p, const char *text)
{
	p->body_length = (size_t)snprintf(p->body, sizeof(p->body), "%s", text);
}

static void plan_timeouts(struct plan *p, const char *list)
{
	for (p->timeout_count = 0; *list && p->timeout_count < TIMEOUTS; p->timeout_count++) {
		char *end;
		p->timeouts[p->timeout_count] = strtol(list, &end, 10);
		list = *end == ',' ? end + 1 : end;
	}
}

static bool plan_flag(struct plan *p, const char *name)
{
	struct {
		const char *name;
		bool *flag;
	} const flags[] = {{"--copy", &p->copy},         {"--large", &p->large},
	                   {"--new", &p->fresh},         {"--fail", &p->failonerror},
	                   {"--follow", &p->follow},     {"--digest", &p->digest},
	                   {"--vary", &p->vary},         {"--keep", &p->keep},
	                   {"--in-place", &p->in_place}, {"--encoding", &p->encoding}};
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(name, flags[i].name) == 0)
			return *flags[i].flag = true;
	return false;
}

static bool plan_value(struct plan *p, const char *name, const char *value)
{
	struct {
		const char *name;
		long *number;
		const char **text;
	} const values[] = {
	        {"--size", &p->size, NULL},
	        {"--tries", &p->tries, NULL},
	        {"--threads", &p->threads, NULL},
	        {"--gap-ms", &p->gap_ms, NULL},
	        {"--loop", NULL, &p->loop},
	        {"--kind", NULL, &p->kind},
	        {"--method", NULL, &p->method},
	        {"--user", NULL, &p->user},
	        {"--proxy", NULL, &p->proxy},
	        {"--cafile", NULL, &p->cafile},
	        {"--connect-timeout-ms", &p->connect_timeout_ms, NULL},
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (strcmp(name, values[i].name) != 0)
			continue;
		if (values[i].text)
			*values[i].text = value;
		else
			*values[i].number = strtol(value, NULL, 10);
		return true;
	}
	if (strcmp(name, "--body") == 0)
		return plan_text(p, value), true;
	if (strcmp(name, "--hex") == 0)
		return plan_hex(p, value), true;
	if (strcmp(name, "--timeout-ms") == 0)
		return plan_timeouts(p, value), true;
	if (strcmp(name, "--header") == 0)
		return (p->headers = curl_slist_append(p->headers, value)) != NULL;
	return false;
}

static bool plan_read(struct plan *p, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] != '-')
			p->url = argv[i];
		else if (plan_flag(p, argv[i]))
			continue;
		else if (i + 1 >= argc || !plan_value(p, argv[i], argv[i + 1]))
			return false;
		else
			i++;
	}
	return p->url && p->threads >= 1;
}

int main(int argc, char **argv)
{
	static struct plan plan = {.kind = "fields", .size = -2, .tries = 1, .threads = 1};
	plan_text(&plan, "{\"amount\":5}");
	curl_global_init(CURL_GLOBAL_ALL);
	if (!plan_read(&plan, argc, argv)) {
		fprintf(stderr, "usage: post [options] URL\n");
		return 64;
	}
	size_t threads = (size_t)plan.threads;
	struct client *clients = calloc(threads, sizeof(*clients));
	pthread_t *ids = calloc(threads, sizeof(*ids));
	if (!clients || !ids)
		return 70;
	for (size_t i = 0; i < threads; i++) {
		clients[i].plan = &plan;
		clients[i].thread = (int)i;
		if (i)
			pthread_create(&ids[i], NULL, client_run, &clients[i]);
	}
	client_run(&clients[0]);
	for (size_t i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	curl_slist_free_all(plan.headers);
	free(ids);
	free(clients);
	curl_global_cleanup();
	return 0;
}
