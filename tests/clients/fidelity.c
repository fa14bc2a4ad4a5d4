/* Things a program can do to its libcurl, or expect of it, that must be the same with and without
 * sendonce.
 *
 *     fidelity CASE URL [FILE]
 *
 * Each line that is printed is compared with a native run, or says by itself what is expected. The
 * program is not linked with libcurl: it loads it, so that it can let it go again. */
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                               \
	X(global_init)                                                                             \
	X(global_cleanup)                                                                          \
	X(easy_init)                                                                               \
	X(easy_cleanup)                                                                            \
	X(easy_setopt)                                                                             \
	X(easy_perform)                                                                            \
	X(easy_getinfo)                                                                            \
	X(easy_pause)                                                                              \
	X(easy_recv)                                                                               \
	X(easy_send)                                                                               \
	X(easy_upkeep)                                                                             \
	X(multi_init)                                                                              \
	X(multi_cleanup)                                                                           \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)

static void *library;
static struct {
#define POINTER(name) __typeof__(&curl_##name) name;
	FUNCTIONS(POINTER)
#undef POINTER
} fn;

static const char *url, *file;

static bool load(void)
{
	library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
#define FIND(name) *(void **)&fn.name = dlsym(library, "curl_" #name);
	FUNCTIONS(FIND)
#undef FIND
	return fn.easy_init != NULL;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wait_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static size_t on_nothing(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static CURL *make(const char *body)
{
	CURL *curl = fn.easy_init();

	fn.easy_setopt(curl, CURLOPT_URL, url);
	fn.easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body);
	fn.easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_nothing);
	if (file)
		fn.easy_setopt(curl, CURLOPT_CAINFO, file);
	return curl;
}

static void write_once(const char *who, const char *body, long timeout_ms)
{
	CURL *curl = make(body);
	long status = 0;
	CURLcode rc;

	fn.easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	rc = fn.easy_perform(curl);
	fn.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	printf("%s rc=%d status=%ld\n", who, (int)rc, status);
	fn.easy_cleanup(curl);
}

/* --- letting libcurl go while a write is under way --- */

static void global_cleanup(void)
{
	write_once("first", "n=1", 400);
	fn.global_cleanup();
	wait_ms(1800);
	fn.global_init(CURL_GLOBAL_ALL);
	write_once("again", "n=1", 10000);
	fn.global_cleanup();
}

static void unload(void)
{
	write_once("first", "n=1", 400);
	fn.global_cleanup();
	printf("closed %d\n", dlclose(library));
	wait_ms(1800);
	if (!load())
		return;
	fn.global_init(CURL_GLOBAL_ALL);
	write_once("again", "n=1", 10000);
	fn.global_cleanup();
	dlclose(library);
}

static void unload_and_exit(void)
{
	write_once("first", "n=1", 400);
	fn.global_cleanup();
	printf("closed %d\n", dlclose(library));
}

/* --- SIGPIPE --- */

static volatile sig_atomic_t pipes;

static void on_pipe(int number)
{
	(void)number;
	pipes++;
}

/* The server of FILE's certificate resets each connection in the middle of the request. */
static void sigpipe(void)
{
	struct sigaction act = {.sa_handler = on_pipe}, kept;
	static char body[2000000];
	sigset_t pending;

	sigaction(SIGPIPE, &act, NULL);
	memset(body, 'x', sizeof(body) - 1);
	for (int i = 0; i < 4; i++) {
		CURL *curl;

		body[0] = (char)('a' + i);
		curl = make(body);
		fn.easy_setopt(curl, CURLOPT_TIMEOUT_MS, i < 2 ? 0L : 200L);
		printf("rc=%d\n", fn.easy_perform(curl) != CURLE_OK);
		fn.easy_cleanup(curl);
	}
	wait_ms(800);
	sigaction(SIGPIPE, NULL, &kept);
	sigpending(&pending);
	printf("handler %d pending %d signals %d\n", kept.sa_handler == on_pipe,
	       sigismember(&pending, SIGPIPE), (int)pipes);
}

/* --- pausing --- */

struct paused {
	CURL *curl;
	long since, ticks, lasted;
	bool pause;
};

static size_t on_pausing(char *data, size_t size, size_t n, void *ctx)
{
	struct paused *p = ctx;

	(void)data;
	if (p->pause) {
		p->pause = false;
		p->since = now_ms();
		return CURL_WRITEFUNC_PAUSE;
	}
	return size * n;
}

static int on_tick(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct paused *p = ctx;

	(void)a, (void)b, (void)c, (void)d;
	if (!p->since)
		return 0;
	p->ticks++;
	if (now_ms() - p->since >= 1200) {
		p->lasted = now_ms() - p->since;
		p->since = 0;
		fn.easy_pause(p->curl, CURLPAUSE_CONT);
	}
	return 0;
}

static void ticks(void)
{
	struct paused p = {.curl = make("n=1"), .pause = true};
	CURLcode rc;

	fn.easy_setopt(p.curl, CURLOPT_NOPROGRESS, 0L);
	fn.easy_setopt(p.curl, CURLOPT_XFERINFOFUNCTION, on_tick);
	fn.easy_setopt(p.curl, CURLOPT_XFERINFODATA, &p);
	fn.easy_setopt(p.curl, CURLOPT_WRITEFUNCTION, on_pausing);
	fn.easy_setopt(p.curl, CURLOPT_WRITEDATA, &p);
	rc = fn.easy_perform(p.curl);
	printf("rc=%d ticks=%ld ms=%ld\n", (int)rc, p.ticks, p.lasted);
	fn.easy_cleanup(p.curl);
}

/* --- what may not be done in a callback --- */

static void forbidden(CURL *curl, const char *where)
{
	CURLM *other = fn.multi_init();
	char byte;
	size_t n = 0;

	printf("%s recv %d send %d upkeep %d perform %d", where,
	       (int)fn.easy_recv(curl, &byte, 1, &n), (int)fn.easy_send(curl, "x", 1, &n),
	       (int)fn.easy_upkeep(curl), (int)fn.easy_perform(curl));
	printf(" remove %d add %d\n", (int)fn.multi_remove_handle(other, curl),
	       (int)fn.multi_add_handle(other, curl));
	fn.multi_cleanup(other);
}

static size_t on_body_forbidden(char *data, size_t size, size_t n, void *ctx)
{
	(void)data;
	forbidden(ctx, "body");
	return size * n;
}

static size_t on_header_forbidden(char *data, size_t size, size_t n, void *ctx)
{
	if (size * n > 5 && memcmp(data, "HTTP/", 5) == 0)
		forbidden(ctx, "header");
	return size * n;
}

static int on_progress_forbidden(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	static bool told;

	(void)a, (void)c, (void)d;
	if (b && !told) {
		told = true;
		forbidden(ctx, "progress");
	}
	return 0;
}

static void in_callback(void)
{
	CURL *curl = make("n=1");

	fn.easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body_forbidden);
	fn.easy_setopt(curl, CURLOPT_WRITEDATA, curl);
	fn.easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header_forbidden);
	fn.easy_setopt(curl, CURLOPT_HEADERDATA, curl);
	fn.easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	fn.easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress_forbidden);
	fn.easy_setopt(curl, CURLOPT_XFERINFODATA, curl);
	printf("rc=%d\n", (int)fn.easy_perform(curl));
	fn.easy_cleanup(curl);
}

static void once(void)
{
	CURL *curl = make("n=1");
	long status = 0;
	CURLcode rc = fn.easy_perform(curl);

	fn.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	printf("rc=%d status=%ld\n", (int)rc, status);
}

/* --- who reads the environment: parts/getenv.c writes down which thread asked for what --- */

static void environment(void)
{
	static char log[4096];
	void (*tell)(char *, size_t) = (void (*)(char *, size_t))dlsym(RTLD_DEFAULT, "getenv_told");
	CURL *curl = make("n=1");

	fn.easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	fn.easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
	fn.easy_setopt(curl, CURLOPT_TIMEOUT_MS, 1000L);
	printf("rc=%d\n", (int)fn.easy_perform(curl));
	unsetenv("http_proxy"); /* what happens later is not the write's */
	unsetenv("HOME");
	wait_ms(1800);
	fn.easy_cleanup(curl);
	tell(log, sizeof(log));
	fputs(log, stdout);
}

/* --- LOW_SPEED on a connection that is used again: libcurl measures once in a second of the clock,
 * so that it counts whether the second write begins in the second in which the first one ended ---
 */

static void low_speed(void)
{
	CURL *curl = make("n=1");
	long connects = 0, begun;
	char slow[512];
	CURLcode rc;

	snprintf(slow, sizeof(slow), "%s?late=6", url);
	fn.easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 20L);
	fn.easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 1L);
	fn.easy_perform(curl); /* it may take long: policy and ledger are opened */
	wait_ms(1200 - now_ms() % 1000);
	fn.easy_setopt(curl, CURLOPT_POSTFIELDS, "n=2");
	printf("first rc=%d\n", (int)fn.easy_perform(curl));
	if (file) /* the next second */
		wait_ms(1200 - now_ms() % 1000);
	fn.easy_setopt(curl, CURLOPT_URL, slow);
	fn.easy_setopt(curl, CURLOPT_POSTFIELDS, "n=3");
	begun = now_ms();
	rc = fn.easy_perform(curl);
	printf("ms=%ld\n", now_ms() - begun);
	fn.easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
	printf("rc=%d connects=%ld\n", (int)rc, connects);
	fn.easy_cleanup(curl);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"global-cleanup", global_cleanup},
	             {"unload", unload},
	             {"unload-and-exit", unload_and_exit},
	             {"sigpipe", sigpipe},
	             {"ticks", ticks},
	             {"in-callback", in_callback},
	             {"environment", environment},
	             {"low-speed", low_speed},
	             {"once", once}};

	if (argc < 3 || !load())
		return 64;
	url = argv[2];
	file = argc > 3 ? argv[3] : NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	fn.global_init(CURL_GLOBAL_ALL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	return 64;
}
