/* The canonical form against another reader of JSON, Python's, on thousands of random texts: two
 * texts have one form if and only if Python reads one value, and none where it reads nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "identity/identity.h"

enum { TEXTS_MAX = 8000, LINE_MAX_ = 8192 };

struct text {
	char value[17];
	char form[2 * HASH_SIZE + 1];
};

static struct text text[TEXTS_MAX];
static size_t count, forms;

static size_t unhex(const char *hex, char *out)
{
	size_t n = 0;
	unsigned byte;

	while (sscanf(hex + 2 * n, "%2x", &byte) == 1)
		out[n++] = (char)byte;
	return n;
}

static void take(const char *hex, const char *value)
{
	static char raw[LINE_MAX_];
	size_t n = strcmp(hex, "empty") == 0 ? 0 : unhex(hex, raw);
	struct buf out = {0};
	uint8_t hash[HASH_SIZE];
	bool has_form = json_canonical((struct span){raw, n}, &out) == 0;

	if (has_form != (*value != '-'))
		fail_msg("%s: %s, form %d", hex, value, has_form);
	if (has_form) {
		hash_sha256(out.data, out.n, hash);
		hex_encode(text[count].form, hash, HASH_SIZE);
		memcpy(text[count++].value, value, strlen(value) + 1);
	}
	buf_free(&out);
}

static int by_value(const void *a, const void *b)
{
	return strcmp(((const struct text *)a)->value, ((const struct text *)b)->value);
}

static int by_form(const void *a, const void *b)
{
	return strcmp(((const struct text *)a)->form, ((const struct text *)b)->form);
}

/* Sorted by either side, neighbours that are one there must be one on the other side too. */
static void check_neighbours(void)
{
	qsort(text, count, sizeof *text, by_value);
	for (size_t i = 1; i < count; i++) {
		if (by_value(&text[i - 1], &text[i]) == 0)
			assert_string_equal(text[i - 1].form, text[i].form);
		else
			forms++;
	}
	qsort(text, count, sizeof *text, by_form);
	for (size_t i = 1; i < count; i++) {
		if (by_form(&text[i - 1], &text[i]) == 0)
			assert_string_equal(text[i - 1].value, text[i].value);
	}
}

static void against_python(void **state)
{
	static char command[LINE_MAX_], line[LINE_MAX_ * 2], hex[LINE_MAX_ * 2], value[17];
	const char *slash = strrchr(__FILE__, '/');
	FILE *python;
	size_t lines = 0;

	(void)state;
	snprintf(command, sizeof command, "/usr/bin/python3 %.*s/json_reference.py 20",
	         (int)(slash ? slash - __FILE__ : 1), slash ? __FILE__ : ".");
	python = popen(command, "r");
	assert_non_null(python);
	while (fgets(line, sizeof line, python) && sscanf(line, "%16383s %16s", hex, value) == 2 &&
	       count < TEXTS_MAX) {
		take(hex, value);
		lines++;
	}
	assert_int_equal(pclose(python), 0);
	assert_int_equal(lines, 4000);
	check_neighbours();
	print_message("%zu texts, %zu with a form, %zu values\n", lines, count, forms);
	assert_true(count > 1500 && count < lines - 100 && forms > 300 && forms < count - 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(against_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
