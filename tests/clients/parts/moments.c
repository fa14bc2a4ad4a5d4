/* Writes at the odd moments of a process's life.
 *
 * usage: moments WHEN URL, where WHEN is one of
 *   main                   nothing odd
 *   constructor            before main, and before other objects are ready; URL comes from
 * MOMENT_URL exit-registered-first  in an exit handler that was registered before libcurl was ever
 * used exit-registered-last   in one registered after a first write destructor             after
 * all exit handlers of the program; no write before destructor-again       the same, after a write
 * of another body in main thread                 in a thread that is still at it while the program
 * exits quick-exit             in an at_quick_exit handler */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "write.h"

static const char *when = "", *url = "";

static int is(const char *name)
{
	return strcmp(when, name) == 0;
}

static void odd(void)
{
	write_one(when, url, "a=1");
}

static void *odd_thread(void *ctx)
{
	(void)ctx;
	odd();
	return NULL;
}

__attribute__((constructor)) static void before(void)
{
	url = getenv("MOMENT_URL");
	if (url) {
		when = "constructor";
		odd();
	}
}

__attribute__((destructor)) static void after(void)
{
	if (is("destructor") || is("destructor-again"))
		odd();
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc < 3)
		return is("constructor") ? 0 : 64;
	when = argv[1];
	url = argv[2];
	if (is("exit-registered-first"))
		atexit(odd);
	if (is("exit-registered-first") || is("exit-registered-last") || is("destructor-again"))
		write_one("main", url, "a=0");
	if (is("exit-registered-last"))
		atexit(odd);
	if (is("main"))
		odd();
	if (is("thread")) {
		pthread_create(&thread, NULL, odd_thread, NULL);
		pthread_detach(thread);
		usleep(300000); /* the server is late: its request has left */
	}
	if (is("quick-exit")) {
		at_quick_exit(odd);
		quick_exit(0);
	}
	return 0;
}
