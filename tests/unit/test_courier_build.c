/* What of the program's options reaches the courier's own handle, on new and old libcurl. */
#include "unit/courier_server.h"

static void cookies_go_out_and_come_back(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nSet-Cookie: b=2; Path=/\r\nContent-Length: 0\r\n\r\n", 0,
	         false, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};
	struct record second = {0};
	const struct flavour *fl = flavour_here();
	const struct curl_slist *before, *after;
	struct curl_slist *jar;
	struct attempt *first;

	(void)state;
	write_start(&w, steps, 2);
	jar = CURL_FN(fl, slist_append)(NULL, "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1");
	w.plan.cookies = jar;
	options_set(&w.options, CURLOPT_COOKIEFILE, (uintptr_t) "");
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(server_got(&w.server, 0, "\r\nCookie: a=1\r\n"));
	assert_true(attempt_cookies(w.attempt, &before, &after));
	assert_string_equal(before->data, jar->data);
	assert_null(before->next);
	assert_non_null(after);
	assert_non_null(after->next);
	CURL_FN(fl, slist_free_all)(jar);
	/* and do not stay for the next handle */
	first = w.attempt;
	w.plan.cookies = NULL;
	options_set(&w.options, CURLOPT_COOKIEFILE, 0);
	w.plan.ctx = &second;
	write_send(&w);
	attempt_unref(first);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_false(server_got(&w.server, 1, "Cookie:"));
	assert_false(attempt_cookies(w.attempt, &before, &after));
	write_finish(&w);
}

static void own_key_header_is_replaced(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	const struct flavour *fl = flavour_here();
	struct curl_slist *list = CURL_FN(fl, slist_append)(NULL, "idempotency-key: mine");

	(void)state;
	list = CURL_FN(fl, slist_append)(list, "X-Empty;");
	list = CURL_FN(fl, slist_append)(list, "Accept:");
	write_start(&w, steps, 1);
	set_word(&w, CURLOPT_HTTPHEADER, (uintptr_t)list);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_false(server_got(&w.server, 0, "mine"));
	assert_true(server_got(&w.server, 0, "\r\nX-Empty:\r\n"));
	assert_false(server_got(&w.server, 0, "\r\nAccept:"));
	CURL_FN(fl, slist_free_all)(list);
	write_finish(&w);
}

static void program_limits_do_not_reach_the_sender(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno", 150, false, 0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	set_word(&w, CURLOPT_TIMEOUT_MS, 50);
	set_word(&w, CURLOPT_FAILONERROR, 1);
	set_word(&w, CURLOPT_MAXFILESIZE, 1);
	set_word(&w, CURLOPT_HEADER, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.complete);
	assert_int_equal(w.record.end.status, 500);
	assert_string_equal(w.body.data, "no");
	write_finish(&w);
}

static void dummy(void)
{
}

static void what_cannot_be_carried_is_named(void **state)
{
	static const struct {
		CURLoption id;
		uintptr_t word;
		const char *name; /* null: carried */
	} cases[] = {
	        {CURLOPT_SSL_CTX_FUNCTION, 1, "SSL_CTX_FUNCTION"},
	        {CURLOPT_SSL_CTX_FUNCTION, 0, NULL},
	        {CURLOPT_OPENSOCKETFUNCTION, 1, "OPENSOCKETFUNCTION"},
	        {CURLOPT_SOCKOPTFUNCTION, 1, "SOCKOPTFUNCTION"},
	        {CURLOPT_CLOSESOCKETFUNCTION, 1, "CLOSESOCKETFUNCTION"},
	        {CURLOPT_PREREQFUNCTION, 1, "PREREQFUNCTION"},
	        {CURLOPT_RESOLVER_START_FUNCTION, 1, "RESOLVER_START_FUNCTION"},
	        {CURLOPT_TRAILERFUNCTION, 1, "TRAILERFUNCTION"},
	        {CURLOPT_HSTSREADFUNCTION, 1, "HSTSREADFUNCTION"},
	        {CURLOPT_HSTSWRITEFUNCTION, 1, "HSTSWRITEFUNCTION"},
	        {CURLOPT_INTERLEAVEFUNCTION, 1, "INTERLEAVEFUNCTION"},
	        {CURLOPT_CHUNK_BGN_FUNCTION, 1, "CHUNK_BGN_FUNCTION"},
	        {CURLOPT_WRITEFUNCTION, 1, NULL},
	        {CURLOPT_HEADERFUNCTION, 1, NULL},
	        {CURLOPT_READFUNCTION, 1, NULL},
	        {CURLOPT_SEEKFUNCTION, 1, NULL},
	        {CURLOPT_IOCTLFUNCTION, 1, NULL},
	        {CURLOPT_XFERINFOFUNCTION, 1, NULL},
	        {CURLOPT_PROGRESSFUNCTION, 1, NULL},
	        {CURLOPT_DEBUGFUNCTION, 1, NULL},
	        {CURLOPT_SHARE, 0, NULL},
	        {CURLOPT_CONNECT_ONLY, 1, "CONNECT_ONLY"},
	        {CURLOPT_CONNECT_ONLY, 0, NULL},
	        {CURLOPT_UPLOAD, 1, NULL},
	        {CURLOPT_HSTS, 2, "HSTS"},
	        {CURLOPT_HSTS, 0, NULL},
	        {CURLOPT_RESUME_FROM, 5, NULL}, /* of what is asked for */
	        {CURLOPT_RESUME_FROM_LARGE, 5, NULL},
	        {CURLOPT_MIMEPOST, 1, NULL},
	        {CURLOPT_HTTPPOST, 1, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct options o;
		const char *name;

		options_init(&o);
		uintptr_t word = cases[i].word == 2 ? (uintptr_t) "/tmp/h" : cases[i].word;
		if (cases[i].id >= CURLOPTTYPE_FUNCTIONPOINT && cases[i].id < CURLOPTTYPE_OFF_T &&
		    word)
			word = (uintptr_t)dummy;
		assert_int_equal(options_set(&o, cases[i].id, word), 0);
		name = courier_refuses(&o);
		if (cases[i].name && (!name || strcmp(name, cases[i].name)))
			fail_msg("%s: %s", cases[i].name, name ? name : "carried");
		if (!cases[i].name && name)
			fail_msg("%d is refused: %s", (int)cases[i].id, name);
		options_free(&o);
	}
}

static void a_resumed_body_cannot_be_carried(void **state)
{
	static const struct {
		CURLoption id;
		uintptr_t word;
	} bodies[] = {{CURLOPT_POST, 1}, {CURLOPT_UPLOAD, 1}, {CURLOPT_COPYPOSTFIELDS, 2}},
	  resumes[] = {{CURLOPT_RESUME_FROM, 5},
	               {CURLOPT_RESUME_FROM_LARGE, 5},
	               {CURLOPT_RESUME_FROM, 0},
	               {CURLOPT_RESUME_FROM_LARGE, 0}};

	(void)state;
	for (size_t i = 0; i < 3 * 4; i++) {
		uintptr_t body = bodies[i / 4].word;
		struct options o;
		const char *name;

		options_init(&o);
		assert_int_equal(options_set(&o, resumes[i % 4].id, resumes[i % 4].word), 0);
		assert_int_equal(
		        options_set(&o, bodies[i / 4].id, body == 2 ? (uintptr_t) "x" : body), 0);
		name = courier_refuses(&o);
		assert_int_equal(name != NULL, i % 4 < 2);
		if (name)
			assert_memory_equal(name, "RESUME_FROM", 11);
		options_free(&o);
	}
}

/* What such a handle sends depends on the version of libcurl. */
static void a_half_upload_is_not_carried(void **state)
{
	static const CURLoption after[] = {CURLOPT_NOBODY, CURLOPT_MIMEPOST, CURLOPT_POSTFIELDS};

	(void)state;
	for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
		struct options o;

		options_init(&o);
		assert_int_equal(options_set(&o, CURLOPT_UPLOAD, 1), 0);
		assert_int_equal(options_set(&o, after[i], (uintptr_t) "x"), 0);
		assert_string_equal(courier_refuses(&o), "UPLOAD");
		assert_int_equal(options_set(&o, CURLOPT_UPLOAD, 0), 0);
		assert_null(courier_refuses(&o));
		options_free(&o);
	}
}

static struct payload *pieces(const char *const *piece)
{
	struct payload *p = payload_new();

	for (; *piece; piece++)
		assert_int_equal(payload_add(p, *piece, strlen(*piece)), 0);
	assert_int_equal(payload_seal(p), 0);
	return p;
}

/* The end of the request is what the server is left to look for: its lines in their order. */
static void payloads_go_out_as_they_came(void **state)
{
	static const char *const parts[] = {"hel", "lo", NULL};
	static const struct {
		CURLoption id;
		uintptr_t word;
		curl_off_t size;
		const char *type, *end;
	} cases[] = {
	        {CURLOPT_POST, 1, 5, NULL,
	         "Content-Length: 5\r\n"
	         "Content-Type: application/x-www-form-urlencoded\r\n\r\nhello"},
	        {CURLOPT_POST, 1, -1, NULL, "\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"},
	        {CURLOPT_UPLOAD, 1, 5, NULL,
	         "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello"},
	        {CURLOPT_UPLOAD, 1, -1, NULL,
	         "Expect: 100-continue\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"},
	        {CURLOPT_MIMEPOST, 1, 5, "multipart/form-data; boundary=b",
	         "Idempotency-Key: k\r\nContent-Length: 5\r\n"
	         "Content-Type: multipart/form-data; boundary=b\r\n\r\nhello"},
	        {CURLOPT_HTTPPOST, 1, 5, "",
	         "Idempotency-Key: k\r\nContent-Length: 5\r\n\r\nhello"},
	};
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct write w = {0};

		write_start(&w, steps, 1);
		set_word(&w, cases[i].id, cases[i].word);
		set_word(&w, CURLOPT_EXPECT_100_TIMEOUT_MS, 1);
		w.plan.payload = pieces(parts);
		w.plan.body_kind = BODY_PAYLOAD;
		w.plan.body_size = cases[i].size;
		w.plan.body_type = cases[i].type;
		w.plan.edit.add[0] = "Idempotency-Key: k";
		write_send(&w);
		payload_unref(w.plan.payload);
		assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
		if (!server_got(&w.server, 0, cases[i].end))
			fail_msg("%zu", i);
		write_finish(&w);
	}
}

/* The program's own line goes, however it is spelt, when the record's key takes its place. */
static void the_records_key_replaces_the_programs(void **state)
{
	static const char *const lines[] = {"Idempotency-Key: own", "idempotency-key:own",
	                                    "Idempotency-Key : own", "Idempotency-Key\t:own",
	                                    "Idempotency-Key;"};
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct write w = {0};
		struct curl_slist line = {(char *)(uintptr_t)lines[i], NULL};

		write_start(&w, steps, 1);
		set_word(&w, CURLOPT_POSTFIELDS, (uintptr_t) "x");
		set_word(&w, CURLOPT_HTTPHEADER, (uintptr_t)&line);
		w.plan.body = (struct span){"x", 1};
		w.plan.body_kind = BODY_BYTES;
		w.plan.edit.add[0] = "Idempotency-Key: record";
		w.plan.edit.key_name = "Idempotency-Key";
		write_send(&w);
		assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
		assert_true(server_got(&w.server, 0, "Idempotency-Key: record\r\n"));
		assert_false(server_got(&w.server, 0, lines[i]));
		write_finish(&w);
	}
}

static void method_is_built_from_its_outcome(void **state)
{
	static const struct {
		CURLoption id[3];
		uintptr_t word[3];
		const char *line;
		bool body;
	} cases[] = {
	        {{CURLOPT_POST}, {1}, "POST /v1/orders", true},
	        {{CURLOPT_POST, CURLOPT_CUSTOMREQUEST},
	         {1, (uintptr_t) "PATCH"},
	         "PATCH /v1",
	         true},
	        {{CURLOPT_POST, CURLOPT_HTTPGET}, {1, 1}, "GET /v1/orders", false},
	        {{CURLOPT_NOBODY}, {1}, "HEAD /v1/orders", false},
	        {{CURLOPT_NOBODY, CURLOPT_CUSTOMREQUEST},
	         {1, (uintptr_t) "DELETE"},
	         "DELETE /v1/orders",
	         false},
	        {{CURLOPT_HTTPGET, CURLOPT_CUSTOMREQUEST},
	         {1, (uintptr_t) "DELETE"},
	         "DELETE /v1/orders",
	         false},
	};
	static const struct step steps[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct write w = {0};

		write_start(&w, steps, 1);
		for (int j = 0; j < 3 && cases[i].id[j]; j++)
			set_word(&w, cases[i].id[j], cases[i].word[j]);
		w.plan.body_kind = cases[i].body ? BODY_BYTES : BODY_NONE;
		write_send(&w);
		assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
		assert_true(server_got(&w.server, 0, cases[i].line));
		assert_int_equal(server_got(&w.server, 0, "\r\n\r\nhello"), cases[i].body);
		write_finish(&w);
	}
}

/* A libcurl as before 7.66: no gate callback, no poll. */
static CURLcode old_setopt(CURL *easy, CURLoption id, ...)
{
	va_list list;
	void *word;

	va_start(list, id);
	word = va_arg(list, void *);
	va_end(list);
	if (id == CURLOPT_PREREQFUNCTION || id == CURLOPT_PREREQDATA || id == CURLOPT_MAXAGE_CONN)
		return CURLE_UNKNOWN_OPTION;
	return CURL_FN(flavour_here(), easy_setopt)(easy, id, word);
}

static const struct flavour *flavour_old(void)
{
	static struct flavour old;

	if (!old.path) {
		old = *flavour_here();
		old.fn[FN_easy_setopt] = (void (*)(void))old_setopt;
	}
	return &old;
}

static void old_libcurl_gates_before_it_connects(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 200 Tunnel\r\nVia: p\r\n\r\n", 0, false, 0},
	        {"HTTP/1.1 307 Go\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", 50, false, 0},
	        {"HTTP/1.1 200 Tunnel\r\nVia: p\r\n\r\n", 0, false, 0},
	        {OK, 0, false, 0}};
	struct write w = {0};
	struct tape_cursor cursor = {0};
	struct tape_piece p;
	char proxy[64];
	int connect = 0;
	unsigned request = 0;

	(void)state;
	write_start(&w, steps, 4);
	w.plan.flavour = flavour_old();
	w.plan.no_stale_reuse = true;
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
	set_word(&w, CURLOPT_PROXY, (uintptr_t)proxy);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "");
	set_word(&w, CURLOPT_HTTPPROXYTUNNEL, 1);
	set_word(&w, CURLOPT_FOLLOWLOCATION, 1);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	while (tape_read(attempt_tape(w.attempt), &cursor, &p)) {
		assert_int_not_equal(p.kind, TAPE_DEBUG); /* the program did not ask for them */
		connect += p.connect;
		request = p.request;
	}
	assert_int_equal(connect, 6); /* each request on a connection of its own */
	assert_int_equal(request, 1);
	assert_int_equal(w.record.gates, 1);
	assert_string_equal(w.record.url[0], w.url);
	assert_int_equal(w.record.end.status, 201);
	assert_true(w.record.end.complete);
	write_finish(&w);
}

static struct server *listening;

/* The first question comes with the answer, the second one when it has ended. */
static bool in_progress_and_gone(void *ctx, long status)
{
	(void)ctx;
	shutdown(listening->fd, SHUT_RDWR);
	return status == 409;
}

/* The request that cannot connect is not the first one: that one arrived, and is in progress. */
static void old_libcurl_proves_nothing_of_what_is_asked_again(void **state)
{
	static const struct step steps[] = {
	        {"HTTP/1.1 409 Wait\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 0, true,
	         0}};
	struct write w = {0};

	(void)state;
	write_start(&w, steps, 1);
	listening = &w.server;
	w.plan.flavour = flavour_old();
	w.plan.calls.again = in_progress_and_gone;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(server_count(&w.server), 1);
	assert_int_equal(w.record.gates, 2);
	assert_int_equal(w.record.end.code, CURLE_COULDNT_CONNECT);
	assert_false(w.record.end.stopped);
	assert_false(w.record.end.complete);
	write_finish(&w);
}

static void old_libcurl_proves_a_refused_connect(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct record lost = {0};
	static const struct step silent[] = {{NULL, 0, true, 0}};

	(void)state;
	w.server.deaf = true;
	write_start(&w, steps, 1);
	close(w.server.fd);
	w.plan.flavour = flavour_old();
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(w.record.gates, 1);
	assert_int_equal(w.record.end.code, CURLE_COULDNT_CONNECT);
	assert_true(w.record.end.stopped);
	attempt_unref(w.attempt);
	/* nothing else does */
	options_free(&w.options);
	memset(&w.server, 0, sizeof w.server);
	write_start(&w, silent, 1);
	w.plan.flavour = flavour_old();
	w.plan.ctx = &lost;
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_int_equal(lost.end.code, CURLE_GOT_NOTHING);
	assert_false(lost.end.stopped);
	assert_int_equal(server_count(&w.server), 1);
	write_finish(&w);
}

static void resolve_lines_stay_with_their_write(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0};
	struct record second = {0};
	const struct flavour *fl = flavour_here();
	struct curl_slist *list;
	struct attempt *first;
	char line[64], url[64];

	(void)state;
	write_start(&w, steps, 1);
	snprintf(line, sizeof line, "pinned.invalid:%d:127.0.0.1", w.server.port);
	snprintf(url, sizeof url, "http://pinned.invalid:%d/", w.server.port);
	list = CURL_FN(fl, slist_append)(NULL, line);
	set_word(&w, CURLOPT_URL, (uintptr_t)url);
	set_word(&w, CURLOPT_NOPROXY, (uintptr_t) "*");
	set_word(&w, CURLOPT_RESOLVE, (uintptr_t)list);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_true(w.record.end.complete);
	first = w.attempt;
	set_word(&w, CURLOPT_RESOLVE, 0);
	w.plan.ctx = &second;
	write_send(&w);
	attempt_unref(first);
	assert_true(write_play(w.attempt, &w.head, &w.body, 9000));
	assert_int_equal(second.end.code, CURLE_COULDNT_RESOLVE_HOST);
	assert_true(second.end.stopped);
	CURL_FN(fl, slist_free_all)(list);
	write_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(cookies_go_out_and_come_back),
	        cmocka_unit_test(own_key_header_is_replaced),
	        cmocka_unit_test(program_limits_do_not_reach_the_sender),
	        cmocka_unit_test(what_cannot_be_carried_is_named),
	        cmocka_unit_test(a_resumed_body_cannot_be_carried),
	        cmocka_unit_test(a_half_upload_is_not_carried),
	        cmocka_unit_test(payloads_go_out_as_they_came),
	        cmocka_unit_test(the_records_key_replaces_the_programs),
	        cmocka_unit_test(method_is_built_from_its_outcome),
	        cmocka_unit_test(old_libcurl_gates_before_it_connects),
	        cmocka_unit_test(old_libcurl_proves_a_refused_connect),
	        cmocka_unit_test(old_libcurl_proves_nothing_of_what_is_asked_again),
	        cmocka_unit_test(resolve_lines_stay_with_their_write),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
