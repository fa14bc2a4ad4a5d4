/* libcurl's built-in meter, drawn by the player: its columns, when a row comes, who gets one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "player/inner.h"
#include "player/player.h"

enum { START = 5000000, SECOND = 1000000 };

#define HEAD                                                                                       \
	"  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"        \
	"                                 Dload  Upload   Total   Spent    Left  Speed\n"
#define ROW_NOTHING                                                                                \
	"\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"

static char *drawn;
static size_t drawn_size;

static void begin(struct player *p, struct player_sink *sink)
{
	sink->stderr_file = open_memstream(&drawn, &drawn_size);
	assert_non_null(sink->stderr_file);
	player_start(p, sink, START);
}

static const char *seen(struct player *p)
{
	fflush(p->sink.stderr_file);
	return drawn;
}

static void finish(struct player *p)
{
	player_stop(p);
	fclose(p->sink.stderr_file);
	free(drawn);
}

static size_t swallow(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return size * n;
}

static void answer(struct player *p, const char *length, size_t n)
{
	char line[64], body[256] = {0};

	snprintf(line, sizeof(line), "Content-Length: %s\r\n", length);
	player_header(p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(p, line, strlen(line));
	player_header(p, "\r\n", 2);
	for (size_t at = 0; at < n; at += sizeof(body))
		player_body(p, body, n - at < sizeof(body) ? n - at : sizeof(body));
}

static void rows_of_one_write(void **state)
{
	struct player_sink sink = {.write = swallow, .upload_size = 12};
	struct player_phase phase = {.resolved = true, .connected = true};
	struct player p;

	(void)state;
	begin(&p, &sink);
	player_tick(&p, &phase, START);
	assert_string_equal(seen(&p), HEAD ROW_NOTHING);
	phase.sent = true;
	phase.uploaded = 12;
	player_tick(&p, &phase, START + SECOND / 2); /* not twice in one second */
	assert_string_equal(seen(&p), HEAD ROW_NOTHING);
	player_tick(&p, &phase, START + 2 * SECOND);
	assert_string_equal(
	        seen(&p), HEAD ROW_NOTHING
	        "\r100    12    0     0  100    12      0      6  0:00:02  0:00:02 --:--:--     6");
	answer(&p, "20", 20);
	player_tick(&p, &phase, START + 2 * SECOND + 1);
	player_end(&p, CURLE_OK, NULL);
	assert_string_equal(
	        seen(&p), HEAD ROW_NOTHING
	        "\r100    12    0     0  100    12      0      6  0:00:02  0:00:02 --:--:--     6"
	        "\r100    32  100    20  100    12      9      5  0:00:02  0:00:02 --:--:--    "
	        "16\n");
	finish(&p);
}

/* The last row has the speed of all of it, however soon it comes. */
static void speed_of_what_is_over_at_once(void **state)
{
	struct player_sink sink = {.write = swallow, .upload_size = 12};
	struct player_phase phase = {.sent = true, .uploaded = 12};
	struct player p;

	(void)state;
	begin(&p, &sink);
	player_tick(&p, &(struct player_phase){.resolved = true}, START);
	answer(&p, "20", 20);
	player_tick(&p, &phase, START + SECOND / 100);
	player_end(&p, CURLE_OK, NULL);
	assert_non_null(strstr(seen(&p), "--:--:-- --:--:-- --:--:--  3200\n"));
	finish(&p);
}

/* Chunked: what has gone is all that can be told. */
static void size_of_the_body_may_be_unknown(void **state)
{
	struct player_sink sink = {.write = swallow, .upload_size = -1};
	struct player_phase phase = {.sent = true, .uploaded = 19};
	struct player p;

	(void)state;
	begin(&p, &sink);
	player_tick(&p, &(struct player_phase){.resolved = true}, START);
	answer(&p, "15", 15);
	player_tick(&p, &phase, START + SECOND);
	assert_non_null(strstr(seen(&p), "\r100    34  100    15    0    19     15     19"));
	finish(&p);
}

static void size_of_the_answer_may_be_unknown(void **state)
{
	struct player_sink sink = {.write = swallow, .upload_size = 0};
	struct player p;

	(void)state;
	begin(&p, &sink);
	player_tick(&p, &(struct player_phase){.sent = true}, START);
	player_header(&p, "HTTP/1.1 200 OK\r\n", 17);
	player_header(&p, "\r\n", 2);
	player_body(&p, "12345", 5);
	player_tick(&p, &(struct player_phase){.sent = true}, START + SECOND);
	assert_non_null(strstr(seen(&p),
	                       "\r100     5    0     5    0     0      5      0 --:--:--  "
	                       "0:00:01 --:--:--     5"));
	finish(&p);
}

static void an_error_ends_it_as_well(void **state)
{
	struct player_sink sink = {.write = swallow, .upload_size = 0};
	struct player p;

	(void)state;
	begin(&p, &sink);
	player_end(&p, CURLE_COULDNT_CONNECT, "no");
	assert_string_equal(seen(&p), HEAD ROW_NOTHING "\n");
	finish(&p);
}

static int answer_with(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	return *(int *)ctx;
}

static void who_gets_one(void **state)
{
	static const struct {
		bool off, callback;
		int result;
		const char *want;
	} cases[] = {
	        {true, false, 0, ""},
	        {true, true, CURL_PROGRESSFUNC_CONTINUE, ""},
	        {false, true, 0, ""},
	        {false, true, 1, ""},
	        /* drawn beside the callback, whose program then has to end the line */
	        {false, true, CURL_PROGRESSFUNC_CONTINUE, HEAD ROW_NOTHING ROW_NOTHING},
	        {false, false, 0, HEAD ROW_NOTHING ROW_NOTHING "\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int result = cases[i].result;
		struct player_sink sink = {.write = swallow,
		                           .no_progress = cases[i].off,
		                           .xferinfo = cases[i].callback ? answer_with : NULL,
		                           .progress_data = &result};
		struct player p;

		begin(&p, &sink);
		player_tick(&p, &(struct player_phase){.sent = true}, START);
		player_end(&p, CURLE_OK, NULL);
		if (strcmp(seen(&p), cases[i].want) != 0)
			fail_msg("case %zu: %s", i, drawn);
		finish(&p);
	}
}

static void five_columns_a_size(void **state)
{
	static const struct {
		int64_t bytes;
		const char *text;
	} cases[] = {
	        {0, "    0"},
	        {99999, "99999"},
	        {100000, "  97k"},
	        {10239999, "9999k"},
	        {10240000, " 9.7M"},
	        {(INT64_C(100) << 20) - 1, "99.10"}, /* libcurl's own slip, cut to five */
	        {INT64_C(100) << 20, " 100M"},
	        {(INT64_C(10000) << 20) - 1, "9999M"},
	        {INT64_C(10000) << 20, " 9.7G"},
	        {INT64_C(100) << 30, " 100G"},
	        {INT64_C(10000) << 30, "   9T"},
	        {INT64_C(10000) << 40, "   9P"},
	        {INT64_MAX, "8191P"},
	};
	char out[METER_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(meter_size(out, cases[i].bytes), cases[i].text);
}

static void eight_columns_a_time(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} cases[] = {
	        {-1, "--:--:--"},           {0, "--:--:--"},        {1, " 0:00:01"},
	        {3600, " 1:00:00"},         {359999, "99:59:59"},   {360000, "  4d 04h"},
	        {86400000 - 1, "999d 23h"}, {86400000, "   1000d"},
	};
	char out[METER_TIME];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(meter_time(out, cases[i].seconds), cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rows_of_one_write),
	        cmocka_unit_test(speed_of_what_is_over_at_once),
	        cmocka_unit_test(size_of_the_body_may_be_unknown),
	        cmocka_unit_test(size_of_the_answer_may_be_unknown),
	        cmocka_unit_test(an_error_ends_it_as_well),
	        cmocka_unit_test(who_gets_one),
	        cmocka_unit_test(five_columns_a_size),
	        cmocka_unit_test(eight_columns_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
