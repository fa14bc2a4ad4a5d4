/* Handles whose options change when they are in a multi already: looked at once more when its loop
 * comes by, each once, in order, and only those that are still in it. Decisions and transfers are
 * scripts; the handles, the multi and its list are the real source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/decide.h"
#include "intercept/multi_hooks.h"
#include "intercept/pseudo.h"

enum { HANDLES = 3 };

static enum way way;
static CURLMcode added_code, removed_code;
static struct shadow *added[8];
static unsigned asked, added_count, removed_count, given_up;
static struct pseudo transfer[HANDLES];
static char place[HANDLES];
static struct flavour flavour;
static struct multi *multi;

static struct decision fake_decide(void)
{
	asked++;
	return (struct decision){.way = way};
}

/* As the real one: in the multi, or in none. */
static CURLMcode fake_add(struct multi *m, struct shadow *s)
{
	struct pseudo *p = &transfer[added_count % HANDLES];

	added[added_count++] = s;
	if (added_code != CURLM_OK && added_code != CURLM_ABORTED_BY_CALLBACK)
		return added_code;
	*p = (struct pseudo){.multi = m, .shadow = s, .decision = {.way = way}};
	s->pseudo = p;
	return added_code;
}

static void fake_remove(struct pseudo *p)
{
	given_up++;
	p->shadow->pseudo = NULL;
}

#define decide(s)               ((void)(s), fake_decide())
#define multi_add_ours(m, s, d) ((void)(d), fake_add(m, s))
#define pseudo_remove(p)        fake_remove(p)
#include "../../src/intercept/multi_late.c"

static CURLMcode real_remove(CURLM *m, CURL *handle)
{
	assert_ptr_equal(m, multi->handle);
	assert_non_null(handle);
	removed_count++;
	return removed_code;
}

static int start(void **state)
{
	(void)state;
	flavour.fn[FN_multi_remove_handle] = (void (*)(void))real_remove;
	way = WAY_WRITE;
	added_code = removed_code = CURLM_OK;
	asked = added_count = removed_count = given_up = 0;
	multi_new((CURLM *)&flavour, &flavour);
	multi = multi_find((CURLM *)&flavour);
	return multi ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	multi_drop((CURLM *)&flavour);
	for (int i = 0; i < HANDLES; i++)
		shadow_drop((CURL *)&place[i]);
	return 0;
}

/* In the multi, by libcurl alone. */
static struct shadow *inside(int i)
{
	struct shadow *s = shadow_new((CURL *)&place[i], &flavour);

	assert_non_null(s);
	s->added_to = multi->handle;
	s->added_serial = multi->serial;
	late_watch(s, multi);
	return s;
}

static void test_each_once_in_order(void **state)
{
	struct shadow *s[HANDLES];

	(void)state;
	for (int i = 0; i < HANDLES; i++)
		s[i] = inside(i);
	for (int i = 0; i < 2 * HANDLES; i++)
		late_note(s[(i + 1) % HANDLES]);
	late_settle(multi);
	assert_int_equal(added_count, HANDLES);
	for (int i = 0; i < HANDLES; i++)
		assert_ptr_equal(added[i], s[(i + 1) % HANDLES]);
	assert_int_equal(asked, HANDLES);
	assert_int_equal(removed_count, HANDLES);
	late_settle(multi);
	assert_int_equal(asked, HANDLES);
}

static void test_after_the_loop_it_is_too_late(void **state)
{
	struct shadow *s = inside(0);

	(void)state;
	late_settle(multi);
	late_note(s);
	late_settle(multi);
	assert_int_equal(asked, 0);
}

static void test_libcurl_goes_on_with_it(void **state)
{
	struct shadow *s = inside(0);

	(void)state;
	way = WAY_LIBCURL;
	late_note(s);
	late_settle(multi);
	assert_int_equal(asked, 1);
	assert_int_equal(removed_count + added_count, 0);
	assert_ptr_equal(s->added_to, multi->handle);
}

/* Another thread may have a new handle where one was that is gone: nothing of it is looked at. */
static void test_cleaned_up(void **state)
{
	struct shadow *s = inside(0);

	(void)state;
	late_note(s);
	late_note(inside(1));
	multi_handle_dropped(s);
	shadow_drop((CURL *)&place[0]);
	s = shadow_new((CURL *)&place[0], &flavour);
	s->pseudo = (struct pseudo *)(uintptr_t)16;
	late_settle(multi);
	assert_int_equal(asked, 1);
	assert_ptr_equal(added[0], shadow_find((CURL *)&place[1]));
	s->pseudo = NULL;
}

static void test_the_multi_goes_first(void **state)
{
	struct shadow *s = inside(0);

	(void)state;
	late_note(s);
	late_note(inside(1));
	multi_drop((CURLM *)&flavour);
	late_note(s); /* it is in none */
	shadow_drop((CURL *)&place[0]);
	shadow_drop((CURL *)&place[1]);
	multi_new((CURLM *)&flavour, &flavour);
	multi = multi_find((CURLM *)&flavour);
	late_settle(multi);
	assert_int_equal(asked, 0);
}

/* --- where it cannot be put in again --- */

static void expect_message(struct shadow *s, CURLcode code)
{
	int left;
	CURLMsg *msg = message_take(&multi->messages, &left);

	assert_non_null(msg);
	assert_int_equal(msg->msg, CURLMSG_DONE);
	assert_ptr_equal(msg->easy_handle, s->handle);
	assert_int_equal(msg->data.result, code);
	assert_null(s->added_to);
	assert_null(message_take(&multi->messages, &left));
}

static void test_there_is_no_memory(void **state)
{
	struct shadow *s = inside(0);

	(void)state;
	added_code = CURLM_OUT_OF_MEMORY;
	late_note(s);
	late_settle(multi);
	expect_message(s, CURLE_OUT_OF_MEMORY);
}

static void test_its_form_cannot_be_sent_again(void **state)
{
	struct shadow *s = inside(0);
	struct pseudo watched = {.multi = multi, .shadow = s, .decision = {.way = WAY_REDIRECT}};

	(void)state;
	s->added_to = NULL;
	s->pseudo = &watched;
	added_code = CURLM_INTERNAL_ERROR;
	late_note(s);
	late_settle(multi);
	assert_int_equal(given_up, 1);
	expect_message(s, CURLE_SEND_FAIL_REWIND);
}

/* It is in all the same. */
static void test_a_timer_says_no(void **state)
{
	struct shadow *s = inside(0);
	int left;

	(void)state;
	added_code = CURLM_ABORTED_BY_CALLBACK;
	late_note(s);
	late_settle(multi);
	assert_non_null(s->pseudo);
	assert_null(message_take(&multi->messages, &left));
	s->pseudo = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_each_once_in_order),
	        TEST(test_after_the_loop_it_is_too_late),
	        TEST(test_libcurl_goes_on_with_it),
	        TEST(test_cleaned_up),
	        TEST(test_the_multi_goes_first),
	        TEST(test_there_is_no_memory),
	        TEST(test_its_form_cannot_be_sent_again),
	        TEST(test_a_timer_says_no),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
