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
	print_message("%s: %d \"%s\"\n", row->name, native.code, native.error);
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

/* --- without a server --- */

static size_t count_stream(FILE *f, char *out, size_t room)
{
	rewind(f);
	size_t n = fread(out, 1, room - 1, f);
	out[n] = 0;
	return n;
}

static void default_functions_write_to_files(void **state)
{
	(void)state;
	char text[128];
	struct player p;
	FILE *body = tmpfile(), *head = tmpfile();
	struct player_sink sink = {.write_data = body, .header_data = head, .no_progress = true};
	player_start(&p, &sink, 1);
	player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(&p, "\r\n", 2);
	player_body(&p, "x\0y", 3);
	assert_int_equal(player_end(&p, CURLE_OK, NULL), CURLE_OK);
	assert_int_equal(count_stream(body, text, sizeof(text)), 3);
	assert_memory_equal(text, "x\0y", 3);
	count_stream(head, text, sizeof(text));
	assert_string_equal(text, "HTTP/1.1 200 OK\r\n\r\n");
	player_stop(&p);
	fclose(body);
	fclose(head);
}

static void verbose_without_function_prints_as_libcurl(void **state)
{
	(void)state;
	char text[256];
	struct player p;
	FILE *out = tmpfile();
	struct player_sink sink = {.verbose = true,
	                           .stderr_file = out,
	                           .no_progress = true,
	                           .fail_on_error = true,
	                           .header = on_header,
	                           .header_data = &(struct seen){.row = &rows[0]}};
	player_start(&p, &sink, 1);
	player_debug(&p, CURLINFO_TEXT, "hi\n", 3);
	player_debug(&p, CURLINFO_HEADER_OUT, "POST / HTTP/1.1\r\n\r\n", 19);
	player_debug(&p, CURLINFO_DATA_OUT, "a=1", 3);
	player_debug(&p, CURLINFO_SSL_DATA_IN, "zz", 2);
	player_debug(&p, CURLINFO_HEADER_IN, "HTTP/1.1 404 No\r\n", 17);
	player_header(&p, "HTTP/1.1 404 No\r\n", 17);
	player_header(&p, "\r\n", 2);
	count_stream(out, text, sizeof(text));
	assert_string_equal(text, "* hi\n> POST / HTTP/1.1\r\n\r\n< HTTP/1.1 404 No\r\n"
	                          "* The requested URL returned error: 404\n");
	struct seen *seen = sink.header_data;
	buf_free(&seen->log);
	player_stop(&p);
	fclose(out);
}

static void connect_lines_carry_no_meaning(void **state)
{
	(void)state;
	struct player p;
	struct seen seen = {.row = &rows[0]};
	struct player_sink sink = {.fail_on_error = true,
	                           .max_filesize = 1,
	                           .header = on_header,
	                           .header_data = &seen,
	                           .write = on_body,
	                           .write_data = &seen,
	                           .no_progress = true};
	player_start(&p, &sink, 1);
	player_connect_header(&p, "HTTP/1.1 407 Who\r\n", 18);
	player_connect_header(&p, "Content-Length: 9\r\n", 19);
	assert_int_equal(player_connect_header(&p, "\r\n", 2), CURLE_OK);
	player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
	assert_int_equal(player_header(&p, "\r\n", 2), CURLE_OK);
	assert_int_equal(player_end(&p, CURLE_OK, NULL), CURLE_OK);
	assert_int_equal(seen.headers, 5);
	player_stop(&p);
	buf_free(&seen.log);
}

/* --- pausing, where libcurl's own timing differs from run to run --- */

struct pausing {
	struct player p;
	struct buf got;
	int calls, pause_at, resume_inside;
};

static size_t pausing_write(char *data, size_t size, size_t n, void *arg)
{
	struct pausing *s = arg;
	if (++s->calls == s->pause_at) {
		if (s->resume_inside) {
			player_pause(&s->p, CURLPAUSE_RECV);
			player_pause(&s->p, CURLPAUSE_CONT);
		} else {
			return CURL_WRITEFUNC_PAUSE;
		}
	}
	assert_int_equal(data[n], 0);
	buf_add(&s->got, data, size * n);
	return n;
}

static void check_pause(int pause_at, bool header_in_body, bool inside)
{
	static char big[40000];
	struct pausing s = {.pause_at = pause_at, .resume_inside = inside};
	struct player_sink sink = {.write = pausing_write,
	                           .write_data = &s,
	                           .header = pausing_write,
	                           .header_data = &s,
	                           .header_in_body = header_in_body,
	                           .no_progress = true};
	memset(big, 'x', sizeof(big));
	player_start(&s.p, &sink, 1);
	const char *lines[] = {"HTTP/1.1 200 OK\r\n", "A: b\r\n", "\r\n"};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(player_header(&s.p, lines[i], strlen(lines[i])), CURLE_OK);
		if (s.p.paused)
			assert_int_equal(player_pause(&s.p, CURLPAUSE_CONT), CURLE_OK);
	}
	assert_int_equal(player_body(&s.p, big, sizeof(big)), CURLE_OK);
	if (s.p.paused)
		assert_int_equal(player_pause(&s.p, CURLPAUSE_CONT), CURLE_OK);
	assert_false(s.p.paused);
	assert_int_equal(player_end(&s.p, CURLE_OK, NULL), CURLE_OK);
	size_t heads = header_in_body ? 50 : 25;
	assert_int_equal(s.got.n, heads + sizeof(big));
	assert_memory_equal(s.got.data + heads, big, sizeof(big));
	player_stop(&s.p);
	buf_free(&s.got);
}

static void nothing_is_lost_by_a_pause(void **state)
{
	(void)state;
	for (int at = 0; at <= 10; at++) {
		check_pause(at, false, false);
		check_pause(at, true, false);
		check_pause(at, true, true);
	}
}

static void paused_by_the_program_between_pieces(void **state)
{
	(void)state;
	struct pausing s = {0};
	struct player_sink sink = {.write = pausing_write, .write_data = &s, .no_progress = true};
	player_start(&s.p, &sink, 1);
	player_header(&s.p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(&s.p, "\r\n", 2);
	player_pause(&s.p, CURLPAUSE_RECV);
	assert_true(s.p.paused);
	assert_int_equal(player_body(&s.p, "abc", 3), CURLE_OK);
	assert_int_equal(s.got.n, 0);
	player_pause(&s.p, CURLPAUSE_SEND); /* receiving is on again */
	assert_false(s.p.paused);
	assert_int_equal(s.got.n, 3);
	player_stop(&s.p);
	buf_free(&s.got);
}

/* --- a callback that does not come back --- */

static jmp_buf out_of_here;
static int jumps;

static size_t jumping_write(char *data, size_t size, size_t n, void *arg)
{
	struct buf *got = arg;
	buf_add(got, data, size * n);
	if (jumps-- > 0)
		longjmp(out_of_here, 1);
	return n;
}

static void longjmp_leaves_a_player_that_goes_on(void **state)
{
	(void)state;
	static struct player p;
	static struct buf got;
	struct player_sink sink = {.write = jumping_write,
	                           .write_data = &got,
	                           .header = jumping_write,
	                           .header_data = &got,
	                           .fail_on_error = true,
	                           .no_progress = true};
	player_start(&p, &sink, 1);
	player_header(&p, "HTTP/1.1 500 No\r\n", 17);
	jumps = 1;
	if (setjmp(out_of_here) == 0)
		player_header(&p, "\r\n", 2);
	assert_int_equal(jumps, 0);
	assert_int_equal(p.code, CURLE_OK);
	assert_int_equal(player_body(&p, "x", 1), CURLE_HTTP_RETURNED_ERROR);
	assert_int_equal(got.n, 19);
	player_stop(&p);
	buf_free(&got);
}

/* --- ERRORBUFFER --- */

static void first_error_stays(void **state)
{
	(void)state;
	char error[CURL_ERROR_SIZE] = "old", longer[CURL_ERROR_SIZE * 2];
	struct player p;
	struct player_sink sink = {.error_buffer = error, .no_progress = true};
	player_start(&p, &sink, 1);
	assert_string_equal(error, "");
	memset(longer, 'e', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	player_error(&p, NULL);
	player_error(&p, longer);
	assert_int_equal(strlen(error), CURL_ERROR_SIZE - 1);
	player_error(&p, "second");
	assert_int_equal(player_end(&p, CURLE_RECV_ERROR, "third"), CURLE_RECV_ERROR);
	assert_int_equal(error[0], 'e');
	player_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(plays_as_libcurl_does),
	        cmocka_unit_test(large_body_comes_in_pieces),
	        cmocka_unit_test(default_functions_write_to_files),
	        cmocka_unit_test(verbose_without_function_prints_as_libcurl),
	        cmocka_unit_test(connect_lines_carry_no_meaning),
	        cmocka_unit_test(nothing_is_lost_by_a_pause),
	        cmocka_unit_test(paused_by_the_program_between_pieces),
	        cmocka_unit_test(longjmp_leaves_a_player_that_goes_on),
	        cmocka_unit_test(first_error_stays),
	};
	curl_global_init(CURL_GLOBAL_ALL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
