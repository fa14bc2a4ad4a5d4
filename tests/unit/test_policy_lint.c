/* What `sendonce check` warns of, and that it is quiet otherwise. */
#include "policy_test.h"

#include <stdio.h>

struct report {
	int count;
	char text[8192];
};

static void collect(void *ctx, const struct policy_warning *warning)
{
	struct report *r = ctx;
	size_t n = strlen(r->text);
	char place[64] = "p.yaml: ";

	if (warning->line)
		snprintf(place, sizeof(place), "p.yaml:%d:%d: ", warning->line, warning->column);
	assert_string_equal(warning->file, "p.yaml");
	assert_ptr_equal(strstr(warning->text, place), warning->text);
	r->count++;
	snprintf(r->text + n, sizeof(r->text) - n, "%s\n", warning->text);
}

#define SCOPED "version: 1\nscope: s\n"
#define RULE(more)                                                                                 \
	"  - operation: a.b\n    match: POST https://h/p\n    identity: {account: none}\n" more

#define MATCH(text) "  - {operation: a, match: '" text "', identity: {account: none}}\n"

#define KNOWN(url, more) SCOPED "writes:\n  - operation: a\n    match: POST " url "\n    " more "\n"

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
        {SCOPED "writes: []\n", 0, ""}, /* said so */
        {SCOPED "writes:\n" RULE("") RULE(""), 1,
         "p.yaml:7:5: `a.b` is never reached: `a.b` in line 4 comes first"},
        {SCOPED "writes:\n" RULE("") "  - {operation: c, match: 'POST https://h/**', identity: "
                                     "{account: none}}\n",
         0, ""},
        {SCOPED "writes:\n  - {operation: c, match: 'POST https://h/**', identity: "
                "{account: none}}\n" RULE("") RULE(""),
         2, "p.yaml:5:5: `a.b` is never reached: `c` in line 4"},
        {SCOPED "writes:\n" RULE("    on_unknown: resend\n"), 1, "p.yaml:4:5: `a.b` sends again"},
        {SCOPED "writes:\n" RULE("    on_unknown: resend\n    provider: {dedups: true, key_ttl: "
                                 "1h, stores: []}\n"),
         0, ""},
        {SCOPED "writes:\n" RULE("    ttl: 29s\n"), 1, "p.yaml:4:5: `a.b` expires (ttl)"},
        {SCOPED "writes:\n" RULE("    ttl: 30s\n"), 0, ""},
        {SCOPED "writes:\n" RULE("    ttl: 1m\n    linger: 2m\n"), 1, "expires (ttl)"},
        {SCOPED "writes:\n" RULE("    answers: {final: []}\n"), 1, "has no final answer"},
        {SCOPED "writes:\n  - {operation: a, match: POST https://h/p}\n", 0, ""},
        {SCOPED "writes:\n" MATCH("POST https://h"), 1,
         "p.yaml:4:5: `POST https://h` names the path / only; all paths are https://h/**"},
        {SCOPED "writes:\n" MATCH("POST https://h:*"), 1, "all paths are https://h:*/**"},
        {SCOPED "writes:\n" MATCH("POST https://h/"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST *://**"), 0, ""},
        {SCOPED "writes:\n" MATCH("* https://h/queue/pop"), 1,
         "p.yaml:4:5: note: `* https://h/queue/pop` names every method: its reads are sent once"},
        {SCOPED "writes:\n" MATCH("POST https://**"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://127.0.0.1/p"), 1,
         "p.yaml:4:5: `POST http://127.0.0.1/p` names the usual port only; any port is :*"},
        {SCOPED "writes:\n" MATCH("POST *://LocalHost/p"), 1, "names the usual port only"},
        {SCOPED "writes:\n" MATCH("POST http://[0::1]/p"), 1, "names the usual port only"},
        {SCOPED "writes:\n" MATCH("POST http://127.0.0.1:*/p"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://127.0.0.1:81/p"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://localhost.example.com/p"), 0, ""},
        {SCOPED "writes:\n" MATCH("POST http://10.127.0.1/p"), 0, ""},
        {SCOPED "writes:\n  - {operation: a, match: POST https://h/p, identity: {account: "
                "'env:ME'}}\n",
         0, ""},
        {KNOWN("https://api.mangopay.com/v2.01/{id}/x", "identity: {account: none}"), 0, ""},
        {KNOWN("https://api.mangopay.com/v2.01/{id}/x", "ttl: 24h"), 1,
         "p.yaml:4:5: `a`: the access tokens of Mangopay are replaced"},
        {KNOWN("https://API-M.sandbox.PayPal.com/v2/x", "ttl: 24h"), 1, "tokens of PayPal"},
        {KNOWN("https://notpaypal.com/v2/x", "ttl: 24h"), 0, ""},
        {KNOWN("https://paypal.com.evil.org/v2/x", "ttl: 24h"), 0, ""},
        {KNOWN("https://api.twilio.com/x", "provider: {dedups: true, key_ttl: 1h, stores: []}"), 1,
         "p.yaml:4:5: `a` says that Twilio deduplicates"},
        {KNOWN("https://api.twilio.com/x", "ttl: 24h"), 0, ""},
        {KNOWN("https://*.communication.azure.com/x",
               "provider: {dedups: true, key_ttl: 6m, stores: []}"),
         1, "forgets a key after 5 minutes"},
        {KNOWN("https://*.communication.azure.com/x",
               "provider: {dedups: true, key_ttl: 5m, stores: []}"),
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

/* Formats a parsed policy may not have yet are set by hand. */
static void test_key_formats(void **state)
{
	static const struct {
		const char *url;
		enum key_format format;
		const char *fragment; /* null: it fits */
	} keys[] = {
	        {"https://api.mangopay.com/x", FORMAT_UUID, NULL},
	        {"https://api.mangopay.com/x", FORMAT_HEX, "has 64 characters, Mangopay takes 36"},
	        {"https://api.mangopay.com/x", FORMAT_SF_STRING,
	         "has 38 characters, Mangopay takes 36"},
	        {"https://pay-api.amazon.com/x", FORMAT_UUID,
	         "has 36 characters, Amazon Pay takes 32"},
	        {"https://pay-api.amazon.com/x", FORMAT_UUID_NODASH, NULL},
	        {"https://api.telnyx.com/x", FORMAT_SF_STRING,
	         "Telnyx does not take a key in this"},
	        {"https://api.telnyx.com/x", FORMAT_HEX, NULL},
	        {"https://compute.googleapis.com/x", FORMAT_UUID_NODASH, "Google Cloud does not"},
	        {"https://checkout-test.adyen.com/x", FORMAT_HEX, NULL},
	        {"https://connect.squareup.com/x", FORMAT_HEX, "Square takes 45"},
	        {"https://h/x", FORMAT_HEX, NULL},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct report r = {0};
		struct policy *p;

		snprintf(text, sizeof(text),
		         SCOPED "writes:\n  - operation: a\n    match: POST %s\n    identity: "
		                "{account: none}\n",
		         keys[i].url);
		p = parse(text);
		p->rules[0].format = keys[i].format;
		policy_lint(p, collect, &r);
		assert_int_equal(r.count, keys[i].fragment != NULL);
		if (keys[i].fragment && !strstr(r.text, keys[i].fragment))
			fail_msg("row %zu: %s", i, r.text);
		policy_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
	                                   cmocka_unit_test(test_key_formats)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
