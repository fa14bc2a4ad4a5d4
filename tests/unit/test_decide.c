/* Who answers a request whose target there was no memory for: what may be a listed write does not
 * leave. Elsewhere the deciding is tested with real programs (clients/). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "intercept/process.h"
#include "intercept/shadow.h"
#include "unit/flavour_here.h"

static struct process here;
static int target_rc;

static const struct process *fake_process(void)
{
	return &here;
}

static int fake_target(struct request_target *t, const struct flavour *fl, const struct options *o);

#define process_get           fake_process
#define request_target_update fake_target
#include "../../src/intercept/decide.c"
#undef process_get
#undef request_target_update

static int fake_target(struct request_target *t, const struct flavour *fl, const struct options *o)
{
	(void)fl, (void)o;
	t->valid = false; /* nor is there one where it is no URL (rc 0) */
	return target_rc;
}

static enum way decided(const char *method)
{
	struct shadow s = {.flavour = flavour_here()};
	enum way way;

	options_init(&s.options);
	options_set(&s.options, CURLOPT_CUSTOMREQUEST, (uintptr_t)method);
	way = decide(&s).way;
	options_free(&s.options);
	return way;
}

static void no_memory_for_the_target(void **state)
{
	static const struct {
		enum process_state state;
		enum policy_mode acting;
		enum way write, read;
	} cases[] = {
	        {PROCESS_OFF, MODE_ENFORCE, WAY_LIBCURL, WAY_LIBCURL},
	        {PROCESS_AUDIT, MODE_ENFORCE, WAY_LIBCURL, WAY_LIBCURL},
	        {PROCESS_ON, MODE_INJECT, WAY_LIBCURL, WAY_LIBCURL},
	        {PROCESS_ON, MODE_ENFORCE, WAY_NO_MEMORY, WAY_LIBCURL},
	        {PROCESS_BROKEN, MODE_ENFORCE, WAY_NO_MEMORY, WAY_LIBCURL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		here.state = cases[i].state;
		here.acting = cases[i].acting;
		target_rc = -1;
		assert_int_equal(decided("POST"), cases[i].write);
		assert_int_equal(decided("DELETE"), cases[i].write);
		assert_int_equal(decided("GET"), cases[i].read);
		assert_int_equal(decided("HEAD"), cases[i].read);
		target_rc = 0;
		assert_int_equal(decided("POST"), WAY_LIBCURL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(no_memory_for_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
