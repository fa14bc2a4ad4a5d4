/* Conditions of `when` and `answers.body`: what the policy says of them, and whether they hold. */
#include "policy_test.h"

#include <stdio.h>

#include "identity/parts.h"
#include "identity/predicate.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool holds(const char *when, const struct predicate_view *view)
{
	char text[2000];
	struct policy *p;
	bool result;

	snprintf(text, sizeof text, WITH_RULE "    when: %s\n", when);
	p = parse(text);
	result = predicates_hold(&p->rules[0].when, view);
	policy_free(p);
	return result;
}

static const struct json_row {
	const char *when, *body;
	bool holds;
} json_rows[] = {
        {"{json: {/method: tools/call}}", "{\"method\":\"tools/call\",\"id\":7}", true},
        {"{json: {/method: tools/call}}", "{\"method\":\"tools\\u002fcall\"}", true},
        {"{json: {/method: tools/call}}", "{\"method\":\"tools/list\"}", false},
        {"{json: {/method: tools/call}}", "{\"id\":1}", false},
        {"{json: {/method: tools/call}}", "[{\"method\":\"tools/call\"}]", false},
        {"{json: {'/*/method': tools/call}}", "[{\"method\":\"x\"},{\"method\":\"tools/call\"}]",
         true},
        {"{json: {'/*/method': tools/call}}", "[{\"method\":\"x\"}]", false},
        {"{json: {'/*/method': tools/call}}", "3", false},
        {"{json: {/a: [x, y]}}", "{\"a\":\"y\"}", true},
        {"{json: {/a: [x, y]}}", "{\"a\":\"z\"}", false},
        {"{json: {/a: 'x*'}}", "{\"a\":\"xyz\"}", true},
        {"{json: {/a: '*y*'}}", "{\"a\":\"xyz\"}", true},
        {"{json: {/a: '*y*y'}}", "{\"a\":\"xyz\"}", false},
        {"{json: {/a: 'a*a'}}", "{\"a\":\"a\"}", false},
        {"{json: {/a: 1}}", "{\"a\":1.0}", true},
        {"{json: {/a: 1}}", "{\"a\":\"1\"}", true},
        {"{json: {/a: 1}}", "{\"a\":2}", false},
        {"{json: {/a: 9007199254740993}}", "{\"a\":9007199254740992}", false},
        {"{json: {/a: '1*'}}", "{\"a\":10}", true},
        {"{json: {/a: '*'}}", "{\"a\":-2.50}", true},
        {"{json: {/a: '1*'}}", "{\"a\":20}", false},
        {"{json: {/a: true}}", "{\"a\":true}", true},
        {"{json: {/a: 'null'}}", "{\"a\":null}", true},
        {"{json: {/a: x}}", "{\"a\":{}}", false},
        {"{json: {/a: absent}}", "{}", true},
        {"{json: {/a: absent}}", "{\"a\":null}", false},
        {"{json: {/a: 'absent'}}", "{\"a\":\"absent\"}", true},
        {"{json: {/a: 'absent'}}", "{}", false},
        {"{json: {/a: present}}", "{\"a\":null}", true},
        {"{json: {/a: present}}", "{\"a\":[1]}", true},
        {"{json: {/a: present}}", "{\"b\":1}", false},
        {"{json: {/a: empty}}", "{}", true},
        {"{json: {/a: empty}}", "{\"a\":null}", true},
        {"{json: {/a: empty}}", "{\"a\":\"\"}", true},
        {"{json: {/a: empty}}", "{\"a\":[]}", true},
        {"{json: {/a: empty}}", "{\"a\":{}}", true},
        {"{json: {/a: empty}}", "{\"a\":false}", false},
        {"{json: {/a: empty}}", "{\"a\":0}", false},
        {"{json: {/a: empty}}", "{\"a\":[0]}", false},
        {"{json: {/data/*/userErrors: empty}}", "{\"data\":{\"x\":{\"userErrors\":[]}}}", true},
        {"{json: {/data/*/userErrors: empty}}",
         "{\"data\":{\"x\":{\"userErrors\":[]},\"y\":{\"userErrors\":[1]}}}", false},
        {"{json: {/data/*/userErrors: empty}}", "{\"data\":null}", true},
        {"{json: {/a~1b: x}}", "{\"a/b\":\"x\"}", true},
        {"{json: {/a: x, /b: y}}", "{\"a\":\"x\",\"b\":\"y\"}", true},
        {"{json: {/a: x, /b: y}}", "{\"a\":\"x\",\"b\":\"x\"}", false},
        {"{}", "anything", true},
};

static void test_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(json_rows); i++) {
		const struct json_row *r = &json_rows[i];
		struct predicate_view view = {.body = span_of(r->body)};

		if (holds(r->when, &view) != r->holds)
			fail_msg("row %zu: %s against %s: not %d", i, r->when, r->body, r->holds);
	}
}

/* What cannot be told: of a request it is protected, of an answer it is not done. */
static void test_unreadable(void **state)
{
	static const char *const bodies[] = {"{\"a\":", "{\"a\":1,\"a\":2}", "<html>", "\"\xff\""};
	struct predicate_view view = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		view.body = span_of(bodies[i]);
		view.unreadable_holds = true;
		assert_true(holds("{json: {/method: x}}", &view));
		assert_true(holds("{json: {/method: absent}}", &view));
		view.unreadable_holds = false;
		assert_false(holds("{json: {/method: x}}", &view));
		assert_false(holds("{json: {/method: absent}}", &view));
	}
	view = (struct predicate_view){.unreadable_holds = true}; /* no body at all */
	assert_false(holds("{json: {/method: x}}", &view));
	assert_true(holds("{json: {/method: absent}}", &view));
}

/* Many rules may ask about one URL: the body is read once for all of them. */
static void test_read_once(void **state)
{
	struct identity_in in = {.body = span_of("{\"method\":\"y\"}")};
	struct predicate_asking asking = predicates_ask(&in);
	struct policy *no = parse(WITH_RULE "    when: {json: {/method: x}}\n");
	struct policy *yes = parse(WITH_RULE "    when: {json: {/method: y}}\n");
	const struct json_node *nodes;

	(void)state;
	assert_false(predicates_fit(&asking, &no->rules[0].when));
	assert_non_null(asking.doc);
	nodes = asking.doc->node;
	for (int i = 0; i < 3; i++) {
		assert_true(predicates_fit(&asking, &yes->rules[0].when));
		assert_false(predicates_fit(&asking, &no->rules[0].when));
	}
	assert_ptr_equal(asking.doc->node, nodes);
	predicates_asked(&asking);
	policy_free(no);
	policy_free(yes);
}

static void test_pairs_and_headers(void **state)
{
	struct header_view header[] = {{span_of("X-Mode"), span_of(" live ")}};
	struct predicate_view view = {
	        .query = span_of("a=1&b=%78+y&&c"),
	        .content_type = span_of("application/x-www-form-urlencoded; charset=utf-8"),
	        .body = span_of("op=charge&%6Eote="),
	        .headers = header,
	        .header_count = 1,
	};

	(void)state;
	assert_true(holds("{query: {a: 1}}", &view));
	assert_true(holds("{query: {b: x y}}", &view));
	assert_true(holds("{query: {c: present, d: absent}}", &view));
	assert_false(holds("{query: {c: absent}}", &view));
	assert_false(holds("{query: {a: 2}}", &view));
	assert_true(holds("{form: {op: charge}}", &view));
	assert_true(holds("{form: {note: empty, other: empty}}", &view));
	assert_false(holds("{form: {op: refund}}", &view));
	assert_true(holds("{header: {x-mode: live}}", &view));
	assert_true(holds("{header: {X-Mode: present, X-Other: absent}}", &view));
	assert_false(holds("{header: {X-Mode: test}}", &view));
	assert_false(holds("{query: {a: 1}, header: {X-Mode: test}}", &view));
	view.content_type = span_of("text/plain");
	assert_false(holds("{form: {op: charge}}", &view));
}

/* What stands in a multipart form is not looked at, so of a request it cannot be told. */
static void test_multipart(void **state)
{
	struct predicate_view view = {
	        .content_type = span_of("Multipart/form-data; boundary=b"),
	        .body = span_of("--b\r\n"),
	        .unreadable_holds = true,
	};

	(void)state;
	assert_true(holds("{form: {op: charge}}", &view));
	assert_true(holds("{form: {op: absent}}", &view));
	assert_false(holds("{form: {op: charge}, query: {a: 1}}", &view));
	view.unreadable_holds = false;
	assert_false(holds("{form: {op: charge}}", &view));
}

static const struct graphql_row {
	const char *text;
	bool query, mutation, subscription;
} graphql_rows[] = {
        {"mutation { a }", false, true, false},
        {"\n  mutation M($x: Int = 1) @d(a: {b: 1}) { a }", false, true, false},
        {"query { mutation }", true, false, false},
        {"{ mutation { x } }", true, false, false},
        {"query($a: [Int] = [1]) { f(x: \"} mutation {\") }", true, false, false},
        {"# mutation { a }\nquery Q { b }", true, false, false},
        {"fragment F on T { mutation } mutation M { ...F }", false, true, false},
        {"fragment mutation on T { x } query Q { y }", true, false, false},
        {"query A { x } mutation B { y }", true, true, false},
        {"query Q { f(s: \"\"\"} \\\"\"\" mutation { \"\"\") }", true, false, false},
        {"subscription { s }", false, false, true},
        {"query mutation { x }", true, false, false},
        {"query Q @d(x: {a: 1}) mutation { x }", true, false, false},
        {"mutations { a }", false, false, false},
        {"", false, false, false},
        {"\"\"\"", false, false, false},
        {"}}} mutation { a }", false, true, false},
};

static void test_graphql(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(graphql_rows); i++) {
		const struct graphql_row *r = &graphql_rows[i];

		if (graphql_has(span_of(r->text), span_of("query")) != r->query ||
		    graphql_has(span_of(r->text), span_of("mutation")) != r->mutation ||
		    graphql_has(span_of(r->text), span_of("subscription")) != r->subscription)
			fail_msg("row %zu: %s", i, r->text);
	}
}

static void test_graphql_in_a_rule(void **state)
{
	struct predicate_view view = {.body = span_of("{\"query\":\"mutation {\\n a }\"}")};

	(void)state;
	assert_true(holds("{json: {/query: graphql:mutation}}", &view));
	assert_false(holds("{json: {/query: graphql:query}}", &view));
	assert_false(holds("{json: {/query: \"graphql:mutation\"}}", &view));
	view.body = span_of("{\"query\":\"{ a(b: \\\"mutation { c }\\\") }\"}");
	assert_false(holds("{json: {/query: graphql:mutation}}", &view));
	view.query = span_of("query=mutation+%7Ba%7D");
	assert_true(holds("{query: {query: graphql:mutation}}", &view));
}

static void test_which_parts(void **state)
{
	struct policy *p =
	        parse(WITH_RULE "    when: {json: {/a: b}}\n"
	                        "  - {operation: b, match: POST https://h/q, when: {query: "
	                        "{a: b}}}\n");

	(void)state;
	assert_true(predicates_read_body(&p->rules[0].when));
	assert_false(predicates_read_body(&p->rules[1].when));
	policy_free(p);
}

/* The next rule by `match` is tried where `when` does not hold. */
static void test_match_after(void **state)
{
	struct policy *p =
	        parse("version: 1\nwrites:\n"
	              "  - {operation: a, match: POST https://h/p, when: {json: {/a: b}}}\n"
	              "  - {operation: b, match: POST https://h/q}\n"
	              "  - {operation: c, match: 'POST https://h/**'}\n");
	struct policy_target target = {span_of("POST"), span_of("https"), span_of("h"), 443,
	                               span_of("/p")};
	const struct rule *rule = policy_match(p, &target);

	(void)state;
	assert_string_equal(rule->operation, "a");
	rule = policy_match_after(p, &target, rule);
	assert_string_equal(rule->operation, "c");
	assert_null(policy_match_after(p, &target, rule));
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_json),
	        cmocka_unit_test(test_unreadable),
	        cmocka_unit_test(test_pairs_and_headers),
	        cmocka_unit_test(test_read_once),
	        cmocka_unit_test(test_multipart),
	        cmocka_unit_test(test_graphql),
	        cmocka_unit_test(test_graphql_in_a_rule),
	        cmocka_unit_test(test_which_parts),
	        cmocka_unit_test(test_match_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
