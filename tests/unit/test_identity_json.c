/* The canonical form of JSON: tables of texts that are one, texts that are not, and texts that
 * have none; then random trees, each spelled twice at random. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "identity/identity.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int canonical(const char *text, struct buf *out)
{
	buf_reset(out);
	return json_canonical(span_of(text), out);
}

struct pair {
	const char *a, *b;
};

static const struct pair same[] = {
        {"1", "1.0"},
        {"1", "1e0"},
        {"1", "1E0"},
        {"1", "1e+0"},
        {"1", "1e-0"},
        {"1", "10e-1"},
        {"1", "0.1e1"},
        {"1", "0.01e2"},
        {"1", "1.000000"},
        {"1", "1e00000000000000000000000"},
        {"1", "100000000000000000000e-20"},
        {"0", "-0"},
        {"0", "0.0"},
        {"0", "-0.000"},
        {"0", "0e5"},
        {"0", "0e999999999999999999999999"},
        {"0", "-0.0e-7"},
        {"100", "1e2"},
        {"-100", "-1.00e+2"},
        {"0.5", "5e-1"},
        {"0.05", "5E-2"},
        {"1.5", "15e-1"},
        {"1.50", "1.5"},
        {"123.456", "123456e-3"},
        {"9007199254740993", "9007199254740993.0"},
        {"9007199254740993", "9.007199254740993e15"},
        {"1e999999999", "1E+999999999"},
        {"1e999999999", "10e999999998"},
        {"1e99999999999999999999", "1e+0099999999999999999999"},
        {"123456789012345678901234567890", "1.2345678901234567890123456789e29"},
        {"\"\\u00e9\"", "\"\xc3\xa9\""},
        {"\"\\u00E9\"", "\"\\u00e9\""},
        {"\"\\u0041\"", "\"A\""},
        {"\"\\/\"", "\"/\""},
        {"\"\\u002f\"", "\"/\""},
        {"\"\\n\"", "\"\\u000a\""},
        {"\"\\t\\b\\f\\r\"", "\"\\u0009\\u0008\\u000C\\u000d\""},
        {"\"\\\"\"", "\"\\u0022\""},
        {"\"\\\\\"", "\"\\u005c\""},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
        {"\"\\uD83D\\uDE00\"", "\"\\ud83d\\ude00\""},
        {"\"\\ud800\"", "\"\\uD800\""},
        {"\"\\u007f\"", "\"\x7f\""},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"},
        {"{\"a\":1,\"b\":\"\xc3\xa9\"}", "{ \"b\":\"\\u00e9\",\"a\":1.0 }"},
        {"{\"\\u0061\":1,\"b\":2}", "{\"b\":2,\"a\":1}"},
        {"[1,2]", " [ 1 ,\t2\r\n] "},
        {"{}", " { } "},
        {"[]", "[\n]"},
        {"{\"c\":{\"y\":1,\"x\":[{\"q\":1,\"p\":2}]},\"a\":0}",
         "{\"a\":0,\"c\":{\"x\":[{\"p\":2,\"q\":1}],\"y\":1}}"},
        {"{\"a\":1,\"A\":2,\"b\":3}", "{\"A\":2,\"b\":3,\"a\":1}"},
        {"{\"\":1,\"a\":2}", "{\"a\":2,\"\":1}"},
        {"{\"aa\":1,\"a\":2}", "{\"a\":2,\"aa\":1}"},
        {"{\"\xf0\x9f\x98\x80\":1,\"\xef\xbf\xbd\":2}",
         "{\"\xef\xbf\xbd\":2,\"\\ud83d\\ude00\":1}"},
        {"true", " true"},
        {"null", "null\n"},
};

static const struct pair different[] = {
        {"9007199254740992", "9007199254740993"},
        {"{\"to\":9007199254740992,\"amt\":1}", "{\"to\":9007199254740993,\"amt\":1}"},
        {"18446744073709551615", "18446744073709551616"},
        {"0.1", "0.10000000000000000001"},
        {"1", "1.0000000000000000000000000001"},
        {"1", "-1"},
        {"1", "10"},
        {"1", "\"1\""},
        {"1e400", "1e401"},
        {"1e999999999", "1e999999998"},
        {"1e999999999", "1e-999999999"},
        {"1e99999999999999999999", "1e99999999999999999998"},
        {"1e99999999999999999999", "1e-99999999999999999999"},
        {"1e99999999999999999999", "2e99999999999999999999"},
        {"-1e99999999999999999999", "1e99999999999999999999"},
        {"12e99999999999999999999", "1.2e99999999999999999999"},
        {"true", "\"true\""},
        {"null", "\"null\""},
        {"null", "0"},
        {"false", "null"},
        {"\"\"", "null"},
        {"[]", "{}"},
        {"[]", "[[]]"},
        {"[]", "[null]"},
        {"{}", "{\"a\":null}"},
        {"{\"a\":null}", "{\"a\":\"\"}"},
        {"{\"a\":[]}", "{\"a\":{}}"},
        {"[1,2]", "[2,1]"},
        {"[12]", "[1,2]"},
        {"[\"1,2\"]", "[\"1\",\"2\"]"},
        {"[[1],2]", "[[1,2]]"},
        {"{\"a\":1}", "{\"A\":1}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{},\"b\":1}"},
        {"{\"a\":\"1,\\\"b\\\":2\"}", "{\"a\":\"1\",\"b\":\"2\"}"},
        {"\"\xc3\xa9\"", "\"e\xcc\x81\""},
        {"\"\\ud800\"", "\"\\ud801\""},
        {"\"\\ud800\"", "\"\\\\ud800\""},
        {"\"\\ud800\"", "\"\xef\xbf\xbd\""},
        {"\"\\ude00\\ud83d\"", "\"\\ud83d\\ude00\""},
        {"\"\\ud83d\\ud83d\\ude00\"", "\"\\ud83d\\ude00\\ud83d\""},
        {"\"\\u0000\"", "\"\""},
        {"\"a\\u0000b\"", "\"a\\u0000c\""},
        {"\"\\u0000\"", "\"\\\\u0000\""},
        {"\"a\"", "\"a \""},
        {"\"A\"", "\"a\""},
};

/* No canonical form: the raw bytes are the identity. */
static const char *const invalid[] = {
        "",
        " ",
        "{\"amount\":1,\"amount\":2}",
        "{\"a\":1,\"\\u0061\":1}",
        "{\"x\":{\"b\":1,\"a\":2,\"b\":1}}",
        "{\"b\":1,\"a\":2,\"c\":3,\"a\":2}",
        "{\"a\":1}x",
        "{\"a\":1} {\"a\":1}",
        "[1,2]]",
        "1 2",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":}",
        "{\"a\"}",
        "{\"a\" 1}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1]",
        "[1}",
        "[",
        "[,]",
        "[,1]",
        "[1,]",
        "[1,,2]",
        "[1 2]",
        "]",
        ",",
        ":",
        "{\"a\":1}/* c */",
        "// c\n1",
        "tru",
        "True",
        "nul",
        "nullx",
        "NaN",
        "Infinity",
        "-Infinity",
        "undefined",
        "01",
        "-01",
        "00",
        "+1",
        "1.",
        ".5",
        "-.5",
        "-",
        "1e",
        "1e+",
        "1.e1",
        "1e1.5",
        "0x10",
        "1_000",
        "--1",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u\"",
        "\"\\'\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\x01\"",
        "\"\x80\"",
        "\"\xc3\"",
        "\"\xc3(\"",
        "\"\xc0\xaf\"",
        "\"\xe0\x80\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xf0\x80\x80\xaf\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xff\"",
        "\"\xe2\x82",
        "\xef\xbb\xbf{\"a\":1}",
        "\302\2401",
        "\f1",
        "\v1",
};

static void same_pairs(void **state)
{
	struct buf a = {0}, b = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(same); i++) {
		assert_int_equal(canonical(same[i].a, &a), 0);
		assert_int_equal(canonical(same[i].b, &b), 0);
		assert_string_equal(a.data, b.data);
	}
	buf_free(&a);
	buf_free(&b);
}

static void different_pairs(void **state)
{
	struct buf a = {0}, b = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(different); i++) {
		assert_int_equal(canonical(different[i].a, &a), 0);
		assert_int_equal(canonical(different[i].b, &b), 0);
		assert_string_not_equal(a.data, b.data);
	}
	buf_free(&a);
	buf_free(&b);
}

static void without_form(void **state)
{
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(invalid); i++) {
		if (canonical(invalid[i], &out) == 0)
			fail_msg("has a form: %s -> %s", invalid[i], out.data);
		assert_false(out.failed);
	}
	buf_free(&out);
}

/* A text cut anywhere is either invalid or a different number; it is never read beyond its end. */
static void cut_anywhere(void **state)
{
	static const char text[] =
	        "{\"a\":[1.5e3,true,\"\\ud83d\\ude00\xc3\xa9\"],\"b\":{\"c\":null}}";
	struct buf out = {0};

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		char *copy = malloc(n ? n : 1);

		assert_non_null(copy);
		memcpy(copy, text, n);
		assert_int_equal(json_canonical((struct span){copy, n}, &out), -1);
		free(copy);
	}
	assert_int_equal(json_canonical((struct span){text, sizeof text - 1}, &out), 0);
	buf_free(&out);
}

static void nul_byte(void **state)
{
	struct buf out = {0};

	(void)state;
	assert_int_equal(json_canonical((struct span){"1\0", 2}, &out), -1);
	assert_int_equal(json_canonical((struct span){"\"\0\"", 3}, &out), -1);
	assert_int_equal(json_canonical((struct span){NULL, 0}, &out), -1);
	buf_free(&out);
}

static void spelling(void **state)
{
	static const struct pair row[] = {
	        {"{ \"b\" : [ 1.50 , -0 ] , \"a\" : \"\\u00e9\\/\\u0001\" }",
	         "{\"a\":\"\xc3\xa9/\\u0001\",\"b\":[15e-1,0]}"},
	        {"[true,false,null,{},[]]", "[true,false,null,{},[]]"},
	        {"\"\\udc00x\"", "\"\\udc00x\""},
	        {"-12300", "-123e2"},
	        {"0.000012", "12e-6"},
	        {"0.50e99999999999999999999", "0.5E99999999999999999999"},
	};
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		assert_int_equal(canonical(row[i].a, &out), 0);
		assert_string_equal(out.data, row[i].b);
	}
	buf_free(&out);
}

/* UTF-16 order, not UTF-8's: U+1F600 (d83d de00) stands before U+FFFD. */
static void sorted_by_code_unit(void **state)
{
	struct buf out = {0};

	(void)state;
	assert_int_equal(canonical("{\"\xef\xbf\xbd\":2,\"\xf0\x9f\x98\x80\":1,\"z\":0}", &out), 0);
	assert_string_equal(out.data, "{\"z\":0,\"\xf0\x9f\x98\x80\":1,\"\xef\xbf\xbd\":2}");
	buf_free(&out);
}

static void add_times(struct buf *b, const char *text, size_t n)
{
	while (n--)
		buf_add_text(b, text);
}

static void deep(void **state)
{
	struct buf text = {0}, a = {0}, b = {0};

	(void)state;
	add_times(&text, "[", 10000);
	add_times(&text, "]", 10000);
	assert_int_equal(json_canonical(span_buf(&text), &a), 0);
	assert_true(span_equal(span_buf(&a), span_buf(&text)));
	buf_reset(&text);
	buf_reset(&a);
	add_times(&text, "{\"b\":0,\"a\":", 10000);
	buf_add_text(&text, "1");
	add_times(&text, "}", 10000);
	assert_int_equal(json_canonical(span_buf(&text), &a), 0);
	buf_reset(&text);
	add_times(&text, "{\"a\":", 10000);
	buf_add_text(&text, "1");
	add_times(&text, ",\"b\":0}", 10000);
	assert_int_equal(json_canonical(span_buf(&text), &b), 0);
	assert_true(span_equal(span_buf(&a), span_buf(&b)));
	buf_reset(&text);
	add_times(&text, "[", 100000);
	assert_int_equal(json_canonical(span_buf(&text), &a), -1);
	buf_free(&text);
	buf_free(&a);
	buf_free(&b);
}

/* More values than are kept: no form, and no memory without bound. */
static void too_many(void **state)
{
	struct buf text = {0}, out = {0};

	(void)state;
	buf_add_text(&text, "[0");
	add_times(&text, ",0", (1 << 20) + 10);
	buf_add_text(&text, "]");
	assert_int_equal(json_canonical(span_buf(&text), &out), -1);
	assert_false(out.failed);
	buf_free(&text);
	buf_free(&out);
}

static void many_members(void **state)
{
	enum { N = 3000 };
	struct buf up = {0}, down = {0}, a = {0}, b = {0};

	(void)state;
	for (int i = 0; i < N; i++) {
		buf_printf(&up, "%c\"k%d\":%d", i ? ',' : '{', i * 7919 % N, i * 7919 % N);
		buf_printf(&down, "%c\"k%d\":%d", i ? ',' : '{', N - 1 - i, N - 1 - i);
	}
	buf_add_char(&up, '}');
	buf_add_char(&down, '}');
	assert_int_equal(json_canonical(span_buf(&up), &a), 0);
	assert_int_equal(json_canonical(span_buf(&down), &b), 0);
	assert_true(span_equal(span_buf(&a), span_buf(&b)));
	up.data[up.n - 1] = ',';
	buf_add_text(&up, "\"k1500\":1}");
	assert_int_equal(json_canonical(span_buf(&up), &a), -1);
	buf_free(&up);
	buf_free(&down);
	buf_free(&a);
	buf_free(&b);
}

static struct text_list list_of(char **item)
{
	struct text_list list = {item, 0};

	while (item[list.count])
		list.count++;
	return list;
}

static void parts(const char *text, char **fields, char **ignore, struct buf *out)
{
	struct text_list f = list_of(fields), i = list_of(ignore);

	buf_reset(out);
	assert_int_equal(json_canonical_parts(span_of(text), &f, &i, out), 0);
}

static void ignored(void **state)
{
	static char *none[] = {NULL};
	static const struct {
		const char *a, *b;
		char *ignore[3];
		bool same;
	} row[] = {
	        {"{\"a\":1,\"ts\":1}", "{\"ts\":2,\"a\":1}", {"/ts"}, true},
	        {"{\"a\":1,\"ts\":1}", "{\"a\":1}", {"/ts"}, true},
	        {"{\"a\":1,\"ts\":1}", "{\"a\":2,\"ts\":1}", {"/ts"}, false},
	        {"{\"a\":{\"ts\":1}}", "{\"a\":{\"ts\":2}}", {"/ts"}, false},
	        {"{\"a\":{\"ts\":1}}", "{\"a\":{\"ts\":2}}", {"/a/ts"}, true},
	        {"{\"a\":{\"ts\":1}}", "{\"a\":{}}", {"/a/ts"}, true},
	        {"{\"a/b\":1}", "{\"a/b\":2}", {"/a~1b"}, true},
	        {"{\"a~b\":1}", "{\"a~b\":2}", {"/a~0b"}, true},
	        {"{\"~1\":1}", "{\"~1\":2}", {"/~01"}, true},
	        {"{\"\xc3\xa9\":1}", "{\"\\u00e9\":2}", {"/\xc3\xa9"}, true},
	        {"{\"\":1}", "{\"\":2}", {"/"}, true},
	        {"[1,2,3]", "[1,9,3]", {"/1"}, true},
	        {"[1,2,3]", "[1,3]", {"/1"}, false},
	        {"[1,2,3]", "[1,9,3]", {"/01"}, false},
	        {"[1,2,3]", "[1,2,9]", {"/-"}, false},
	        {"[\"_\"]", "[1]", {"/1"}, false},
	        {"{\"a\":1}", "{\"a\":2}", {"a"}, false},
	        {"{\"a\":1,\"b\":1,\"c\":1}", "{\"c\":1}", {"/a", "/b"}, true},
	        {"{\"ts\":1}", "{}", {"/ts"}, true},
	        {"{\"0\":1}", "{\"0\":2}", {"/0"}, true},
	};
	struct buf a = {0}, b = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		parts(row[i].a, none, (char **)(uintptr_t)row[i].ignore, &a);
		parts(row[i].b, none, (char **)(uintptr_t)row[i].ignore, &b);
		assert_int_equal(span_equal(span_buf(&a), span_buf(&b)), row[i].same);
	}
	buf_free(&a);
	buf_free(&b);
}

static void selected(void **state)
{
	static char *none[] = {NULL};
	static const struct {
		const char *a, *b;
		char *fields[3];
		bool same;
	} row[] = {
	        {"{\"id\":1,\"note\":\"x\"}", "{\"note\":\"y\",\"id\":1.0}", {"/id"}, true},
	        {"{\"id\":1}", "{\"id\":2}", {"/id"}, false},
	        {"{\"id\":1}", "{\"id\":\"1\"}", {"/id"}, false},
	        {"{\"id\":null}", "{}", {"/id"}, false},
	        {"{\"id\":null}", "{\"id\":\"\"}", {"/id"}, false},
	        {"{\"id\":\"\"}", "{}", {"/id"}, false},
	        {"{\"x\":1}", "{\"y\":1}", {"/id"}, true},
	        {"{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", {"/a", "/b"}, false},
	        {"{\"a\":{\"y\":1,\"x\":2}}", "{\"a\":{\"x\":2,\"y\":1},\"b\":0}", {"/a"}, true},
	        {"{\"a\":[{\"id\":1}]}", "{\"a\":[{\"id\":1},2]}", {"/a/0/id"}, true},
	        {"{\"a\":[{\"id\":1}]}", "{\"a\":[{\"id\":3},2]}", {"/a/0/id"}, false},
	        {"{\"a\":1}", "{\"a\":{\"b\":1}}", {"/a/b"}, false},
	        {"{\"a\":1}", "{\"a\":2}", {""}, false},
	};
	struct buf a = {0}, b = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		parts(row[i].a, (char **)(uintptr_t)row[i].fields, none, &a);
		parts(row[i].b, (char **)(uintptr_t)row[i].fields, none, &b);
		assert_int_equal(span_equal(span_buf(&a), span_buf(&b)), row[i].same);
	}
	buf_free(&a);
	buf_free(&b);
}

/* --- random trees. One seed makes the tree, another the way it is spelled. */

static uint32_t next_random(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

struct speller {
	uint32_t tree, style;
	int mutate; /* the scalar that gets another value; -1: none */
	int scalars;
};

static void space(struct speller *s, struct buf *out)
{
	static const char *const some[] = {"", "", " ", "\n", "\t ", "\r\n"};

	buf_add_text(out, some[next_random(&s->style) % COUNT(some)]);
}

static void spell_string(struct speller *s, unsigned v, struct buf *out)
{
	buf_add_char(out, '"');
	for (int i = 0; i < 3; i++, v /= 37) {
		unsigned c = "abz/\"\\\n~"[v % 8] & 0xff;

		if (next_random(&s->style) % 3 == 0 || c < 0x20)
			buf_printf(out, next_random(&s->style) % 2 ? "\\u%04x" : "\\u%04X", c);
		else if (c == '"' || c == '\\' || (c == '/' && next_random(&s->style) % 2))
			buf_printf(out, "\\%c", c);
		else
			buf_add_char(out, (char)c);
	}
	buf_add_char(out, '"');
}

static void spell_number(struct speller *s, unsigned v, struct buf *out)
{
	unsigned way = next_random(&s->style) % 4, zeros = next_random(&s->style) % 5;

	buf_printf(out, "%s%u", v % 3 ? "" : "-", v);
	if (way == 0)
		return;
	if (way == 1) {
		buf_add_char(out, '.');
		add_times(out, "0", zeros + 1);
		return;
	}
	if (v)
		add_times(out, "0", zeros);
	buf_printf(out, "%c-%s%u", way == 2 ? 'e' : 'E', zeros % 2 ? "0" : "", v ? zeros : 3);
}

static void spell_value(struct speller *s, int depth, struct buf *out);

static void spell_object(struct speller *s, int depth, struct buf *out)
{
	struct buf member[5] = {{0}};
	unsigned n = next_random(&s->tree) % 5, at;

	for (unsigned i = 0; i < n; i++) {
		buf_printf(&member[i], "\"%s%c\"", i % 2 ? "\\u006b" : "k", 'a' + (int)i);
		space(s, &member[i]);
		buf_add_char(&member[i], ':');
		space(s, &member[i]);
		spell_value(s, depth - 1, &member[i]);
	}
	at = n ? next_random(&s->style) % n : 0;
	buf_add_char(out, '{');
	for (unsigned i = 0; i < n; i++) {
		buf_add_text(out, i ? "," : "");
		space(s, out);
		buf_add_span(out, span_buf(&member[(i + at) % n]));
	}
	buf_add_char(out, '}');
	for (unsigned i = 0; i < n; i++)
		buf_free(&member[i]);
}

static void spell_array(struct speller *s, int depth, struct buf *out)
{
	unsigned n = next_random(&s->tree) % 4;

	buf_add_char(out, '[');
	for (unsigned i = 0; i < n; i++) {
		buf_add_text(out, i ? "," : "");
		spell_value(s, depth - 1, out);
		space(s, out);
	}
	buf_add_char(out, ']');
}

static void spell_value(struct speller *s, int depth, struct buf *out)
{
	unsigned kind = next_random(&s->tree) % 5, v = next_random(&s->tree) % 100000;

	space(s, out);
	if (depth > 0 && kind < 2) {
		spell_object(s, depth, out);
	} else if (depth > 0 && kind == 2) {
		spell_array(s, depth, out);
	} else {
		if (s->scalars++ == s->mutate)
			v++;
		if (kind % 2)
			spell_string(s, v, out);
		else
			spell_number(s, v, out);
	}
	space(s, out);
}

static int spell(uint32_t tree, uint32_t style, int mutate, struct buf *out)
{
	struct speller s = {tree, style, mutate, 0};

	buf_reset(out);
	spell_value(&s, 5, out);
	return s.scalars;
}

static void random_trees(void **state)
{
	struct buf text = {0}, a = {0}, b = {0};

	(void)state;
	for (uint32_t seed = 1; seed <= 3000; seed++) {
		uint32_t tree = seed * 2654435761u;
		int scalars = spell(tree, seed * 7 + 1, -1, &text);

		assert_int_equal(canonical(text.data, &a), 0);
		spell(tree, seed * 11 + 5, -1, &text);
		assert_int_equal(canonical(text.data, &b), 0);
		assert_string_equal(a.data, b.data);
		assert_int_equal(canonical(a.data, &text), 0);
		assert_string_equal(a.data, text.data);
		if (scalars == 0)
			continue;
		spell(tree, seed * 13 + 3, (int)(seed % (unsigned)scalars), &text);
		assert_int_equal(canonical(text.data, &b), 0);
		assert_string_not_equal(a.data, b.data);
	}
	buf_free(&text);
	buf_free(&a);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(same_pairs),   cmocka_unit_test(different_pairs),
	        cmocka_unit_test(without_form), cmocka_unit_test(cut_anywhere),
	        cmocka_unit_test(nul_byte),     cmocka_unit_test(spelling),
	        cmocka_unit_test(deep),         cmocka_unit_test(sorted_by_code_unit),
	        cmocka_unit_test(too_many),     cmocka_unit_test(many_members),
	        cmocka_unit_test(ignored),      cmocka_unit_test(selected),
	        cmocka_unit_test(random_trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
