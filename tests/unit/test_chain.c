/* Our callbacks on a program's handle: what it sees of them, and what it gets back. libcurl is a
 * table here that remembers what was set last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "intercept/chain.h"
#include "intercept/shadow.h"

enum { IDS = 500, NEVER_SET = 0x5eed };

static uintptr_t now[IDS];
static CURLoption refused; /* by this libcurl */
static CURLoption set_last;
static unsigned order, xferinfo_at, progress_at;

static CURLcode fake_setopt(CURL *handle, CURLoption id, ...)
{
	va_list args;
	uintptr_t word;

	(void)handle;
	va_start(args, id);
	word = va_arg(args, uintptr_t);
	va_end(args);
	if (refused && id == refused)
		return CURLE_UNKNOWN_OPTION;
	now[id % 10000] = word;
	set_last = id;
	order++;
	if (id == CURLOPT_XFERINFOFUNCTION)
		xferinfo_at = order;
	if (id == CURLOPT_PROGRESSFUNCTION)
		progress_at = order;
	return CURLE_OK;
}

static CURLcode fake_getinfo(CURL *handle, CURLINFO id, ...)
{
	va_list args;

	(void)handle, (void)id;
	va_start(args, id);
	*va_arg(args, const char **) = "http://h/";
	va_end(args);
	return CURLE_OK;
}

static struct flavour flavour;
static struct shadow shadow;
static struct {
	int passes, unsent, ticks, dropped, debug;
	char header[200], body[200];
	int verdict;
} told;

static int on_pass(void *ctx, const char *url)
{
	(void)ctx;
	assert_string_equal(url, "http://h/");
	told.passes++;
	return told.verdict;
}

static void on_unsent(void *ctx)
{
	(void)ctx;
	told.unsent++;
}

static void on_header(void *ctx, const char *line, size_t n)
{
	(void)ctx;
	strncat(told.header, line, n);
}

static void on_body(void *ctx, const char *data, size_t n)
{
	(void)ctx;
	strncat(told.body, data, n);
}

static void on_debug(void *ctx, curl_infotype type, const char *data, size_t n)
{
	(void)ctx, (void)type, (void)data, (void)n;
	told.debug++;
}

static void on_tick(void *ctx)
{
	(void)ctx;
	told.ticks++;
}

static void on_dropped(void *ctx)
{
	(void)ctx;
	told.dropped++;
}

static const struct chain_calls all = {
        .pass = on_pass,
        .unsent = on_unsent,
        .header = on_header,
        .body = on_body,
        .debug = on_debug,
        .tick = on_tick,
        .dropped = on_dropped,
};

static int fresh(void **state)
{
	(void)state;
	memset(&told, 0, sizeof(told));
	refused = (CURLoption)0;
	for (size_t i = 0; i < IDS; i++)
		now[i] = NEVER_SET;
	flavour.fn[FN_easy_setopt] = (void (*)(void))fake_setopt;
	flavour.fn[FN_easy_getinfo] = (void (*)(void))fake_getinfo;
	shadow = (struct shadow){.handle = (CURL *)&shadow, .flavour = &flavour};
	options_init(&shadow.options);
	return 0;
}

static int done(void **state)
{
	(void)state;
	options_free(&shadow.options);
	return 0;
}

static void program_sets(CURLoption id, const void *word)
{
	assert_int_equal(options_set(&shadow.options, id, (uintptr_t)word), 0);
}

static uintptr_t word_of(CURLoption id)
{
	return now[id % 10000];
}

/* --- the program's */

static struct {
	int write, header, progress, debug;
	size_t take;
	int say;
} own;

static size_t own_write(char *data, size_t size, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	own.write++;
	return own.take ? own.take : size * n;
}

static size_t own_header(char *data, size_t size, size_t n, void *ctx)
{
	(void)data;
	own.header += ctx == (void *)&own;
	return own.take ? own.take : size * n;
}

static int own_prereq(void *ctx, char *a, char *b, int c, int d)
{
	(void)ctx, (void)a, (void)b, (void)c, (void)d;
	return own.say;
}

static int own_debug(CURL *handle, curl_infotype type, char *data, size_t n, void *ctx)
{
	(void)type, (void)data, (void)n, (void)ctx;
	own.debug += handle == shadow.handle;
	return 0;
}

static int own_progress(void *ctx, double a, double b, double c, double d)
{
	(void)ctx, (void)b, (void)c, (void)d;
	own.progress += (int)a;
	return 7;
}

/* --- as libcurl would call */

static size_t call_write(const char *text)
{
	return ((curl_write_callback)word_of(CURLOPT_WRITEFUNCTION))(
	        (char *)text, 1, strlen(text), (void *)word_of(CURLOPT_WRITEDATA));
}

static size_t call_header(const char *text)
{
	return ((curl_write_callback)word_of(CURLOPT_HEADERFUNCTION))(
	        (char *)text, 1, strlen(text), (void *)word_of(CURLOPT_HEADERDATA));
}

static int call_prereq(void)
{
	return ((curl_prereq_callback)word_of(CURLOPT_PREREQFUNCTION))(
	        (void *)word_of(CURLOPT_PREREQDATA), NULL, NULL, 1, 2);
}

static int call_progress(void)
{
	return ((curl_xferinfo_callback)word_of(CURLOPT_XFERINFOFUNCTION))(
	        (void *)word_of(CURLOPT_XFERINFODATA), 3, 0, 0, 0);
}

static void call_debug(void)
{
	((curl_debug_callback)word_of(CURLOPT_DEBUGFUNCTION))(
	        shadow.handle, CURLINFO_TEXT, (char *)"x\n", 2, (void *)word_of(CURLOPT_DEBUGDATA));
}

/* --- tests */

static void what_was_never_set_is_libcurls_default_again(void **state)
{
	struct chain c;

	(void)state;
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_ptr_equal(shadow.chain, &c);
	assert_int_equal(word_of(CURLOPT_VERBOSE), 1);
	assert_int_equal(chain_override(&c, CURLOPT_MAXAGE_CONN, 2), CURLE_OK);
	assert_int_equal(chain_override(&c, CURLOPT_FRESH_CONNECT, 1), CURLE_OK);
	assert_int_equal(chain_override(&c, CURLOPT_READFUNCTION, 1), CURLE_OK);
	assert_int_equal(chain_override(&c, CURLOPT_READDATA, 1), CURLE_OK);
	chain_end(&c);
	assert_int_equal(word_of(CURLOPT_READFUNCTION), 0);
	assert_int_equal(word_of(CURLOPT_READDATA), (uintptr_t)stdin);
	assert_null(shadow.chain);
	assert_int_equal(word_of(CURLOPT_WRITEFUNCTION), 0);
	assert_int_equal(word_of(CURLOPT_WRITEDATA), (uintptr_t)stdout);
	assert_int_equal(word_of(CURLOPT_HEADERFUNCTION), 0);
	assert_int_equal(word_of(CURLOPT_PREREQFUNCTION), 0);
	assert_int_equal(word_of(CURLOPT_DEBUGFUNCTION), 0);
	assert_int_equal(word_of(CURLOPT_VERBOSE), 0);
	assert_int_equal(word_of(CURLOPT_NOPROGRESS), 1);
	assert_int_equal(word_of(CURLOPT_MAXAGE_CONN), 118);
	assert_int_equal(word_of(CURLOPT_FRESH_CONNECT), 0);
	assert_int_equal(word_of(CURLOPT_HTTPHEADER), NEVER_SET);
}

static void what_was_set_comes_back(void **state)
{
	struct chain c;

	(void)state;
	program_sets(CURLOPT_WRITEFUNCTION, (void *)own_write);
	program_sets(CURLOPT_WRITEDATA, NULL);
	program_sets(CURLOPT_HTTPHEADER, "list");
	program_sets(CURLOPT_XFERINFOFUNCTION, NULL);
	program_sets(CURLOPT_PROGRESSFUNCTION, (void *)own_progress);
	program_sets(CURLOPT_NOPROGRESS, NULL);
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_int_equal(chain_override(&c, CURLOPT_HTTPHEADER, 1), CURLE_OK);
	/* in a callback of the transfer */
	assert_true(chain_keeps(&c, CURLOPT_HEADERFUNCTION));
	program_sets(CURLOPT_HEADERFUNCTION, (void *)own_header);
	assert_false(chain_keeps(&c, CURLOPT_URL));
	chain_end(&c);
	assert_int_equal(word_of(CURLOPT_WRITEFUNCTION), (uintptr_t)own_write);
	assert_int_equal(word_of(CURLOPT_WRITEDATA), 0);
	assert_int_equal(word_of(CURLOPT_HEADERFUNCTION), (uintptr_t)own_header);
	assert_int_equal(word_of(CURLOPT_NOPROGRESS), 0);
	assert_int_equal(word_of(CURLOPT_PROGRESSFUNCTION), (uintptr_t)own_progress);
	assert_string_equal((char *)word_of(CURLOPT_HTTPHEADER), "list");
	assert_true(progress_at > xferinfo_at); /* libcurl counts the last of the two */
}

static void an_option_that_is_refused_leaves_nothing_behind(void **state)
{
	struct chain c;

	(void)state;
	refused = CURLOPT_DEBUGFUNCTION;
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), -1);
	assert_null(shadow.chain);
	assert_int_equal(word_of(CURLOPT_HEADERFUNCTION), 0);
	assert_int_equal(word_of(CURLOPT_WRITEDATA), (uintptr_t)stdout);
}

static void a_libcurl_without_prereq_is_known(void **state)
{
	struct chain c;

	(void)state;
	refused = CURLOPT_PREREQFUNCTION;
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_true(c.no_prereq);
	chain_end(&c);
	assert_int_equal(word_of(CURLOPT_PREREQDATA), NEVER_SET);
}

static void libcurls_own_meter_is_left_alone(void **state)
{
	struct chain c;

	(void)state;
	program_sets(CURLOPT_NOPROGRESS, NULL);
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_int_equal(word_of(CURLOPT_XFERINFOFUNCTION), NEVER_SET);
	chain_end(&c);
}

static void only_what_the_program_took_is_told(void **state)
{
	struct chain c;

	(void)state;
	memset(&own, 0, sizeof(own));
	program_sets(CURLOPT_WRITEFUNCTION, (void *)own_write);
	program_sets(CURLOPT_HEADERDATA, &own); /* without a function of its own */
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_int_equal(call_header("A: 1\r\n"), 6);
	assert_int_equal(own.write, 1);
	program_sets(CURLOPT_HEADERFUNCTION, (void *)own_header);
	assert_int_equal(call_header("B: 2\r\n"), 6);
	assert_int_equal(own.header, 1);
	assert_int_equal(call_write("body"), 4);
	own.take = CURL_WRITEFUNC_PAUSE;
	assert_int_equal(call_write("paused"), CURL_WRITEFUNC_PAUSE);
	assert_int_equal(call_header("paused"), CURL_WRITEFUNC_PAUSE);
	chain_end(&c);
	assert_string_equal(told.header, "A: 1\r\nB: 2\r\n");
	assert_string_equal(told.body, "body");
}

static void header_lines_in_the_body_are_not_the_body(void **state)
{
	struct chain c;

	(void)state;
	memset(&own, 0, sizeof(own));
	program_sets(CURLOPT_WRITEFUNCTION, (void *)own_write);
	program_sets(CURLOPT_HEADER, (void *)1);
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	call_write("A: 1\r\n");
	call_header("A: 1\r\n");
	call_write("one ");
	call_write("two");
	call_write("Trailer: 1\r\n");
	call_header("Trailer: 1\r\n");
	call_write(" three");
	chain_end(&c);
	assert_string_equal(told.body, "one two three");
	assert_string_equal(told.header, "A: 1\r\nTrailer: 1\r\n");
}

static void the_programs_prereq_comes_after_the_gate(void **state)
{
	struct chain c;

	(void)state;
	memset(&own, 0, sizeof(own));
	program_sets(CURLOPT_PREREQFUNCTION, (void *)own_prereq);
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_int_equal(call_prereq(), CURL_PREREQFUNC_OK);
	own.say = CURL_PREREQFUNC_ABORT;
	assert_int_equal(call_prereq(), CURL_PREREQFUNC_ABORT);
	assert_int_equal(told.unsent, 1);
	told.verdict = -1;
	assert_int_equal(call_prereq(), CURL_PREREQFUNC_ABORT);
	assert_int_equal(told.unsent, 1);
	assert_int_equal(told.passes, 3);
	chain_end(&c);
}

static void what_a_program_did_not_ask_for_is_swallowed(void **state)
{
	struct chain c;

	(void)state;
	memset(&own, 0, sizeof(own));
	program_sets(CURLOPT_DEBUGFUNCTION, (void *)own_debug);
	program_sets(CURLOPT_PROGRESSFUNCTION, (void *)own_progress);
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	call_debug();
	assert_int_equal(call_progress(), 0);
	assert_int_equal(own.debug + own.progress, 0);
	program_sets(CURLOPT_VERBOSE, (void *)1);
	program_sets(CURLOPT_NOPROGRESS, NULL);
	call_debug();
	assert_int_equal(call_progress(), 7);
	assert_int_equal(own.debug, 1);
	assert_int_equal(own.progress, 3);
	assert_int_equal(told.debug, 2);
	assert_int_equal(told.ticks, 2);
	chain_end(&c);
}

/* A POST that is read stands in for a form, whose method comes back: last, since POSTFIELDS and
 * their size come back before and change it. */
static void a_form_is_the_method_again(void **state)
{
	static const struct {
		CURLoption id;
		bool captured; /* still where it was rendered */
		uintptr_t then;
	} rows[] = {{CURLOPT_MIMEPOST, true, 0},
	            {CURLOPT_MIMEPOST, false, (uintptr_t)&shadow},
	            {CURLOPT_HTTPPOST, false, (uintptr_t)&shadow}};
	struct chain c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		done(NULL), fresh(NULL);
		program_sets(CURLOPT_POSTFIELDS, "before");
		program_sets(rows[i].id, &shadow);
		shadow.capture.mime = rows[i].captured ? (curl_mime *)&shadow : NULL;
		assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
		assert_int_equal(chain_override_form(&c, 40), CURLE_OK);
		assert_int_equal(word_of(CURLOPT_POSTFIELDS), 0);
		assert_int_equal(word_of(CURLOPT_POSTFIELDSIZE_LARGE), 40);
		assert_int_equal(word_of(rows[i].id), NEVER_SET);
		chain_end(&c);
		assert_string_equal((const char *)word_of(CURLOPT_POSTFIELDS), "before");
		assert_int_equal(word_of(CURLOPT_POSTFIELDSIZE_LARGE), (uintptr_t)-1);
		assert_int_equal(word_of(rows[i].id), rows[i].then);
		assert_int_equal(set_last, rows[i].id);
	}
}

/* The program changed its mind in a callback. */
static void a_form_that_was_given_up_stays_so(void **state)
{
	struct chain c;

	(void)state;
	program_sets(CURLOPT_MIMEPOST, &shadow);
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	assert_int_equal(chain_override_form(&c, -1), CURLE_OK);
	program_sets(CURLOPT_HTTPGET, (void *)1);
	chain_end(&c);
	assert_int_equal(word_of(CURLOPT_MIMEPOST), NEVER_SET);
	assert_int_equal(set_last, CURLOPT_HTTPGET);
}

static void a_reset_gives_nothing_back_and_is_known(void **state)
{
	struct chain c;

	(void)state;
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	for (size_t i = 0; i < IDS; i++)
		now[i] = NEVER_SET; /* as curl_easy_reset does */
	chain_was_reset(&c);
	chain_end(&c);
	assert_true(c.lost);
	assert_int_equal(word_of(CURLOPT_HEADERFUNCTION), NEVER_SET);
	assert_null(shadow.chain);
}

static void a_handle_that_goes_is_given_back_first(void **state)
{
	struct chain c;

	(void)state;
	assert_int_equal(chain_begin(&c, &shadow, &all, NULL), 0);
	chain_dropped(&c);
	assert_int_equal(told.dropped, 1);
	assert_true(c.lost);
	assert_int_equal(word_of(CURLOPT_DEBUGFUNCTION), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
	const struct CMUnitTest tests[] = {
	        TEST(what_was_never_set_is_libcurls_default_again),
	        TEST(what_was_set_comes_back),
	        TEST(an_option_that_is_refused_leaves_nothing_behind),
	        TEST(a_libcurl_without_prereq_is_known),
	        TEST(libcurls_own_meter_is_left_alone),
	        TEST(only_what_the_program_took_is_told),
	        TEST(header_lines_in_the_body_are_not_the_body),
	        TEST(the_programs_prereq_comes_after_the_gate),
	        TEST(what_a_program_did_not_ask_for_is_swallowed),
	        TEST(a_form_is_the_method_again),
	        TEST(a_form_that_was_given_up_stays_so),
	        TEST(a_reset_gives_nothing_back_and_is_known),
	        TEST(a_handle_that_goes_is_given_back_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
