/* Files that bring rules, and variables in any value. */
#include "policy_test.h"

#include <stdio.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sendonce-include-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

/* %s in `text` is the folder. */
static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	for (; *text; text++) {
		if (text[0] == '%' && text[1] == 's') {
			fputs(folder, f);
			text++;
		} else {
			fputc(*text, f);
		}
	}
	fclose(f);
}

static int load(const char *name, struct policy **policy, struct policy_error *error)
{
	char path[128];
	const char *env[] = {"D", folder, "OP", "pay", "N", "5m", "FIELD", "/amount", NULL};

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return policy_load(path, table_env, env, policy, error);
}

static void assert_refused(const char *name, const char *wanted)
{
	struct policy_error error;
	struct policy *policy;

	assert_int_equal(load(name, &policy, &error), POLICY_INVALID);
	if (strncmp(error.text, folder, strlen(folder)) != 0 || !strstr(error.text, wanted))
		fail_msg("%s\nnot: %s", error.text, wanted);
}

#define RULE(name) "  - {operation: " name ", match: POST https://h/" name "}\n"

static void test_order(void **state)
{
	static const char *const wanted[] = {"own", "a", "c", "b"};
	struct policy_error error;
	struct policy *p;

	(void)state;
	put("p.yaml", "version: 1\ninclude: [%s/a.yaml, \"${D}/b.yaml\"]\nwrites:\n" RULE("own"));
	put("a.yaml", "version: 1\nwrites:\n" RULE("a") "include: %s/c.yaml\n");
	put("b.yaml", "version: 1\nwrites:\n" RULE("b"));
	put("c.yaml", "version: 1\nwrites:\n" RULE("c"));
	if (load("p.yaml", &p, &error))
		fail_msg("%s", error.text);
	assert_int_equal(p->rule_count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(p->rules[i].operation, wanted[i]);
	assert_non_null(strstr(p->rules[0].file, "/p.yaml"));
	assert_non_null(strstr(p->rules[2].file, "/c.yaml"));
	assert_int_equal(p->files.count, 3);
	policy_free(p);
}

static void test_errors_name_the_file(void **state)
{
	(void)state;
	put("p.yaml", "version: 1\ninclude: [%s/a.yaml]\n");
	put("a.yaml",
	    "version: 1\nwrites:\n  - operation: a\n    match: POST https://h\n    ttl: x\n");
	assert_refused("p.yaml", "a.yaml:5:10: `ttl: x` is not a duration");
	put("a.yaml", "version: 1\nmode: audit\n");
	assert_refused("p.yaml", "a.yaml:2:1: unknown key `mode` in an included file");
	put("a.yaml", "writes: []\n");
	assert_refused("p.yaml", "a.yaml:1:1: `version` is missing");
	put("a.yaml", "version: 1\ninclude: [%s/none.yaml]\n");
	assert_refused("p.yaml", "a.yaml:2:11: `include:");
	put("a.yaml", "version: 1\ninclude: [%s]\n");
	assert_refused("p.yaml", ": the policy cannot be read: not a regular file");
	put("a.yaml", "version: 1\ninclude: [%s/p.yaml]\n");
	assert_refused("p.yaml", "p.yaml:2:11: `include` goes too deep");
	put("a.yaml", "");
	assert_refused("p.yaml", "a.yaml:1:1: the policy is empty");
}

static void test_variables_in_any_value(void **state)
{
	struct policy_error error;
	struct policy *p;

	(void)state;
	put("p.yaml",
	    "version: 1\nwrites:\n"
	    "  - operation: ${OP}.create\n    match: POST https://h/${OP}\n    ttl: ${N}\n"
	    "    identity: {fields: ['${FIELD}', b]}\n    when: {query: {op: '${OP}'}}\n");
	if (load("p.yaml", &p, &error))
		fail_msg("%s", error.text);
	assert_string_equal(p->rules[0].operation, "pay.create");
	assert_string_equal(p->rules[0].match_text, "POST https://h/pay");
	assert_int_equal(p->rules[0].ttl, INT64_C(300000000));
	assert_string_equal(p->rules[0].fields.item[0], "/amount");
	assert_string_equal(p->rules[0].when.item[0].values.item[0], "pay");
	policy_free(p);
}

/* What a variable holds is not shown: it may be a secret. */
static void test_values_are_shown_as_written(void **state)
{
	(void)state;
	put("p.yaml", "version: 1\nmode: ${OP}\n");
	assert_refused("p.yaml", "p.yaml:2:7: `mode: ${OP}` is none of the words known here");
}

static void test_a_step_may_be_unset(void **state)
{
	struct policy_error error;
	struct policy *p;

	(void)state;
	put("p.yaml", "version: 1\nstep: \"${UNSET}\"\n");
	assert_int_equal(load("p.yaml", &p, &error), POLICY_OK);
	assert_null(p->step);
	policy_free(p);
	put("p.yaml", "version: 1\nstep: s-${OP}\n");
	assert_int_equal(load("p.yaml", &p, &error), POLICY_OK);
	assert_string_equal(p->step, "s-pay");
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_errors_name_the_file),
	        cmocka_unit_test(test_variables_in_any_value),
	        cmocka_unit_test(test_values_are_shown_as_written),
	        cmocka_unit_test(test_a_step_may_be_unset),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
