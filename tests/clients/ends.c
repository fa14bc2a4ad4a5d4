/* Several writes whose ends fall into one call of curl_multi_perform, and a program that does
 * something else in the last one's callback.
 *
 *     ends MODE URL EVENTS
 *
 * MODE: plain, exit (exit(3) in the callback), fork (a child that goes on in the loop), forkexit (a
 * child that calls exit(3) there). Prints how many lines the event log has once that call has
 * returned. */
#include "loops.h"

#include <sys/wait.h>

enum { WRITES = 5, SETTLE_MS = 700 };

static const char *mode;
static int bodies;
static pid_t child = -1;

static int lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	int c, lines = 0;

	while (f && (c = fgetc(f)) != EOF)
		lines += c == '\n';
	if (f)
		fclose(f);
	return lines;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	if (++bodies < WRITES)
		return size * n;
	if (strcmp(mode, "exit") == 0)
		exit(7);
	if (strncmp(mode, "fork", 4) == 0)
		child = fork();
	if (child == 0 && strcmp(mode, "forkexit") == 0)
		exit(7);
	return size * n;
}

static void perform_all(CURLM *multi, const char *events)
{
	int running = 1, status;

	curl_multi_perform(multi, &running); /* the first only begins */
	curl_multi_perform(multi, &running);
	usleep(SETTLE_MS * 1000); /* all answers are there before anybody looks */
	curl_multi_perform(multi, &running);
	if (child == 0)
		_exit(7);
	if (child > 0) {
		waitpid(child, &status, 0);
		printf("child=%d ", WEXITSTATUS(status));
	}
	printf("bodies=%d running=%d lines=%d\n", bodies, running, lines_of(events));
}

int main(int argc, char **argv)
{
	static struct transfer transfers[WRITES];
	static const char *names[WRITES] = {"one", "two", "three", "four", "five"};
	CURLM *multi;

	if (argc != 4)
		return 64;
	mode = argv[1];
	curl_global_init(CURL_GLOBAL_ALL);
	multi = curl_multi_init();
	for (int i = 0; i < WRITES; i++) {
		transfer_post(&transfers[i], names[i], argv[2], "");
		curl_easy_setopt(transfers[i].easy, CURLOPT_WRITEFUNCTION, on_body);
		curl_multi_add_handle(multi, transfers[i].easy);
	}
	perform_all(multi, argv[3]);
	for (int i = 0; i < WRITES; i++) {
		curl_multi_remove_handle(multi, transfers[i].easy);
		transfer_close(&transfers[i]);
	}
	curl_multi_cleanup(multi);
	return 0;
}
