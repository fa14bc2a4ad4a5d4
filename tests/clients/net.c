/* A program whose writes need more than a command line can say: several handles, shares, blobs, an
 * environment that changes.
 *
 *     net CASE URL [ARG...]
 *
 * Prints a line for each transfer and what the handle then knows. */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static CURL *handle(const char *url, const char *body)
{
	CURL *curl = curl_easy_init();
	if (!curl)
		exit(70);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	return curl;
}

static CURLcode perform(CURL *curl)
{
	long status = 0;
	CURLcode rc = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	printf("rc=%d status=%ld\n", (int)rc, status);
	return rc;
}

static void next(CURL *curl, const char *body)
{
	curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body);
	perform(curl);
}

static void print_cookies(CURL *curl)
{
	struct curl_slist *list = NULL;
	curl_easy_getinfo(curl, CURLINFO_COOKIELIST, &list);
	for (struct curl_slist *l = list; l; l = l->next)
		printf("cookie %s\n", l->data);
	curl_slist_free_all(list);
}

/* --- certificates from memory --- */

static struct curl_blob read_blob(const char *path)
{
	static char space[3][16384];
	static int used;
	FILE *file = fopen(path, "r");
	struct curl_blob blob = {.data = space[used], .flags = CURL_BLOB_NOCOPY};
	if (!file)
		exit(71);
	blob.len = fread(space[used++], 1, sizeof(space[0]), file);
	fclose(file);
	return blob;
}

static int run_blobs(const char *url, char **arg)
{
	struct curl_blob ca = read_blob(arg[0]), cert = read_blob(arg[1]), key = read_blob(arg[2]);
	CURL *curl = handle(url, "{\"n\":1}");
	curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &ca);
	curl_easy_setopt(curl, CURLOPT_SSLCERT_BLOB, &cert);
	curl_easy_setopt(curl, CURLOPT_SSLKEY_BLOB, &key);
	perform(curl);
	curl_easy_cleanup(curl);
	return 0;
}

/* --- proxies by environment --- */

static int run_environ(const char *url, char **arg)
{
	CURL *curl = handle(url, "{\"n\":1}");
	setenv("http_proxy", arg[0], 1);
	perform(curl);
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	next(curl, "{\"n\":2}");
	unsetenv("http_proxy");
	setenv("all_proxy", arg[0], 1);
	next(curl, "{\"n\":3}");
	curl_easy_cleanup(curl);
	return 0;
}

/* --- Digest --- */

static int run_digest(const char *url, char **arg)
{
	CURL *curl = handle(url, "{\"n\":1}");
	(void)arg;
	curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
	curl_easy_setopt(curl, CURLOPT_USERPWD, "u:p");
	perform(curl);
	next(curl, "{\"n\":2}");
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
	curl_easy_setopt(curl, CURLOPT_USERPWD, "u:q");
	next(curl, "{\"n\":3}");
	curl_easy_cleanup(curl);
	return 0;
}

/* --- cookies --- */

static void with_query(CURL *curl, const char *url, const char *query, const char *body)
{
	char text[2048];
	snprintf(text, sizeof(text), "%s?%s", url, query);
	curl_easy_setopt(curl, CURLOPT_URL, text);
	next(curl, body);
}

#define SET_A    "hdr=Set-Cookie:%20a=1;%20Path=/"
#define DELETE_A "hdr=Set-Cookie:%20a=;%20Path=/;%20Max-Age=0"
#define SET_B    "hdr=Set-Cookie:%20b=2;%20Path=/;%20HttpOnly"

static void engine_in_memory(const char *url)
{
	CURL *curl = handle(url, "");
	curl_easy_setopt(curl, CURLOPT_COOKIEFILE, "");
	with_query(curl, url, SET_A, "{\"m\":1}");
	with_query(curl, url, SET_B, "{\"m\":2}");
	print_cookies(curl);
	with_query(curl, url, DELETE_A, "{\"m\":3}");
	with_query(curl, url, "x", "{\"m\":4}");
	print_cookies(curl);
	curl_easy_setopt(curl, CURLOPT_COOKIELIST, "ALL");
	with_query(curl, url, "x", "{\"m\":5}");
	print_cookies(curl);
	curl_easy_cleanup(curl);
}

static void list_and_own(const char *url)
{
	CURL *curl = handle(url, "");
	curl_easy_setopt(curl, CURLOPT_COOKIELIST, "Set-Cookie: given=1; domain=127.0.0.1; path=/");
	curl_easy_setopt(curl, CURLOPT_COOKIE, "mine=0");
	with_query(curl, url, "x", "{\"l\":1}");
	curl_easy_setopt(curl, CURLOPT_COOKIE, NULL);
	with_query(curl, url, SET_A, "{\"l\":2}");
	print_cookies(curl);
	curl_easy_cleanup(curl);
}

static void no_engine(const char *url)
{
	CURL *curl = handle(url, "");
	curl_easy_setopt(curl, CURLOPT_COOKIE, "mine=0");
	with_query(curl, url, SET_A, "{\"n\":1}");
	with_query(curl, url, "x", "{\"n\":2}");
	print_cookies(curl);
	curl_easy_cleanup(curl);
}

static void shared(const char *url)
{
	CURLSH *share = curl_share_init();
	CURL *one = handle(url, ""), *two = handle(url, ""), *without = handle(url, "");
	curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
	curl_easy_setopt(one, CURLOPT_SHARE, share);
	curl_easy_setopt(two, CURLOPT_SHARE, share);
	curl_easy_setopt(without, CURLOPT_SHARE, share);
	curl_easy_setopt(one, CURLOPT_COOKIEFILE, "");
	curl_easy_setopt(two, CURLOPT_COOKIEFILE, "");
	with_query(one, url, SET_A, "{\"s\":1}");
	with_query(two, url, SET_B, "{\"s\":2}");
	print_cookies(one);
	with_query(without, url, "x", "{\"s\":0}");
	with_query(one, url, DELETE_A, "{\"s\":3}");
	with_query(two, url, "x", "{\"s\":4}");
	print_cookies(two);
	curl_easy_cleanup(one);
	curl_easy_cleanup(two);
	curl_easy_cleanup(without);
	curl_share_cleanup(share);
}

static int run_cookies(const char *url, char **arg)
{
	(void)arg;
	engine_in_memory(url);
	list_and_own(url);
	no_engine(url);
	shared(url);
	return 0;
}

/* A share of something else: handles stay without a cookie engine. */
static int run_share_other(const char *url, char **arg)
{
	CURLSH *share = curl_share_init();
	CURL *curl = handle(url, "");
	(void)arg;
	curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
	curl_easy_setopt(curl, CURLOPT_SHARE, share);
	with_query(curl, url, SET_A, "{\"o\":1}");
	with_query(curl, url, "x", "{\"o\":2}");
	curl_easy_cleanup(curl);
	curl_share_cleanup(share);
	return 0;
}

/* --- a program with a PREREQ of its own --- */

static int on_prereq(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	(void)ctx, (void)ip, (void)local_ip, (void)port, (void)local_port;
	puts("mine");
	return CURL_PREREQFUNC_OK;
}

static int run_prereq(const char *url, char **arg)
{
	CURL *curl = handle(url, "{\"p\":1}");
	curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_prereq);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	perform(curl);
	curl_easy_setopt(curl, CURLOPT_URL, arg[0]);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	perform(curl);
	curl_easy_cleanup(curl);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const char *url, char **arg);
} cases[] = {
        {"blobs", run_blobs},     {"environ", run_environ},         {"digest", run_digest},
        {"cookies", run_cookies}, {"share-other", run_share_other}, {"prereq", run_prereq},
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 64;
	setvbuf(stdout, NULL, _IONBF, 0);
	curl_global_init(CURL_GLOBAL_ALL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) == 0)
			return cases[i].run(argv[2], argv + 3);
	}
	return 64;
}
