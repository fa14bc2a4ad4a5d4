/* What happens to a write when its process forks, exits, or closes everything it has.
 *
 *     life CASE URL
 *
 * The URL answers late. Each line printed is one perform: who, CURLcode, status, body. */
#include <curl/curl.h>
#include <pthread.h>
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
	             {"retry-at-exit", life_retry_at_exit}};
	if (argc != 3)
		return 64;
	url = argv[2];
	curl_global_init(CURL_GLOBAL_ALL);
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(lives[i].name, argv[1]) == 0)
			return lives[i].run();
	return 64;
}
