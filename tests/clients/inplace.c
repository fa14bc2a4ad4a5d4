/* Several performs on one handle that cannot be moved, and what its callbacks saw.
 *
 *     inplace URL [WORD...]
 *
 * sslctx, sockopt, opensocket, closesocket, prereq: callbacks of its own, which make it unmovable
 * body=TEXT ca=FILE header=LINE timeout=MS times=N then=URL (one more perform, elsewhere)
 * failonerror include verbose progress share
 * stop (its PREREQFUNCTION says no)     change (sets other callbacks from within a callback)
 * nested (the same write again, from its write callback)     jump (longjmp out of that callback)
 * dup (a copy made in a callback performs afterwards)     reset (curl_easy_reset in a callback)
 *
 * A line a perform: code, status, body, text of the error, how often each callback was called. */
#include <curl/curl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	const char *url, *then, *body, *ca;
	long timeout;
	int times;
	bool sslctx, sockopt, opensocket, closesocket, prereq, stop, change, nested, jump, dup,
	        reset;
	bool failonerror, include, verbose, progress;
} want = {.times = 1, .body = "{\"n\":1}"};

static struct {
	int sslctx, sockopt, opensocket, closesocket, prereq, header, body, other, debug, progress;
	char text[4096];
	size_t n;
} seen;

static CURL *copy;
static jmp_buf out;
static bool once;

static CURLcode on_sslctx(CURL *curl, void *ctx, void *arg)
{
	(void)ctx, (void)arg;
	seen.sslctx += curl != NULL;
	return CURLE_OK;
}

static int on_sockopt(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)fd, (void)purpose;
	seen.sockopt++;
	return CURL_SOCKOPT_OK;
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
	(void)ctx, (void)purpose;
	seen.opensocket++;
	return socket(a->family, a->socktype, a->protocol);
}

static int on_close(void *ctx, curl_socket_t fd)
{
	(void)ctx;
	seen.closesocket++;
	return close(fd);
}

static int on_prereq(void *ctx, char *ip, char *own_ip, int port, int own_port)
{
	(void)ctx, (void)ip, (void)own_ip, (void)port, (void)own_port;
	seen.prereq++;
	return want.stop ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static size_t on_other(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	seen.other++;
	return size * n;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	CURL *curl = ctx;

	(void)data;
	seen.header++;
	if (want.change && !once) {
		once = true;
		curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_other);
		curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_other);
	}
	if (want.dup && !copy)
		copy = curl_easy_duphandle(curl);
	return size * n;
}

static int on_debug(CURL *curl, curl_infotype type, char *data, size_t n, void *ctx)
{
	(void)curl, (void)data, (void)n, (void)ctx;
	seen.debug += type == CURLINFO_HEADER_IN;
	return 0;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)ctx, (void)a, (void)b, (void)c, (void)d;
	seen.progress++;
	return 0;
}

static CURL *make(const char *url);

static void again(void)
{
	CURL *inner = make(want.url);
	long status = 0;
	CURLcode code;

	once = true;
	curl_easy_setopt(inner, CURLOPT_WRITEFUNCTION, on_other);
	code = curl_easy_perform(inner);
	curl_easy_getinfo(inner, CURLINFO_RESPONSE_CODE, &status);
	printf("nested rc=%d status=%ld\n", (int)code, status);
	curl_easy_cleanup(inner);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	size_t room = sizeof(seen.text) - 1 - seen.n, take = size * n < room ? size * n : room;
	CURL *curl = ctx;

	seen.body++;
	memcpy(seen.text + seen.n, data, take);
	seen.n += take;
	seen.text[seen.n] = '\0';
	if (want.jump && !once) {
		once = true;
		longjmp(out, 1);
	}
	if (want.nested && !once)
		again();
	if (want.reset && !once) {
		once = true;
		curl_easy_reset(curl);
	}
	return size * n;
}

static struct curl_slist *headers;

static CURL *make(const char *url)
{
	CURL *curl = curl_easy_init();

	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, want.body);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, want.timeout);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	if (headers)
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, curl);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, curl);
	if (want.ca)
		curl_easy_setopt(curl, CURLOPT_CAINFO, want.ca);
	if (want.sslctx)
		curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_sslctx);
	if (want.sockopt)
		curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_sockopt);
	if (want.opensocket)
		curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open);
	if (want.closesocket)
		curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	if (want.prereq)
		curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_prereq);
	if (want.verbose) {
		curl_easy_setopt(curl, CURLOPT_VERBOSE, 1L);
		curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, on_debug);
	}
	if (want.progress) {
		curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	}
	curl_easy_setopt(curl, CURLOPT_FAILONERROR, (long)want.failonerror);
	curl_easy_setopt(curl, CURLOPT_HEADER, (long)want.include);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, "mine");
	return curl;
}

static void perform(CURL *curl, const char *name)
{
	char error[CURL_ERROR_SIZE] = "", *mine = NULL;
	long status = 0;
	double total = 0;
	CURLcode code;

	memset(&seen, 0, sizeof(seen));
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(curl, CURLINFO_PRIVATE, &mine);
	curl_easy_getinfo(curl, CURLINFO_TOTAL_TIME, &total);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
	for (char *c = seen.text; *c; c++)
		*c = *c == '\n' || *c == '\r' || *c == '\t' ? ' ' : *c;
	printf("%s rc=%d status=%ld sslctx=%d sockopt=%d opensocket=%d closesocket=%d prereq=%d "
	       "header=%d "
	       "body=%d other=%d debug=%d progress=%d private=%s timed=%d\terror=%s\ttext=%s\n",
	       name, (int)code, status, seen.sslctx, seen.sockopt, seen.opensocket,
	       seen.closesocket, seen.prereq, seen.header, seen.body > 0, seen.other > 0,
	       seen.debug, seen.progress > 0, mine ? mine : "", total > 0, error, seen.text);
	fflush(stdout);
}

static void read_word(const char *word)
{
	struct {
		const char *name;
		bool *flag;
	} flags[] = {{"sslctx", &want.sslctx},
	             {"sockopt", &want.sockopt},
	             {"opensocket", &want.opensocket},
	             {"closesocket", &want.closesocket},
	             {"prereq", &want.prereq},
	             {"stop", &want.stop},
	             {"change", &want.change},
	             {"nested", &want.nested},
	             {"jump", &want.jump},
	             {"dup", &want.dup},
	             {"reset", &want.reset},
	             {"failonerror", &want.failonerror},
	             {"include", &want.include},
	             {"verbose", &want.verbose},
	             {"progress", &want.progress}};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (strcmp(flags[i].name, word) == 0)
			*flags[i].flag = true;
	}
	if (strncmp(word, "body=", 5) == 0)
		want.body = word + 5;
	if (strncmp(word, "header=", 7) == 0)
		headers = curl_slist_append(headers, word + 7);
	if (strncmp(word, "ca=", 3) == 0)
		want.ca = word + 3;
	if (strncmp(word, "timeout=", 8) == 0)
		want.timeout = atol(word + 8);
	if (strncmp(word, "times=", 6) == 0)
		want.times = atoi(word + 6);
	if (strncmp(word, "then=", 5) == 0)
		want.then = word + 5;
}

int main(int argc, char **argv)
{
	CURL *curl;

	if (argc < 2)
		return 2;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	want.url = argv[1];
	for (int i = 2; i < argc; i++)
		read_word(argv[i]);
	curl = make(want.url);
	if (setjmp(out) == 0) {
		for (int i = 0; i < want.times; i++)
			perform(curl, "perform");
	} else {
		printf("jumped\n");
	}
	if (want.then) {
		curl_easy_setopt(curl, CURLOPT_URL, want.then);
		perform(curl, "then");
	}
	if (copy)
		perform(copy, "copy");
	curl_easy_cleanup(copy);
	curl_easy_cleanup(curl);
	if (want.jump) {
		curl = make(want.url);
		perform(curl, "after");
		curl_easy_cleanup(curl);
	}
	curl_slist_free_all(headers);
	curl_global_cleanup();
	return 0;
}
