/* A program that cooperates, and runs without sendonce as well: see include/sendonce.h.
 *
 * usage: cooperate URL ACTION...   with scope=S run=R enter=STEP leave post=BODY fork
 * Prints a line for each: the code of the call, or the status and the body of the answer. `fork`
 * goes on in a child and waits for it. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sendonce.h"

static size_t print(char *data, size_t size, size_t n, void *ctx)
{
	(void)ctx;
	return fwrite(data, size, n, stdout) * size;
}

static int post(const char *url, const char *body)
{
	CURL *curl = curl_easy_init();
	long status = 0;
	CURLcode code;

	if (!curl)
		return 1;
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, print);
	code = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	printf(" %d %ld\n", (int)code, status);
	curl_easy_cleanup(curl);
	return 0;
}

static int act(const char *url, const char *action)
{
	const char *value = strchr(action, '=');

	value = value ? value + 1 : "";
	if (strncmp(action, "post=", 5) == 0)
		return post(url, value);
	if (strncmp(action, "scope=", 6) == 0)
		printf("%d\n", sendonce_scope(value));
	else if (strncmp(action, "run=", 4) == 0)
		printf("%d\n", sendonce_run(value));
	else if (strncmp(action, "enter=", 6) == 0)
		printf("%d\n", sendonce_enter(value));
	else
		printf("%d\n", sendonce_leave());
	return 0;
}

/* In the child: true. */
static int go_on_in_child(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		return 1;
	waitpid(pid, &status, 0);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "fork") == 0) {
			if (!go_on_in_child())
				return 0;
		} else if (act(argv[1], argv[i])) {
			return 1;
		}
	}
	return 0;
}
