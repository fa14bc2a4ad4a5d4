/* Writes of multis that bound their connections: who gets a courier of his own, whose connections
 * it keeps, and what counts as waiting for a place. */
#include "unit/courier_server.h"
#include "unit/slow_name.h"

#include <limits.h>

enum { MANY = 80 };

static void send_as(struct write *w, struct record *r, const struct courier_bounds *bounds)
{
	w->plan.ctx = r;
	w->plan.bounds = *bounds;
	write_send(w);
}

static void play(struct attempt *a)
{
	struct buf head = {0}, body = {0};

	assert_true(write_play(a, &head, &body, 5000));
	assert_string_equal(body.data, "ok");
	buf_free(&head);
	buf_free(&body);
	attempt_unref(a);
}

static void connections_of_another_multi_stay(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}, {OK, 0, false, 0}};
	static const struct courier_bounds own = {.owner = 1001, .host = 4};
	struct write w = {0};
	struct record second = {0};

	(void)state;
	write_start(&w, steps, 2);
	send_as(&w, &w.record, &own);
	play(w.attempt);
	courier_let_go(w.plan.flavour, own.owner + 1);
	assert_false(server_is_quiet(&w.server, 100));
	send_as(&w, &second, &own);
	play(attempt_ref(w.attempt));
	assert_int_equal(w.server.connections, 1);
	courier_let_go(w.plan.flavour, own.owner);
	assert_true(server_is_quiet(&w.server, 2000));
	write_finish(&w);
}

/* A bound that cannot be widened is none. */
static void orphans_take_nobodys_place(void **state)
{
	static const struct step steps[] = {
	        {OK, 600, false, 0}, {OK, 600, false, 0}, {OK, 0, false, 0}};
	static const long hosts[] = {1, LONG_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		struct courier_bounds own = {
		        .owner = 1101 + i, .host = hosts[i], .total = hosts[i]};
		struct write w = {0};
		struct record other[2] = {{0}};
		struct attempt *left;

		write_start(&w, steps, 3);
		send_as(&w, &w.record, &own);
		left = w.attempt;
		while (!w.record.gates)
			attempt_wait(left, now_us() + 1000000);
		attempt_orphan(left);
		send_as(&w, &other[0], &own);
		for (int64_t end = now_us() + 300000; now_us() < end && !other[0].gates;)
			attempt_wait(w.attempt, end);
		assert_int_equal(other[0].gates, 1);
		assert_int_equal(w.record.ended, 0);
		play(attempt_ref(w.attempt));
		play(left);
		write_finish(&w);
		courier_let_go(w.plan.flavour, own.owner);
	}
}

static bool is_queued(struct attempt *a)
{
	struct attempt_phase phase;

	attempt_phase(a, &phase);
	return phase.queued;
}

/* The next write asks the server by a name whose look-up waits for slow_go. */
static void by_slow_name(struct write *w)
{
	char url[64];

	snprintf(url, sizeof url, "http://%s:%d/", slow_name, w->server.port);
	set_word(w, CURLOPT_URL, (uintptr_t)url);
	set_word(w, CURLOPT_NOPROXY, (uintptr_t) "*");
}

/* CONNECTTIMEOUT runs while a name is looked up, and not while a write waits for its place. */
static void a_look_up_is_no_waiting(void **state)
{
	static const struct step steps[] = {{OK, 0, false, 0}, {OK, 0, false, 0}};
	static const struct courier_bounds own = {.owner = 1201, .host = 1};
	struct write w = {0};
	struct record second = {0};
	struct attempt *first;

	(void)state;
	write_start(&w, steps, 2);
	by_slow_name(&w);
	send_as(&w, &w.record, &own);
	first = w.attempt;
	assert_true(is_queued(first));
	for (int64_t end = now_us() + 2000000; is_queued(first) && now_us() < end;)
		attempt_wait(first, now_us() + 20000);
	assert_false(is_queued(first));
	send_as(&w, &second, &own);
	for (int64_t end = now_us() + 200000; now_us() < end;)
		attempt_wait(w.attempt, end);
	assert_true(is_queued(w.attempt));
	assert_int_equal(w.record.gates, 0);
	atomic_store(&slow_go, true);
	play(first);
	play(attempt_ref(w.attempt));
	assert_int_equal(w.server.connections, 1);
	write_finish(&w);
}

/* Nor is it ended when the bounds are widened, for which libcurl would wait, and all others. */
static void a_look_up_goes_on_in_wider_bounds(void **state)
{
	static const struct step steps[] = {{OK, 2000, false, 0}, {OK, 0, false, 0}};
	static const struct courier_bounds own = {.owner = 1301, .host = 4};
	struct write w = {0};
	struct record second = {0};
	struct attempt *first;

	(void)state;
	write_start(&w, steps, 2);
	send_as(&w, &w.record, &own);
	first = w.attempt;
	for (int64_t end = now_us() + 2000000; !w.record.gates && now_us() < end;)
		attempt_wait(first, end);
	by_slow_name(&w);
	atomic_store(&slow_go, false);
	atomic_store(&slow_count, 0);
	send_as(&w, &second, &own);
	for (int64_t end = now_us() + 500000; !atomic_load(&slow_count) && now_us() < end;)
		attempt_wait(w.attempt, now_us() + 20000);
	attempt_orphan(first);
	play(attempt_ref(w.attempt));
	assert_int_equal(slow_count, 1);
	play(first);
	write_finish(&w);
}

/* However many multis with bounds there are: a write that has none is sent by a courier. */
static void there_is_room_for_those_without(void **state)
{
	struct record record[MANY + 1] = {{0}};
	struct attempt *all[MANY + 1];
	struct write w = {.server.port = 9};

	(void)state;
	options_init(&w.options);
	write_plan(&w, "hello", 5);
	for (size_t i = 0; i <= MANY; i++) {
		struct courier_bounds own = {.owner = i < MANY ? 2001 + i : 0, .host = 1};

		send_as(&w, &record[i], &own);
		all[i] = w.attempt;
	}
	for (size_t i = 0; i <= MANY; i++) {
		attempt_cancel(all[i]);
		attempt_unref(all[i]);
		assert_int_equal(record[i].released, 1);
	}
	options_free(&w.options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(connections_of_another_multi_stay),
	        cmocka_unit_test(orphans_take_nobodys_place),
	        cmocka_unit_test(a_look_up_is_no_waiting),
	        cmocka_unit_test(a_look_up_goes_on_in_wider_bounds),
	        cmocka_unit_test(there_is_room_for_those_without),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
