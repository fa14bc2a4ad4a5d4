/* What `sendonce check` warns of, and that it is quiet otherwise. */
#include "policy_test.h"

#include <stdio.h>

struct report {
	int count;
	char text[8192];
};

static void collect(void *ctx, const char *text)
{
	struct report *r = ctx;
	size_t n = strlen(r->text);

	r->count++;
	snprintf(r->text + n, sizeof(r->text) - n, "%s\n", text);
}

#define SCOPED "version: 1\nscope: s\n"
#define RULE(more)                                                                                 \
	"  - operation: a.b\n    match: POST https://h/p\n    identity: {account: none}\n" more

#define MATCH(text) "  - {operation: a, match: '" text "', identity: {account: none}}\n"

struct row {
	const char *text;
	int count;
	const char *fragment;
};

static const struct row rows[] = {
        {SCOPED "writes:\n" RULE(""), 0, ""},
        {"version: 1\nwrites:\n" RULE(""), 1, "p.yaml: no scope:"},
        {"version: 1\nscope: \"\"\nwrites:\n" RULE(""), 1, "p.yaml: no scope:"},
        {SCOPED, 1, "p.yaml: no rule in `writes`"},
        {SCOPED "writes:\n" RULE("") RULE(""), 1,
         "p.yaml:7: `a.b` is never reached: `a.b` in line 4 comes first"},
        {SCOPED "writes:\n" RULE("") "  - {operation: c, match: 'POST https://h/**', identity: "
                                     "{account: none}}\n",
         0, ""},
        {SCOPED "writes:\n  - {operation: c, match: 'POST https://h/**', identity: "
                "{account: none}}\n" RULE("") RULE(""),
         2, "p.yaml:5: `a.b` is never reached: `c` in line 4"},
        {SCOPED "writes:\n" RULE("    on_unknown: resend\n"), 1, "p.yaml:4: `a.b` sends again"},
        {SCOPED "writes:\n" RULE("    on_unknown: resend\n    provider: {dedups: true, key_ttl: "
                                 "1h, stores: []}\n"),
         0, ""},
        {SCOPED "writes:\n" RULE("    ttl: 29s\n"), 1, "p.yaml:4: `a.b` expires (ttl)"},
        {SCOPED "writes:\n" RULE("    ttl: 30s\n"), 0, ""},
        {SCOPED "writes:\n" RULE("    ttl: 1m\n    linger: 2m\n"), 1, "expires (ttl)"},
        {SCOPED "writes:\n" RULE("    answers: {final: []}\n"), 1, "has no final answer"},
        {SCOPED "writes:\n  - {operation: a, match: POST https://h/p}\n"
                "  - {operation: b, match: POST https://h/q}\n",
         1, "p.yaml:4: note: with identity.account: auto"},
        {SCOPED "writes:\n" MATCH("POST https://h"), 1,
         "p.yaml:4: `POST https://h` names the path / only; all paths are https://h/**"},
        {SCOPED "writes:\n" MATCH("POST https://h:*"), 1, "all paths are https://h:*/**"},
        {SCOPED "writes:\n" MATCH("POST https://h/"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST *://**"), 0, ""},
        {SCOPED "writes:\n" MATCH("* https://h/queue/pop"), 1,
         "p.yaml:4: note: `* https://h/queue/pop` names every method: its reads are sent once"},
        {SCOPED "writes:\n" MATCH("POST https://**"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://127.0.0.1/p"), 1,
         "p.yaml:4: `POST http://127.0.0.1/p` names the usual port only; any port is :*"},
        {SCOPED "writes:\n" MATCH("POST *://LocalHost/p"), 1, "names the usual port only"},
        {SCOPED "writes:\n" MATCH("POST http://[0::1]/p"), 1, "names the usual port only"},
        {SCOPED "writes:\n" MATCH("POST http://127.0.0.1:*/p"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://127.0.0.1:81/p"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://localhost.example.com/p"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://10.127.0.1/p"), 0, ""},
        {SCOPED "writes:\n  - {operation: a, match: POST https://h/p, identity: {account: "
                "'env:ME'}}\n",
         0, ""},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy *p = parse(rows[i].text);
		struct report r = {0};

		policy_lint(p, collect, &r);
		if (r.count != rows[i].count || !strstr(r.text, rows[i].fragment))
			fail_msg("row %zu: %d warnings: %s", i, r.count, r.text);
		policy_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
