/* verdict_outcome against the paragraph "outcome of an attempt, first match", written as data, for
 * every ending there can be under a rule whose sets overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verdict/verdict.h"

enum { NO, YES, ANY };

/* Which set of the rule a status is in; one that is in several is in the first row that holds. */
enum { IN_PROGRESS = 1, ALREADY_DONE = 2, FINAL = 4, NOT_EXECUTED = 8, STORES = 16 };

/* `in` must be among the status's sets, `not_in` must not. */
static const struct {
	int gate, complete;
	unsigned in, not_in;
	int body, in_doubt, replayed;
	enum outcome_kind outcome;
} table[] = {
        {NO, ANY, 0, 0, ANY, ANY, ANY, OUTCOME_NOT_EXECUTED},
        {YES, NO, 0, 0, ANY, ANY, ANY, OUTCOME_UNKNOWN},
        {YES, YES, IN_PROGRESS, 0, ANY, ANY, ANY, OUTCOME_IN_PROGRESS},
        {YES, YES, ALREADY_DONE, 0, ANY, ANY, ANY, OUTCOME_DONE_NOT_KEPT},
        {YES, YES, FINAL, 0, YES, ANY, ANY, OUTCOME_DONE},
        {YES, YES, NOT_EXECUTED | STORES, 0, ANY, ANY, ANY, OUTCOME_FREED_STORED},
        {YES, YES, NOT_EXECUTED, STORES, ANY, NO, ANY, OUTCOME_FREED},
        {YES, YES, NOT_EXECUTED, STORES, ANY, YES, YES, OUTCOME_FREED},
        {YES, YES, NOT_EXECUTED, STORES, ANY, YES, NO, OUTCOME_UNKNOWN},
        {YES, YES, 0, 0, ANY, ANY, ANY, OUTCOME_UNKNOWN},
};
enum { ROWS = sizeof(table) / sizeof(*table) };
static unsigned long reached[ROWS];

static void add(struct status_set *set, long status)
{
	set->bits[(status - 100) / 64] |= (uint64_t)1 << ((status - 100) % 64);
}

/* Statuses 200 to 231 are in every combination of the five sets. */
static struct rule every_combination(void)
{
	struct rule rule = {0};

	for (unsigned sets = 0; sets < 32; sets++) {
		long status = 200 + (long)sets;

		if (sets & IN_PROGRESS)
			add(&rule.in_progress, status);
		if (sets & ALREADY_DONE)
			add(&rule.already_done, status);
		if (sets & FINAL)
			add(&rule.final, status);
		if (sets & NOT_EXECUTED)
			add(&rule.not_executed, status);
		if (sets & STORES)
			add(&rule.stores, status);
	}
	return rule;
}

static bool allows(int wanted, bool is)
{
	return wanted == ANY || (wanted == YES) == is;
}

static size_t first_row(const struct ending *e, unsigned sets)
{
	for (size_t r = 0; r < ROWS; r++)
		if (allows(table[r].gate, e->gate_opened) &&
		    allows(table[r].complete, e->complete) && (sets & table[r].in) == table[r].in &&
		    !(sets & table[r].not_in) && allows(table[r].body, e->body_matches) &&
		    allows(table[r].in_doubt, e->earlier_in_doubt) &&
		    allows(table[r].replayed, e->provider_replayed))
			return r;
	fail_msg("no row of the table holds");
	return 0;
}

static void every_ending_is_as_the_table_says(void **state)
{
	struct rule rule = every_combination();

	(void)state;
	for (unsigned n = 0; n < 32 * 32; n++) {
		unsigned sets = n >> 5;
		struct ending e = {.gate_opened = n & 1,
		                   .complete = n & 2,
		                   .status = 200 + (long)sets,
		                   .earlier_in_doubt = n & 4,
		                   .provider_replayed = n & 8,
		                   .body_matches = n & 16};
		size_t row = first_row(&e, sets);

		reached[row]++;
		if (verdict_outcome(&e, &rule) != table[row].outcome)
			fail_msg("row %zu: ending %u, sets %u", row, n & 31, sets);
	}
	for (size_t r = 0; r < ROWS; r++)
		if (reached[r] == 0)
			fail_msg("row %zu was never reached", r);
}

/* The defaults of a policy, by hand. */
static struct rule plain_rule(void)
{
	static const long refused[] = {400, 401, 402, 403, 404, 405, 411, 413, 414, 415, 422, 429};
	struct rule rule = {0};

	for (long status = 200; status < 300; status++)
		add(&rule.final, status);
	add(&rule.final, 303);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		add(&rule.not_executed, refused[i]);
	return rule;
}

static void statuses_under_the_defaults(void **state)
{
	static const struct {
		long status;
		enum outcome_kind outcome;
	} cases[] = {
	        {200, OUTCOME_DONE},    {201, OUTCOME_DONE},    {202, OUTCOME_DONE},
	        {204, OUTCOME_DONE},    {303, OUTCOME_DONE},    {302, OUTCOME_UNKNOWN},
	        {307, OUTCOME_UNKNOWN}, {400, OUTCOME_FREED},   {401, OUTCOME_FREED},
	        {404, OUTCOME_FREED},   {422, OUTCOME_FREED},   {429, OUTCOME_FREED},
	        {408, OUTCOME_UNKNOWN}, {409, OUTCOME_UNKNOWN}, {412, OUTCOME_UNKNOWN},
	        {425, OUTCOME_UNKNOWN}, {500, OUTCOME_UNKNOWN}, {502, OUTCOME_UNKNOWN},
	        {503, OUTCOME_UNKNOWN}, {0, OUTCOME_UNKNOWN},   {999, OUTCOME_UNKNOWN},
	};
	struct rule rule = plain_rule();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ending e = {.gate_opened = true,
		                   .complete = true,
		                   .status = cases[i].status,
		                   .body_matches = true};

		if (verdict_outcome(&e, &rule) != cases[i].outcome)
			fail_msg("status %ld", cases[i].status);
	}
}

/* A provider that stores 500 has not thereby said what became of the write. */
static void a_stored_500_is_unknown(void **state)
{
	struct rule rule = plain_rule();
	struct ending e = {.gate_opened = true, .complete = true, .status = 500};

	(void)state;
	add(&rule.stores, 500);
	assert_int_equal(verdict_outcome(&e, &rule), OUTCOME_UNKNOWN);
	e.provider_replayed = true;
	assert_int_equal(verdict_outcome(&e, &rule), OUTCOME_UNKNOWN);
}

/* 401 after a lost first send: the first may have been executed all the same. */
static void a_refusal_does_not_settle_an_earlier_doubt(void **state)
{
	struct rule rule = plain_rule();
	struct ending e = {
	        .gate_opened = true, .complete = true, .status = 402, .earlier_in_doubt = true};

	(void)state;
	assert_int_equal(verdict_outcome(&e, &rule), OUTCOME_UNKNOWN);
	e.provider_replayed = true;
	assert_int_equal(verdict_outcome(&e, &rule), OUTCOME_FREED);
	e.provider_replayed = false;
	add(&rule.stores, 402);
	assert_int_equal(verdict_outcome(&e, &rule), OUTCOME_FREED_STORED);
}

/* What is asked after a 302 or 303 is not the write, whatever becomes of it. */
static void a_page_about_the_result_is_not_the_answer(void **state)
{
	static const struct {
		long seen_at, status;
		bool complete;
		enum outcome_kind outcome;
	} cases[] = {
	        {303, 200, true, OUTCOME_DONE},           {303, 404, true, OUTCOME_DONE_NOT_KEPT},
	        {303, 500, true, OUTCOME_DONE_NOT_KEPT},  {303, 200, false, OUTCOME_DONE_NOT_KEPT},
	        {303, 303, false, OUTCOME_DONE_NOT_KEPT}, {302, 200, true, OUTCOME_DONE},
	        {302, 404, true, OUTCOME_UNKNOWN},        {302, 200, false, OUTCOME_UNKNOWN},
	        {302, 401, true, OUTCOME_UNKNOWN},
	};
	struct rule rule = plain_rule();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ending e = {.gate_opened = true,
		                   .complete = cases[i].complete,
		                   .seen_at = cases[i].seen_at,
		                   .status = cases[i].status,
		                   .body_matches = true};

		if (verdict_outcome(&e, &rule) != cases[i].outcome)
			fail_msg("%ld, then %ld", cases[i].seen_at, cases[i].status);
	}
}

static void names_are_known(void **state)
{
	(void)state;
	assert_string_equal(outcome_kind_name(OUTCOME_NOT_EXECUTED), "not-executed");
	assert_string_equal(outcome_kind_name(OUTCOME_UNKNOWN), "unknown");
	assert_string_equal(outcome_kind_name((enum outcome_kind)99), "invalid");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_ending_is_as_the_table_says),
	        cmocka_unit_test(statuses_under_the_defaults),
	        cmocka_unit_test(a_stored_500_is_unknown),
	        cmocka_unit_test(a_refusal_does_not_settle_an_earlier_doubt),
	        cmocka_unit_test(a_page_about_the_result_is_not_the_answer),
	        cmocka_unit_test(names_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
