/* A hundred thousand pairs of JSON texts: two have one canonical form if and only if another
 * reader, Python's with exact decimals, reads the same value in both. See json_pairs.py. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "identity/identity.h"

enum { PAIRS = 100000, ROOM = 1 << 16 };

static int digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static struct span unhex(const char *hex, char *out)
{
	size_t n = 0;

	for (; hex[2 * n]; n++)
		out[n] = (char)(digit(hex[2 * n]) << 4 | digit(hex[2 * n + 1]));
	return (struct span){out, n};
}

static void form_of(const char *hex, struct buf *form)
{
	static char raw[ROOM];
	struct span text = unhex(hex, raw);

	buf_reset(form);
	if (json_canonical(text, form) != 0)
		fail_msg("no form: %s", hex);
}

static void against_python(void **state)
{
	static char command[ROOM], line[4 * ROOM], one[ROOM], two[ROOM], word[16];
	const char *slash = strrchr(__FILE__, '/');
	struct buf a = {0}, b = {0};
	size_t pairs = 0, same = 0;
	FILE *python;

	(void)state;
	snprintf(command, sizeof command, "/usr/bin/python3 %.*s/json_pairs.py 1 %d",
	         (int)(slash ? slash - __FILE__ : 1), slash ? __FILE__ : ".", PAIRS);
	python = popen(command, "r");
	assert_non_null(python);
	while (fgets(line, sizeof line, python) &&
	       sscanf(line, "%65535s %65535s %15s", one, two, word) == 3) {
		bool equal;

		form_of(one, &a);
		form_of(two, &b);
		equal = span_equal(span_buf(&a), span_buf(&b));
		if (equal != (strcmp(word, "same") == 0))
			fail_msg("%s to Python: %s %s", word, one, two);
		same += equal;
		pairs++;
	}
	assert_int_equal(pclose(python), 0);
	assert_int_equal(pairs, PAIRS);
	assert_true(same > PAIRS / 4 && same < 3 * (PAIRS / 4));
	buf_free(&a);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(against_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
