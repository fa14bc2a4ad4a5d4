/* What the courier sends, and what its gate is told. */
#include "unit/courier_server.h"

static void post_is_sent_and_answered(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct tape_end end;

	(void)state;
	write_start(&w, steps, 1);
	w.plan.body = (struct span){"a\0b\0c", 5};
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	tape_ended(attempt_tape(w.attempt), &end);
	assert_true(end.complete);
	assert_false(end.stopped);
	assert_int_equal(end.code, CURLE_OK);
	assert_int_equal(end.status, 201);
	assert_string_equal(w.body.data, "ok");
	assert_string_equal(w.head.data,
	                    "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\n");
	assert_true(server_got(&w.server, 0, "POST /v1/orders HTTP/1.1\r\n"));
	assert_true(server_got(&w.server, 0, "\r\nIdempotency-Key: k-1\r\n"));
	assert_memory_equal(w.server.got[0].data + w.server.got[0].n - 9, "\r\n\r\na\0b\0c", 9);
	assert_int_equal(w.record.gates, 1);
	assert_int_equal(w.record.pass[0].number, 1);
	assert_string_equal(w.record.url[0], w.url);
	assert_int_equal(w.record.ended, 1);
	assert_int_equal(w.record.released, 1);
	assert_int_equal(w.record.abandoned, 0);
	write_finish(&w);
}

static void gate_refused_sends_nothing(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	w.record.refuse_from = 1;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.stopped);
	assert_int_equal(w.record.end.code, CURLE_ABORTED_BY_CALLBACK);
	assert_int_equal(server_count(&w.server), 0);
	write_finish(&w);
}

/* The second write goes out on the kept connection, which the server closes after taking it. */
static void resend_write(struct write *w, struct record *second, bool refuse)
{
	static const struct step steps[] = {
	        {OK, 0, false, 0}, {NULL, 0, true, 0}, {OK, 0, false, 0}};
	struct attempt *first;

	write_start(w, steps, 3);
	write_send(w);
	assert_true(write_play(w->attempt, &w->head, &w->body, 5000));
	first = w->attempt;
	second->answers_only = refuse;
	w->plan.ctx = second;
	write_send(w);
	attempt_unref(first);
	assert_true(write_play(w->attempt, &w->head, &w->body, 5000));
}

static void resend_on_dead_connection_asks_again(void **state)
{
	struct write w = {0};
	struct record second = {0};

	(void)state;
	resend_write(&w, &second, true);
	assert_int_equal(second.gates, 2);
	assert_int_equal(second.pass[1].number, 2);
	assert_false(second.pass[1].after_answer);
	assert_true(second.pass[1].same_authority);
	assert_false(second.end.stopped);
	assert_false(second.end.complete);
	assert_int_equal(second.end.code, CURLE_ABORTED_BY_CALLBACK);
	assert_int_equal(server_count(&w.server), 2);
	write_finish(&w);
}

static void resend_let_through_arrives(void **state)
{
	struct write w = {0};
	struct record second = {0};

	(void)state;
	resend_write(&w, &second, false);
	assert_int_equal(second.gates, 2);
	assert_true(second.end.complete);
	assert_int_equal(server_count(&w.server), 3);
	write_finish(&w);
}

static void redirect_elsewhere_loses_the_key(void **state)
{
	char there[256];
	struct step steps[] = {{there, 0, true, 0}, {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 2);
	snprintf(there, sizeof there,
	         "HTTP/1.1 307 Go\r\nLocation: http://localhost:%d/else\r\nContent-Length: 0\r\n"
	         "Connection: close\r\n\r\n",
	         w.server.port);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	w.record.answers_only = true;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 2);
	assert_true(w.record.pass[1].after_answer);
	assert_false(w.record.pass[1].same_authority);
	assert_non_null(strstr(w.record.url[1], "http://localhost:"));
	assert_true(server_got(&w.server, 0, "Idempotency-Key:"));
	assert_true(server_got(&w.server, 1, "POST /else "));
	assert_true(server_got(&w.server, 1, "\r\n\r\nhello"));
	assert_false(server_got(&w.server, 1, "Idempotency-Key:"));
	assert_int_equal(w.record.end.status, 201);
	write_finish(&w);
}

static void redirect_at_home_keeps_the_key(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 307 Go\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", 0, false, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 2);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.pass[1].same_authority);
	assert_true(server_got(&w.server, 1, "Idempotency-Key: k-1\r\n"));
	write_finish(&w);
}

/* One answer lets one further send through, not two. */
static void answer_counts_for_one_pass(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 307 Go\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", 0, false, 0},
	        {NULL, 0, true, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 3);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	w.record.answers_only = true;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 3);
	assert_true(w.record.pass[1].after_answer);
	assert_false(w.record.pass[2].after_answer);
	assert_false(w.record.end.complete);
	assert_int_equal(server_count(&w.server), 2);
	write_finish(&w);
}

static void digest_round_follows_an_answer(void **state)
{
	static const struct step steps[] = {{"HTTP/1.1 401 No\r\nWWW-Authenticate: Digest "
	                                     "realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n"
	                                     "Content-Length: 0\r\n\r\n",
	                                     0, false, 0},
	                                    {OK, 0, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 2);
	set_word(&w, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
	set_word(&w, CURLOPT_USERPWD, (uintptr_t) "me:secret");
	w.record.answers_only = true;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 2);
	assert_true(w.record.pass[1].after_answer);
	assert_true(server_got(&w.server, 1, "Authorization: Digest username=\"me\""));
	assert_true(server_got(&w.server, 1, "\r\n\r\nhello"));
	write_finish(&w);
}

static void connect_blocks_are_marked_and_do_not_count(void **state)
{
	static const struct step steps[] = {{"HTTP/1.1 200 Tunnel\r\nVia: p\r\n\r\n", 0, false, 0},
	                                    {OK, 0, false, 0}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	char proxy[64];
	int connect = 0, origin = 0;

	(void)state;
	write_start(&w, steps, 2);
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
	set_word(&w, CURLOPT_PROXY, (uintptr_t)proxy);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "");
	set_word(&w, CURLOPT_HTTPPROXYTUNNEL, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	while (tape_read(attempt_tape(w.attempt), &cursor, &p))
		if (p.kind == TAPE_HEADER)
			*(p.connect ? &connect : &origin) += 1;
	assert_int_equal(connect, 3);
	assert_int_equal(origin, 4);
	assert_int_equal(w.record.gates, 1);
	assert_true(server_got(&w.server, 0, "CONNECT "));
	assert_false(server_got(&w.server, 0, "Idempotency-Key"));
	assert_int_equal(w.record.end.status, 201);
	write_finish(&w);
}

static void refused_tunnel_sent_nothing(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", 0, true, 0}};
	struct write w = {0};
	char proxy[64];

	(void)state;
	write_start(&w, steps, 1);
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
	set_word(&w, CURLOPT_PROXY, (uintptr_t)proxy);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "");
	set_word(&w, CURLOPT_HTTPPROXYTUNNEL, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.stopped);
	assert_int_equal(w.record.end.status, 0);
	assert_int_equal(w.record.gates, 0);
	write_finish(&w);
}

static const char LARGE[] = "HTTP/1.1 200 OK\r\nContent-Length: 25165824\r\n\r\n";

static void sender_is_paused_above_four_megabytes(void **state)
{
	static const struct step steps[] = {{LARGE, 0, false, 24 << 20}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	struct tape *t;
	size_t held = 0, rest = 0;
	int64_t until = now_us() + 400000;
	struct attempt_phase phase = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	t = attempt_tape(w.attempt);
	assert_true(tape_attach(t));
	while (now_us() < until)
		attempt_wait(w.attempt, until);
	assert_true(tape_full(t));
	while (tape_read(t, &cursor, &p))
		held += p.kind == TAPE_BODY ? p.n : 0;
	assert_in_range(held, 4 << 20, (4 << 20) + 65536);
	until = now_us() + 10000000;
	while (!phase.ended && now_us() < until) {
		attempt_phase(w.attempt, &phase);
		while (tape_read(t, &cursor, &p))
			rest += p.kind == TAPE_BODY ? p.n : 0;
		if (!phase.ended)
			attempt_wait(w.attempt, until);
	}
	assert_int_equal(held + rest, 24 << 20);
	assert_int_equal(cursor.body_bytes, 24 << 20);
	tape_detach(t);
	assert_false(tape_attach(t)); /* more than `keep`: its beginning is gone */
	assert_int_equal(tape_body(t, SIZE_MAX, &w.body, &(struct span){0}), -1);
	assert_true(w.record.end.complete);
	write_finish(&w);
}

static void debug_lines_are_on_the_tape(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	bool request = false;

	(void)state;
	write_start(&w, steps, 1);
	set_word(&w, CURLOPT_VERBOSE, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	while (tape_read(attempt_tape(w.attempt), &cursor, &p))
		request |= p.kind == TAPE_DEBUG && p.debug == CURLINFO_HEADER_OUT &&
		           memmem(p.data, p.n, "POST /v1/orders", 15);
	assert_true(request);
	write_finish(&w);
}

static void snapshot_tells_the_status(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct info *info;
	long status = 0;

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	info = tape_info_copy(attempt_tape(w.attempt));
	assert_non_null(info);
	assert_int_equal(info_get(info, CURLINFO_RESPONSE_CODE, &status), CURLE_OK);
	assert_int_equal(status, 201);
	info_free(info);
	write_finish(&w);
}

/* The headers came, the body hangs: a program that asks for the status now gets it. */
static void snapshot_after_headers_is_there_in_time(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0, false, 0}};
	struct write w = {0};
	struct info *info;
	struct attempt_phase phase;
	int64_t until = now_us() + 3000000;
	struct span head = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	while (!head.n && now_us() < until) {
		attempt_wait(w.attempt, until);
		head = tape_head(attempt_tape(w.attempt));
	}
	attempt_phase(w.attempt, &phase);
	assert_false(phase.ended);
	info = tape_info_copy(attempt_tape(w.attempt));
	assert_non_null(info);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 200);
	info_free(info);
	attempt_cancel(w.attempt);
	assert_false(w.record.end.stopped);
	assert_false(w.record.end.complete);
	write_finish(&w);
}

static void cut_answer_is_not_complete(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 0, true, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_false(w.record.end.complete);
	assert_int_equal(w.record.end.code, CURLE_PARTIAL_FILE);
	assert_int_equal(w.record.end.status, 200);
	assert_true(strlen(w.record.end.text) > 0);
	write_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(post_is_sent_and_answered),
	        cmocka_unit_test(gate_refused_sends_nothing),
	        cmocka_unit_test(resend_on_dead_connection_asks_again),
	        cmocka_unit_test(resend_let_through_arrives),
	        cmocka_unit_test(redirect_elsewhere_loses_the_key),
	        cmocka_unit_test(redirect_at_home_keeps_the_key),
	        cmocka_unit_test(answer_counts_for_one_pass),
	        cmocka_unit_test(digest_round_follows_an_answer),
	        cmocka_unit_test(connect_blocks_are_marked_and_do_not_count),
	        cmocka_unit_test(refused_tunnel_sent_nothing),
	        cmocka_unit_test(sender_is_paused_above_four_megabytes),
	        cmocka_unit_test(debug_lines_are_on_the_tape),
	        cmocka_unit_test(snapshot_tells_the_status),
	        cmocka_unit_test(snapshot_after_headers_is_there_in_time),
	        cmocka_unit_test(cut_answer_is_not_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
