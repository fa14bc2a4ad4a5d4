/* What happens to a write when its process forks, exits, or closes everything it has.
 *
 *     life CASE URL
 *
 * The URL answers late. Each line printed is one perform: who, CURLcode, status, body. */
#include <curl/curl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *url;

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	char *answer = ctx;
	size_t have = strlen(answer), take = size * n < 200 - have ? size * n : 200 - have;
	memcpy(answer + have, data, take);
	return size * n;
}

static void write_once(const char *who, const char *body, long timeout_ms)
{
	char answer[256] = "";
	long status = 0;
	CURL *curl = curl_easy_init();
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	CURLcode rc = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	printf("%s rc=%d status=%ld body=%s\n", who, (int)rc, status, answer);
	fflush(stdout);
	curl_easy_cleanup(curl);
}

static void *in_thread(void *ctx)
{
	(void)ctx;
	write_once("thread", "{\"who\":\"parent\"}", 20000);
	return NULL;
}

/* The child makes a write of its own while the parent's is under way, then ends as children do. */
static int life_fork(void)
{
	pthread_t thread;
	int status;
	pthread_create(&thread, NULL, in_thread, NULL);
	usleep(400 * 1000);
	pid_t child = fork();
	if (child == 0) {
		write_once("child", "{\"who\":\"child\"}", 20000);
		exit(0);
	}
	pthread_join(thread, NULL);
	waitpid(child, &status, 0);
	write_once("again", "{\"who\":\"parent\"}", 20000);
	return status;
}

/* The write of the parent was left behind by a timeout; the child must not take it for its own. */
static int life_fork_orphan(void)
{
	int status;
	write_once("first", "{\"who\":\"parent\"}", 300);
	pid_t child = fork();
	if (child == 0)
		exit(0);
	waitpid(child, &status, 0);
	write_once("again", "{\"who\":\"parent\"}", 20000);
	return status;
}

/* A daemon that closes every descriptor it knows of, and those it does not know of. */
static int life_close(void)
{
	write_once("first", "{\"n\":1}", 20000);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	write_once("second", "{\"n\":1}", 20000);
	write_once("third", "{\"n\":2}", 20000);
	return 0;
}

static int life_exit(void)
{
	write_once("first", "{\"n\":1}", 300);
	return 0;
}

static int life_cleanup(void)
{
	write_once("first", "{\"n\":1}", 300);
	curl_global_cleanup();
	return 0;
}

static int life_hard_exit(void)
{
	write_once("first", "{\"n\":1}", 300);
	_exit(0);
}

static void retry(void)
{
	write_once("again", "{\"n\":1}", 20000);
}

/* The handler is registered before the first write, so it runs after everything later ones. */
static int life_retry_at_exit(void)
{
	atexit(retry);
	write_once("first", "{\"n\":1}", 300);
	return 0;
}

/* --- what a callback may do --- */

static jmp_buf out_of_perform;

static size_t on_body_jump(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)size, (void)n, (void)ctx;
	longjmp(out_of_perform, 1);
}

static size_t on_body_exit(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)size, (void)n, (void)ctx;
	exit(7);
}

/* The child makes a write of its own and ends inside the callback. */
static size_t on_body_fork(char *data, size_t size, size_t n, void *ctx)
{
	static int forked;
	if (forked++ == 0) {
		pid_t child = fork();
		int status = -1;
		if (child == 0) {
			write_once("child", "{\"who\":\"child\"}", 20000);
			exit(0);
		}
		waitpid(child, &status, 0);
		printf("child-status %d\n", status);
	}
	return on_body(data, size, n, ctx);
}

/* The child goes on as if the transfer were its own. */
static size_t on_body_fork_on(char *data, size_t size, size_t n, void *ctx)
{
	static int forked;
	if (forked++ == 0)
		fork();
	return on_body(data, size, n, ctx);
}

static CURL *write_with(curl_write_callback on, void *ctx)
{
	CURL *curl = curl_easy_init();
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{\"n\":1}");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, ctx);
	return curl;
}

/* The stack that the perform had, overwritten. */
static int scribble(void)
{
	volatile char bytes[64 * 1024];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)0xa5;
	return bytes[sizeof(bytes) / 2];
}

static CURL *jump_out(void)
{
	CURL *volatile curl = write_with(on_body_jump, NULL);
	if (setjmp(out_of_perform) == 0) {
		curl_easy_perform(curl);
		printf("first did not jump\n");
	}
	scribble();
	return curl;
}

static int life_jump(void)
{
	CURL *curl = jump_out();
	long status = 0;
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	scribble();
	write_once("again", "{\"n\":1}", 20000);
	write_once("other", "{\"n\":2}", 20000);
	return 0;
}

static int life_jump_reset(void)
{
	CURL *curl = jump_out();
	curl_easy_reset(curl);
	scribble();
	write_once("again", "{\"n\":1}", 20000);
	curl_easy_cleanup(curl);
	return 0;
}

static int life_jump_exit(void)
{
	jump_out();
	return 0;
}

static int life_exit_in_callback(void)
{
	curl_easy_perform(write_with(on_body_exit, NULL));
	return 0;
}

static int life_fork_with(curl_write_callback on)
{
	char answer[256] = "";
	pid_t parent = getpid();
	long status = 0;
	CURL *curl = write_with(on, answer);
	CURLcode rc = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(curl);
	if (getpid() != parent)
		exit(rc == CURLE_OK ? 9 : 0);
	printf("parent rc=%d status=%ld body=%.20s\n", (int)rc, status, answer);
	while (wait(NULL) > 0)
		;
	return 0;
}

static int life_fork_in_callback(void)
{
	return life_fork_with(on_body_fork);
}

static int life_fork_goes_on(void)
{
	return life_fork_with(on_body_fork_on);
}

/* A thread that is cancelled while it waits for the answer. */
static int life_cancel(void)
{
	pthread_t thread;
	void *result = NULL;
	pthread_create(&thread, NULL, in_thread, NULL);
	usleep(400 * 1000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled %d\n", result == PTHREAD_CANCELED);
	write_once("again", "{\"who\":\"parent\"}", 20000);
	return 0;
}

static int life_cancel_exit(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, in_thread, NULL);
	usleep(400 * 1000);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} lives[] = {{"fork", life_fork},
	             {"fork-orphan", life_fork_orphan},
	             {"close", life_close},
	             {"exit", life_exit},
	             {"cleanup", life_cleanup},
	             {"hard-exit", life_hard_exit},
	             {"retry-at-exit", life_retry_at_exit},
	             {"jump", life_jump},
	             {"jump-reset", life_jump_reset},
	             {"jump-exit", life_jump_exit},
	             {"exit-in-callback", life_exit_in_callback},
	             {"fork-in-callback", life_fork_in_callback},
	             {"fork-goes-on", life_fork_goes_on},
	             {"cancel", life_cancel},
	             {"cancel-exit", life_cancel_exit}};
	if (argc != 3)
		return 64;
	url = argv[2];
	curl_global_init(CURL_GLOBAL_ALL);
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(lives[i].name, argv[1]) == 0)
			return lives[i].run();
	return 64;
}
