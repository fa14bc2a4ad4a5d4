/* Many writes at once in one curl_multi: what they cost.
 *
 *     crowd serve COUNT               prints its port; answers as soon as COUNT requests are there,
 * all of them; ends with its standard input crowd poll|epoll URL COUNT ROUNDS [ask]
 *
 * Prints one line: processor time of the process, its memory while all are in flight over what it
 * had before the first round, descriptors before and after, and how many got a 201; with a fifth
 * word `ask`, of how many getinfo told, while none was answered, what is sent. The first round
 * is not counted: it makes the caches. The server runs in another process, so it is in none of the
 * figures. */
#include "loops.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { COUNT_MAX = 4096, HOLD_MS = 300, SAMPLE_MS = 20 };

/* ---- the server */

static int held[COUNT_MAX];
static int held_count;

static int listen_somewhere(unsigned *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&at, size) || listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&at, &size))
		exit(1);
	*port = ntohs(at.sin_port);
	return fd;
}

/* Every request is there: the first answers go out soon after, the last one when `spread_ms` are
 * over. */
static void answer_all(int spread_ms)
{
	static const char answer[] = "HTTP/1.1 201 Created\r\nContent-Type: "
	                             "application/json\r\nContent-Length: 15\r\n\r\n"
	                             "{\"id\": \"ord-1\"}";
	double start = now_ms() + HOLD_MS, due;

	for (int i = 0; i < held_count; i++) {
		due = start + (double)spread_ms * i / held_count;
		if (due > now_ms() + 1)
			usleep((unsigned)((due - now_ms()) * 1000));
		if (write(held[i], answer, sizeof(answer) - 1) < 0)
			fprintf(stderr, "crowd: an answer was not taken\n");
	}
	held_count = 0;
}

static void watch(int poller, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
}

/* Requests are small: each comes whole, in one read. */
static void serve_one(int fd)
{
	char request[8192];

	if (read(fd, request, sizeof(request)) > 0)
		held[held_count++] = fd;
	else
		close(fd);
}

static int serve(int count, int spread_ms)
{
	struct epoll_event events[256];
	unsigned port;
	int listener = listen_somewhere(&port), poller = epoll_create1(0), n;

	printf("%u\n", port);
	fflush(stdout);
	watch(poller, listener);
	watch(poller, STDIN_FILENO);
	while ((n = epoll_wait(poller, events, 256, -1)) > 0) {
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == STDIN_FILENO)
				return 0;
			if (events[i].data.fd == listener)
				watch(poller, accept(listener, NULL, NULL));
			else
				serve_one(events[i].data.fd);
		}
		if (held_count == count)
			answer_all(spread_ms);
	}
	return 1;
}

/* ---- the client */

static double cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Memory of the process alone, in KiB: no page of a file, so none of a ledger. */
static long anonymous_kib(void)
{
	char text[8192], *line;
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	line = strstr(text, "RssAnon:");
	return line ? strtol(line + 8, NULL, 10) : -1;
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -1; /* that of the folder itself */

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static struct transfer transfers[COUNT_MAX];
static long peak;
static bool asks;
static int told;

/* Sent by now, and said so. */
static int count_told(int count)
{
	int n = 0;

	for (int i = 0; i < count; i++) {
		curl_off_t up = 0, since = 0;
		char *ip = NULL;

		curl_easy_getinfo(transfers[i].easy, CURLINFO_SIZE_UPLOAD_T, &up);
		curl_easy_getinfo(transfers[i].easy, CURLINFO_PRETRANSFER_TIME_T, &since);
		curl_easy_getinfo(transfers[i].easy, CURLINFO_PRIMARY_IP, &ip);
		n += up > 0 && since > 0 && ip && strcmp(ip, "127.0.0.1") == 0;
	}
	return n;
}

static int one_round(const char *kind, int count, int number)
{
	double sampled = 0;
	int created = 0;
	char body[64];
	long status;

	loop_open(&loop, kind);
	loop.silent = true;
	for (int i = 0; i < count; i++) {
		transfer_post(&transfers[i], "w", url, "");
		snprintf(body, sizeof(body), "{\"write\":%d,\"round\":%d,\"by\":%d}", i, number,
		         (int)getpid());
		curl_easy_setopt(transfers[i].easy, CURLOPT_COPYPOSTFIELDS, body);
		curl_easy_setopt(transfers[i].easy, CURLOPT_NOPROGRESS, 1L);
		loop_add(&loop, &transfers[i]);
	}
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	do {
		loop_turn(&loop, 200);
		if (loop.running == count && now_ms() > sampled + SAMPLE_MS) {
			peak = anonymous_kib() > peak ? anonymous_kib() : peak;
			sampled = now_ms();
			if (asks && count_told(count) > told)
				told = count_told(count);
		}
	} while (loop.running != 0);
	for (int i = 0; i < count; i++) {
		status = 0;
		curl_easy_getinfo(transfers[i].easy, CURLINFO_RESPONSE_CODE, &status);
		created += transfers[i].ended && transfers[i].code == CURLE_OK && status == 201 &&
		           strcmp(transfers[i].body, "{\"id\": \"ord-1\"}") == 0;
		loop_remove(&loop, &transfers[i]);
		transfer_close(&transfers[i]);
	}
	loop_close(&loop);
	return created;
}

int main(int argc, char **argv)
{
	struct rlimit files = {0, 0};
	int count, rounds, before, created = 0;
	long empty;
	double start;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		return serve(atoi(argv[2]), atoi(argv[3]));
	asks = argc == 6 && strcmp(argv[5], "ask") == 0;
	if (argc != 5 + asks || (count = atoi(argv[3])) < 1 || count > COUNT_MAX)
		return 64;
	url = argv[2];
	rounds = atoi(argv[4]);
	curl_global_init(CURL_GLOBAL_ALL);
	memset(transfers, 1, sizeof(transfers)); /* these pages are ours, not the transfers' */
	before = descriptors();
	empty = anonymous_kib();
	one_round(argv[1], count, 0);
	start = cpu_ms();
	for (int i = 1; i <= rounds; i++)
		created += one_round(argv[1], count, i);
	start = cpu_ms() - start;
	for (int i = 0; i < 30 && descriptors() > before; i++)
		usleep(100 * 1000);
	printf("cpu_ms=%.0f kib=%ld before=%d after=%d created=%d turns=%d timers=%d sockets=%d "
	       "told=%d\n",
	       start, peak - empty, before, descriptors(), created, loop.turns, loop.timers,
	       loop.sockets, told);
	return 0;
}
