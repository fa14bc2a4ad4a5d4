/* getinfo values: what libcurl says of a handle is what the snapshot says afterwards, and stored
 * values come back, however damaged the text in between. */
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
#include "player/info.h"
#include "unit/threads_here.h"

static const struct flavour *flavour(void)
{
	static struct flavour fl;
	fl.fn[FN_easy_getinfo] = (void (*)(void))curl_easy_getinfo;
	return &fl;
}

/* Every number of curl.h, whatever its type; those that are not kept must say so. */
static const CURLINFO kept[] = {
        CURLINFO_EFFECTIVE_URL,
        CURLINFO_RESPONSE_CODE,
        CURLINFO_TOTAL_TIME,
        CURLINFO_NAMELOOKUP_TIME,
        CURLINFO_CONNECT_TIME,
        CURLINFO_PRETRANSFER_TIME,
        CURLINFO_SIZE_UPLOAD,
        CURLINFO_SIZE_UPLOAD_T,
        CURLINFO_SIZE_DOWNLOAD,
        CURLINFO_SIZE_DOWNLOAD_T,
        CURLINFO_SPEED_DOWNLOAD,
        CURLINFO_SPEED_DOWNLOAD_T,
        CURLINFO_SPEED_UPLOAD,
        CURLINFO_SPEED_UPLOAD_T,
        CURLINFO_HEADER_SIZE,
        CURLINFO_REQUEST_SIZE,
        CURLINFO_SSL_VERIFYRESULT,
        CURLINFO_FILETIME,
        CURLINFO_FILETIME_T,
        CURLINFO_CONTENT_LENGTH_DOWNLOAD,
        CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
        CURLINFO_CONTENT_LENGTH_UPLOAD,
        CURLINFO_CONTENT_LENGTH_UPLOAD_T,
        CURLINFO_STARTTRANSFER_TIME,
        CURLINFO_CONTENT_TYPE,
        CURLINFO_REDIRECT_TIME,
        CURLINFO_REDIRECT_COUNT,
        CURLINFO_HTTP_CONNECTCODE,
        CURLINFO_HTTPAUTH_AVAIL,
        CURLINFO_PROXYAUTH_AVAIL,
        CURLINFO_OS_ERRNO,
        CURLINFO_NUM_CONNECTS,
        CURLINFO_REDIRECT_URL,
        CURLINFO_PRIMARY_IP,
        CURLINFO_APPCONNECT_TIME,
        CURLINFO_CONDITION_UNMET,
        CURLINFO_PRIMARY_PORT,
        CURLINFO_LOCAL_IP,
        CURLINFO_LOCAL_PORT,
        CURLINFO_HTTP_VERSION,
        CURLINFO_PROXY_SSL_VERIFYRESULT,
        CURLINFO_PROTOCOL,
        CURLINFO_SCHEME,
        CURLINFO_TOTAL_TIME_T,
        CURLINFO_NAMELOOKUP_TIME_T,
        CURLINFO_CONNECT_TIME_T,
        CURLINFO_PRETRANSFER_TIME_T,
        CURLINFO_STARTTRANSFER_TIME_T,
        CURLINFO_REDIRECT_TIME_T,
        CURLINFO_APPCONNECT_TIME_T,
        CURLINFO_RETRY_AFTER,
        CURLINFO_EFFECTIVE_METHOD,
        CURLINFO_PROXY_ERROR,
        CURLINFO_REFERER,
};

static const CURLINFO not_kept[] = {
        CURLINFO_PRIVATE,        CURLINFO_SSL_ENGINES,      CURLINFO_COOKIELIST,
        CURLINFO_LASTSOCKET,     CURLINFO_FTP_ENTRY_PATH,   CURLINFO_RTSP_SESSION_ID,
        CURLINFO_RTSP_CSEQ_RECV, CURLINFO_RTSP_CLIENT_CSEQ, CURLINFO_RTSP_SERVER_CSEQ,
        CURLINFO_TLS_SESSION,    CURLINFO_ACTIVESOCKET,     CURLINFO_TLS_SSL_PTR,
        CURLINFO_CAINFO,         CURLINFO_CAPATH,
};

static void compare_one(CURL *easy, const struct info *info, CURLINFO id)
{
	union {
		long number;
		curl_off_t off;
		double real;
		char *text;
	} a = {0}, b = {0};
	assert_int_equal(curl_easy_getinfo(easy, id, &a), CURLE_OK);
	assert_int_equal(info_get(info, id, &b), CURLE_OK);
	if (((int)id & CURLINFO_TYPEMASK) != CURLINFO_STRING)
		assert_memory_equal(&a, &b, sizeof(a));
	else if (!a.text || !b.text)
		assert_ptr_equal(a.text, b.text);
	else
		assert_string_equal(a.text, b.text);
}

static void compare_all(CURL *easy, const struct info *info)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		compare_one(easy, info, kept[i]);
}

/* --- one exchange --- */

static const char answer[] = "HTTP/1.1 201 Created\r\n"
                             "Content-Type: application/json\r\n"
                             "Retry-After: 7\r\n"
                             "Content-Length: 2\r\n\r\n{}";

static void *serve(void *arg)
{
	int *listener = arg;
	char data[2048];
	int fd = accept(*listener, NULL, NULL);
	if (fd >= 0 && recv(fd, data, sizeof(data), 0) > 0)
		(void)send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

static CURL *perform(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t size = sizeof(in);
	pthread_t thread;
	char url[64];
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &size), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &fd), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/orders", ntohs(in.sin_port));
	CURL *easy = curl_easy_init();
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "a=1");
	curl_easy_setopt(easy, CURLOPT_REFERER, "http://before/");
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
	assert_int_equal(curl_easy_perform(easy), CURLE_OK);
	pthread_join(thread, NULL);
	close(fd);
	return easy;
}

static void fresh_is_a_handle_that_never_connected(void **state)
{
	(void)state;
	CURL *easy = curl_easy_init();
	struct info *info = info_new();
	compare_all(easy, info);
	info_free(info);
	curl_easy_cleanup(easy);
	info_free(NULL);
}

static void snapshot_says_what_the_handle_said(void **state)
{
	(void)state;
	CURL *easy = perform();
	struct info *info = info_new();
	info_capture(info, flavour(), easy);
	compare_all(easy, info);
	const char *type = info_text(info, CURLINFO_CONTENT_TYPE);
	info_capture(info, flavour(), easy);
	assert_ptr_equal(info_text(info, CURLINFO_CONTENT_TYPE), type); /* unchanged: not moved */
	struct info *copy = info_copy(info);
	info_free(info);
	compare_all(easy, copy);
	assert_int_equal(info_long(copy, CURLINFO_RESPONSE_CODE), 201);
	assert_int_equal(info_long(copy, CURLINFO_CONTENT_TYPE), 0);
	assert_null(info_text(copy, CURLINFO_RESPONSE_CODE));
	info_free(copy);
	curl_easy_cleanup(easy);
}

static void what_is_not_kept_says_so(void **state)
{
	(void)state;
	struct info *info = info_new();
	void *out = &out;
	for (size_t i = 0; i < sizeof(not_kept) / sizeof(not_kept[0]); i++) {
		assert_int_equal(info_get(info, not_kept[i], &out), CURLE_UNKNOWN_OPTION);
		assert_ptr_equal(out, &out);
	}
	assert_int_equal(info_get(info, CURLINFO_NONE, &out), CURLE_UNKNOWN_OPTION);
	assert_int_equal(info_get(info, (CURLINFO)(CURLINFO_LONG + 999), &out),
	                 CURLE_UNKNOWN_OPTION);
	assert_int_equal(info_get(info, CURLINFO_RESPONSE_CODE, NULL), CURLE_UNKNOWN_OPTION);
	assert_int_equal(info_get(info, CURLINFO_CERTINFO, NULL), CURLE_UNKNOWN_OPTION);
	info_free(info);
}

/* --- certificates, from a libcurl of the test's own --- */

static struct curl_certinfo certs;
static bool only_doubles;

static CURLcode fake_getinfo(CURL *easy, CURLINFO id, ...)
{
	va_list args;
	va_start(args, id);
	void *out = va_arg(args, void *);
	va_end(args);
	(void)easy;
	if (id == CURLINFO_CERTINFO) {
		*(struct curl_certinfo **)out = &certs;
		return CURLE_OK;
	}
	if (only_doubles && ((int)id & CURLINFO_TYPEMASK) == CURLINFO_DOUBLE) {
		*(double *)out = id == CURLINFO_TOTAL_TIME    ? 1.5
		                 : id == CURLINFO_SIZE_UPLOAD ? 77.0
		                                              : 1e300;
		return CURLE_OK;
	}
	return CURLE_UNKNOWN_OPTION;
}

static void certificates_are_deep_copies(void **state)
{
	(void)state;
	struct flavour fl = {.fn = {0}};
	struct curl_certinfo *got;
	struct curl_slist *lists[2];
	fl.fn[FN_easy_getinfo] = (void (*)(void))fake_getinfo;
	only_doubles = false;
	lists[0] = curl_slist_append(curl_slist_append(NULL, "Subject:A"), "Issuer:B");
	lists[1] = NULL;
	certs = (struct curl_certinfo){2, lists};
	struct info *info = info_new();
	info_capture(info, &fl, NULL);
	curl_slist_free_all(lists[0]);
	certs = (struct curl_certinfo){0, NULL};
	struct info *copy = info_copy(info);
	assert_int_equal(info_get(copy, CURLINFO_CERTINFO, &got), CURLE_OK);
	assert_int_equal(got->num_of_certs, 2);
	assert_string_equal(got->certinfo[0]->data, "Subject:A");
	assert_string_equal(got->certinfo[0]->next->data, "Issuer:B");
	assert_null(got->certinfo[0]->next->next);
	assert_null(got->certinfo[1]);
	info_capture(info, &fl, NULL);
	assert_int_equal(info_get(info, CURLINFO_CERTINFO, &got), CURLE_OK);
	assert_int_equal(got->num_of_certs, 0);
	info_free(info);
	info_free(copy);
}

static void libcurl_without_off_t_values(void **state)
{
	(void)state;
	struct flavour fl = {.fn = {0}};
	double seconds = 0;
	curl_off_t off = 0;
	fl.fn[FN_easy_getinfo] = (void (*)(void))fake_getinfo;
	only_doubles = true;
	struct info *info = info_new();
	info_capture(info, &fl, NULL);
	info_get(info, CURLINFO_TOTAL_TIME, &seconds);
	assert_true(seconds == 1.5);
	info_get(info, CURLINFO_TOTAL_TIME_T, &off);
	assert_int_equal(off, 1500000);
	info_get(info, CURLINFO_SIZE_UPLOAD_T, &off);
	assert_int_equal(off, 77);
	info_get(info, CURLINFO_SIZE_DOWNLOAD_T, &off); /* 1e300 does not fit */
	assert_int_equal(off, 0);
	info_free(info);
}

/* --- overrides and storing --- */

static void overrides_reach_both_types(void **state)
{
	(void)state;
	double real;
	struct info *info = info_new();
	info_set_off(info, CURLINFO_TOTAL_TIME_T, 2500000);
	info_get(info, CURLINFO_TOTAL_TIME, &real);
	assert_true(real == 2.5);
	info_set_long(info, CURLINFO_RESPONSE_CODE, 424);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 424);
	info_set_text(info, CURLINFO_CONTENT_TYPE, "a");
	info_set_text(info, CURLINFO_CONTENT_TYPE, "ab");
	assert_string_equal(info_text(info, CURLINFO_CONTENT_TYPE), "ab");
	info_set_text(info, CURLINFO_CONTENT_TYPE, NULL);
	assert_null(info_text(info, CURLINFO_CONTENT_TYPE));
	info_set_text(info, CURLINFO_RESPONSE_CODE, "wrong type");
	info_set_long(info, CURLINFO_CONTENT_TYPE, 1);
	info_set_long(info, CURLINFO_PRIVATE, 1);
	assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 424);
	info_free(info);
}

static void stored_values_come_back(void **state)
{
	(void)state;
	struct buf blob = {0};
	CURL *easy = perform();
	struct info *info = info_new(), *back = info_new();
	info_capture(info, flavour(), easy);
	info_set_text(info, CURLINFO_CONTENT_TYPE, "text/plain\nnot a line of ours");
	info_store(info, &blob);
	assert_int_equal(info_load(back, blob.data, blob.n), 0);
	assert_int_equal(info_long(back, CURLINFO_RESPONSE_CODE), 201);
	assert_int_equal(info_long(back, CURLINFO_RETRY_AFTER), 7);
	assert_int_equal(info_long(back, CURLINFO_PRIMARY_PORT),
	                 info_long(info, CURLINFO_PRIMARY_PORT));
	assert_string_equal(info_text(back, CURLINFO_CONTENT_TYPE),
	                    "text/plain\nnot a line of ours");
	assert_string_equal(info_text(back, CURLINFO_EFFECTIVE_METHOD), "POST");
	assert_string_equal(info_text(back, CURLINFO_EFFECTIVE_URL), ""); /* the program's own */
	assert_null(info_text(back, CURLINFO_REFERER));
	assert_int_equal(info_long(back, CURLINFO_TOTAL_TIME_T), 0);
	buf_free(&blob);
	info_free(info);
	info_free(back);
	curl_easy_cleanup(easy);
}

static void urls_lose_user_and_password(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
	        {"https://u:p@host/a?b=c@d", "https://host/a?b=c@d"},
	        {"https://u@p:w@host:8/x", "https://host:8/x"},
	        {"https://host/u:p@x", "https://host/u:p@x"},
	        {"http://user:secret@host", "http://host"},
	        {"u:p@host/a", "host/a"},
	        {"", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf blob = {0};
		struct info *info = info_new(), *back = info_new();
		info_set_long(info, CURLINFO_REDIRECT_COUNT, 1);
		info_set_text(info, CURLINFO_EFFECTIVE_URL, rows[i][0]);
		info_set_text(info, CURLINFO_REDIRECT_URL, rows[i][0]);
		info_store(info, &blob);
		assert_int_equal(info_load(back, blob.data, blob.n), 0);
		assert_string_equal(info_text(back, CURLINFO_EFFECTIVE_URL), rows[i][1]);
		assert_string_equal(info_text(back, CURLINFO_REDIRECT_URL), rows[i][1]);
		buf_free(&blob);
		info_free(info);
		info_free(back);
	}
}

static void hostile_values(void **state)
{
	(void)state;
#define ROW(text, rc)                                                                              \
	{                                                                                          \
		text, sizeof(text) - 1, rc                                                         \
	}
	static const struct {
		const char *text;
		size_t n;
		int rc;
	} rows[] = {
	        ROW("info 1\n", 0),
	        ROW("info 1\n2097154=404\n", 0),
	        ROW("info 1\n2097154=-9223372036854775807\n", 0),
	        ROW("info 1\n999=1\n", 0),     /* a younger program's value */
	        ROW("info 1\n999:3:abc\n", 0), /* likewise */
	        ROW("info 1\n1048594:0:\n", 0),
	        ROW("info 1\n1048594=5\n", 0),   /* a text given as a number is ignored */
	        ROW("info 1\n2097154:1:a\n", 0), /* and the other way round */
	        ROW("", -1),
	        ROW("info 2\n", -1),
	        ROW("info 1", -1),
	        ROW("info 1\n\n", -1),
	        ROW("info 1\n2097154", -1),
	        ROW("info 1\n2097154=", -1),
	        ROW("info 1\n2097154=-\n", -1),
	        ROW("info 1\n2097154=1", -1),
	        ROW("info 1\n2097154=99999999999999999999\n", -1),
	        ROW("info 1\n-5=1\n", -1),
	        ROW("info 1\n99999999999=1\n", -1),
	        ROW("info 1\n1048594:5:abc\n", -1),
	        ROW("info 1\n1048594:-1:abc\n", -1),
	        ROW("info 1\n1048594:4294967296:abc\n", -1),
	        ROW("info 1\n1048594:3:a\0c\n", -1),
	        ROW("info 1\n1048594:3:abcd\n", -1),
	        ROW("info 1\n1048594:3", -1),
	};
#undef ROW
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct info *info = info_new();
		char *exact = malloc(rows[i].n + 1); /* its end is guarded when sanitized */
		memcpy(exact, rows[i].text, rows[i].n);
		exact = realloc(exact, rows[i].n ? rows[i].n : 1);
		assert_int_equal(info_load(info, exact, rows[i].n), rows[i].rc);
		free(exact);
		info_free(info);
	}
}

/* A program may still hold what getinfo gave it earlier in the same transfer. */
static void adopted_values_leave_old_texts_valid(void **state)
{
	struct info *info = info_new();
	const char *given[4];

	(void)state;
	info_set_text(info, CURLINFO_EFFECTIVE_URL, "http://a/");
	info_set_text(info, CURLINFO_CONTENT_TYPE, "text/plain");
	for (int i = 0; i < 4; i++) {
		struct info *newer = info_new();
		char url[32];

		given[i] = info_text(info, CURLINFO_EFFECTIVE_URL);
		snprintf(url, sizeof(url), "http://b%d/", i / 2);
		info_set_text(newer, CURLINFO_EFFECTIVE_URL, url);
		info_set_text(newer, CURLINFO_CONTENT_TYPE, i < 3 ? "text/plain" : NULL);
		info_set_long(newer, CURLINFO_RESPONSE_CODE, 200 + i);
		info_adopt(info, newer);
		assert_int_equal(info_long(info, CURLINFO_RESPONSE_CODE), 200 + i);
		assert_string_equal(info_text(info, CURLINFO_EFFECTIVE_URL), url);
	}
	assert_null(info_text(info, CURLINFO_CONTENT_TYPE));
	assert_string_equal(given[0], "http://a/");
	assert_string_equal(given[1], "http://b0/");
	assert_ptr_equal(given[1], given[2]); /* the same text stays where it is */
	assert_string_equal(given[3], "http://b1/");
	info_free(info);
}

/* Texts of every length around what an info has room for, changed and adopted many times: they are
 * right, those given before stay valid, and nothing is freed twice (sanitizers). */
static void texts_of_any_length_are_adopted(void **state)
{
	static const size_t lengths[] = {0, 1, 40, 158, 159, 160, 161, 400};
	enum { MANY = 24, LONGEST = 400 };
	struct info *info = info_new();
	const char *given[MANY];
	char text[MANY][LONGEST + 1];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		struct info *newer = info_new(), *copy;
		size_t n = lengths[(size_t)i % (sizeof(lengths) / sizeof(lengths[0]))];

		memset(text[i], 'a' + i, n);
		text[i][n] = '\0';
		info_set_text(newer, CURLINFO_CONTENT_TYPE, "text/html; charset=utf-8");
		info_set_text(newer, CURLINFO_EFFECTIVE_URL, "http://before/");
		info_set_text(newer, CURLINFO_EFFECTIVE_URL, text[i]);
		info_adopt(info, newer);
		info_set_text(info, CURLINFO_CONTENT_TYPE, i % 3 ? "text/plain" : NULL);
		given[i] = info_text(info, CURLINFO_EFFECTIVE_URL);
		copy = info_copy(info);
		assert_string_equal(info_text(copy, CURLINFO_EFFECTIVE_URL), text[i]);
		info_free(copy);
	}
	for (int i = 0; i < MANY; i++)
		assert_string_equal(given[i], text[i]);
	info_free(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(fresh_is_a_handle_that_never_connected),
	        cmocka_unit_test(snapshot_says_what_the_handle_said),
	        cmocka_unit_test(what_is_not_kept_says_so),
	        cmocka_unit_test(certificates_are_deep_copies),
	        cmocka_unit_test(libcurl_without_off_t_values),
	        cmocka_unit_test(overrides_reach_both_types),
	        cmocka_unit_test(stored_values_come_back),
	        cmocka_unit_test(urls_lose_user_and_password),
	        cmocka_unit_test(hostile_values),
	        cmocka_unit_test(adopted_values_leave_old_texts_valid),
	        cmocka_unit_test(texts_of_any_length_are_adopted),
	};
	curl_global_init(CURL_GLOBAL_ALL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
