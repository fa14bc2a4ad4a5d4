/* Header lists as they go out, a table of edits: what each does to the list for the authority that
 * was meant and to the one for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "courier/lines.h"

enum { OWN = 8 };

static const struct edit_case {
	const char *name;
	const char *own[OWN];
	struct header_edit edit;
	const char *headers, *bare, *tail; /* the lines, each with | behind it */
} cases[] = {
        {"nothing", {0}, {.drop = {NULL}}, "", "", ""},
        {"as it is",
         {"A: 1", "B:", "C;", "A: 2"},
         {.drop = {NULL}},
         "A: 1|B:|C;|A: 2|",
         "A: 1|B:|C;|A: 2|",
         ""},
        {"no name",
         {"without colon", ":x", ""},
         {.drop = {"without colon"}},
         "without colon|:x||",
         "without colon|:x||",
         ""},
        {"added to none", {0}, {.add = {"Key: k"}}, "Key: k|", "", ""},
        {"added, the second alone",
         {"A: 1"},
         {.add = {NULL, "Key: k"}},
         "A: 1|Key: k|",
         "A: 1|",
         ""},
        {"both", {"A: 1"}, {.add = {"Key: k", "B: 2"}}, "A: 1|Key: k|B: 2|", "A: 1|", ""},
        {"the program's goes",
         {"key: mine", "A: 1"},
         {.add = {"Key: k"}, .key_name = "KEY"},
         "A: 1|Key: k|",
         "A: 1|",
         ""},
        {"replaced, and kept for others",
         {"A: 1", "B: 2"},
         {.add = {"a: 9"}},
         "B: 2|a: 9|",
         "A: 1|B: 2|",
         ""},
        {"its own key, as it is",
         {"Key: mine", "A: 1"},
         {.key_name = "key"},
         "Key: mine|A: 1|",
         "A: 1|",
         ""},
        {"a longer name is another",
         {"Keys: 1", "Ke: 2"},
         {.add = {"Key: k"}, .key_name = "Key"},
         "Keys: 1|Ke: 2|Key: k|",
         "Keys: 1|Ke: 2|",
         ""},
        {"blanks before the colon",
         {"Key \t: mine"},
         {.add = {"Key: k"}, .key_name = "Key"},
         "Key: k|",
         "",
         ""},
        {"empty ones too",
         {"Key;", "Key:"},
         {.add = {"Key: k"}, .key_name = "Key"},
         "Key: k|",
         "",
         ""},
        {"dropped from both",
         {"A: 1", "b: 2", "B;", "C: 3"},
         {.drop = {"B", "c"}},
         "A: 1|",
         "A: 1|",
         ""},
        {"all dropped", {"A: 1"}, {.drop = {"A"}}, "", "", ""},
        {"last, for both",
         {"A: 1"},
         {.add = {"Key: k"}, .last = {"L: 1", "M: 2"}},
         "A: 1|Key: k|L: 1|M: 2|",
         "A: 1|L: 1|M: 2|",
         "L: 1|M: 2|"},
        {"last alone", {0}, {.last = {NULL, "M: 2"}}, "M: 2|", "M: 2|", "M: 2|"},
};

static struct curl_slist *own_list(const char *const *lines)
{
	struct curl_slist *list = NULL;

	for (size_t i = 0; i < OWN && lines[i]; i++) {
		list = curl_slist_append(list, lines[i]);
		assert_non_null(list);
	}
	return list;
}

static void expect(const char *name, const struct curl_slist *list, const char *text)
{
	char got[512] = "";

	for (; list; list = list->next) {
		assert_true(strlen(got) + strlen(list->data) + 2 < sizeof(got));
		strcat(strcat(got, list->data), "|");
	}
	if (strcmp(got, text) != 0)
		fail_msg("%s: %s instead of %s", name, got, text);
}

/* The text without what it ends with. */
static void expect_cut(const struct edit_case *c, const struct curl_slist *list, const char *text)
{
	char head[512];

	snprintf(head, sizeof(head), "%.*s", (int)(strlen(text) - strlen(c->tail)), text);
	expect(c->name, list, head);
}

static void edits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct edit_case *c = &cases[i];
		struct curl_slist *own = own_list(c->own);
		struct lines out = {0};

		assert_int_equal(lines_make(own, &c->edit, &out), 0);
		curl_slist_free_all(own); /* theirs may go first */
		expect(c->name, out.headers, c->headers);
		expect(c->name, out.bare, c->bare);
		expect(c->name, out.tail, c->tail);
		lines_cut(&out);
		expect_cut(c, out.headers, c->headers);
		expect_cut(c, out.bare, c->bare);
		assert_null(out.tail);
		lines_cut(&out);
		expect_cut(c, out.headers, c->headers);
		lines_free(&out);
		assert_null(out.headers);
	}
}

static void frees_nothing(void **state)
{
	struct lines none = {0};

	(void)state;
	lines_cut(&none);
	lines_free(&none);
	lines_free(&none);
}

/* --- a form --- */

static const struct form_case {
	const char *name, *own[OWN];
	curl_off_t size;
	const char *headers;
} forms[] = {
        {"plain", {"A: 1"}, 12, "A: 1|Content-Length: 12|Content-Type: multipart/x|"},
        {"its own type goes",
         {"content-type: a/b", "Content-Type;"},
         0,
         "Content-Length: 0|Content-Type: multipart/x|"},
        {"its own length",
         {"Content-Length: 5"},
         12,
         "Content-Length: 5|Content-Type: multipart/x|"},
        {"chunked",
         {"transfer-encoding: chunked"},
         12,
         "transfer-encoding: chunked|Content-Type: multipart/x|"},
        {"size not known", {0}, -1, "Content-Type: multipart/x|"},
};

static void form_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct form_case *c = &forms[i];
		struct curl_slist *own = own_list(c->own);
		struct header_edit edit = {0};
		struct lines_form form;
		struct lines out = {0};

		assert_int_equal(lines_form(&form, own, c->size, "multipart/x", &edit), 0);
		assert_int_equal(lines_make(own, &edit, &out), 0);
		lines_form_free(&form);
		curl_slist_free_all(own);
		expect(c->name, out.headers, c->headers);
		expect(c->name, out.bare, c->headers);
		lines_free(&out);
	}
}

/* As many names to drop as there may be beside the form's own. */
static void form_after_drops(void **state)
{
	static const char *const lines[OWN] = {"A: 1", "B: 1", "E: 1", "Content-Type: x", "F: 1"};
	struct curl_slist *own = own_list(lines);
	struct header_edit edit = {.drop = {"A", "B", "C", "D", "E"}};
	struct lines_form form;
	struct lines out = {0};

	(void)state;
	assert_int_equal(lines_form(&form, own, -1, "t/t", &edit), 0);
	assert_int_equal(lines_make(own, &edit, &out), 0);
	lines_form_free(&form);
	curl_slist_free_all(own);
	expect("drops", out.headers, "F: 1|Content-Type: t/t|");
	lines_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(edits),
	        cmocka_unit_test(frees_nothing),
	        cmocka_unit_test(form_lines),
	        cmocka_unit_test(form_after_drops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
