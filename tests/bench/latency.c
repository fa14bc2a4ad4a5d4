/* Latency of one kind of write on a loopback keep-alive connection, block by block, so that several
 * of these processes can take turns:
 *
 *   latency native     the same POST again and again; started without the preload
 *   latency execute    a new POST each time, with the preload and a policy that names it
 *   latency replay     one POST, then its replays, with the same
 *   latency changing   a POST to another path each time, which the policy has to be asked for
 *   latency native-multi, execute-multi    the same by curl_multi_perform and curl_multi_poll
 *   latency serve      only the server: prints its port, and ends with its standard input
 *
 * For each line read from standard input, a number, it makes that many requests and prints how long
 * each took, in microseconds, on one line. The first requests of a block are not counted: they find
 * cold caches, whoever ran before. The server is a forked child that answers with 201 and twenty
 * bytes; a native request to it is as fast as this machine lets one be. */
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WARM = 20, COUNT_MAX = 100000 };

static const char answer[] = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                             "Content-Length: 20\r\n\r\n{\"order\":\"o-000001\"}";

static CURLM *multi; /* NULL: by curl_easy_perform */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Requests are small and come one at a time: the end of a header block and of a body in one read.
 */
static void serve_one(int fd)
{
	char request[8192];

	while (read(fd, request, sizeof(request)) > 0) {
		if (write(fd, answer, sizeof(answer) - 1) < 0)
			break;
	}
	close(fd);
}

static unsigned start_server(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, peer;

	if (bind(fd, (struct sockaddr *)&at, size) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&at, &size))
		exit(1);
	if (fork() != 0) {
		close(fd);
		return ntohs(at.sin_port);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	while ((peer = accept(fd, NULL, NULL)) >= 0) {
		setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve_one(peer);
			_exit(0);
		}
		close(peer);
	}
	_exit(0);
}

static int serve(void)
{
	printf("%u\n", start_server());
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}

static size_t swallow(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

/* One transfer by a loop of the program's own. */
static bool performed(CURL *h)
{
	int running = 1, left;
	CURLMsg *msg;
	bool kept;

	if (!multi)
		return curl_easy_perform(h) == CURLE_OK;
	curl_multi_add_handle(multi, h);
	while (curl_multi_perform(multi, &running) == CURLM_OK && running > 0)
		curl_multi_poll(multi, NULL, 0, 1000, NULL);
	msg = curl_multi_info_read(multi, &left);
	kept = msg && msg->msg == CURLMSG_DONE && msg->data.result == CURLE_OK;
	curl_multi_remove_handle(multi, h);
	return kept;
}

static double post(CURL *h, const char *url, const char *body)
{
	double start;

	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
	start = now_us();
	if (!performed(h)) {
		fprintf(stderr, "latency: a request failed\n");
		exit(1);
	}
	return now_us() - start;
}

struct kind {
	bool fresh, changing;
};

/* `number` makes each body of the process another one. */
static void run_block(CURL *h, const char *base, const struct kind *kind, long count, long *number)
{
	char body[64], url[96];
	double us;

	for (long i = 0; i < WARM + count; i++) {
		*number += kind->fresh || kind->changing;
		snprintf(url, sizeof(url), kind->changing ? "%s/%ld" : "%s", base, *number);
		snprintf(body, sizeof(body), "{\"amount\":%ld,\"run\":%d}", *number, (int)getpid());
		us = post(h, url, body);
		if (i >= WARM)
			printf("%.2f ", us);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct kind kind = {.fresh = argc > 1 && strncmp(argv[1], "execute", 7) == 0,
	                    .changing = argc > 1 && strcmp(argv[1], "changing") == 0};
	struct curl_slist *json;
	char url[64], line[32];
	long count, number = 0;
	CURL *h;

	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return serve();
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/orders", start_server());
	json = curl_slist_append(NULL, "Content-Type: application/json");
	h = curl_easy_init();
	if (argc > 1 && strstr(argv[1], "-multi"))
		multi = curl_multi_init();
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, json);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, swallow);
	while (fgets(line, sizeof(line), stdin)) {
		count = strtol(line, NULL, 10);
		if (count < 1 || count > COUNT_MAX)
			return 2;
		run_block(h, url, &kind, count, &number);
	}
	curl_easy_cleanup(h);
	curl_multi_cleanup(multi);
	curl_slist_free_all(json);
	return 0;
}
