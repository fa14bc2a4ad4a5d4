/* Whose credentials: one account in several spellings, several accounts, and which of them are
 * called opaque. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "identity_here.h"
#include "identity/parts.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* {"iss":"i","sub":"s","exp":1} and the like; header {"alg":"none"} */
#define JWT_A     "eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIiwic3ViIjoicyIsImV4cCI6MX0.c2ln"
#define JWT_A_NEW "eyJhbGciOiJub25lIn0.eyJleHAiOjIsInN1YiI6InMiLCJpc3MiOiJpIn0.b3RoZXI"
#define JWT_B     "eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIiwic3ViIjoidCIsImV4cCI6MX0.c2ln"
/* {"exp":1} and {"exp":2}: no claim that stays */
#define JWT_NONE_1 "eyJhbGciOiJub25lIn0.eyJleHAiOjF9.c2ln"
#define JWT_NONE_2 "eyJhbGciOiJub25lIn0.eyJleHAiOjJ9.c2ln"
/* {"sub":"s","sub":"t"} */
#define JWT_TWICE "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzIiwic3ViIjoidCJ9.c2ln"

struct side {
	const char *header[3];
	const char *user, *password, *bearer, *cert;
	bool digest;
};

static struct identity make(const struct side *side)
{
	struct sample s;

	sample_init(&s);
	for (size_t i = 0; i < 3 && side->header[i]; i++)
		sample_header(&s, side->header[i]);
	s.in.credentials.user = span_of(side->user);
	s.in.credentials.password = span_of(side->password);
	s.in.credentials.digest = side->digest;
	s.in.credentials.bearer = span_of(side->bearer);
	s.in.credentials.client_cert = span_of(side->cert);
	return sample_make(&s);
}

#define H(...)                                                                                     \
	{                                                                                          \
		.header = { __VA_ARGS__ }                                                          \
	}

static const struct row {
	struct side a, b;
	bool same;
	bool opaque; /* a's account */
} row[] = {
        {H(NULL), H(NULL), true, false},
        /* Basic, whatever way it is given; dXNlcjpwYXNz is user:pass */
        {H("Authorization: Basic dXNlcjpwYXNz"), {.user = "user", .password = "pass"}, true, false},
        {H("authorization: basic dXNlcjpwYXNz"), H("Authorization: Basic dXNlcjpwYXNz"), true,
         false},
        {H("Authorization: Basic dXNlcjpwYXNz"),
         {.user = "user", .password = "Pass"},
         false,
         false},
        {{.user = "a", .password = "b"}, {.user = "a2", .password = "b"}, false, false},
        {{.user = "ab", .password = "c"}, {.user = "a", .password = "bc"}, false, false},
        {{.user = "a", .password = "b"}, H(NULL), false, false},
        {H("Authorization: Basic !!!"), H("Authorization: Basic ???"), false, true},
        /* Digest: the user alone */
        {H("Authorization: Digest username=\"u\", realm=\"r\", nonce=\"1\", response=\"x\""),
         H("Authorization: Digest realm=\"r\", nonce=\"2\", response=\"y\", username=\"u\""), true,
         false},
        {H("Authorization: Digest username=\"u\", nonce=\"1\""),
         {.user = "u", .password = "p", .digest = true},
         true,
         false},
        {H("Authorization: Digest username=\"u\""), H("Authorization: Digest username=\"v\""),
         false, false},
        {H("Authorization: Digest username=\"a,nonce=b\""),
         H("Authorization: Digest username=\"a,nonce=c\""), false, false},
        {{.user = "u", .password = "p", .digest = true},
         {.user = "u", .password = "q", .digest = true},
         true,
         false},
        {{.user = "u", .password = "p", .digest = true},
         {.user = "u", .password = "p"},
         false,
         false},
        /* AWS: the access key id */
        {H("Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20260101/eu/s3/aws4_request, "
           "SignedHeaders=host, Signature=1"),
         H("Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20260102/eu/s3/aws4_request, "
           "SignedHeaders=host, Signature=2"),
         true, false},
        {H("Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/1/e/s/r, Signature=1"),
         H("Authorization: AWS4-HMAC-SHA256 Credential=AKIA2/1/e/s/r, Signature=1"), false, false},
        {H("Authorization: AWS4-HMAC-SHA256 Credential=ASIA1/1/e/s/r", "X-Amz-Security-Token: one"),
         H("Authorization: AWS4-HMAC-SHA256 Credential=ASIA1/1/e/s/r", "X-Amz-Security-Token: two"),
         true, true},
        /* an id, and a signature that is another one in each request */
        {H("Authorization: AWS AKIA1:c2lnbjE="), H("Authorization: AWS AKIA1:c2lnbjI="), true,
         false},
        {H("Authorization: AWS AKIA1:c2lnbjE="), H("Authorization: AWS AKIA2:c2lnbjE="), false,
         false},
        {H("Authorization: GOOG1 G1:1"), H("Authorization: GOOG1 G1:2"), true, false},
        {H("Authorization: OSS k:1"), H("Authorization: OSS k:2"), true, false},
        {H("Authorization: SharedKey me:1"), H("Authorization: SharedKey me:2"), true, false},
        {H("Authorization: SharedKeyLite me:1"), H("Authorization: SharedKeyLite you:1"), false,
         false},
        {H("Authorization: AWS AKIA1"), H("Authorization: AWS AKIA2"), false, true},
        {H("Authorization: AWS :1"), H("Authorization: AWS :2"), false, true},
        /* OAuth 1: consumer key and token */
        {H("Authorization: OAuth oauth_consumer_key=\"c\", oauth_token=\"t\", oauth_nonce=\"1\""),
         H("Authorization: OAuth oauth_nonce=\"2\",oauth_token=\"t\",oauth_consumer_key=\"c\""),
         true, false},
        {H("Authorization: OAuth oauth_consumer_key=\"c\", oauth_token=\"t\""),
         H("Authorization: OAuth oauth_consumer_key=\"c\", oauth_token=\"u\""), false, false},
        {H("Authorization: OAuth oauth_consumer_key=\"c\""),
         H("Authorization: OAuth oauth_consumer_key=\"d\""), false, false},
        /* JSON Web Tokens */
        {H("Authorization: Bearer " JWT_A), H("Authorization: Bearer " JWT_A_NEW), true, false},
        {H("Authorization: Bearer " JWT_A), H("Authorization: Bearer " JWT_B), false, false},
        {H("Authorization: Bearer " JWT_A), {.bearer = JWT_A_NEW}, true, false},
        {H("Authorization: Bearer " JWT_NONE_1), H("Authorization: Bearer " JWT_NONE_2), false,
         true},
        {H("Authorization: Bearer " JWT_TWICE), H("Authorization: Bearer " JWT_A), false, true},
        {H("Authorization: Bearer a.b.c"), H("Authorization: Bearer a.b.d"), false, true},
        {H("X-Auth-Token: " JWT_A), H("X-Auth-Token: " JWT_A_NEW), true, false},
        /* whole values */
        {H("Authorization: Bearer sk_1"), H("Authorization: Bearer sk_1"), true, true},
        {H("Authorization: Bearer sk_1"), {.bearer = "sk_1"}, true, true},
        {H("Authorization: Bearer sk_1"), H("Authorization: Bearer sk_2"), false, true},
        {H("Authorization: Bearer sk_1"), H("Authorization: Token sk_1"), false, true},
        {H("Authorization: Bearer sk_1"), H("Authorization: bearer  sk_1 "), true, true},
        {H("Authorization: sk_1"), H("Authorization: sk_2"), false, true},
        {H("Authorization: HMAC a:1"), H(NULL), false, true},
        /* other headers */
        {H("X-Api-Key: 1"), H("x-api-key: 1"), true, true},
        {H("X-Api-Key: 1"), H("X-Api-Key: 2"), false, true},
        {H("X-Api-Key: 1"), H("Other-Api-Key-Id: 1"), false, true},
        {H("PRIVATE-TOKEN: 1"), H("PRIVATE-TOKEN: 2"), false, true},
        {H("X-CSRF-Token: 1"), H("X-CSRF-Token: 2"), true, false},
        {H("X-XSRF-TOKEN: 1"), H(NULL), true, false},
        {H("X-Tokens: 1"), H("X-Tokens: 2"), true, false},
        /* client certificate */
        {{.cert = "/a.pem"}, {.cert = "/b.pem"}, false, false},
        {{.cert = "/a.pem"}, {.cert = "/a.pem"}, true, false},
        /* cookies only when nothing else is there */
        {H("Cookie: s=1"), H("Cookie: s=2"), false, true},
        {H("Cookie: s=1", "X-Api-Key: 1"), H("Cookie: s=2", "X-Api-Key: 1"), true, true},
        {{.header = {"Cookie: s=1"}, .user = "u"},
         {.header = {"Cookie: s=2"}, .user = "u"},
         true,
         false},
        {H("Cookie: s=1", "X-CSRF-Token: a"), H("Cookie: s=1", "X-CSRF-Token: b"), true, true},
        /* a value of one kind is not one of another */
        {{.cert = "u"}, {.user = "u", .digest = true}, false, false},
        {H("X-Api-Key: 1", "X-Token: 2"), H("X-Api-Key: 2", "X-Token: 1"), false, true},
};

static void accounts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct identity a = make(&row[i].a), b = make(&row[i].b);

		if (same_hash(a.content, b.content) != row[i].same)
			fail_msg("row %zu: same", i);
		if (a.account_opaque != row[i].opaque)
			fail_msg("row %zu: opaque", i);
		assert_true(same_hash(a.any_account, b.any_account));
		assert_true(same_hash(a.fingerprint, b.fingerprint));
		assert_int_equal(same_hash(a.place, b.place), row[i].same);
	}
}

static const char *fake_env(void *ctx, const char *name)
{
	return strcmp(name, "ACCOUNT") == 0 ? ctx : NULL;
}

static struct identity listed(char **item, size_t n, const char *header, const char *env)
{
	struct sample s;

	sample_init(&s);
	s.rule.account = ACCOUNT_LIST;
	s.rule.account_from = (struct text_list){item, n};
	s.in.env = fake_env;
	s.in.env_ctx = (void *)(uintptr_t)env;
	sample_header(&s, "Authorization: Bearer rotates");
	if (header)
		sample_header(&s, header);
	return sample_make(&s);
}

static void named_by_policy(void **state)
{
	static char *item[] = {"header:X-Customer", "env:ACCOUNT", "env:MISSING"};
	struct identity a = listed(item, 3, "X-Customer: 1", "acme");
	struct identity b = listed(item, 3, "x-customer:1", "acme");
	struct identity c = listed(item, 3, "X-Customer: 2", "acme");
	struct identity d = listed(item, 3, "X-Customer: 1", "other");
	struct identity e = listed(item, 3, "X-Customer: 1", "");
	struct identity f = listed(item, 3, "X-Customer: 1", NULL);

	(void)state;
	assert_true(same_hash(a.content, b.content));
	assert_false(same_hash(a.content, c.content));
	assert_false(same_hash(a.content, d.content));
	assert_false(same_hash(e.content, f.content));
	assert_false(a.account_opaque);
}

static void none(void **state)
{
	struct sample s;
	struct identity a, b;

	(void)state;
	sample_init(&s);
	s.rule.account = ACCOUNT_NONE;
	a = sample_make(&s);
	sample_header(&s, "Authorization: Bearer x");
	b = sample_make(&s);
	assert_true(same_hash(a.content, b.content));
	assert_false(b.account_opaque);
}

/* An own key is its account's; of an account that may rotate it is kept for all of them. */
static void own_key_by_account(void **state)
{
	struct side basic_a = H("Idempotency-Key: order-42", "Authorization: Basic dXNlcjpwYXNz");
	struct side basic_b = H("Idempotency-Key: order-42", "Authorization: Basic dXNlcjpwYXN0");
	struct side token_a = H("Idempotency-Key: order-42", "Authorization: Bearer 1");
	struct side token_b = H("Idempotency-Key: order-42", "Authorization: Bearer 2");
	struct identity a = make(&basic_a), b = make(&basic_b), c = make(&token_a),
	                d = make(&token_b);

	(void)state;
	assert_false(same_hash(a.own_key, b.own_key));
	assert_true(same_hash(c.own_key, d.own_key));
	assert_false(same_hash(c.content, d.content));
}

static void base64(void **state)
{
	static const struct {
		const char *text, *want;
	} good[] = {{"QQ==", "A"},   {"QQ", "A"},         {"QUI=", "AB"},
	            {"QUJD", "ABC"}, {"_-8", "\xff\xef"}, {"/+8=", "\xff\xef"}};
	static const char *const bad[] = {"",    "=",     "Q",     "QQ=Q",
	                                  "Q Q", "QUJDR", "Q\n==", "\xc3\xa9=="};
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		buf_reset(&out);
		assert_int_equal(token_base64(span_of(good[i].text), &out), 0);
		assert_string_equal(out.data, good[i].want);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		buf_reset(&out);
		assert_int_equal(token_base64(span_of(bad[i]), &out), -1);
	}
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(accounts), cmocka_unit_test(named_by_policy),
	        cmocka_unit_test(none),     cmocka_unit_test(own_key_by_account),
	        cmocka_unit_test(base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
