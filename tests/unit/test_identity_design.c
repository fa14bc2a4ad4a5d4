/* The lines of the identity's contract, one after the other: each says of two requests whether they
 * are the same write (content), the same request (fingerprint), the same bytes (wire body) or the
 * same account. What is behind each line is tested in test_identity*.c; this is the list. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "identity_here.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* header.payload.signature with iss a, sub b; another signature and an expiry; another sub. */
#define JWT_1 "Bearer e30.eyJpc3MiOiJhIiwic3ViIjoiYiJ9.c2ln"
#define JWT_2 "Bearer e30.eyJpc3MiOiJhIiwic3ViIjoiYiIsImV4cCI6MX0.b3RoZXI"
#define JWT_3 "Bearer e30.eyJpc3MiOiJhIiwic3ViIjoiYyJ9.c2ln"

enum same { CONTENT = 1, FINGERPRINT = 2, WIRE = 4, ANY_ACCOUNT = 8, ALL = 15 };

/* What is set; the rest is as sample_init leaves it. */
struct request {
	const char *body, *type, *query, *header[3], *host, *scheme, *path, *socket, *method, *user;
	unsigned port;
};

/* A line says what differs, and leaves the rest out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct line {
	const char *says;
	struct request a, b;
	enum same same;
	const char *ignore, *fields, *must_match, *target, *carrier; /* of the rule */
	enum account_kind account;
} lines[] = {
        {"the key's own header is taken out",
         {.header = {"Idempotency-Key: a"}},
         {.header = {"Idempotency-Key: b"}},
         ALL},
        {"the key's own query pair is taken out",
         {.query = "x=1&k=a"},
         {.query = "x=1"},
         ALL,
         .carrier = "query:k"},
        {"the key's own JSON member is taken out, also of the wire body's hash",
         {.body = "{\"k\":\"a\",\"x\":1}"},
         {.body = "{\"k\":\"b\",\"x\":1}"},
         ALL,
         .carrier = "json:/k"},
        {"target: scheme", {.scheme = "http"}, {.scheme = "https"}, WIRE},
        {"target: host, without case", {.host = "A.example"}, {.host = "a.EXAMPLE"}, ALL},
        {"target: host", {.host = "a.example"}, {.host = "b.example"}, WIRE},
        {"target: port", {.port = 443}, {.port = 8443}, WIRE},
        {"target: request target", {.path = "/a"}, {.path = "/b"}, WIRE},
        {"target: Host header", {.header = {"Host: x"}}, {.header = {"Host: y"}}, WIRE},
        {"target: unix socket", {.socket = "/a"}, {.socket = "/b"}, WIRE},
        {"target: several hosts of one provider are one",
         {.host = "a.example"},
         {.host = "b.example"},
         ALL,
         .target = "provider"},
        {"method", {.method = "PUT"}, {.method = "POST"}, WIRE},
        {"query pairs", {.query = "a=1"}, {.query = "a=2"}, WIRE},
        {"query pairs, unless ignored",
         {.query = "a=1&_=1"},
         {.query = "_=2&a=1"},
         ALL,
         .ignore = "query:_"},
        {"Content-Type", {.type = "application/json"}, {.type = "application/vnd.x+json"}, WIRE},
        {"Content-Type without its boundary",
         {.type = "multipart/form-data; boundary=x", .body = "--x\r\nA: b\r\n\r\nt\r\n--x--\r\n"},
         {.type = "multipart/form-data; boundary=y", .body = "--y\r\nA: b\r\n\r\nt\r\n--y--\r\n"},
         ALL},
        {"a boundary inside a part is content",
         {.type = "multipart/form-data; boundary=x",
          .body = "--x\r\nA: b\r\n\r\n--x \r\n--x--\r\n"},
         {.type = "multipart/form-data; boundary=y",
          .body = "--y\r\nA: b\r\n\r\n--y \r\n--y--\r\n"},
         0},
        {"headers named *-account",
         {.header = {"Stripe-Account: a"}},
         {.header = {"Stripe-Account: b"}},
         WIRE},
        {"headers named *-tenant*",
         {.header = {"X-Tenant-Id: a"}},
         {.header = {"X-Tenant-Id: b"}},
         WIRE},
        {"headers named *-organization*",
         {.header = {"OpenAI-Organization: a"}},
         {.header = {"OpenAI-Organization: b"}},
         WIRE},
        {"other headers are not in",
         {.header = {"traceparent: a"}},
         {.header = {"traceparent: b"}},
         ALL},
        {"other headers only if named",
         {.header = {"X-A: a"}},
         {.header = {"X-A: b"}},
         WIRE,
         .fields = "header:X-A"},
        {"JSON: members sorted, no spaces",
         {.body = "{\"a\":1,\"b\":2}"},
         {.body = "{ \"b\":2, \"a\":1 }"},
         11},
        {"JSON: escapes resolved", {.body = "{\"a\":\"\\u0041\"}"}, {.body = "{\"a\":\"A\"}"}, 11},
        {"JSON: 1.0 = 1 = 1e0", {.body = "[1.0,1e0]"}, {.body = "[1,1]"}, 11},
        {"JSON: -0 = 0", {.body = "[-0]"}, {.body = "[0]"}, 11},
        {"JSON: never through a double",
         {.body = "[9007199254740993]"},
         {.body = "[9007199254740992]"},
         0},
        {"JSON: huge exponents stay text",
         {.body = "[1e99999999999999999999]"},
         {.body = "[1e99999999999999999998]"},
         0},
        {"JSON: array order kept", {.body = "[1,2]"}, {.body = "[2,1]"}, 0},
        {"JSON: null is not absent", {.body = "{\"a\":null}"}, {.body = "{}"}, 0},
        {"JSON: duplicate members are raw bytes",
         {.body = "{\"a\":1,\"a\":2}"},
         {.body = "{\"a\":1, \"a\":2}"},
         0},
        {"JSON: invalid is raw bytes", {.body = "{\"a\":"}, {.body = "{\"a\": "}, 0},
        {"JSON: invalid UTF-8 is raw bytes", {.body = "[\"\xff\"]"}, {.body = "[ \"\xff\"]"}, 0},
        {"never an empty identity",
         {.body = "{\"b\":1}"},
         {.body = "{\"b\":2}"},
         0,
         .fields = "/a"},
        {"forms: decoded, + = %20, sorted by name",
         {.type = "application/x-www-form-urlencoded", .body = "b=x+y&a=%31"},
         {.type = "application/x-www-form-urlencoded", .body = "a=1&b=x%20y"},
         11},
        {"forms: order of equal names kept",
         {.type = "application/x-www-form-urlencoded", .body = "a=1&a=2"},
         {.type = "application/x-www-form-urlencoded", .body = "a=2&a=1"},
         0},
        {"else raw bytes",
         {.type = "text/plain", .body = "a=1&b=2"},
         {.type = "text/plain", .body = "b=2&a=1"},
         0},
        {"must_match is in the fingerprint alone",
         {.body = "{\"a\":1,\"n\":1}"},
         {.body = "{\"a\":1,\"n\":2}"},
         CONTENT | ANY_ACCOUNT,
         .fields = "/a",
         .must_match = "/n"},
        {"account: Basic, user and password",
         {.header = {"Authorization: Basic dTpw"}},
         {.header = {"Authorization: Basic dTpx"}},
         FINGERPRINT | WIRE | ANY_ACCOUNT},
        {"account: Basic is USERPWD",
         {.header = {"Authorization: Basic dTpw"}},
         {.user = "u:p"},
         ALL},
        {"account: Digest user name",
         {.header = {"Authorization: Digest username=\"u\", nonce=\"1\""}},
         {.header = {"Authorization: Digest username=\"u\", nonce=\"2\""}},
         ALL},
        {"account: AWS access key id",
         {.header = {"Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20260101/x, Signature=1"}},
         {.header = {"Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20260102/x, Signature=2"}},
         ALL},
        {"account: OAuth 1 consumer key and token",
         {.header = {"Authorization: OAuth oauth_consumer_key=\"c\", oauth_token=\"t\", "
                     "oauth_nonce=\"1\""}},
         {.header = {"Authorization: OAuth oauth_nonce=\"2\", oauth_token=\"t\", "
                     "oauth_consumer_key=\"c\""}},
         ALL},
        {"account: a refreshed JWT is the same",
         {.header = {"Authorization: " JWT_1}},
         {.header = {"Authorization: " JWT_2}},
         ALL},
        {"account: another subject is another",
         {.header = {"Authorization: " JWT_1}},
         {.header = {"Authorization: " JWT_3}},
         FINGERPRINT | WIRE | ANY_ACCOUNT},
        {"account: any other Authorization whole",
         {.header = {"Authorization: Bearer t1"}},
         {.header = {"Authorization: Bearer t2"}},
         FINGERPRINT | WIRE | ANY_ACCOUNT},
        {"account: headers named *api-key*",
         {.header = {"X-Api-Key: 1"}},
         {.header = {"X-Api-Key: 2"}},
         FINGERPRINT | WIRE | ANY_ACCOUNT},
        {"account: headers named *-token",
         {.header = {"X-Auth-Token: 1"}},
         {.header = {"X-Auth-Token: 2"}},
         FINGERPRINT | WIRE | ANY_ACCOUNT},
        {"account: never csrf or xsrf tokens",
         {.header = {"X-Csrf-Token: 1"}},
         {.header = {"X-XSRF-Token: 2"}},
         ALL},
        {"account: Cookie only if nothing else is there",
         {.header = {"Cookie: a"}},
         {.header = {"Cookie: b"}},
         FINGERPRINT | WIRE | ANY_ACCOUNT},
        {"account: Cookie beside something else",
         {.header = {"Cookie: a", "X-Api-Key: 1"}},
         {.header = {"Cookie: b", "X-Api-Key: 1"}},
         ALL},
        {"account: none",
         {.header = {"X-Api-Key: 1"}},
         {.header = {"X-Api-Key: 2"}},
         ALL,
         .account = ACCOUNT_NONE},
};

static struct text_list list_of(const char *item, char **room)
{
	*room = (char *)(uintptr_t)item;
	return (struct text_list){room, item ? 1U : 0U};
}

static void set_carrier(struct rule *rule, const char *carrier)
{
	if (!carrier)
		return;
	rule->carrier = *carrier == 'q' ? CARRIER_QUERY : CARRIER_JSON;
	rule->carrier_name = strchr((char *)(uintptr_t)carrier, ':') + 1;
}

static struct span or (const char *text, struct span fallback)
{
	return text ? span_of(text) : fallback;
}

static struct identity make(const struct line *l, const struct request *r)
{
	char *room[3];
	struct sample s;

	sample_init(&s);
	s.rule.ignore = list_of(l->ignore, &room[0]);
	s.rule.fields = list_of(l->fields, &room[1]);
	s.rule.must_match = list_of(l->must_match, &room[2]);
	s.rule.target = (char *)(uintptr_t)l->target;
	s.rule.account = l->account;
	set_carrier(&s.rule, l->carrier);
	s.in.body = or (r->body, s.in.body);
	s.in.content_type = or (r->type, s.in.content_type);
	s.in.query = or (r->query, s.in.query);
	s.in.host = or (r->host, s.in.host);
	s.in.scheme = or (r->scheme, s.in.scheme);
	s.in.path = or (r->path, s.in.path);
	s.in.unix_socket = or (r->socket, s.in.unix_socket);
	s.in.method = or (r->method, s.in.method);
	s.in.port = r->port ? r->port : s.in.port;
	for (size_t i = 0; i < COUNT(r->header) && r->header[i]; i++)
		sample_header(&s, r->header[i]);
	if (r->user) {
		s.in.credentials.user = (struct span){r->user, 1};
		s.in.credentials.password = span_of(r->user + 2);
	}
	return sample_make(&s);
}

static unsigned same_bit(const uint8_t *a, const uint8_t *b, enum same bit)
{
	return memcmp(a, b, HASH_SIZE) == 0 ? (unsigned)bit : 0;
}

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		const struct line *l = &lines[i];
		struct identity a = make(l, &l->a), b = make(l, &l->b);
		unsigned same = same_bit(a.content, b.content, CONTENT) |
		                same_bit(a.fingerprint, b.fingerprint, FINGERPRINT) |
		                same_bit(a.wire_body, b.wire_body, WIRE) |
		                same_bit(a.any_account, b.any_account, ANY_ACCOUNT);

		if (same != (unsigned)l->same)
			fail_msg("%s: the same are %x, not %x", l->says, same, (unsigned)l->same);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
