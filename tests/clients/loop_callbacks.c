/* Callbacks of transfers in a curl_multi: what they may call, what they give and take, a case each,
 * as a transcript to be compared with a native one.
 *
 *     loop_callbacks CASE poll|wait|fdset|epoll URL */
#define CURL_DISABLE_DEPRECATION
#include "loops.h"

#include <pthread.h>

/* Everything a callback may ask of the multi it runs in. */
static void try_calls(const char *where)
{
	struct transfer *other = calloc(1, sizeof(*other));
	int running = 0, left = 0, last = 0, ready = 0;
	long ms = 0;
	fd_set in, out, err;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&err);
	transfer_open(other, "other", url, "");
	printf("%s:", where);
	printf(" perform %d", (int)curl_multi_perform(loop.multi, &running));
	printf(" add %d", (int)curl_multi_add_handle(loop.multi, other->easy));
	printf(" remove %d", (int)curl_multi_remove_handle(loop.multi, other->easy));
	printf(" action %d",
	       (int)curl_multi_socket_action(loop.multi, CURL_SOCKET_TIMEOUT, 0, &running));
	printf(" all %d", (int)curl_multi_socket_all(loop.multi, &running));
	printf(" fdset %d", (int)curl_multi_fdset(loop.multi, &in, &out, &err, &last));
	printf(" timeout %d", (int)curl_multi_timeout(loop.multi, &ms));
	printf(" wait %d", (int)curl_multi_wait(loop.multi, NULL, 0, 0, &ready));
	printf(" poll %d", (int)curl_multi_poll(loop.multi, NULL, 0, 0, &ready));
	printf(" setopt %d", (int)curl_multi_setopt(loop.multi, CURLMOPT_MAXCONNECTS, 20L));
	printf(" read %d", curl_multi_info_read(loop.multi, &left) != NULL);
	printf(" cleanup %d\n", (int)curl_multi_cleanup(loop.multi));
	transfer_close(other);
	free(other);
}

static struct {
	bool body, header, read, progress;
} tried;

static size_t calling_write(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	if (!tried.body) {
		tried.body = true;
		try_calls("write");
		printf("self: perform %d pause %d remove %d\n", (int)curl_easy_perform(t->easy),
		       (int)curl_easy_pause(t->easy, CURLPAUSE_CONT),
		       (int)curl_multi_remove_handle(loop.multi, t->easy));
	}
	return transfer_write(data, size, n, ctx);
}

static size_t calling_header(char *data, size_t size, size_t n, void *ctx)
{
	if (!tried.header) {
		tried.header = true;
		try_calls("header");
	}
	return transfer_header(data, size, n, ctx);
}

static int calling_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	if (!tried.progress) {
		tried.progress = true;
		try_calls("progress");
	}
	return transfer_progress(ctx, a, b, c, d);
}

static void callbacks(void)
{
	struct transfer t;

	transfer_post(&t, "calling", url, "?late=0.1");
	curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, calling_write);
	curl_easy_setopt(t.easy, CURLOPT_HEADERFUNCTION, calling_header);
	curl_easy_setopt(t.easy, CURLOPT_XFERINFOFUNCTION, calling_progress);
	run_alone(&t);
	finish(&t);
}

static size_t calling_read(char *data, size_t size, size_t n, void *ctx)
{
	if (!tried.read) {
		tried.read = true;
		try_calls("read");
	}
	return transfer_read(data, size, n, ctx);
}

static void callbacks_read(void)
{
	struct transfer t;

	transfer_open(&t, "calling", url, "");
	t.size = 20;
	curl_easy_setopt(t.easy, CURLOPT_POST, 1L);
	curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE, (long)t.size);
	curl_easy_setopt(t.easy, CURLOPT_READFUNCTION, calling_read);
	curl_easy_setopt(t.easy, CURLOPT_READDATA, &t);
	run_alone(&t);
	finish(&t);
}

/* Another write by curl_easy_perform, and another handle into the multi, from inside a callback. */
static struct transfer nested;

static size_t nesting_write(char *data, size_t size, size_t n, void *ctx)
{
	if (!tried.body) {
		tried.body = true;
		transfer_post(&nested, "nested", url, "?late=0.1");
		nested.code = curl_easy_perform(nested.easy);
	}
	return transfer_write(data, size, n, ctx);
}

static void nested_easy(void)
{
	struct transfer t;

	transfer_post(&t, "outer", url, "");
	curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, nesting_write);
	run_alone(&t);
	finish(&t);
	finish(&nested);
}

/* A body by callback that pauses half way, to be resumed by the program. */
static void read_pause(void)
{
	struct transfer t;
	double start = now_ms();
	bool resumed = false;

	transfer_open(&t, "read", url, "");
	t.size = 40;
	t.read_pauses = 1;
	curl_easy_setopt(t.easy, CURLOPT_POST, 1L);
	curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE, (long)t.size);
	curl_easy_setopt(t.easy, CURLOPT_READFUNCTION, transfer_read);
	curl_easy_setopt(t.easy, CURLOPT_READDATA, &t);
	loop_add(&loop, &t);
	printf("read before the loop: %d\n", t.reads);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (loop.running != 0) {
		loop_turn(&loop, 50);
		if (!resumed && t.read_pauses == 0 && now_ms() - start > 300) {
			printf("half=%d resume %d\n", t.at == t.size / 2,
			       (int)curl_easy_pause(t.easy, CURLPAUSE_CONT));
			resumed = true;
		}
	}
	loop_remove(&loop, &t);
	t.reads = 0; /* how much is asked for at a time is libcurl's own affair */
	finish(&t);
}

static void read_bodies(void)
{
	struct transfer t[3];

	for (int i = 0; i < 3; i++) {
		transfer_open(&t[i],
		              i == 0   ? "known"
		              : i == 1 ? "chunked"
		                       : "large",
		              url,
		              i == 0   ? ""
		              : i == 1 ? "?late=0.2"
		                       : "?late=0.4");
		t[i].size = i == 2 ? 300000 : (size_t)(100 + i);
		curl_easy_setopt(t[i].easy, i ? CURLOPT_UPLOAD : CURLOPT_POST, 1L);
		curl_easy_setopt(t[i].easy, CURLOPT_CUSTOMREQUEST, i ? "PUT" : NULL);
		if (i == 0)
			curl_easy_setopt(t[i].easy, CURLOPT_POSTFIELDSIZE, (long)t[i].size);
		if (i == 2)
			curl_easy_setopt(t[i].easy, CURLOPT_INFILESIZE, (long)t[i].size);
		curl_easy_setopt(t[i].easy, CURLOPT_READFUNCTION, transfer_read);
		curl_easy_setopt(t[i].easy, CURLOPT_READDATA, &t[i]);
		loop_add(&loop, &t[i]);
	}
	loop_run(&loop);
	for (int i = 0; i < 3; i++) {
		loop_remove(&loop, &t[i]);
		t[i].reads = 0;
		finish(&t[i]);
	}
}

static size_t abort_read(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)size, (void)n, (void)ctx;
	return CURL_READFUNC_ABORT;
}

static void read_abort(void)
{
	struct transfer t;

	transfer_open(&t, "abort", url, "");
	curl_easy_setopt(t.easy, CURLOPT_POST, 1L);
	curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE, 20L);
	curl_easy_setopt(t.easy, CURLOPT_READFUNCTION, abort_read);
	run_alone(&t);
	finish(&t);
}

static void mime(void)
{
	struct transfer t;
	curl_mimepart *part;

	transfer_open(&t, "mime", url, "?late=0.1");
	t.mime = curl_mime_init(t.easy);
	part = curl_mime_addpart(t.mime);
	curl_mime_name(part, "note");
	curl_mime_data(part, "hello", CURL_ZERO_TERMINATED);
	t.size = 500;
	part = curl_mime_addpart(t.mime);
	curl_mime_name(part, "data");
	curl_mime_filename(part, "data.bin");
	curl_mime_data_cb(part, (curl_off_t)t.size, transfer_read, NULL, NULL, &t);
	curl_easy_setopt(t.easy, CURLOPT_MIMEPOST, t.mime);
	run_alone(&t);
	t.reads = 0;
	finish(&t);
}

/* The write callback takes less than it is given; the header callback too. */
static size_t short_callback(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n - 1;
}

/* At a moment when the request has long left. */
static double abort_at;

static int abort_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	((struct transfer *)ctx)->progress++;
	return now_ms() > abort_at;
}

static void aborts(void)
{
	struct transfer t[3];

	for (int i = 0; i < 3; i++) {
		transfer_post(&t[i],
		              i == 0   ? "write"
		              : i == 1 ? "header"
		                       : "progress",
		              url,
		              i == 0   ? ""
		              : i == 1 ? "?late=0.2"
		                       : "?late=3");
		if (i < 2)
			curl_easy_setopt(t[i].easy,
			                 i ? CURLOPT_HEADERFUNCTION : CURLOPT_WRITEFUNCTION,
			                 short_callback);
		else
			curl_easy_setopt(t[i].easy, CURLOPT_XFERINFOFUNCTION, abort_progress);
		abort_at = now_ms() + 300;
		run_alone(&t[i]);
		finish(&t[i]);
	}
}

/* Bodies in pieces, redirects, refused connections. */
static void answers(void)
{
	static const char *const queries[] = {
	        "?chunked=1&gzip=1", "?size=5000", "?redirect=307&to=/orders",
	        "?status=500",       "?cutbody=1", "?early=103"};
	struct transfer t[6];

	loop.silent = true; /* an answer may be there as soon as the request has left */
	for (int i = 0; i < 6; i++) {
		transfer_post(&t[i], queries[i], url, queries[i]);
		curl_easy_setopt(t[i].easy, CURLOPT_FOLLOWLOCATION, 1L);
		curl_easy_setopt(t[i].easy, CURLOPT_ACCEPT_ENCODING, "");
		if (i == 3)
			curl_easy_setopt(t[i].easy, CURLOPT_FAILONERROR, 1L);
		run_alone(&t[i]);
		t[i].bodies = 0; /* how it is cut into pieces is the network's affair */
		finish(&t[i]);
	}
}

/* A descriptor of the program's own beside those of the transfers. */
static void *write_later(void *ctx)
{
	usleep(200 * 1000);
	if (write(*(int *)ctx, "x", 1) != 1)
		printf("nothing written\n");
	return NULL;
}

static void extra_fds(void)
{
	struct curl_waitfd extra = {.events = CURL_WAIT_POLLIN};
	struct transfer t;
	pthread_t thread;
	int ends[2], ready = -1;
	double start;

	if (pipe(ends) != 0)
		exit(1);
	extra.fd = ends[0];
	transfer_post(&t, "beside", url, "?late=1");
	loop_add(&loop, &t);
	for (int i = 0; i < 5; i++)
		loop_turn(&loop, 10);
	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, write_later, &ends[1]);
		start = now_ms();
		extra.revents = 0;
		while (!extra.revents &&
		       now_ms() - start < 2000) { /* libcurl has timers of its own */
			if (i == 0)
				curl_multi_poll(loop.multi, &extra, 1, 5000, &ready);
			else
				curl_multi_wait(loop.multi, &extra, 1, 5000, &ready);
			if (!extra.revents)
				loop_perform(&loop);
		}
		printf("ready %d revents %d %s\n", ready, extra.revents,
		       now_ms() - start > 150 && now_ms() - start < 600 ? "in time"
		                                                        : "not in time");
		pthread_join(thread, NULL);
		if (read(ends[0], &(char){0}, 1) != 1)
			printf("nothing to read\n");
	}
	extra.revents = 0;
	curl_multi_poll(loop.multi, &extra, 1, 10, &ready);
	printf("idle: ready %d revents %d\n", ready, extra.revents);
	loop_run(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* Driven by the call that nobody should use any more. */
static void socket_all(void)
{
	struct transfer t;
	int running = 1;

	transfer_post(&t, "all", url, "?late=0.2");
	loop_add(&loop, &t);
	for (int i = 0; i < 500 && running; i++) {
		CURLMcode code = curl_multi_socket_all(loop.multi, &running);
		loop_ran(&loop, code, running);
		usleep(10 * 1000);
	}
	loop_read(&loop);
	loop_remove(&loop, &t);
	finish(&t);
}

/* A large body whose reader stops again and again, for a while each time. */
static size_t stopping_write(char *data, size_t size, size_t n, void *ctx)
{
	struct transfer *t = ctx;

	(void)data;
	if (t->pauses > 0 && t->bytes >= t->size) {
		t->pauses--;
		t->size += 500000;
		return CURL_WRITEFUNC_PAUSE;
	}
	t->bytes += size * n;
	return size * n;
}

static void pause_large(void)
{
	struct transfer t;
	int pauses = 6, resumed = 0;

	transfer_post(&t, "large", url, "?size=6000000");
	t.pauses = pauses;
	t.size = 500000;
	curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, stopping_write);
	loop_add(&loop, &t);
	if (loop.kind != LOOP_EPOLL)
		loop_perform(&loop);
	while (loop.running != 0) {
		loop_turn(&loop, 20);
		if (t.pauses < pauses) {
			pauses = t.pauses;
			resumed += curl_easy_pause(t.easy, CURLPAUSE_CONT) == CURLE_OK;
		}
	}
	printf("resumed %d\n", resumed);
	loop_remove(&loop, &t);
	t.headers = 0;
	finish(&t);
}

static const struct loop_case cases[] = {
        {"callbacks", callbacks},
        {"callbacks-read", callbacks_read},
        {"nested", nested_easy},
        {"read-pause", read_pause},
        {"read-bodies", read_bodies},
        {"read-abort", read_abort},
        {"mime", mime},
        {"extra-fds", extra_fds},
        {"socket-all", socket_all},
        {"pause-large", pause_large},
        {"aborts", aborts},
        {"answers", answers},
};

int main(int argc, char **argv)
{
	return loop_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
