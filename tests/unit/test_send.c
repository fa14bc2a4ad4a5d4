/* One sending between the gate and its end: what the ledger says at the gate decides whether the
 * call looks again or refuses, and nothing is ever sent past a gate that did not open. The ledger's
 * functions are replaced; the sending is the real source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ledger/ledger.h"

static int gate_answer, withdraw_answer, look_answer, wire_answer;
static unsigned gates, withdrawals, counted[COUNT_COUNT], unknowns, dones, frees, events;
static struct record_view looked;

static int fake_gate(struct ledger *l, struct hold *hold, struct stamp first, struct stamp now)
{
	(void)l, (void)hold, (void)first, (void)now;
	gates++;
	return gate_answer;
}

static int fake_withdraw(struct ledger *l, struct hold *hold, struct stamp now)
{
	(void)l, (void)hold, (void)now;
	withdrawals++;
	return withdraw_answer;
}

static int fake_look(struct ledger *l, uint64_t id, struct stamp now, struct record_view *out)
{
	(void)l, (void)id, (void)now;
	*out = looked;
	return look_answer;
}

static void fake_count(struct ledger *l, enum ledger_counter counter)
{
	(void)l;
	counted[counter]++;
}

static int fake_ok(void)
{
	return LEDGER_OK;
}

static int fake_wire_send(struct ledger *l, struct hold *hold)
{
	(void)l, (void)hold;
	return wire_answer;
}

static int fake_ending(unsigned *which, const struct ledger_answer *answer)
{
	(void)answer;
	(*which)++;
	return LEDGER_OK;
}

#include "intercept/local.h"
#include "intercept/tally.h"

#define ledger_gate_dated             fake_gate
#define ledger_withdraw               fake_withdraw
#define ledger_look                   fake_look
#define ledger_count                  fake_count
#define ledger_wire_send              fake_wire_send
#define ledger_renew(l, h, n)         fake_ok()
#define ledger_mark_curlcode(l, i, g) fake_ok()
#define ledger_done(l, h, a, n)       fake_ending(&dones, a)
#define ledger_unknown(l, h, c, a, n) fake_ending(&unknowns, a)
#define ledger_freed(l, h, f, a, n)   fake_ending(&frees, a)
#define ledger_abandon(l, h, n)       fake_ending(&unknowns, NULL)
#define tally_write(t, name)          ((void)(t), (void)(name), events++)
#define local_remove(id, owner)       ((void)(id), (void)(owner))
#include "../../src/intercept/send.c"

static struct rule keyless = {.on_unknown = UNKNOWN_AUTO, .unknown_ttl = POLICY_NEVER};
static struct rule dedups = {.on_unknown = UNKNOWN_AUTO,
                             .unknown_ttl = POLICY_NEVER,
                             .dedups = true,
                             .key_ttl = 86400000000};

static struct send *start(const struct rule *rule)
{
	struct hold hold = {7, 9};
	struct send *s;

	gate_answer = withdraw_answer = look_answer = wire_answer = LEDGER_OK;
	gates = withdrawals = unknowns = dones = frees = events = 0;
	memset(counted, 0, sizeof(counted));
	memset(&looked, 0, sizeof(looked));
	looked.first_sent = clock_now();
	s = send_new(NULL, rule, &hold, false);
	assert_non_null(s);
	return s;
}

static void stop(struct send *s)
{
	send_calls.release(s);
	send_leave(s, CURLE_OK, 0);
}

static int pass(struct send *s, unsigned number, bool after_answer)
{
	struct gate_pass p = {.number = number, .after_answer = after_answer};

	return send_calls.gate(s, &p);
}

static void end(struct send *s, CURLcode code, long status)
{
	struct tape *tape = tape_new(0);
	struct tape_end e = {
	        .ended = true, .complete = code == CURLE_OK, .code = code, .status = status};

	send_calls.ended(s, tape, &e);
	tape_unref(tape);
}

static void gate_says_why_it_is_shut(void **state)
{
	static const struct {
		int ledger;
		enum send_gate gate;
	} rows[] = {{LEDGER_LOST, GATE_LOST},
	            {LEDGER_CANNOT, GATE_FAILED},
	            {LEDGER_FULL, GATE_FAILED},
	            {LEDGER_OK, GATE_NOT_SHUT}};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct send *s = start(&keyless);
		gate_answer = rows[i].ledger;
		assert_int_equal(pass(s, 1, false), rows[i].ledger == LEDGER_OK ? 0 : -1);
		assert_int_equal(send_gate(s), rows[i].gate);
		assert_int_equal(counted[COUNT_executed], rows[i].ledger == LEDGER_OK);
		stop(s);
	}
}

static void resend_of_libcurl_is_stopped_without_keys(void **state)
{
	struct send *s = start(&keyless);
	(void)state;

	assert_int_equal(pass(s, 1, false), 0);
	assert_int_equal(pass(s, 2, true), 0); /* after a 401 or a 307 */
	assert_int_equal(pass(s, 3, false), -1);
	assert_int_equal(counted[COUNT_wire_resends_blocked], 1);
	assert_int_equal(s->tally.wire_sends, 2);
	assert_int_equal(gates, 1);
	end(s, CURLE_ABORTED_BY_CALLBACK, 0);
	assert_int_equal(unknowns, 1);
	stop(s);
}

static void resend_of_libcurl_passes_with_keys(void **state)
{
	struct send *s = start(&dedups);
	(void)state;

	assert_int_equal(pass(s, 1, false), 0);
	assert_int_equal(pass(s, 2, false), 0);
	assert_int_equal(s->tally.wire_sends, 2);
	looked.first_sent.wall_us -= 86400000000;
	looked.first_sent.boot_us -= 86400000000;
	assert_int_equal(pass(s, 3, false), -1); /* the provider has forgotten the key by now */
	stop(s);
}

/* A process that stood still between a 401 and what libcurl answers to it. */
static void what_was_taken_over_is_not_sent_again(void **state)
{
	struct send *s;
	(void)state;

	for (int after_answer = 0; after_answer < 2; after_answer++) {
		s = start(&dedups);
		assert_int_equal(pass(s, 1, false), 0);
		wire_answer = LEDGER_LOST;
		assert_int_equal(pass(s, 2, after_answer), -1);
		assert_int_equal(s->tally.wire_sends, 1);
		assert_int_equal(counted[COUNT_wire_resends_blocked], 0);
		end(s, CURLE_ABORTED_BY_CALLBACK, 0);
		assert_int_equal(unknowns, 1);
		stop(s);
	}
}

static void only_before_the_gate_is_a_write_taken_back(void **state)
{
	struct send *s = start(&keyless);
	(void)state;

	assert_true(send_withdraw(s));
	stop(s);
	s = start(&keyless);
	assert_int_equal(pass(s, 1, false), 0);
	assert_false(send_withdraw(s));
	assert_int_equal(withdrawals, 0);
	stop(s);
	s = start(&keyless);
	withdraw_answer = LEDGER_LOST;
	assert_false(send_withdraw(s));
	stop(s);
}

static void one_event_whoever_leaves_last(void **state)
{
	struct send *s = start(&keyless);
	(void)state;

	send_leave(s, CURLE_OPERATION_TIMEDOUT, 0);
	assert_int_equal(events, 0);
	send_calls.release(s);
	assert_int_equal(events, 1);
	s = start(&keyless);
	send_silence(s);
	stop(s);
	assert_int_equal(events, 0);
	s = start(&keyless);
	send_calls.abandon(s);
	stop(s);
	assert_int_equal(events, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(gate_says_why_it_is_shut),
	        cmocka_unit_test(resend_of_libcurl_is_stopped_without_keys),
	        cmocka_unit_test(resend_of_libcurl_passes_with_keys),
	        cmocka_unit_test(what_was_taken_over_is_not_sent_again),
	        cmocka_unit_test(only_before_the_gate_is_a_write_taken_back),
	        cmocka_unit_test(one_event_whoever_leaves_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
