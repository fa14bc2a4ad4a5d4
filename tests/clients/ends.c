/* Several writes whose ends fall into one call of curl_multi_perform, and a program that does
 * something else in the last one's callback.
 *
 *     ends MODE URL EVENTS
 *
 * MODE: plain, exit (exit(3) in the callback), fork (a child that goes on in the loop), forkexit (a
 * child that calls exit(3) there), jump (out of the callback, and one more write by
 * curl_easy_perform), forkwrite (that write by a child, in the callback). Prints how many lines the
 * event log has once that call has returned. */
#include "loops.h"

#include <setjmp.h>
#include <sys/wait.h>

enum { WRITES = 5, SETTLE_MS = 700 };

static const char *mode;
static const char *url;
static int bodies;
static pid_t child = -1;
static jmp_buf out;

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

static int one_more(void)
{
	static struct transfer t;

	transfer_post(&t, "six", url, "");
	return (int)curl_easy_perform(t.easy);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	if (++bodies < WRITES)
		return size * n;
	if (strcmp(mode, "exit") == 0)
		exit(7);
	if (strcmp(mode, "jump") == 0)
		longjmp(out, 1);
	if (strncmp(mode, "fork", 4) == 0)
		child = fork();
	if (child == 0 && strcmp(mode, "forkexit") == 0)
		exit(7);
	if (child == 0 && strcmp(mode, "forkwrite") == 0)
		_exit(one_more() == 0 ? 7 : 1);
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

static int jumped(const char *events)
{
	int code = one_more();

	printf("bodies=%d code=%d lines=%d\n", bodies, code, lines_of(events));
	return code;
}

int main(int argc, char **argv)
{
	static struct transfer transfers[WRITES];
	static const char *names[WRITES] = {"one", "two", "three", "four", "five"};
	CURLM *multi;

	if (argc != 4)
		return 64;
	mode = argv[1];
	url = argv[2];
	curl_global_init(CURL_GLOBAL_ALL);
	multi = curl_multi_init();
	for (int i = 0; i < WRITES; i++) {
		transfer_post(&transfers[i], names[i], url, "");
		curl_easy_setopt(transfers[i].easy, CURLOPT_WRITEFUNCTION, on_body);
		curl_multi_add_handle(multi, transfers[i].easy);
	}
	if (setjmp(out))
		return jumped(argv[3]);
	perform_all(multi, argv[3]);
	for (int i = 0; i < WRITES; i++) {
		curl_multi_remove_handle(multi, transfers[i].easy);
		transfer_close(&transfers[i]);
	}
	curl_multi_cleanup(multi);
	return 0;
}
