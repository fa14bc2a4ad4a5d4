/* Copies of forms that are only ours: what of their end a program hears. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clients/freed.h"
#include "flavour_here.h"
#include "request/capture.h"
#include "request/release.h"
#include "unit/threads_here.h"

enum { THREADS = 4 };

/* --- what libcurl is given --- */

/* By several threads at once, each in another order: all but one of a process's places. */
static void *take_places(void *ctx)
{
	curl_free_callback *stand_ins = ctx;
	size_t first = (uintptr_t)ctx / sizeof(*stand_ins) % (RELEASE_FUNCTIONS - 1);

	for (size_t i = 0; i < RELEASE_FUNCTIONS - 1; i++) {
		size_t at = (first + i) % (RELEASE_FUNCTIONS - 1);

		stand_ins[at] = release_stand_in(FREED[at]);
	}
	return NULL;
}

static void test_each_has_its_own(void **state)
{
	static curl_free_callback stand_ins[THREADS][FREED_FUNCTIONS];
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_places, stand_ins[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < RELEASE_FUNCTIONS - 1; i++) {
		struct freed f = {0};

		for (int j = 0; j < THREADS; j++)
			assert_ptr_equal(stand_ins[j][i], stand_ins[0][i]);
		assert_ptr_not_equal(stand_ins[0][i], FREED[i]);
		stand_ins[0][i](&f);
		assert_int_equal(f.calls, 1);
		assert_int_equal(f.by[i], 1);
	}
	assert_true(release_is_unheard());
}

/* --- a form --- */

struct form {
	CURL *curl;
	curl_mime *mime;
	struct freed freed;
};

/* Two parts, one of them inside. */
static void start(struct form *f)
{
	curl_mime *inner;

	*f = (struct form){.curl = curl_easy_init()};
	f->mime = curl_mime_init(f->curl);
	inner = curl_mime_init(f->curl);
	freed_part(&f->freed, f->mime, release_stand_in(FREED[1]));
	freed_part(&f->freed, inner, release_stand_in(FREED[2]));
	curl_mime_subparts(curl_mime_addpart(f->mime), inner);
	curl_easy_setopt(f->curl, CURLOPT_MIMEPOST, f->mime);
}

static void finish(struct form *f, unsigned calls)
{
	assert_int_equal(f->freed.calls, calls);
	curl_easy_cleanup(f->curl);
	assert_int_equal(f->freed.calls, calls);
	curl_mime_free(f->mime);
	assert_int_equal(f->freed.calls, calls + 2);
}

static void test_copies(void **state)
{
	const struct flavour *fl = flavour_here();
	CURL *ours, *again, *programs;
	struct form f;

	(void)state;
	start(&f);
	ours = release_copy(fl, f.curl);
	again = release_copy(fl, ours);
	programs = curl_easy_duphandle(f.curl);
	assert_non_null(ours);
	assert_non_null(again);
	assert_non_null(programs);
	release_form(fl, ours, false);
	release_form(fl, again, false);
	curl_easy_cleanup(ours);
	curl_easy_cleanup(again);
	assert_int_equal(f.freed.calls, 0);
	curl_easy_cleanup(programs);
	assert_int_equal(f.freed.calls, 2);
	assert_int_equal(f.freed.by[1], 1);
	finish(&f, 2);
}

static void test_the_programs_own(void **state)
{
	CURL *ours = curl_easy_init();
	struct form f;

	(void)state;
	start(&f);
	curl_easy_setopt(f.curl, CURLOPT_MIMEPOST, NULL);
	curl_easy_setopt(ours, CURLOPT_MIMEPOST, f.mime);
	release_form(flavour_here(), ours, false);
	curl_easy_setopt(f.curl, CURLOPT_MIMEPOST, f.mime);
	curl_easy_cleanup(ours);
	finish(&f, 0);
}

static void test_other_contents(void **state)
{
	curl_mimepart *part;
	struct form f;
	CURL *ours;

	(void)state;
	start(&f);
	part = freed_part(&f.freed, f.mime, release_stand_in(FREED[3]));
	ours = release_copy(flavour_here(), f.curl);
	curl_mime_data_cb(part, 0, freed_read, NULL, release_stand_in(FREED[4]), &f.freed);
	assert_int_equal(f.freed.by[3], 1);
	curl_mime_data(part, "x", 1);
	assert_int_equal(f.freed.by[4], 1);
	release_form(flavour_here(), ours, false);
	curl_easy_cleanup(ours);
	finish(&f, 2);
}

/* --- a libcurl that does as it is told --- */

static CURL *copy_and_fail(CURL *easy)
{
	curl_easy_cleanup(CURL_FN(flavour_here(), easy_duphandle)(easy));
	return NULL;
}

static struct flavour with(enum curl_fn which, void (*function)(void))
{
	struct flavour fl = *flavour_here();

	fl.fn[which] = function;
	return fl;
}

static void test_a_copy_that_fails(void **state)
{
	struct flavour fl = with(FN_easy_duphandle, (void (*)(void))copy_and_fail);
	struct form f;

	(void)state;
	start(&f);
	assert_null(release_copy(&fl, f.curl));
	finish(&f, 0);
}

/* As newer ones do: a form that cannot be rewound is not attached again. */
static bool refuses;

static CURLcode set_or_refuse(CURL *easy, CURLoption option, uintptr_t word)
{
	if (refuses && option == CURLOPT_MIMEPOST && word)
		return CURLE_SEND_FAIL_REWIND;
	return curl_easy_setopt(easy, option, word);
}

static enum capture_result render(struct capture *c, const struct flavour *fl, struct form *f,
                                  const struct options *options)
{
	enum capture_result result = CAPTURE_MORE;
	struct rendering *r = capture_begin(c, fl, f->curl, options, 1 << 20, &result);
	struct captured out;

	if (!r)
		return result;
	do
		result = capture_step(r);
	while (result == CAPTURE_MORE || result == CAPTURE_PAUSED);
	result = capture_end(r, result, &out);
	payload_unref(out.body);
	free(out.type);
	return result;
}

/* What libcurl does not take back is sent by nobody as if it were empty, and ends as it would. */
static void expect_lost(struct form *f, struct capture *from, const struct flavour *fl,
                        const struct options *options, bool copied)
{
	struct capture copy = {0}, again = {0};
	unsigned before = f->freed.calls;
	CURL *left;

	assert_int_equal(capture_copy(&copy, from, fl, f->curl, options), copied);
	capture_give_back(from, fl, f->curl, options);
	assert_true(from->lost);
	assert_false(capture_give_back(from, fl, f->curl, options));
	capture_note_copy(&copy, from);
	assert_true(copy.lost);
	assert_false(capture_give_back(&copy, fl, f->curl, options));
	assert_int_equal(render(&copy, fl, f, options), copied ? CAPTURE_DONE : CAPTURE_CANNOT);
	assert_false(capture_give_back(&copy, fl, f->curl, options));
	assert_int_equal(capture_copy(&again, &copy, fl, f->curl, options), copied);
	capture_note_copy(&again, &copy);
	assert_true(again.lost);
	copy.busy = true; /* a callback has jumped out of it */
	left = copy.easy;
	render(&copy, fl, f, options);
	assert_true(copy.lost);
	curl_easy_cleanup(left);
	capture_drop(&copy, fl);
	assert_int_equal(f->freed.calls - before, copied ? 2 : 0);
	capture_drop(&again, fl);
	assert_int_equal(f->freed.calls - before, copied ? 4 : 0);
}

static void test_a_form_that_is_not_taken_back(void **state)
{
	struct flavour fl = with(FN_easy_setopt, (void (*)(void))set_or_refuse);

	(void)state;
	for (int used = 0; used < 2; used++) {
		struct capture from = {0};
		struct options options;
		struct form f;

		start(&f);
		options_init(&options);
		options_set(&options, CURLOPT_MIMEPOST, (uintptr_t)f.mime);
		if (used) /* by libcurl, on the program's handle */
			capture_note_use(&from);
		else
			assert_int_equal(render(&from, &fl, &f, &options), CAPTURE_DONE);
		refuses = true;
		expect_lost(&f, &from, &fl, &options, !used);
		expect_lost(&f, &from, &fl, &options, false);
		refuses = false;
		capture_drop(&from, &fl);
		options_free(&options);
		finish(&f, f.freed.calls);
	}
}

static struct {
	struct form own;     /* of the thread that ends a copy of ours */
	struct freed others; /* of one that ends its form meanwhile */
	pthread_t other;
} meanwhile;

static void *end_a_form(void *ctx)
{
	(void)ctx;
	release_stand_in(FREED[1])(&meanwhile.others);
	return NULL;
}

static CURLcode set_meanwhile(CURL *easy, CURLoption option, ...)
{
	assert_int_equal(option, CURLOPT_MIMEPOST);
	assert_int_equal(pthread_create(&meanwhile.other, NULL, end_a_form, NULL), 0);
	pthread_join(meanwhile.other, NULL);
	assert_int_equal(meanwhile.others.calls, 1);
	return curl_easy_setopt(easy, option, NULL);
}

static void test_another_thread(void **state)
{
	struct flavour fl = with(FN_easy_setopt, (void (*)(void))set_meanwhile);
	CURL *ours;

	(void)state;
	start(&meanwhile.own);
	ours = release_copy(&fl, meanwhile.own.curl);
	release_form(&fl, ours, false);
	curl_easy_cleanup(ours);
	finish(&meanwhile.own, 0);
}

/* A thread that is cancelled where a copy of ours ends is heard in its own cleanup. */
static CURLcode set_and_be_cancelled(CURL *easy, CURLoption option, ...)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return curl_easy_setopt(easy, option, NULL);
}

static void *be_cancelled(void *ctx)
{
	struct flavour fl = with(FN_easy_setopt, (void (*)(void))set_and_be_cancelled);

	pthread_cleanup_push(release_stand_in(FREED[1]), ctx);
	release_form(&fl, meanwhile.own.curl, false);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return NULL;
}

static void test_cancelled(void **state)
{
	struct freed freed = {0};
	pthread_t thread;
	void *result = NULL;

	(void)state;
	start(&meanwhile.own);
	assert_int_equal(pthread_create(&thread, NULL, be_cancelled, &freed), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(freed.calls, 1);
	finish(&meanwhile.own, 0);
}

static void test_a_forked_child(void **state)
{
	curl_free_callback stand_in = release_stand_in(FREED[2]);
	struct freed freed = {0};
	int status = 0;
	pid_t child;

	(void)state;
	child = fork();
	if (child == 0) {
		stand_in(&freed);
		_exit(release_stand_in(FREED[2]) == stand_in && freed.by[2] == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Comes last: it is for good. */
static void test_no_place_left(void **state)
{
	struct capture from = {0}, to = {0};
	struct options options;
	struct form f;

	(void)state;
	start(&f);
	options_init(&options);
	assert_int_equal(options_set(&options, CURLOPT_MIMEPOST, (uintptr_t)f.mime), 0);
	assert_true(capture_copy(&to, &from, flavour_here(), f.curl, &options));
	capture_drop(&to, flavour_here());

	assert_ptr_not_equal(release_stand_in(FREED[98]), FREED[98]);
	assert_true(release_is_unheard());
	assert_ptr_equal(release_stand_in(FREED[99]), FREED[99]);
	assert_false(release_is_unheard());
	assert_ptr_not_equal(release_stand_in(FREED[98]), FREED[98]);
	assert_false(release_is_unheard());

	assert_false(capture_copy(&to, &from, flavour_here(), f.curl, &options));
	assert_null(to.easy);
	assert_null(from.mime);
	capture_drop(&from, flavour_here());
	options_free(&options);
	finish(&f, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_each_has_its_own),
	        cmocka_unit_test(test_copies),
	        cmocka_unit_test(test_the_programs_own),
	        cmocka_unit_test(test_other_contents),
	        cmocka_unit_test(test_a_copy_that_fails),
	        cmocka_unit_test(test_another_thread),
	        cmocka_unit_test(test_a_form_that_is_not_taken_back),
	        cmocka_unit_test(test_cancelled),
	        cmocka_unit_test(test_a_forked_child),
	        cmocka_unit_test(test_no_place_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
