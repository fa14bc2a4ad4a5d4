/* Deadlines, LOW_SPEED and progress on a clock of the test's own; and that their texts are those of
 * libcurl, taken from libcurl itself. */
#include <arpa/inet.h>
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

#include "player/player.h"

enum { START = 5000000, SECOND = 1000000, MS = 1000 };

static const struct player_phase sent = {
        .resolved = true, .tcp = true, .connected = true, .sent = true};

/* --- texts of a connection that does not come up --- */

struct listener {
	int fd, filler[8];
	int port;
};

/* full: its accept queue has no room, so that a connect gets no answer at all. */
static void listen_mute(struct listener *l, bool full)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof(in);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(l->fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(l->fd, full ? 0 : 8), 0);
	assert_int_equal(getsockname(l->fd, (struct sockaddr *)&in, &size), 0);
	l->port = ntohs(in.sin_port);
	for (size_t i = 0; i < 8; i++) {
		l->filler[i] = full ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) : -1;
		if (full)
			(void)connect(l->filler[i], (struct sockaddr *)&in, sizeof(in));
	}
}

static void listen_end(struct listener *l)
{
	for (size_t i = 0; i < 8; i++) {
		if (l->filler[i] >= 0)
			close(l->filler[i]);
	}
	close(l->fd);
}

static void blur(char *text)
{
	char *at = strstr(text, "after ");
	for (at = at ? at + 6 : text + strlen(text); *at >= '0' && *at <= '9'; at++)
		*at = '#';
	while ((at = strstr(text, "##")))
		memmove(at, at + 1, strlen(at));
}

struct connect_row {
	const char *scheme;
	bool full;
	long timeout_ms, connect_timeout_ms;
	struct player_phase phase;
};

static CURLcode natively(const struct connect_row *row, char *error)
{
	struct listener l;
	char url[64];
	listen_mute(&l, row->full);
	snprintf(url, sizeof(url), "%s://127.0.0.1:%d/", row->scheme, l.port);
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, row->timeout_ms);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, row->connect_timeout_ms);
	CURLcode code = curl_easy_perform(easy);
	curl_easy_cleanup(easy);
	listen_end(&l);
	return code;
}

static void connection_texts_are_libcurls(void **state)
{
	(void)state;
	static const struct connect_row rows[] = {
	        {"http", true, 0, 300, {.resolved = true}},
	        {"http", true, 300, 0, {.resolved = true}},
	        {"http", true, 300, 900, {.resolved = true}},
	        {"https", false, 0, 300, {.resolved = true, .tcp = true}},
	        {"https", false, 300, 0, {.resolved = true, .tcp = true}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct connect_row *row = &rows[i];
		char native[CURL_ERROR_SIZE] = "", played[CURL_ERROR_SIZE] = "";
		struct player p;
		struct player_sink sink = {.no_progress = true,
		                           .error_buffer = played,
		                           .timeout_us = row->timeout_ms * MS,
		                           .connect_timeout_us = row->connect_timeout_ms * MS};
		CURLcode code = natively(row, native);
		player_start(&p, &sink, START);
		assert_int_equal(player_tick(&p, &row->phase, START + 299 * MS), CURLE_OK);
		assert_int_equal(player_tick(&p, &row->phase, START + 300 * MS),
		                 CURLE_OPERATION_TIMEDOUT);
		assert_int_equal(player_end(&p, CURLE_OK, NULL), CURLE_OPERATION_TIMEDOUT);
		player_stop(&p);
		blur(native);
		blur(played);
		assert_int_equal(code, CURLE_OPERATION_TIMEDOUT);
		/* A race inside libcurl, decided by fractions of a millisecond: its other text
		 * names the host and the port. */
		if (strncmp(native, "Failed to connect to ", 21) == 0)
			strcpy(native, "Connection timeout after # ms");
		/* Likewise the handshake's own look at the clock against the loop's. */
		if (row->phase.tcp && row->timeout_ms &&
		    strcmp(native, "SSL connection timeout") == 0)
			strcpy(native, "Connection timed out after # milliseconds");
		assert_string_equal(played, native);
	}
}

/* --- deadlines --- */

static void deadline_texts(void **state)
{
	(void)state;
	static const struct {
		struct player_phase phase;
		int64_t timeout_us, connect_us, at_us;
		CURLcode code;
		const char *text;
	} rows[] = {
	        {{0}, 2 * SECOND, 0, 2 * SECOND - 1, CURLE_OK, ""},
	        {{0},
	         2 * SECOND,
	         0,
	         2 * SECOND,
	         CURLE_OPERATION_TIMEDOUT,
	         "Resolving timed out after 2000 milliseconds"},
	        {{0},
	         0,
	         SECOND,
	         1500 * MS,
	         CURLE_OPERATION_TIMEDOUT,
	         "Resolving timed out after 1500 milliseconds"},
	        {{.resolved = true},
	         0,
	         SECOND,
	         SECOND,
	         CURLE_OPERATION_TIMEDOUT,
	         "Connection timeout after 1000 ms"},
	        {{.resolved = true}, 0, 0, 299 * (int64_t)SECOND, CURLE_OK, ""},
	        {{.resolved = true},
	         0,
	         0,
	         300 * (int64_t)SECOND,
	         CURLE_OPERATION_TIMEDOUT,
	         "Connection timeout after 300000 ms"},
	        {{.resolved = true, .tcp = true, .connected = true},
	         0,
	         SECOND,
	         3600 * (int64_t)SECOND,
	         CURLE_OK,
	         ""},
	        {{.resolved = true, .tcp = true, .connected = true},
	         SECOND,
	         0,
	         SECOND,
	         CURLE_OPERATION_TIMEDOUT,
	         "Operation timed out after 1000 milliseconds with 0 bytes received"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char error[CURL_ERROR_SIZE];
		struct player p;
		struct player_sink sink = {.no_progress = true,
		                           .error_buffer = error,
		                           .timeout_us = rows[i].timeout_us,
		                           .connect_timeout_us = rows[i].connect_us};
		player_start(&p, &sink, START);
		assert_int_equal(player_tick(&p, &rows[i].phase, START + rows[i].at_us),
		                 rows[i].code);
		assert_string_equal(error, rows[i].text);
		player_stop(&p);
	}
}

static void deadline_ends_a_paused_transfer_too(void **state)
{
	(void)state;
	struct player p;
	struct player_sink sink = {.no_progress = true, .timeout_us = SECOND};
	player_start(&p, &sink, START);
	player_pause(&p, CURLPAUSE_ALL);
	assert_int_equal(player_tick(&p, &sent, START + SECOND), CURLE_OPERATION_TIMEDOUT);
	assert_int_equal(player_header(&p, "HTTP/1.1 200 OK\r\n", 17), CURLE_OPERATION_TIMEDOUT);
	assert_int_equal(player_end(&p, CURLE_OK, NULL), CURLE_OPERATION_TIMEDOUT);
	player_stop(&p);
}

/* --- LOW_SPEED --- */

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

/* The second in which it ends; 0: not within 30. `bytes` a second until second `stops`. */
static int slow_at(size_t bytes, int stops, bool is_sent, bool paused)
{
	static char data[4096];
	char error[CURL_ERROR_SIZE];
	struct player p;
	struct player_phase phase = sent;
	struct player_sink sink = {.no_progress = true,
	                           .write = take,
	                           .error_buffer = error,
	                           .low_speed_limit = 1000,
	                           .low_speed_time = 3};
	phase.sent = is_sent;
	player_start(&p, &sink, START);
	player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(&p, "\r\n", 2);
	if (paused)
		player_pause(&p, CURLPAUSE_RECV);
	for (int second = 1; second <= 30; second++) {
		if (second <= stops && !paused)
			player_body(&p, data, bytes);
		if (player_tick(&p, &phase, START + second * (int64_t)SECOND)) {
			assert_int_equal(p.code, CURLE_OPERATION_TIMEDOUT);
			assert_string_equal(error, "Operation too slow. Less than 1000 bytes/sec "
			                           "transferred the last 3 seconds");
			player_stop(&p);
			return second;
		}
	}
	player_stop(&p);
	return 0;
}

static void low_speed(void **state)
{
	(void)state;
	assert_int_equal(slow_at(0, 0, true, false), 4);
	assert_int_equal(slow_at(999, 30, true, false), 4);
	assert_int_equal(slow_at(1000, 30, true, false), 0);
	int late = slow_at(2000, 10, true, false);
	assert_in_range(late, 14, 19); /* the speed is that of the last five seconds */
	assert_int_equal(slow_at(0, 0, false, false), 0); /* not before the request is sent */
	assert_int_equal(slow_at(0, 0, true, true), 0);   /* nor while paused */
}

/* A handle's second transfer, of which nothing comes, begun `later_ms` after the first one: in
 * which millisecond of its own it ends. */
static int64_t slow_again(curl_off_t first_bytes, int64_t later_ms)
{
	struct player_pace pace = {0};
	struct player_sink sink = {
	        .no_progress = true, .low_speed_limit = 1000, .low_speed_time = 1, .pace = &pace};
	const int64_t from = 7 * (int64_t)SECOND + SECOND / 10, begun = from + later_ms * 1000;
	struct player_phase phase = sent;
	struct player p;
	int64_t ms = 0;

	phase.uploaded = first_bytes;
	player_start(&p, &sink, from);
	player_tick(&p, &phase, from + 10000);
	player_end(&p, CURLE_OK, NULL);
	player_stop(&p);
	phase.uploaded = 12; /* it is gone at once: the connection is there */
	player_start(&p, &sink, begun);
	while (player_tick(&p, &phase, begun + ms * 1000) == CURLE_OK)
		ms += 1000;
	player_stop(&p);
	return ms;
}

/* Once a second of the clock, as libcurl does it: what the first transfer ended with counts on. */
static void low_speed_of_a_handle_that_is_used_again(void **state)
{
	(void)state;
	assert_int_equal(slow_again(200, 2000), 1000); /* another second: nothing has come yet */
	assert_int_equal(slow_again(200, 300), 2000);  /* the same one: 20,000 bytes a second */
	assert_int_equal(slow_again(2, 300), 1000);    /* 200 were too few already */
}

static void low_speed_without_limit_or_time_is_off(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct player p;
		struct player_sink sink = {.no_progress = true,
		                           .low_speed_limit = i ? 1000 : 0,
		                           .low_speed_time = i ? 0 : 3};
		player_start(&p, &sink, START);
		for (int second = 1; second <= 20; second++)
			assert_int_equal(player_tick(&p, &sent, START + second * (int64_t)SECOND),
			                 CURLE_OK);
		player_stop(&p);
	}
}

/* --- progress --- */

struct shown {
	int calls, result, abort_at;
	double dt, dn, ut, un;
};

static int on_xferinfo(void *arg, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un)
{
	struct shown *s = arg;
	s->calls++;
	s->dt = (double)dt;
	s->dn = (double)dn;
	s->ut = (double)ut;
	s->un = (double)un;
	return s->calls == s->abort_at ? s->result : 0;
}

static int on_progress(void *arg, double dt, double dn, double ut, double un)
{
	return on_xferinfo(arg, (curl_off_t)dt, (curl_off_t)dn, (curl_off_t)ut, (curl_off_t)un);
}

static void progress_when_something_changed_or_a_second_passed(void **state)
{
	(void)state;
	for (int old = 0; old < 2; old++) {
		struct player p;
		struct shown s = {0};
		struct player_phase phase = sent;
		struct player_sink sink = {.write = take,
		                           .xferinfo = old ? NULL : on_xferinfo,
		                           .progress = on_progress,
		                           .progress_data = &s,
		                           .upload_size = 9};
		player_start(&p, &sink, START);
		player_tick(&p, &phase, START);
		assert_int_equal(s.calls, 1);
		player_tick(&p, &phase, START + 500 * MS);
		assert_int_equal(s.calls, 1);
		phase.uploaded = 9;
		player_tick(&p, &phase, START + 600 * MS);
		assert_int_equal(s.calls, 2);
		assert_true(s.un == 9 && s.ut == 9 && s.dn == 0);
		player_tick(&p, &phase, START + 1600 * MS);
		assert_int_equal(s.calls, 3);
		player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
		player_header(&p, "Content-Length: 4\r\n", 19);
		player_header(&p, "\r\n", 2);
		player_body(&p, "ab", 2);
		player_tick(&p, &phase, START + 1601 * MS);
		assert_int_equal(s.calls, 4);
		assert_true(s.dn == 2 && s.dt == 4);
		player_end(&p, CURLE_OK, NULL);
		assert_int_equal(s.calls, 5);
		player_tick(&p, &phase, START + 9 * SECOND);
		assert_int_equal(s.calls, 5);
		player_stop(&p);
	}
}

/* libcurl 8.20: nothing before there is a connection, also not at the end of one that failed. */
static void progress_before_a_connection(void **state)
{
	static const struct player_phase before = {.resolved = true};

	(void)state;
	for (int late = 0; late < 2; late++) {
		struct player p;
		struct shown s = {0};
		struct player_sink sink = {.xferinfo = on_xferinfo,
		                           .progress_data = &s,
		                           .ticks_late = late,
		                           .connect_timeout_us = 4 * SECOND};
		player_start(&p, &sink, START);
		for (int second = 0; second < 3; second++)
			player_tick(&p, &before, START + second * SECOND);
		assert_int_equal(s.calls, late ? 0 : 3);
		assert_true(player_patience(&p, &before, START + 2 * SECOND) == SECOND);
		player_tick(&p, &sent, START + 2 * SECOND + 1);
		assert_int_equal(s.calls, late ? 1 : 3);
		player_end(&p, CURLE_GOT_NOTHING, "");
		assert_int_equal(s.calls, late ? 2 : 4);
		player_stop(&p);

		s.calls = 0;
		player_start(&p, &sink, START);
		player_tick(&p, &before, START);
		assert_int_equal(player_tick(&p, &before, START + 4 * SECOND),
		                 CURLE_OPERATION_TIMEDOUT);
		player_end(&p, CURLE_OK, NULL);
		assert_int_equal(s.calls, late ? 0 : 3);
		player_stop(&p);
	}
}

/* An answer that comes before any tick, as a kept one does. */
static void progress_of_an_answer_without_a_connection(void **state)
{
	struct player p;
	struct shown s = {0};
	struct player_sink sink = {
	        .xferinfo = on_xferinfo, .progress_data = &s, .write = take, .ticks_late = true};

	(void)state;
	player_start(&p, &sink, START);
	player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(&p, "\r\n", 2);
	player_end(&p, CURLE_OK, NULL);
	assert_int_equal(s.calls, 1);
	player_stop(&p);
}

static void progress_results(void **state)
{
	(void)state;
	static const struct {
		int result, abort_at;
		CURLcode code;
		int calls;
	} rows[] = {
	        {CURL_PROGRESSFUNC_CONTINUE, 1, CURLE_OK, 2},
	        {1, 1, CURLE_ABORTED_BY_CALLBACK, 1},
	        {-1, 1, CURLE_ABORTED_BY_CALLBACK, 1},
	        {1, 2, CURLE_ABORTED_BY_CALLBACK, 2}, /* by the last one, after the answer */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char error[CURL_ERROR_SIZE];
		struct player p;
		struct shown s = {.result = rows[i].result, .abort_at = rows[i].abort_at};
		struct player_sink sink = {
		        .xferinfo = on_xferinfo, .progress_data = &s, .error_buffer = error};
		player_start(&p, &sink, START);
		player_tick(&p, &sent, START);
		assert_int_equal(player_end(&p, CURLE_OK, NULL), rows[i].code);
		assert_int_equal(s.calls, rows[i].calls);
		assert_string_equal(error, rows[i].code ? "Callback aborted" : "");
		player_stop(&p);
	}
}

/* --- waiting for a place --- */

/* CONNECTTIMEOUT runs from the moment it has one, however long ago the last look was. */
static void connect_time_begins_with_a_place(void **state)
{
	(void)state;
	struct player p;
	struct player_phase phase = {.queued = true};
	char error[CURL_ERROR_SIZE];
	struct player_sink sink = {
	        .no_progress = true, .error_buffer = error, .connect_timeout_us = SECOND};
	int64_t now = START;

	player_start(&p, &sink, now);
	for (int i = 0; i < 3; i++, now += 900 * MS)
		assert_int_equal(player_tick(&p, &phase, now), CURLE_OK);
	now += SECOND;
	phase.queued = false;
	assert_int_equal(player_tick(&p, &phase, now), CURLE_OK);
	assert_int_equal(player_patience(&p, &phase, now), SECOND);
	assert_int_equal(player_tick(&p, &phase, now + SECOND - 1), CURLE_OK);
	assert_int_equal(player_tick(&p, &phase, now + SECOND), CURLE_OPERATION_TIMEDOUT);
	assert_string_equal(error, "Resolving timed out after 1000 milliseconds");
	player_stop(&p);
}

/* --- patience --- */

static void patience(void **state)
{
	(void)state;
	static const struct {
		int64_t timeout_us, connect_us;
		bool connected;
		int64_t at_us, expect;
	} rows[] = {
	        {0, 0, true, 0, SECOND},          {300 * MS, 0, true, 100 * MS, 200 * MS},
	        {300 * MS, 0, true, 400 * MS, 0}, {0, 500 * MS, false, 0, 500 * MS},
	        {0, 500 * MS, true, 0, SECOND},   {10 * SECOND, 0, false, 0, SECOND},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct player p;
		struct player_phase phase = sent;
		struct player_sink sink = {.no_progress = true,
		                           .timeout_us = rows[i].timeout_us,
		                           .connect_timeout_us = rows[i].connect_us};
		phase.connected = rows[i].connected;
		player_start(&p, &sink, START);
		assert_int_equal(player_patience(&p, &phase, START + rows[i].at_us),
		                 rows[i].expect);
		player_stop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(connection_texts_are_libcurls),
	        cmocka_unit_test(deadline_texts),
	        cmocka_unit_test(deadline_ends_a_paused_transfer_too),
	        cmocka_unit_test(low_speed),
	        cmocka_unit_test(low_speed_of_a_handle_that_is_used_again),
	        cmocka_unit_test(low_speed_without_limit_or_time_is_off),
	        cmocka_unit_test(progress_when_something_changed_or_a_second_passed),
	        cmocka_unit_test(progress_before_a_connection),
	        cmocka_unit_test(progress_of_an_answer_without_a_connection),
	        cmocka_unit_test(progress_results),
	        cmocka_unit_test(connect_time_begins_with_a_place),
	        cmocka_unit_test(patience),
	};
	curl_global_init(CURL_GLOBAL_ALL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
