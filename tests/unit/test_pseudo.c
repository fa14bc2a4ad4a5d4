/* One handle inside a program's multi: what it waits for, when it is due, what is told when, and
 * what is left behind when it is removed at any point. The write itself, libcurl and the courier
 * are scripts; the life of the handle is the real source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/audit.h"
#include "intercept/fetch.h"
#include "intercept/redirect.h"
#include "intercept/replay.h"
#include "intercept/serve.h"
#include "intercept/watch.h"
#include "intercept/write.h"
#include "intercept/writing.h"

static int64_t now;
static enum step script[8];
static unsigned steps, begun, ended, abandoned, listening, refs, waits, played, watched, unwatched;
static unsigned added, removed, audits, audits_ended, audits_abandoned;
static unsigned news;
static bool can_thread = true;
static CURLcode ticked, returned;
static CURLMcode add_answer;
static struct writing *led_to;
static struct wait next_wait;
static struct attempt *const sending = (struct attempt *)&news;
static struct audit *const watcher = (struct audit *)&audits;

static struct writing *fake_begin(void)
{
	begun++;
	return calloc(1, sizeof(struct writing));
}

static enum step fake_step(struct writing *w)
{
	enum step step = script[steps++];

	assert_true(w->looped);
	if (step == STEP_WAIT)
		w->wait = next_wait;
	w->code = w->native_code;
	return step;
}

static CURLcode fake_end(struct writing *w)
{
	CURLcode code = returned ? returned : w->code;

	ended++;
	free(w);
	return code;
}

static void fake_abandon(struct writing *w)
{
	abandoned++;
	free(w);
}

static CURLcode fake_tick(int64_t *patience)
{
	*patience = 1000000;
	return ticked;
}

static bool fake_watch(struct watch *w, uint64_t record, uint64_t word)
{
	watched++;
	w->record = record;
	w->word = word;
	atomic_store(&w->rung, false);
	return can_thread;
}

static struct audit *fake_audit(void)
{
	audits++;
	return watcher;
}

static struct writing *fake_audit_end(void)
{
	audits_ended++;
	return led_to;
}

#define write_begin(s, p, r, i)         fake_begin()
#define write_begin_policy(s, p)        fake_begin()
#define write_begin_refusal(s, p, r, x) fake_begin()
#define replay_stop_raw(s, p)           CURLE_COULDNT_CONNECT
#define write_step                      fake_step
#define write_end                       fake_end
#define write_abandon                   fake_abandon
#define serve_now_us()                  now
#define serve_tick(v, g, p)             fake_tick(p)
#define player_end(p, c, t)             ((void)(p), (c))
#define attempt_listen(a, l)            (listening++, can_thread)
#define attempt_unlisten(a, l)          (listening--)
#define attempt_ref(a)                  (refs++, (a))
#define attempt_unref(a)                (refs--)
#define attempt_news(a)                 (news)
#define attempt_played(a)               (played++)
#define attempt_wait(a, u)              (waits++)
#define watch_add(w, l, r, o, b, n)     fake_watch(w, r, o)
#define watch_remove(w)                 (unwatched++)
#define audit_begin(s, p, r)            fake_audit()
#define audit_end(a, c)                 fake_audit_end()
#define audit_abandon(a)                (audits_abandoned++)
#define fetch_give_form(s)              true
#define redirect_possible(s)            false
#define shadow_begin(s, p)              ((void)(s))
#include "../../src/intercept/pseudo.c"

static CURLMcode real_add(CURLM *multi, CURL *handle)
{
	(void)multi, (void)handle;
	added += add_answer == CURLM_OK;
	return add_answer;
}

static CURLMcode real_remove(CURLM *multi, CURL *handle)
{
	(void)multi, (void)handle;
	removed++;
	return CURLM_OK;
}

static struct flavour flavour;
static struct process process = {.acting = MODE_ENFORCE};
static struct shadow shadow;
static struct multi multi;
static struct decision write_it = {.way = WAY_WRITE, .process = &process};

static int start(void **state)
{
	(void)state;
	flavour.fn[FN_multi_add_handle] = (void (*)(void))real_add;
	flavour.fn[FN_multi_remove_handle] = (void (*)(void))real_remove;
	memset(&shadow, 0, sizeof(shadow));
	memset(&multi, 0, sizeof(multi));
	options_init(&shadow.options);
	shadow.handle = (CURL *)&shadow;
	multi.flavour = &flavour;
	now = 1000;
	steps = begun = ended = abandoned = listening = refs = waits = played = watched = 0;
	unwatched = added = removed = audits = audits_ended = audits_abandoned = news = 0;
	can_thread = true;
	ticked = returned = CURLE_OK;
	add_answer = CURLM_OK;
	led_to = NULL;
	next_wait = (struct wait){WAIT_ATTEMPT, sending, 0, 7, 9, 5000};
	process.acting = MODE_ENFORCE;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	queue_free(&multi.queue);
	bell_unref(multi.bell);
	options_free(&shadow.options);
	return 0;
}

static struct pseudo *add(const struct decision *d)
{
	assert_int_equal(pseudo_add(&multi, &shadow, d), CURLM_OK);
	assert_ptr_equal(multi.first, shadow.pseudo);
	return shadow.pseudo;
}

static void expect_message(CURLcode code)
{
	int left;
	CURLMsg *msg = message_take(&multi.messages, &left);

	assert_non_null(msg);
	assert_int_equal(msg->msg, CURLMSG_DONE);
	assert_ptr_equal(msg->easy_handle, shadow.handle);
	assert_int_equal(msg->data.result, code);
	assert_int_equal(left, 0);
}

static void remove_it(struct pseudo *p)
{
	int left;

	pseudo_remove(p);
	assert_null(shadow.pseudo);
	assert_null(multi.first);
	assert_null(multi.last);
	assert_int_equal(listening, 0);
	assert_int_equal(refs, 0);
	assert_null(message_take(&multi.messages, &left));
}

/* Adding does nothing but be due; the first call begins; the second may end it. */
static void test_two_calls(void **state)
{
	struct pseudo *p = add(&write_it);

	(void)state;
	assert_int_equal(begun, 0);
	assert_int_equal(pseudo_due_us(p, now), 0);
	assert_true(pseudo_is_ours(p));
	pseudo_step(p);
	assert_int_equal(begun, 1);
	assert_int_equal(steps, 0);
	assert_int_equal(pseudo_due_us(p, now), 0);
	script[0] = STEP_DONE;
	returned = CURLE_HTTP_RETURNED_ERROR;
	pseudo_step(p);
	assert_false(pseudo_is_ours(p));
	assert_int_equal(pseudo_due_us(p, now), MULTI_NEVER);
	expect_message(CURLE_HTTP_RETURNED_ERROR);
	assert_int_equal(ended, 1);
	remove_it(p);
	assert_int_equal(abandoned, 0);
	assert_int_equal(removed, 0);
}

static struct pseudo *waiting(void)
{
	struct pseudo *p = add(&write_it);

	script[0] = STEP_WAIT;
	pseudo_step(p);
	pseudo_step(p);
	return p;
}

static void test_waits_for_an_attempt(void **state)
{
	struct pseudo *p = waiting();

	(void)state;
	assert_int_equal(listening, 1);
	assert_int_equal(played, 1);
	assert_int_equal(pseudo_due_us(p, now), 5000);
	assert_int_equal(pseudo_due_us(p, 5000), 0);
	news = 1;
	assert_int_equal(pseudo_due_us(p, now), 0);
	script[1] = STEP_WAIT;
	next_wait.news = 1;
	pseudo_step(p);
	assert_int_equal(listening, 1); /* not once more */
	assert_int_equal(pseudo_due_us(p, now), 5000);
	script[2] = STEP_DONE;
	pseudo_step(p);
	assert_int_equal(listening, 0);
	assert_int_equal(refs, 0);
	expect_message(CURLE_OK);
	remove_it(p);
}

static void test_removed_while_waiting(void **state)
{
	struct pseudo *p = waiting();

	(void)state;
	remove_it(p);
	assert_int_equal(abandoned, 1);
	assert_int_equal(ended, 0);
}

static void test_removed_before_and_after(void **state)
{
	struct pseudo *p = add(&write_it);

	(void)state;
	remove_it(p);
	assert_int_equal(begun, 0);
	p = add(&write_it);
	script[0] = STEP_DONE;
	pseudo_step(p);
	pseudo_step(p);
	remove_it(p); /* and its message, which nobody has read */
	assert_int_equal(abandoned, 0);
}

static void test_poked(void **state)
{
	struct pseudo *p = waiting();

	(void)state;
	pseudo_poke(p);
	assert_int_equal(pseudo_due_us(p, now), 0);
	script[1] = STEP_WAIT;
	pseudo_step(p);
	assert_int_equal(pseudo_due_us(p, now), 5000);
	remove_it(p);
}

static void test_waits_for_a_record(void **state)
{
	struct pseudo *p;

	(void)state;
	next_wait.kind = WAIT_RECORD;
	p = waiting();
	assert_int_equal(watched, 1);
	assert_int_equal(p->watch.record, 7);
	assert_int_equal(p->watch.word, 9);
	assert_int_equal(pseudo_due_us(p, now), 5000);
	atomic_store(&p->watch.rung, true);
	assert_int_equal(pseudo_due_us(p, now), 0);
	script[1] = STEP_DONE;
	pseudo_step(p);
	assert_int_equal(unwatched, 1);
	remove_it(p);
}

/* Where there can be no thread: looked at every 10 ms, and driven from here. */
static void test_no_thread(void **state)
{
	struct pseudo *p;

	(void)state;
	can_thread = false;
	next_wait.until_us = 1000000;
	p = waiting();
	assert_int_equal(pseudo_due_us(p, now), now + 10000);
	script[1] = STEP_WAIT;
	pseudo_step(p);
	assert_int_equal(waits, 1);
	remove_it(p);
}

/* In a child of fork(2), whose bell would ring in the parent. */
static void test_no_bell(void **state)
{
	struct pseudo *p;

	(void)state;
	multi.forked = true;
	next_wait.until_us = 1000000;
	p = waiting();
	assert_null(multi.bell);
	assert_int_equal(listening, 0);
	assert_int_equal(pseudo_due_us(p, now), now + 10000);
	remove_it(p);
}

static void test_native(void **state)
{
	struct pseudo *p = add(&write_it);

	(void)state;
	script[0] = STEP_NATIVE;
	pseudo_step(p);
	pseudo_step(p);
	assert_int_equal(added, 1);
	assert_false(pseudo_is_ours(p)); /* libcurl counts it */
	assert_int_equal(pseudo_due_us(p, now), MULTI_NEVER);
	script[1] = STEP_NATIVE; /* the record was somebody else's: once more */
	pseudo_performed(p, CURLE_ABORTED_BY_CALLBACK);
	assert_int_equal(removed, 1);
	assert_int_equal(added, 2);
	script[2] = STEP_DONE;
	pseudo_performed(p, CURLE_GOT_NOTHING);
	expect_message(CURLE_GOT_NOTHING);
	remove_it(p);
	assert_int_equal(removed, 2);
}

static void test_native_is_not_taken(void **state)
{
	struct pseudo *p = add(&write_it);

	(void)state;
	add_answer = CURLM_OUT_OF_MEMORY;
	script[0] = STEP_NATIVE;
	script[1] = STEP_DONE;
	pseudo_step(p);
	pseudo_step(p);
	expect_message(CURLE_FAILED_INIT);
	remove_it(p);
	assert_int_equal(removed, 0);
}

/* What libcurl performs begins with the first call, as it would have by itself. */
static void test_in_place_at_once(void **state)
{
	struct decision d = {.way = WAY_WRITE, .process = &process, .in_place = "SSL_CTX_FUNCTION"};
	struct pseudo *p = add(&d);

	(void)state;
	script[0] = STEP_NATIVE;
	pseudo_step(p);
	assert_int_equal(added, 1);
	remove_it(p);
	assert_int_equal(removed, 1);
	assert_int_equal(abandoned, 1);
}

static void test_progress_aborts_at_once(void **state)
{
	struct pseudo *p = add(&write_it);

	(void)state;
	ticked = CURLE_ABORTED_BY_CALLBACK;
	returned = CURLE_ABORTED_BY_CALLBACK;
	pseudo_step(p);
	assert_int_equal(steps, 0);
	expect_message(CURLE_ABORTED_BY_CALLBACK);
	remove_it(p);
}

static void test_stopped_by_mode_replay(void **state)
{
	struct decision d = {.way = WAY_STOP, .process = &process};
	struct pseudo *p = add(&d);

	(void)state;
	pseudo_step(p);
	assert_int_equal(begun, 0);
	expect_message(CURLE_COULDNT_CONNECT);
	remove_it(p);
}

static void test_audit(void **state)
{
	struct decision d = {.way = WAY_AUDIT, .process = &process};
	struct pseudo *p = add(&d);

	(void)state;
	assert_int_equal(audits, 1);
	assert_int_equal(added, 1);
	assert_int_equal(pseudo_due_us(p, now), MULTI_NEVER);
	pseudo_performed(p, CURLE_OK);
	assert_int_equal(audits_ended, 1);
	expect_message(CURLE_OK);
	remove_it(p);
	assert_int_equal(audits_abandoned, 0);
	p = add(&d);
	remove_it(p);
	assert_int_equal(audits_abandoned, 1);
}

/* It led to a listed target: the handle stays where it is, and the refusal is played by us. */
static void test_refused_afterwards(void **state)
{
	struct decision d = {.way = WAY_AUDIT, .process = &process};
	struct pseudo *p = add(&d);
	int left;

	(void)state;
	led_to = calloc(1, sizeof(*led_to));
	pseudo_performed(p, CURLE_ABORTED_BY_CALLBACK);
	assert_null(message_take(&multi.messages, &left));
	assert_true(pseudo_is_ours(p));
	assert_int_equal(pseudo_due_us(p, now), 0);
	script[0] = STEP_DONE;
	pseudo_step(p);
	expect_message(CURLE_OK);
	remove_it(p);
	assert_int_equal(removed, 1);
}

static void test_audit_is_not_taken(void **state)
{
	struct decision d = {.way = WAY_AUDIT, .process = &process};

	(void)state;
	add_answer = CURLM_RECURSIVE_API_CALL;
	assert_int_equal(pseudo_add(&multi, &shadow, &d), CURLM_RECURSIVE_API_CALL);
	assert_null(shadow.pseudo);
	assert_int_equal(audits_abandoned, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_two_calls),
	        TEST(test_waits_for_an_attempt),
	        TEST(test_removed_while_waiting),
	        TEST(test_removed_before_and_after),
	        TEST(test_poked),
	        TEST(test_waits_for_a_record),
	        TEST(test_no_thread),
	        TEST(test_no_bell),
	        TEST(test_native),
	        TEST(test_native_is_not_taken),
	        TEST(test_in_place_at_once),
	        TEST(test_progress_aborts_at_once),
	        TEST(test_stopped_by_mode_replay),
	        TEST(test_audit),
	        TEST(test_refused_afterwards),
	        TEST(test_audit_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
