/* The player alone: default functions, VERBOSE, lines of a proxy, pauses at every place, a callback
 * that does not come back, ERRORBUFFER. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "player/player.h"

static size_t count_call(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	++*(int *)arg;
	return size * n;
}

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
	int calls = 0;
	FILE *out = tmpfile();
	struct player_sink sink = {.verbose = true,
	                           .stderr_file = out,
	                           .no_progress = true,
	                           .fail_on_error = true,
	                           .header = count_call,
	                           .header_data = &calls};
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
	assert_int_equal(calls, 2);
	player_stop(&p);
	fclose(out);
}

static void connect_lines_carry_no_meaning(void **state)
{
	(void)state;
	struct player p;
	int calls = 0;
	struct player_sink sink = {.fail_on_error = true,
	                           .max_filesize = 1,
	                           .header = count_call,
	                           .header_data = &calls,
	                           .no_progress = true};
	player_start(&p, &sink, 1);
	player_connect_header(&p, "HTTP/1.1 407 Who\r\n", 18);
	player_connect_header(&p, "Content-Length: 9\r\n", 19);
	assert_int_equal(player_connect_header(&p, "\r\n", 2), CURLE_OK);
	player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
	assert_int_equal(player_header(&p, "\r\n", 2), CURLE_OK);
	assert_int_equal(player_end(&p, CURLE_OK, NULL), CURLE_OK);
	assert_int_equal(calls, 5);
	player_stop(&p);
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

/* What a callback of the body took and saw counted, and what it takes next. */
struct taker {
	struct player *player;
	size_t limit;
	curl_off_t seen;
	char text[256];
};

static size_t take_some(char *data, size_t size, size_t n, void *ctx)
{
	struct taker *t = ctx;

	t->seen = t->player->body_seen;
	if (size * n > t->limit)
		return t->limit;
	strncat(t->text, data, size * n);
	return size * n;
}

static void begin_answer(struct player *p, const struct player_sink *sink)
{
	player_start(p, sink, 1);
	player_header(p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(p, "\r\n", 2);
}

static struct player_sink taker_sink(struct taker *t, char *error, bool late)
{
	return (struct player_sink){.write = take_some,
	                            .write_data = t,
	                            .header_in_body = true,
	                            .no_progress = true,
	                            .error_buffer = error,
	                            .counts_late = late};
}

/* What libcurl 8.8 and later do otherwise than those before: each row both ways. */
static void counted_early_or_late(void **state)
{
	static const struct {
		bool late;
		curl_off_t seen, after_abort;
		const char *abort, *body;
	} rows[] = {
	        {false, 4, 4, "Failure writing output to destination",
	         "HTTP/1.1 200 OK\r\n\r\nfour"},
	        {true, 0, 0, "Failure writing output to destination, passed 4 returned 3",
	         "HTTP/1.1 200 OK\r\n\r\nfourT: 1\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char error[CURL_ERROR_SIZE];
		struct player p;
		struct taker t = {.player = &p, .limit = 100};
		struct player_sink sink = taker_sink(&t, error, rows[i].late);

		begin_answer(&p, &sink);
		player_body(&p, "four", 4);
		assert_int_equal(t.seen, rows[i].seen);
		assert_int_equal(p.body_seen, 4);
		player_header(&p, "T: 1\r\n", 6);
		assert_string_equal(t.text, rows[i].body);
		player_stop(&p);

		begin_answer(&p, &sink);
		t.limit = 3;
		assert_int_equal(player_body(&p, "four", 4), CURLE_WRITE_ERROR);
		assert_string_equal(error, rows[i].abort);
		assert_int_equal(p.body_seen, rows[i].after_abort);
		player_stop(&p);
	}
}

static void a_size_that_is_too_large_is_told_before_or_after(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		int lines = 0;
		struct player p;
		struct player_sink sink = {.header = count_call,
		                           .header_data = &lines,
		                           .no_progress = true,
		                           .max_filesize = 5,
		                           .counts_late = late != 0};

		player_start(&p, &sink, 1);
		player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
		player_header(&p, "Content-Length: 6\r\n", 19);
		assert_int_equal(player_header(&p, "\r\n", 2), CURLE_FILESIZE_EXCEEDED);
		assert_int_equal(lines, 2 + late);
		player_stop(&p);
	}
}

/* FAILONERROR and the end of what was resumed: the row's second column is that of 8.5 and later. */
static void a_416_of_a_resumed_download(void **state)
{
	static const struct {
		const char *range;
		bool fails[2];
	} rows[] = {{NULL, {false, false}},
	            {"Content-Range: bytes 87-90/91\r\n", {false, false}},
	            {"Content-Range: bytes */87\r\n", {true, false}},
	            {"content-range:\r\n", {true, false}}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
		const char *range = rows[i / 2].range;
		struct player p;
		struct player_sink sink = {.no_progress = true,
		                           .fail_on_error = true,
		                           .resumed = true,
		                           .resumed_through_416 = i % 2 != 0};

		player_start(&p, &sink, 1);
		player_header(&p, "HTTP/1.1 416 No\r\n", 17);
		if (range)
			player_header(&p, range, strlen(range));
		player_header(&p, "\r\n", 2);
		assert_int_equal(player_end(&p, CURLE_OK, NULL),
		                 rows[i / 2].fails[i % 2] ? CURLE_HTTP_RETURNED_ERROR : CURLE_OK);
		player_stop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(default_functions_write_to_files),
	        cmocka_unit_test(verbose_without_function_prints_as_libcurl),
	        cmocka_unit_test(connect_lines_carry_no_meaning),
	        cmocka_unit_test(nothing_is_lost_by_a_pause),
	        cmocka_unit_test(paused_by_the_program_between_pieces),
	        cmocka_unit_test(longjmp_leaves_a_player_that_goes_on),
	        cmocka_unit_test(first_error_stays),
	        cmocka_unit_test(counted_early_or_late),
	        cmocka_unit_test(a_416_of_a_resumed_download),
	        cmocka_unit_test(a_size_that_is_too_large_is_told_before_or_after),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
