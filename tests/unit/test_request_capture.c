/* Forms rendered by libcurl itself: what comes out, whose callbacks run, and that a form can be
 * rendered again, given back to libcurl, and come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "flavour_here.h"
#include "request/capture.h"
#include "request/release.h"
#include "request/rendered.h"

enum { LIMIT = 64 << 20, PARTS_MAX = 1 << 20 };

/* --- a part from a callback --- */

struct feed {
	const char *text;
	size_t at, step; /* bytes a call; 0: all */
	unsigned reads, seeks, frees;
	size_t answer; /* instead of bytes; 0: none */
	unsigned pauses;
};

static size_t on_read(char *out, size_t size, size_t n, void *ctx)
{
	struct feed *f = ctx;
	size_t left = strlen(f->text) - f->at;

	f->reads++;
	if (f->pauses) {
		f->pauses--;
		return CURL_READFUNC_PAUSE;
	}
	if (f->answer)
		return f->answer;
	if (f->step && left > f->step)
		left = f->step;
	if (left > size * n)
		left = size * n;
	memcpy(out, f->text + f->at, left);
	f->at += left;
	return left;
}

static int on_seek(void *ctx, curl_off_t offset, int origin)
{
	struct feed *f = ctx;

	f->seeks++;
	if (origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	f->at = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static void on_free(void *ctx)
{
	((struct feed *)ctx)->frees++;
}

/* --- a program's handle --- */

struct program {
	CURL *curl;
	curl_mime *mime;
	struct options options;
	struct capture capture;
	struct captured out;
	unsigned idle, stop_after, resume_after;
};

static void set(struct program *p, CURLoption id, uintptr_t word)
{
	assert_int_equal(curl_easy_setopt(p->curl, id, word), CURLE_OK);
	assert_int_equal(options_set(&p->options, id, word), 0);
}

static void start(struct program *p)
{
	*p = (struct program){.curl = curl_easy_init()};
	options_init(&p->options);
}

static curl_mimepart *add_part(struct program *p, const char *name)
{
	curl_mimepart *part;

	if (!p->mime)
		p->mime = curl_mime_init(p->curl);
	part = curl_mime_addpart(p->mime);
	curl_mime_name(part, name);
	return part;
}

static void finish(struct program *p)
{
	capture_drop(&p->capture, flavour_here());
	curl_easy_cleanup(p->curl);
	curl_mime_free(p->mime);
	options_free(&p->options);
}

static bool watch(void *ctx, bool paused, bool *resume)
{
	struct program *p = ctx;

	if (paused)
		usleep(1000);
	p->idle += paused;
	*resume = p->resume_after && p->idle == p->resume_after;
	return !p->stop_after || p->idle < p->stop_after;
}

/* As a blocking perform does. */
static enum capture_result render_by(struct capture *c, struct program *p, size_t limit,
                                     struct captured *out)
{
	enum capture_result result = CAPTURE_MORE;
	struct rendering *r =
	        capture_begin(c, flavour_here(), p->curl, &p->options, limit, &result);
	bool resume = false;

	if (!r)
		return result;
	do {
		result = capture_step(r);
		if (result != CAPTURE_MORE && result != CAPTURE_PAUSED)
			break;
		if (!watch(p, result == CAPTURE_PAUSED, &resume))
			break;
		if (resume)
			capture_resume(r);
	} while (true);
	return capture_end(r, result, out);
}

static enum capture_result render(struct program *p, size_t limit)
{
	return render_by(&p->capture, p, limit, &p->out);
}

static void forget(struct program *p)
{
	payload_unref(p->out.body);
	free(p->out.type);
	p->out = (struct captured){0};
}

static char *text_of(struct program *p)
{
	return span_dup(payload_bytes(p->out.body));
}

/* What a form of two fields looks like, around its boundary. */
static void expect_two(struct program *p)
{
	char want[1024], *got = text_of(p);
	const char *boundary = strstr(p->out.type, "boundary=");

	assert_non_null(boundary);
	assert_int_equal(strncmp(p->out.type, "multipart/form-data; ", 21), 0);
	boundary += strlen("boundary=");
	snprintf(want, sizeof(want),
	         "--%s\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n"
	         "--%s\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\ntwo\r\n--%s--\r\n",
	         boundary, boundary, boundary);
	assert_string_equal(got, want);
	if (p->out.size >= 0)
		assert_int_equal(p->out.size, strlen(want));
	free(got);
}

static void two_fields(struct program *p)
{
	curl_mime_data(add_part(p, "a"), "one", CURL_ZERO_TERMINATED);
	curl_mime_data(add_part(p, "b"), "two", CURL_ZERO_TERMINATED);
	set(p, CURLOPT_MIMEPOST, (uintptr_t)p->mime);
}

static void test_mime(void **state)
{
	struct program p;

	(void)state;
	start(&p);
	two_fields(&p);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
		assert_true(p.out.size > 0);
		expect_two(&p);
		forget(&p);
		/* what many programs do before each perform */
		assert_true(capture_keeps(&p.capture, flavour_here(), p.mime));
	}
	finish(&p);
}

static void test_form(void **state)
{
	struct curl_httppost *first = NULL, *last = NULL;
	struct program p;

	(void)state;
	start(&p);
	curl_formadd(&first, &last, CURLFORM_COPYNAME, "a", CURLFORM_COPYCONTENTS, "one",
	             CURLFORM_END);
	curl_formadd(&first, &last, CURLFORM_COPYNAME, "b", CURLFORM_COPYCONTENTS, "two",
	             CURLFORM_END);
	set(&p, CURLOPT_HTTPPOST, (uintptr_t)first);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
		expect_two(&p);
		forget(&p);
	}
	finish(&p);
	curl_formfree(first);
}

/* A part of unknown size: libcurl sends chunks, and each stays one piece. */
static void test_chunks(void **state)
{
	struct feed f = {.text = "one"};
	struct program p;

	(void)state;
	start(&p);
	curl_mime_data_cb(add_part(&p, "a"), -1, on_read, on_seek, on_free, &f);
	curl_mime_data(add_part(&p, "b"), "two", CURL_ZERO_TERMINATED);
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
		assert_int_equal(p.out.size, -1);
		expect_two(&p);
		assert_true(payload_piece(p.out.body, 0) > 0);
		forget(&p);
	}
	assert_int_equal(f.seeks, 1);
	assert_int_equal(f.frees, 0);
	finish(&p);
	assert_int_equal(f.frees, 1);
}

static void test_abort(void **state)
{
	struct feed f = {.text = "hello", .answer = CURL_READFUNC_ABORT};
	struct program p;

	(void)state;
	start(&p);
	curl_mime_data_cb(add_part(&p, "a"), 5, on_read, on_seek, on_free, &f);
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	assert_int_equal(render(&p, LIMIT), CAPTURE_FAILED);
	assert_int_equal(p.out.code, CURLE_ABORTED_BY_CALLBACK);
	assert_string_equal(p.out.error, "operation aborted by callback");
	assert_null(p.out.body);
	f.answer = 0;
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE); /* rewound meanwhile */
	assert_non_null(strstr(payload_bytes(p.out.body).p, "\r\n\r\nhello\r\n--"));
	forget(&p);
	finish(&p);
}

static void test_pause(void **state)
{
	struct feed f = {.text = "hello", .pauses = 1};
	struct program p;

	(void)state;
	start(&p);
	curl_mime_data_cb(add_part(&p, "a"), 5, on_read, on_seek, on_free, &f);
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	p.resume_after = 3;
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	assert_int_equal(p.idle, 3);
	forget(&p);
	f.pauses = 1;
	p.resume_after = p.idle = 0;
	p.stop_after = 3;
	assert_int_equal(render(&p, LIMIT), CAPTURE_PAUSED);
	assert_null(p.out.body);
	finish(&p);
}

static void test_limit(void **state)
{
	static char big[PARTS_MAX * 3];
	struct program p;

	(void)state;
	memset(big, 'x', sizeof(big));
	start(&p);
	curl_mime_data(add_part(&p, "a"), big, sizeof(big));
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	assert_int_equal(render(&p, sizeof(big)), CAPTURE_OVERSIZE);
	assert_null(p.out.body);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	assert_true(payload_size(p.out.body) > sizeof(big));
	forget(&p);
	finish(&p);
}

/* The content headers of the program count, others don't; its Content-Length is not believed. */
static void test_headers(void **state)
{
	struct curl_slist *list = NULL;
	struct program p;

	(void)state;
	list = curl_slist_append(list, "Content-Type: multipart/mixed");
	list = curl_slist_append(list, "Content-Length: 3");
	list = curl_slist_append(list, "Transfer-Encoding: chunked");
	start(&p);
	two_fields(&p);
	set(&p, CURLOPT_HTTPHEADER, (uintptr_t)list);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	assert_int_equal(strncmp(p.out.type, "multipart/mixed; boundary=", 26), 0);
	assert_true(p.out.size > 100);
	forget(&p);
	finish(&p);
	curl_slist_free_all(list);
}

/* libcurl itself performs with the form: by our own renderer, which stands for any server. */
static void natively(struct program *p, struct captured *out)
{
	struct capture other = {.easy = p->curl, .mime = p->mime};

	assert_int_equal(render_by(&other, p, LIMIT, out), CAPTURE_DONE);
}

static void test_back_and_forth(void **state)
{
	struct program p;

	(void)state;
	start(&p);
	two_fields(&p);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
		expect_two(&p);
		forget(&p);
		capture_give_back(&p.capture, flavour_here(), p.curl, &p.options);
		assert_null(p.capture.mime);
		for (int j = 0; j < 2; j++) {
			natively(&p, &p.out);
			expect_two(&p);
			forget(&p);
		}
		capture_note_use(&p.capture);
	}
	finish(&p);
}

/* No descriptor is left: nothing is lost by it. */
static void test_no_descriptor(void **state)
{
	struct rlimit was, none;
	struct program p;

	(void)state;
	start(&p);
	two_fields(&p);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(render(&p, LIMIT), CAPTURE_CANNOT);
	assert_null(p.capture.mime);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	natively(&p, &p.out);
	forget(&p);
	capture_note_use(&p.capture);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	forget(&p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	natively(&p, &p.out);
	expect_two(&p);
	forget(&p);
	finish(&p);
}

/* A part without a way back is told, and never sent without its bytes. */
static void test_no_way_back(void **state)
{
	struct feed f = {.text = "hello"};
	struct program p;

	(void)state;
	start(&p);
	curl_mime_data_cb(add_part(&p, "a"), 5, on_read, NULL, on_free, &f);
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	assert_true(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	forget(&p);
	assert_false(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	assert_false(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	assert_int_equal(render(&p, LIMIT), CAPTURE_FAILED);
	assert_int_equal(p.out.code, CURLE_SEND_FAIL_REWIND);
	finish(&p);
}

/* To set a form is to choose the method: it does not come between a program and what it has set
 * since.
 */
static void test_another_kind_since(void **state)
{
	struct program p;
	char *method = NULL;

	(void)state;
	start(&p);
	two_fields(&p);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	forget(&p);
	set(&p, CURLOPT_HTTPGET, 1);
	assert_true(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	assert_ptr_equal(p.capture.mime, p.mime);
	set(&p, CURLOPT_URL, (uintptr_t) "http://127.0.0.1:1/");
	assert_int_equal(curl_easy_perform(p.curl), CURLE_COULDNT_CONNECT);
	curl_easy_getinfo(p.curl, CURLINFO_EFFECTIVE_METHOD, &method);
	assert_string_equal(method, "GET");
	finish(&p);
}

/* A copy of a handle has a form that only libcurl knows: it is rendered from a copy of ours, and
 * whose turn it is does not matter to what comes out. */
static void test_copied(void **state)
{
	struct feed f = {.text = "one"};
	struct program p, copy;

	(void)state;
	start(&p);
	start(&copy);
	curl_easy_cleanup(copy.curl);
	curl_mime_data_cb(add_part(&p, "a"), 3, on_read, on_seek, release_stand_in(on_free), &f);
	curl_mime_data(add_part(&p, "b"), "two", CURL_ZERO_TERMINATED);
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	assert_true(capture_copy(&copy.capture, &p.capture, flavour_here(), p.curl, &p.options));
	assert_null(p.capture.mime);
	assert_int_equal(f.reads + f.seeks, 0); /* nothing was asked of it */
	copy.curl = curl_easy_duphandle(p.curl);
	copy.options.kind = HTTP_MIME;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(render(&copy, LIMIT), CAPTURE_DONE);
		expect_two(&copy);
		forget(&copy);
		assert_true(
		        capture_give_back(&copy.capture, flavour_here(), copy.curl, &copy.options));
		assert_int_equal(f.at, 0); /* for libcurl's, which is at its beginning */
		assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
		expect_two(&p);
		forget(&p);
		assert_true(capture_give_back(&p.capture, flavour_here(), p.curl, &p.options));
	}
	finish(&p);
	assert_int_equal(render(&copy, LIMIT), CAPTURE_DONE); /* also when the first one is gone */
	expect_two(&copy);
	forget(&copy);
	assert_false(
	        capture_keeps(&copy.capture, flavour_here(), NULL)); /* one of its own is set */
	assert_false(copy.capture.copied);
	finish(&copy);
	assert_int_equal(f.frees, 2); /* the program's and libcurl's copy: of ours nobody hears */
}

/* With a form of one part, whose end `f` counts. */
static void start_fed(struct program *p, struct feed *f)
{
	start(p);
	curl_mime_data_cb(add_part(p, "a"), 3, on_read, on_seek, release_stand_in(on_free), f);
	set(p, CURLOPT_MIMEPOST, (uintptr_t)p->mime);
}

/* A callback has jumped out of its rendering: it ends where it is left, or used again. */
static void test_copied_and_left(void **state)
{
	struct feed f = {.text = "one"};
	struct program p;

	(void)state;
	start_fed(&p, &f);
	for (int again = 0; again < 2; again++) {
		struct program copy = {.options = {.kind = HTTP_MIME}};
		CURL *left;

		assert_true(capture_copy(&copy.capture, &p.capture, flavour_here(), p.curl,
		                         &p.options));
		left = copy.capture.easy;
		copy.capture.busy = true;
		if (again)
			render(&copy, LIMIT);
		forget(&copy);
		capture_drop(&copy.capture, flavour_here());
		curl_easy_cleanup(left);
		assert_int_equal(f.frees, 0);
	}
	finish(&p);
	assert_int_equal(f.frees, 1);
}

/* The form of a program that sends something else since stays with us, and libcurl has none to
 * copy: ours end as libcurl's would. */
static void test_copied_since(void **state)
{
	struct capture copy = {0}, second = {0};
	struct feed f = {.text = "one"};
	struct program p;

	(void)state;
	start_fed(&p, &f);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	forget(&p);
	set(&p, CURLOPT_HTTPGET, 1);
	assert_false(capture_copy(&copy, &p.capture, flavour_here(), p.curl, &p.options));
	assert_false(capture_copy(&second, &copy, flavour_here(), p.curl, &p.options));
	assert_int_equal(f.frees, 0);
	capture_drop(&second, flavour_here());
	assert_int_equal(f.frees, 1);
	assert_false(capture_keeps(&copy, flavour_here(), NULL));
	assert_int_equal(f.frees, 2);
	capture_drop(&copy, flavour_here());
	assert_int_equal(f.frees, 2);
	finish(&p);
	assert_int_equal(f.frees, 3);
}

/* What cannot be copied is not: another kind of body, and a form that is being rendered. */
static void test_not_copied(void **state)
{
	struct capture copy = {0};
	struct program p;

	(void)state;
	start(&p);
	two_fields(&p);
	set(&p, CURLOPT_POSTFIELDS, (uintptr_t) "x");
	assert_false(capture_copy(&copy, &p.capture, flavour_here(), p.curl, &p.options));
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	p.capture.busy = true;
	assert_false(capture_copy(&copy, &p.capture, flavour_here(), p.curl, &p.options));
	p.capture.busy = false;
	assert_null(copy.easy);
	natively(&p, &p.out);
	expect_two(&p);
	forget(&p);
	finish(&p);
}

/* Fewer bytes than announced: libcurl 7 sends what there is; others may say that it is an error. */
static void test_short(void **state)
{
	struct feed f = {.text = "hello"};
	enum capture_result result;
	struct program p;

	(void)state;
	start(&p);
	curl_mime_data_cb(add_part(&p, "a"), 9, on_read, on_seek, on_free, &f);
	set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	result = render(&p, LIMIT);
	if (result == CAPTURE_FAILED) {
		assert_int_equal(p.out.code, CURLE_READ_ERROR);
	} else {
		assert_int_equal(result, CAPTURE_DONE);
		assert_int_equal(payload_size(p.out.body) + 4, p.out.size);
		assert_non_null(
		        memmem(payload_bytes(p.out.body).p, payload_size(p.out.body), "hello", 5));
	}
	forget(&p);
	finish(&p);
}

/* A form freed by its program, and another one at the same address or elsewhere. */
static void test_freed(void **state)
{
	struct program p;

	(void)state;
	start(&p);
	two_fields(&p);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	forget(&p);
	curl_mime_free(p.mime);
	capture_give_back(&p.capture, flavour_here(), p.curl, &p.options); /* nothing to give */
	p.mime = NULL;
	two_fields(&p);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	expect_two(&p);
	forget(&p);
	curl_mime_free(p.mime);
	p.mime = NULL;
	curl_mime_data(add_part(&p, "a"), "one", CURL_ZERO_TERMINATED);
	curl_mime_data(add_part(&p, "b"), "two", CURL_ZERO_TERMINATED);
	if (!capture_keeps(&p.capture, flavour_here(), p.mime))
		set(&p, CURLOPT_MIMEPOST, (uintptr_t)p.mime);
	assert_int_equal(render(&p, LIMIT), CAPTURE_DONE);
	expect_two(&p);
	forget(&p);
	finish(&p);
}

/* --- reading what was rendered --- */

static void test_rendered(void **state)
{
	static const struct {
		const char *text, *body;
		int result;
	} rows[] = {
	        {"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", "ab", RENDERED_WHOLE},
	        {"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na", "a", RENDERED_MORE},
	        {"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "", RENDERED_WHOLE},
	        {"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nab", "a", RENDERED_BAD},
	        {"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "", RENDERED_BAD},
	        {"P\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\n",
	         "a0123456789", RENDERED_WHOLE},
	        {"P\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", RENDERED_WHOLE},
	        {"P\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", "", RENDERED_BAD},
	        {"P\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "", RENDERED_BAD},
	        {"P\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab", "a", RENDERED_BAD},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		for (size_t step = 1; step < 100; step += 98) {
			struct rendered r = {.body = payload_new()};
			size_t n = strlen(rows[i].text);
			int rc = RENDERED_MORE;

			for (size_t at = 0; at < n && rc >= 0; at += step)
				rc = rendered_feed(&r, rows[i].text + at,
				                   n - at < step ? n - at : step);
			print_message("%zu\n", i);
			assert_int_equal(rc, rows[i].result);
			assert_int_equal(payload_size(r.body), strlen(rows[i].body));
			assert_int_equal(payload_seal(r.body), 0);
			assert_true(span_is(payload_bytes(r.body), rows[i].body));
			payload_unref(r.body);
			rendered_free(&r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_mime),
	        cmocka_unit_test(test_form),
	        cmocka_unit_test(test_chunks),
	        cmocka_unit_test(test_abort),
	        cmocka_unit_test(test_pause),
	        cmocka_unit_test(test_limit),
	        cmocka_unit_test(test_headers),
	        cmocka_unit_test(test_back_and_forth),
	        cmocka_unit_test(test_no_way_back),
	        cmocka_unit_test(test_no_descriptor),
	        cmocka_unit_test(test_freed),
	        cmocka_unit_test(test_rendered),
	        cmocka_unit_test(test_short),
	        cmocka_unit_test(test_copied),
	        cmocka_unit_test(test_not_copied),
	        cmocka_unit_test(test_another_kind_since),
	        cmocka_unit_test(test_copied_and_left),
	        cmocka_unit_test(test_copied_since),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
