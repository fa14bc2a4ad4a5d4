/* Latency of writes on a loopback keep-alive connection, three kinds in turn within one process:
 * a request no rule names (native), a first execution of a protected write, and a replay.
 *
 *   latency ROUNDS    with the preload and a policy that names POST http://127.0.0.1:* path /orders
 *
 * Prints microseconds: p10 and p50 of each kind. The server is a forked child that answers with 201
 * and twenty bytes; a native request to it is as fast as this machine lets one be. */
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 3, WARM = 50 };

static const char answer[] = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                             "Content-Length: 20\r\n\r\n{\"order\":\"o-000001\"}";

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

static size_t swallow(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static double post(CURL *h, const char *url, const char *body)
{
	double start;

	curl_easy_setopt(h, CURLOPT_URL, url);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
	start = now_us();
	if (curl_easy_perform(h) != CURLE_OK) {
		fprintf(stderr, "latency: a request failed\n");
		exit(1);
	}
	return now_us() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *kind, double *us, size_t n)
{
	qsort(us, n, sizeof(*us), by_value);
	printf("%s %.1f %.1f\n", kind, us[n / 10], us[n / 2]);
}

int main(int argc, char **argv)
{
	static const char *const names[KINDS] = {"native", "execute", "replay"};
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	double *us[KINDS];
	char plain[64], orders[64], body[64];
	unsigned port = start_server();
	struct curl_slist *json = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *h = curl_easy_init();

	snprintf(plain, sizeof(plain), "http://127.0.0.1:%u/plain", port);
	snprintf(orders, sizeof(orders), "http://127.0.0.1:%u/orders", port);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, json);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, swallow);
	for (size_t k = 0; k < KINDS; k++)
		us[k] = calloc(rounds, sizeof(double));
	for (size_t i = 0; i < rounds + WARM; i++) {
		size_t at = i < WARM ? 0 : i - WARM;
		snprintf(body, sizeof(body), "{\"amount\":%zu,\"run\":%d}", i, (int)getpid());
		us[0][at] = post(h, plain, body);
		us[1][at] = post(h, orders, body);
		us[2][at] = post(h, orders, body);
	}
	for (size_t k = 0; k < KINDS; k++)
		print(names[k], us[k], rounds);
	curl_easy_cleanup(h);
	curl_slist_free_all(json);
	return 0;
}
