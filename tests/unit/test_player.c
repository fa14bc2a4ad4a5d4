/* The same answer of the same server, once through libcurl alone and once through the player, in
 * one process: what the callbacks saw, the code, and the text in ERRORBUFFER must be equal. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "player/player.h"
#include "unit/threads_here.h"

/* --- a server that answers request n with text n, then hangs until the peer goes --- */

enum { ANSWERS = 3, BIG = 100000 };

struct server {
	int fd;
	int port;
	pthread_t thread;
	const char *const *answers;
	int next;
};

static int read_request(int fd)
{
	char data[4096];
	size_t n = 0;
	for (;;) {
		ssize_t got = recv(fd, data + n, sizeof(data) - n - 1, 0);
		if (got <= 0)
			return -1;
		n += (size_t)got;
		data[n] = 0;
		char *end = strstr(data, "\r\n\r\n");
		char *length = strcasestr(data, "Content-Length: ");
		size_t body = length ? strtoul(length + 16, NULL, 10) : 0;
		if (end && (size_t)(end + 4 - data) + body <= n)
			return 0;
	}
}

static void send_all(int fd, const char *text)
{
	size_t n = strlen(text);
	while (n > 0) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		text += sent;
		n -= (size_t)sent;
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	int fd;
	while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
		while (read_request(fd) == 0 && s->next < ANSWERS && s->answers[s->next])
			send_all(fd, s->answers[s->next++]);
		close(fd);
	}
	return NULL;
}

static void server_start(struct server *s, const char *const *answers)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof(in);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*s = (struct server){.fd = socket(AF_INET, SOCK_STREAM, 0), .answers = answers};
	assert_int_equal(bind(s->fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&in, &size), 0);
	s->port = ntohs(in.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

/* --- what the program does, and what it sees --- */

enum act { ACT_NONE, ACT_SHORT, ACT_PAUSE, ACT_ABORT_PROGRESS, ACT_PAUSE_CALL };

struct row {
	const char *name;
	const char *answers[ANSWERS];
	bool header_in_body, header_data_only, no_header_function, fail_on_error, follow;
	const char *password;
	long auth;
	curl_off_t max_filesize;
	enum act body_act, header_act; /* at the n-th call */
	int act_at;
	long timeout_ms;
	CURLcode expect;
};

struct seen {
	const struct row *row;
	struct buf log;
	char last; /* kind of the last entry: pieces of one body are one entry */
	int bodies, headers;
	size_t largest;
	bool acted, paused;
	curl_off_t down_total, down, up;
	CURL *easy;            /* native, or */
	struct player *player; /* played */
	char error[CURL_ERROR_SIZE];
	CURLcode code;
};

static void note(struct seen *s, char kind, const char *data, size_t n)
{
	if (kind != s->last || kind != 'B')
		buf_printf(&s->log, "\n%c:", kind);
	buf_add(&s->log, data, n);
	s->last = kind;
}

static void pause_call(struct seen *s, int bits)
{
	if (s->easy)
		(void)curl_easy_pause(s->easy, bits);
	else
		(void)player_pause(s->player, bits);
}

static size_t act(struct seen *s, enum act what, int call, size_t n)
{
	if (s->acted || call != s->row->act_at || what == ACT_NONE)
		return n;
	s->acted = true;
	if (what == ACT_SHORT)
		return n - 1;
	s->paused = true;
	if (what == ACT_PAUSE)
		return CURL_WRITEFUNC_PAUSE;
	pause_call(s, CURLPAUSE_RECV);
	return n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct seen *s = arg;
	if (n > s->largest)
		s->largest = n;
	note(s, s->paused ? '!' : 'B', data, size * n);
	return act(s, s->row->body_act, ++s->bodies, n);
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct seen *s = arg;
	note(s, s->paused ? '!' : 'H', data, size * n);
	return act(s, s->row->header_act, ++s->headers, n);
}

static int on_progress(void *arg, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un)
{
	struct seen *s = arg;
	(void)ut;
	s->down_total = dt;
	s->down = dn;
	s->up = un;
	if (s->paused) {
		s->paused = false;
		buf_add_text(&s->log, "\nunpause");
		pause_call(s, CURLPAUSE_CONT);
	}
	return s->row->body_act == ACT_ABORT_PROGRESS && dn > 0 ? 7 : 0;
}

/* --- natively --- */

static void set_common(CURL *easy, const struct row *row, int port)
{
	char url[64];
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/orders", port);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "a=1");
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, (long)row->follow);
	curl_easy_setopt(easy, CURLOPT_USERPWD, row->password);
	if (row->auth)
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, row->auth);
}

static void run_native(const struct row *row, struct seen *s)
{
	struct server server;
	server_start(&server, row->answers);
	CURL *easy = curl_easy_init();
	set_common(easy, row, server.port);
	*s = (struct seen){.row = row, .easy = easy};
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, s->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, s);
	if (!row->no_header_function && !row->header_data_only)
		curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	if (!row->no_header_function)
		curl_easy_setopt(easy, CURLOPT_HEADERDATA, s);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(easy, CURLOPT_XFERINFODATA, s);
	curl_easy_setopt(easy, CURLOPT_HEADER, (long)row->header_in_body);
	curl_easy_setopt(easy, CURLOPT_FAILONERROR, (long)row->fail_on_error);
	curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, row->max_filesize);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, row->timeout_ms);
	s->code = curl_easy_perform(easy);
	curl_easy_cleanup(easy);
	server_stop(&server);
}

/* --- through the player --- */

struct piece {
	bool header;
	struct buf data;
};

struct courier {
	struct piece piece[256];
	size_t count;
	CURLcode code;
	char error[CURL_ERROR_SIZE];
};

static size_t keep(struct courier *c, bool header, const char *data, size_t n)
{
	assert_true(c->count < 256);
	struct piece *p = &c->piece[c->count++];
	*p = (struct piece){.header = header};
	buf_add(&p->data, data, n);
	return n;
}

static size_t keep_body(char *data, size_t size, size_t n, void *arg)
{
	return keep(arg, false, data, size * n);
}

static size_t keep_header(char *data, size_t size, size_t n, void *arg)
{
	return keep(arg, true, data, size * n);
}

static void fetch(const struct row *row, struct courier *c)
{
	struct server server;
	server_start(&server, row->answers);
	CURL *easy = curl_easy_init();
	set_common(easy, row, server.port);
	memset(c, 0, sizeof(*c));
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, keep_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, c);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, row->timeout_ms);
	c->code = curl_easy_perform(easy);
	curl_easy_cleanup(easy);
	server_stop(&server);
}

static struct player_sink sink_of(const struct row *row, struct seen *s)
{
	return (struct player_sink){
	        .write = on_body,
	        .write_data = s,
	        .header = row->no_header_function || row->header_data_only ? NULL : on_header,
	        .header_data = row->no_header_function ? NULL : s,
	        .header_in_body = row->header_in_body,
	        .fail_on_error = row->fail_on_error,
	        .has_password = row->password != NULL,
	        .max_filesize = row->max_filesize,
	        .xferinfo = on_progress,
	        .progress_data = s,
	        .error_buffer = s->error,
	        .timeout_us = row->timeout_ms * 1000,
	        .upload_size = 3,
	};
}

static void feed(struct player *p, const struct courier *c)
{
	struct player_phase phase = {
	        .resolved = true, .tcp = true, .connected = true, .sent = true, .uploaded = 3};
	int64_t now = 1000000;
	for (size_t i = 0; i < c->count && !p->code; i++) {
		const struct buf *d = &c->piece[i].data;
		if (c->piece[i].header)
			player_header(p, d->data, d->n);
		else
			player_body(p, d->data, d->n);
		player_tick(p, &phase, now += 1000);
		for (int waits = 0; p->paused && !p->code; waits++) {
			assert_true(waits < 3);
			player_tick(p, &phase, now += 1000000);
		}
	}
	if (p->sink.timeout_us && c->code == CURLE_OPERATION_TIMEDOUT)
		player_tick(p, &phase, p->started_us + p->sink.timeout_us);
}

static void run_played(const struct row *row, struct seen *s)
{
	struct player player;
	static struct courier courier;
	fetch(row, &courier);
	*s = (struct seen){.row = row, .player = &player};
	struct player_sink sink = sink_of(row, s);
	strcpy(s->error, "old");
	player_start(&player, &sink, 1000000);
	feed(&player, &courier);
	s->code = player_end(&player, courier.code, courier.error);
	assert_int_equal(player_end(&player, CURLE_OK, NULL), s->code);
	player_stop(&player);
	for (size_t i = 0; i < courier.count; i++)
		buf_free(&courier.piece[i].data);
}

/* "after 301 milliseconds" differs from run to run. */
static void blur_time(char *text)
{
	char *at = strstr(text, "after ");
	for (at = at ? at + 6 : text + strlen(text); *at >= '0' && *at <= '9'; at++)
		*at = '#';
	while ((at = strstr(text, "##")))
		memmove(at, at + 1, strlen(at));
}

static void compare(const struct row *row)
{
	struct seen native, played;
	run_native(row, &native);
	run_played(row, &played);
	blur_time(native.error);
	blur_time(played.error);
	assert_int_equal(native.code, row->expect);
	assert_int_equal(played.code, native.code);
	assert_string_equal(played.error, native.error);
	assert_int_equal(played.log.n, native.log.n);
	if (native.log.n)
		assert_memory_equal(played.log.data, native.log.data, native.log.n);
	assert_true(played.largest <= CURL_MAX_WRITE_SIZE);
	if (native.code == CURLE_OK) { /* libcurl counts a broken chunk now here, now there */
		assert_int_equal(played.down, native.down);
		assert_int_equal(played.down_total, native.down_total);
		assert_int_equal(played.up, native.up);
	}
	buf_free(&native.log);
	buf_free(&played.log);
}

#define OK_HEAD                                                                                    \
	"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"
#define OK          OK_HEAD "hello"
#define ERROR(code) "HTTP/1.1 " code " No\r\nContent-Length: 3\r\nX-A: b\r\n\r\nbad"
#define CHUNKED                                                                                    \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"                    \
	"3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-T: end\r\n\r\n"
#define CHALLENGE                                                                                  \
	"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 3\r\n\r\nbad"
#define MOVED "HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 3\r\n\r\nold"

static const struct row rows[] = {
        {"plain", {OK}, .expect = CURLE_OK},
        {"no header function", {OK}, .no_header_function = true},
        {"HEADER=1", {OK}, .header_in_body = true},
        {"HEADER=1, no header function", {OK}, .header_in_body = true, .no_header_function = true},
        {"HEADERDATA alone", {OK}, .header_data_only = true},
        {"chunked with trailer", {CHUNKED}, .expect = CURLE_OK},
        {"chunked, HEADER=1", {CHUNKED}, .header_in_body = true},
        {"100 first", {"HTTP/1.1 100 Continue\r\n\r\n" OK}, .expect = CURLE_OK},
        {"103 first, HEADER=1",
         {"HTTP/1.1 103 Hints\r\nLink: <x>\r\n\r\n" OK},
         .header_in_body = true},
        {"204", {"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"}, .expect = CURLE_OK},
        {"404 without FAILONERROR", {ERROR("404")}, .expect = CURLE_OK},
        {"404", {ERROR("404")}, .fail_on_error = true, .expect = CURLE_HTTP_RETURNED_ERROR},
        {"500, HEADER=1",
         {ERROR("500")},
         .fail_on_error = true,
         .header_in_body = true,
         .expect = CURLE_HTTP_RETURNED_ERROR},
        {"401 without credentials",
         {CHALLENGE},
         .fail_on_error = true,
         .expect = CURLE_HTTP_RETURNED_ERROR},
        {"401, credentials refused",
         {CHALLENGE},
         .fail_on_error = true,
         .password = "u:p",
         .expect = CURLE_HTTP_RETURNED_ERROR},
        {"401, then credentials",
         {CHALLENGE, OK},
         .fail_on_error = true,
         .password = "u:p",
         .auth = (long)CURLAUTH_ANY},
        {"401, then 401",
         {CHALLENGE, CHALLENGE},
         .fail_on_error = true,
         .password = "u:p",
         .auth = (long)CURLAUTH_ANY,
         .expect = CURLE_HTTP_RETURNED_ERROR},
        {"307 followed", {MOVED, OK}, .follow = true},
        {"307 followed, then 500",
         {MOVED, ERROR("500")},
         .follow = true,
         .fail_on_error = true,
         .expect = CURLE_HTTP_RETURNED_ERROR},
        {"307 not followed", {MOVED}, .expect = CURLE_OK},
        {"MAXFILESIZE not reached", {OK}, .max_filesize = 5},
        {"MAXFILESIZE", {OK}, .max_filesize = 4, .expect = CURLE_FILESIZE_EXCEEDED},
        {"MAXFILESIZE, chunked", {CHUNKED}, .max_filesize = 2},
        {"MAXFILESIZE, out of range",
         {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"},
         .max_filesize = 4,
         .timeout_ms = 200,
         .expect = CURLE_FILESIZE_EXCEEDED},
        {"body callback short",
         {OK},
         .body_act = ACT_SHORT,
         .act_at = 1,
         .expect = CURLE_WRITE_ERROR},
        {"body callback short on second chunk",
         {CHUNKED},
         .body_act = ACT_SHORT,
         .act_at = 2,
         .expect = CURLE_WRITE_ERROR},
        {"header callback short",
         {OK},
         .header_act = ACT_SHORT,
         .act_at = 2,
         .expect = CURLE_WRITE_ERROR},
        {"header callback short on the last line",
         {OK},
         .header_act = ACT_SHORT,
         .act_at = 5,
         .expect = CURLE_WRITE_ERROR},
        {"HEADER=1, body callback short in a header",
         {OK},
         .header_in_body = true,
         .body_act = ACT_SHORT,
         .act_at = 2,
         .expect = CURLE_WRITE_ERROR},
        {"short beats FAILONERROR",
         {ERROR("404")},
         .fail_on_error = true,
         .header_act = ACT_SHORT,
         .act_at = 4,
         .expect = CURLE_WRITE_ERROR},
        {"pause in the body", {OK}, .body_act = ACT_PAUSE, .act_at = 1},
        {"progress abort",
         {OK},
         .body_act = ACT_ABORT_PROGRESS,
         .expect = CURLE_ABORTED_BY_CALLBACK},
        {"timeout before the answer", {""}, .timeout_ms = 200, .expect = CURLE_OPERATION_TIMEDOUT},
        {"timeout in the headers",
         {"HTTP/1.1 200 OK\r\nX-A: b\r\n"},
         .timeout_ms = 200,
         .expect = CURLE_OPERATION_TIMEDOUT},
        {"timeout in the body",
         {OK_HEAD "he"},
         .timeout_ms = 200,
         .expect = CURLE_OPERATION_TIMEDOUT},
        {"timeout in a body of unknown size",
         {"HTTP/1.1 200 OK\r\n\r\nhello"},
         .timeout_ms = 200,
         .expect = CURLE_OPERATION_TIMEDOUT},
        {"FAILONERROR does not wait for the timeout",
         {"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nhe"},
         .timeout_ms = 200,
         .fail_on_error = true,
         .expect = CURLE_HTTP_RETURNED_ERROR},
};

static void plays_as_libcurl_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		compare(&rows[i]);
}

static void large_body_comes_in_pieces(void **state)
{
	(void)state;
	static char answer[BIG + 200];
	int head = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
	                    BIG);
	for (int i = 0; i < BIG; i++)
		answer[head + i] = (char)('a' + i % 23);
	compare(&(struct row){"large", {answer}, .expect = CURLE_OK});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(plays_as_libcurl_does),
	        cmocka_unit_test(large_body_comes_in_pieces),
	};
	curl_global_init(CURL_GLOBAL_ALL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
