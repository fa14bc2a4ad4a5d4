/* A name that is looked up for long: whoever gives up on it holds nobody else up. */
#include "unit/courier_server.h"
#include "unit/slow_name.h"

static void slow_begin(struct write *slow, int port)
{
	char url[64];

	options_init(&slow->options);
	slow->server.port = port;
	write_plan(slow, "hello", 5);
	snprintf(url, sizeof url, "http://%s:%d/", slow_name, port);
	set_word(slow, CURLOPT_URL, (uintptr_t)url);
	set_word(slow, CURLOPT_NOPROXY, (uintptr_t) "*");
	write_send(slow);
	for (int64_t end = now_us() + 1000000; !atomic_load(&slow_count) && now_us() < end;)
		attempt_wait(slow->attempt, now_us() + 20000);
	assert_int_equal(slow_count, 1);
}

static void what_is_given_up_holds_nobody_up(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}};
	struct write w = {0}, slow = {0};
	int64_t begun;

	(void)state;
	write_start(&w, steps, 1);
	slow_begin(&slow, w.server.port);
	begun = now_us();
	attempt_cancel(slow.attempt);
	write_send(&w);
	assert_true(write_play(w.attempt, &w.head, &w.body, 5000));
	assert_in_range(now_us() - begun, 0, SLOW_MS * 1000 / 2);
	assert_true(slow.record.end.stopped);
	assert_int_equal(slow.record.gates, 0);
	atomic_store(&slow_go, true);
	sleep_ms(50); /* it ends by itself */
	attempt_unref(slow.attempt);
	options_free(&slow.options);
	write_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_given_up_holds_nobody_up)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
