/* The whole identity: what belongs to it, what does not, and which of the hashes each thing is in.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "identity_here.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* One change of a request or its rule, and which hashes it must and must not change. */
enum {
	CONTENT = 1,
	ANY = 2,
	PRINT = 4,
	PLACE = 8,
	WIRE = 16,
	SETTINGS = 32,
	EVERYWHERE = CONTENT | ANY | PRINT
};

static char *fields_id[] = {"/id"}, *fields_query[] = {"query:id"}, *must[] = {"/amount"};
static char target_name[] = "stripe", other_key_id[] = "orders.create2", carrier2[] = "X-Key";

static void c_method(struct sample *s)
{
	s->in.method = span_of("PUT");
}
static void c_scheme(struct sample *s)
{
	s->in.scheme = span_of("http");
}
static void c_host(struct sample *s)
{
	s->in.host = span_of("api2.example.com");
}
static void c_host_case(struct sample *s)
{
	s->in.host = span_of("API.example.com");
}
static void c_port(struct sample *s)
{
	s->in.port = 8443;
}
static void c_path(struct sample *s)
{
	s->in.path = span_of("/v1/orders/");
}
static void c_query(struct sample *s)
{
	s->in.query = span_of("a=1");
}
static void c_socket(struct sample *s)
{
	s->in.unix_socket = span_of("/run/api.sock");
}
static void c_host_header(struct sample *s)
{
	sample_header(s, "Host: other.example.com");
}
static void c_account_header(struct sample *s)
{
	sample_header(s, "Stripe-Account: acct_1");
}
static void c_tenant_header(struct sample *s)
{
	sample_header(s, "X-Tenant-Id: 1");
}
static void c_range_header(struct sample *s)
{
	sample_header(s, "Range: bytes=5-");
}
static void c_content_range_header(struct sample *s)
{
	sample_header(s, "Content-Range: bytes 5-9/10");
}
static void c_organization_header(struct sample *s)
{
	sample_header(s, "OpenAI-Organization: o");
}
static void c_noise_header(struct sample *s)
{
	sample_header(s, "X-Stainless-Retry-Count: 1");
}
static void c_trace_header(struct sample *s)
{
	sample_header(s, "traceparent: 00-1-2-01");
}
static void c_type(struct sample *s)
{
	s->in.content_type = span_of("application/json; charset=utf-8");
}
static void c_type_case(struct sample *s)
{
	s->in.content_type = span_of(" Application/JSON ");
}
static void c_amount(struct sample *s)
{
	s->in.body = span_of("{\"amount\":501,\"to\":\"c1\"}");
}
static void c_key_order(struct sample *s)
{
	s->in.body = span_of("{ \"to\":\"c1\", \"amount\":500.0 }");
}
static void c_no_body(struct sample *s)
{
	s->in.body = (struct span){0};
}
static void c_empty_body(struct sample *s)
{
	s->in.body = span_of("");
}
static void c_broken_body(struct sample *s)
{
	s->in.body = span_of("{\"amount\":500,\"to\":\"c1\"}x");
}
static void c_scope(struct sample *s)
{
	s->in.scope = span_of("tenant-2");
}
static void c_step(struct sample *s)
{
	s->in.step = span_of("2");
}
static void c_secret(struct sample *s)
{
	s->in.secret = span_of("another secret of another ledger");
}
static void c_user(struct sample *s)
{
	s->in.credentials.user = span_of("u");
}
static void c_key_id(struct sample *s)
{
	s->rule.key_id = other_key_id;
}
static void c_own_key(struct sample *s)
{
	sample_header(s, "idempotency-key: abc");
}
static void c_operation(struct sample *s)
{
	s->rule.operation = other_key_id;
}
static void c_carrier(struct sample *s)
{
	s->rule.carrier_name = carrier2;
}
static void c_target(struct sample *s)
{
	s->rule.target = target_name;
}
static void c_must_match(struct sample *s)
{
	s->rule.must_match = (struct text_list){must, 1};
}
static void c_ignore(struct sample *s)
{
	s->rule.ignore = (struct text_list){must, 1};
}
static void c_fields(struct sample *s)
{
	s->rule.fields = (struct text_list){must, 1};
}
static void c_account(struct sample *s)
{
	s->rule.account = ACCOUNT_LIST;
}
static void c_format(struct sample *s)
{
	s->rule.format = FORMAT_HEX;
}

static const struct change {
	const char *name;
	void (*apply)(struct sample *s);
	unsigned changes;
} change[] = {
        {"method", c_method, EVERYWHERE},
        {"scheme", c_scheme, EVERYWHERE | PLACE},
        {"host", c_host, EVERYWHERE | PLACE},
        {"host's case", c_host_case, 0},
        {"CURLOPT_PORT", c_port, EVERYWHERE | PLACE},
        {"path", c_path, EVERYWHERE | PLACE},
        {"query", c_query, EVERYWHERE},
        {"unix socket", c_socket, EVERYWHERE | PLACE},
        {"Host header", c_host_header, EVERYWHERE | PLACE},
        {"account header", c_account_header, EVERYWHERE},
        {"tenant header", c_tenant_header, EVERYWHERE},
        {"organization header", c_organization_header, EVERYWHERE},
        {"range header", c_range_header, EVERYWHERE},
        {"content range header", c_content_range_header, EVERYWHERE},
        {"retry count", c_noise_header, 0},
        {"traceparent", c_trace_header, 0},
        {"content type's parameter", c_type, EVERYWHERE},
        {"content type's case", c_type_case, 0},
        {"amount", c_amount, EVERYWHERE | WIRE},
        {"key order", c_key_order, WIRE},
        {"no body", c_no_body, EVERYWHERE | WIRE},
        {"empty body", c_empty_body, EVERYWHERE | WIRE},
        {"trailing garbage", c_broken_body, EVERYWHERE | WIRE},
        {"scope", c_scope, CONTENT | ANY | PLACE},
        {"step", c_step, CONTENT | ANY},
        {"secret", c_secret, EVERYWHERE | PLACE},
        {"account", c_user, CONTENT | PLACE},
        {"key.id", c_key_id, CONTENT | ANY | SETTINGS},
        {"own key", c_own_key, 0},
        {"operation's name", c_operation, 0},
        {"carrier", c_carrier, SETTINGS},
        {"target name", c_target, EVERYWHERE | SETTINGS},
        {"must_match", c_must_match, PRINT | SETTINGS},
        {"ignore", c_ignore, EVERYWHERE | SETTINGS},
        {"fields", c_fields, EVERYWHERE | SETTINGS},
        {"account rule", c_account, SETTINGS},
        {"format", c_format, 0},
};

static unsigned differences(const struct identity *a, const struct identity *b)
{
	return (same_hash(a->content, b->content) ? 0U : CONTENT) |
	       (same_hash(a->any_account, b->any_account) ? 0U : ANY) |
	       (same_hash(a->fingerprint, b->fingerprint) ? 0U : PRINT) |
	       (same_hash(a->place, b->place) ? 0U : PLACE) |
	       (same_hash(a->wire_body, b->wire_body) ? 0U : WIRE) |
	       (a->settings == b->settings ? 0U : SETTINGS);
}

static void every_change(void **state)
{
	struct sample s;
	struct identity base, changed;

	(void)state;
	sample_init(&s);
	base = sample_make(&s);
	for (size_t i = 0; i < COUNT(change); i++) {
		sample_init(&s);
		change[i].apply(&s);
		changed = sample_make(&s);
		if (differences(&base, &changed) != change[i].changes)
			fail_msg("%s changed %x, not %x", change[i].name,
			         differences(&base, &changed), change[i].changes);
	}
}

/* No two of the changes give one another's identity either. */
static void no_two_alike(void **state)
{
	struct identity id[COUNT(change)];
	struct sample s;

	(void)state;
	for (size_t i = 0; i < COUNT(change); i++) {
		sample_init(&s);
		change[i].apply(&s);
		id[i] = sample_make(&s);
	}
	for (size_t i = 0; i < COUNT(change); i++) {
		for (size_t k = i + 1; k < COUNT(change); k++) {
			bool both = (change[i].changes & CONTENT) && (change[k].changes & CONTENT);

			if (both && same_hash(id[i].content, id[k].content))
				fail_msg("%s = %s", change[i].name, change[k].name);
		}
	}
}

/* A named target stands for several hosts; the path still counts. */
static void named_target(void **state)
{
	struct sample a, b;
	struct identity x, y;

	(void)state;
	sample_init(&a);
	sample_init(&b);
	a.rule.target = b.rule.target = target_name;
	c_host(&b);
	c_port(&b);
	c_socket(&b);
	c_host_header(&b);
	x = sample_make(&a);
	y = sample_make(&b);
	assert_int_equal(differences(&x, &y), PLACE);
	c_path(&b);
	y = sample_make(&b);
	assert_false(same_hash(x.content, y.content));
}

struct request {
	const char *type, *body, *query;
};

static bool same_request(struct sample *s, struct request a, struct request b)
{
	struct identity x, y;

	s->in.content_type = span_of(a.type);
	s->in.body = span_of(a.body);
	s->in.query = span_of(a.query);
	x = sample_make(s);
	s->in.content_type = span_of(b.type);
	s->in.body = span_of(b.body);
	s->in.query = span_of(b.query);
	y = sample_make(s);
	assert_int_equal(same_hash(x.content, y.content), same_hash(x.fingerprint, y.fingerprint));
	return same_hash(x.content, y.content);
}

#define FORM "application/x-www-form-urlencoded"
#define JSON "application/json"

static void bodies(void **state)
{
	static const struct {
		struct request a, b;
		bool same;
	} row[] = {
	        {{JSON, "{\"a\":1,\"b\":2}", ""}, {JSON, "{\"b\":2,\"a\":1}", ""}, true},
	        {{JSON, "{\"a\":1,\"a\":2}", ""}, {JSON, "{\"a\":2,\"a\":1}", ""}, false},
	        {{JSON, "{\"a\":1,\"a\":2}", ""}, {JSON, "{\"a\":1,\"a\":2}", ""}, true},
	        {{JSON, "{\"a\":1", ""}, {JSON, "{\"a\":2", ""}, false},
	        {{JSON, "{\"a\":1", ""}, {JSON, "", ""}, false},
	        {{JSON, "\xff", ""}, {JSON, "\xfe", ""}, false},
	        {{"application/vnd.api+json", "[1.0]", ""},
	         {"application/vnd.api+json", "[1]", ""},
	         true},
	        {{"text/plain", "[1.0]", ""}, {"text/plain", "[1]", ""}, false},
	        {{FORM, "a=1&b=2", ""}, {FORM, "b=2&a=1", ""}, true},
	        {{FORM, "a=1&a=2", ""}, {FORM, "a=2&a=1", ""}, false},
	        {{FORM, "{\"a\":1,\"b\":2}", ""}, {FORM, " {\"b\":2,\"a\":1}", ""}, true},
	        {{FORM, "{\"a\":1,\"a\":2}", ""}, {FORM, "{\"a\":2,\"a\":1}", ""}, false},
	        {{FORM, "{a&b", ""}, {FORM, "{a&c", ""}, false},
	        {{FORM, "1.0", ""}, {FORM, "1", ""}, false},
	        {{"", "{\"a\":1,\"b\":2}", ""}, {"", "{\"b\":2,\"a\":1}", ""}, true},
	        {{JSON, "{\"a\":1}", ""}, {FORM, "{\"a\":1}", ""}, false},
	        {{"text/plain", "a b", ""}, {"text/plain", "a  b", ""}, false},
	        {{JSON, "1", "a=1&b=2"}, {JSON, "1", "b=2&a=1"}, true},
	        {{JSON, "1", "a=1"}, {JSON, "1", "a=2"}, false},
	        {{JSON, "1", "a"}, {JSON, "1", ""}, false},
	        {{FORM, "a=1", ""}, {FORM, "", "a=1"}, false},
	        {{"multipart/form-data; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         {"multipart/form-data; boundary=\"y\"", "--y\r\n\r\n1\r\n--y--\r\n", ""},
	         true},
	        {{"multipart/form-data; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         {"multipart/form-data; boundary=y", "--y\r\n\r\n2\r\n--y--\r\n", ""},
	         false},
	        {{"multipart/form-data; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         {"multipart/mixed; boundary=y", "--y\r\n\r\n1\r\n--y--\r\n", ""},
	         false},
	        {{"multipart/form-data; boundary=x", "no parts 1", ""},
	         {"multipart/form-data; boundary=x", "no parts 2", ""},
	         false},
	        {{"application/json; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         {"application/json; boundary=y", "--y\r\n\r\n1\r\n--y--\r\n", ""},
	         true},
	        {{"application/json; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         {"application/json; boundary=y", "--y\r\n\r\n2\r\n--y--\r\n", ""},
	         false},
	        {{"a/b; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         {"a/c; boundary=x", "--x\r\n\r\n1\r\n--x--\r\n", ""},
	         false},
	        {{"a/b; boundary=x", "--x1", ""}, {"a/b; boundary=x", "--x2", ""}, false},
	        {{"a/b; boundary=x", "1", ""}, {"a/b; boundary=y", "1", ""}, false},
	        {{"a/b; boundary=", "--1", ""}, {"a/b; boundary=", "--2", ""}, false},
	        {{"application/json;charset=UTF-8", "1", ""},
	         {"application/json; charset=\"utf-8\"", "1", ""},
	         true},
	};
	struct sample s;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		sample_init(&s);
		if (same_request(&s, row[i].a, row[i].b) != row[i].same)
			fail_msg("row %zu: %s | %s", i, row[i].a.body, row[i].b.body);
	}
}

/* One text as canonical JSON, as a form and as raw bytes: never one identity. */
static void kinds_never_meet(void **state)
{
	static const char *const type[] = {JSON, FORM, "text/plain", "application/octet-stream"};
	struct identity id[COUNT(type)];
	struct sample s;

	(void)state;
	for (size_t i = 0; i < COUNT(type); i++) {
		static char *item[] = {"header:content-type"};

		sample_init(&s);
		s.rule.ignore = (struct text_list){item, 1};
		s.in.content_type = span_of(type[i]);
		s.in.body = span_of("7");
		id[i] = sample_make(&s);
	}
	assert_false(same_hash(id[0].content, id[1].content));
	assert_false(same_hash(id[0].content, id[2].content));
	assert_false(same_hash(id[1].content, id[2].content));
	assert_true(same_hash(id[2].content, id[3].content));
}

static void wire_body_of_multipart(void **state)
{
	struct sample a, b;
	struct identity x, y;

	(void)state;
	sample_init(&a);
	sample_init(&b);
	a.in.content_type = span_of("multipart/form-data; boundary=x");
	a.in.body = span_of("--x\r\n\r\n1\r\n--x--\r\n");
	b.in.content_type = span_of("multipart/form-data; boundary=yy");
	b.in.body = span_of("--yy\r\n\r\n1\r\n--yy--\r\n");
	x = sample_make(&a);
	y = sample_make(&b);
	assert_true(same_hash(x.wire_body, y.wire_body));
	b.in.body = span_of("--yy\r\n\r\n2\r\n--yy--\r\n");
	y = sample_make(&b);
	assert_false(same_hash(x.wire_body, y.wire_body));
}

static void chosen_fields(void **state)
{
	static const struct {
		char *fields[2], *ignore[2];
		struct request a, b;
		bool same;
	} row[] = {
	        {{"/id"},
	         {NULL},
	         {JSON, "{\"id\":1,\"t\":1}", ""},
	         {JSON, "{\"t\":2,\"id\":1}", ""},
	         true},
	        {{"/id"}, {NULL}, {JSON, "{\"id\":1}", ""}, {JSON, "{\"id\":2}", ""}, false},
	        {{"/id"}, {NULL}, {JSON, "{\"id\":null}", ""}, {JSON, "{\"id\":\"\"}", ""}, false},
	        /* no field there: the whole body, never an empty identity */
	        {{"/id"}, {NULL}, {JSON, "{\"x\":1}", ""}, {JSON, "{\"x\":2}", ""}, false},
	        {{"/id"}, {NULL}, {JSON, "{\"x\":1}", ""}, {JSON, "{\"id\":null}", ""}, false},
	        {{"id"}, {NULL}, {JSON, "{\"id\":1}", ""}, {JSON, "{\"id\":2}", ""}, false},
	        /* no canonical form: the raw bytes */
	        {{"/id"},
	         {NULL},
	         {JSON, "{\"id\":1,\"t\":1,}", ""},
	         {JSON, "{\"id\":1,\"t\":2,}", ""},
	         false},
	        {{"/id"}, {NULL}, {"text/plain", "a", ""}, {"text/plain", "b", ""}, false},
	        /* the query stays in, unless it is ignored or named */
	        {{"/id"}, {NULL}, {JSON, "{\"id\":1}", "q=1"}, {JSON, "{\"id\":1}", "q=2"}, false},
	        {{"/id"},
	         {"query:q"},
	         {JSON, "{\"id\":1}", "q=1"},
	         {JSON, "{\"id\":1}", "q=2"},
	         true},
	        {{"/id", "query:a"},
	         {NULL},
	         {JSON, "{\"id\":1}", "a=1&q=1"},
	         {JSON, "{\"id\":1}", "a=1&q=2"},
	         true},
	        {{"/id", "query:a"},
	         {NULL},
	         {JSON, "{\"id\":1}", "a=1"},
	         {JSON, "{\"id\":1}", "a=2"},
	         false},
	        {{"query:a"},
	         {NULL},
	         {JSON, "{\"id\":1}", "a=1"},
	         {JSON, "{\"id\":2}", "a=1"},
	         true},
	        {{"query:a"},
	         {NULL},
	         {JSON, "{\"id\":1}", "b=1"},
	         {JSON, "{\"id\":2}", "b=1"},
	         false},
	        {{"id"}, {NULL}, {FORM, "id=1&t=1", ""}, {FORM, "t=2&id=1", ""}, true},
	        {{"id"}, {NULL}, {FORM, "id=1", ""}, {FORM, "id=2", ""}, false},
	        {{"id"}, {NULL}, {FORM, "x=1", ""}, {FORM, "x=2", ""}, false},
	        {{"query:a"}, {NULL}, {JSON, "1", "b=1"}, {JSON, "1", "b=2"}, false},
	        {{"/id", "query:a"},
	         {NULL},
	         {JSON, "{\"x\":1}", "a=1"},
	         {JSON, "{\"x\":2}", "a=1"},
	         false},
	        {{NULL}, {"/t"}, {JSON, "{\"id\":1,\"t\":1}", ""}, {JSON, "{\"id\":1}", ""}, true},
	        {{NULL}, {"t"}, {FORM, "id=1&t=1", ""}, {FORM, "id=1", ""}, true},
	        {{NULL}, {"query:_"}, {JSON, "1", "_=1&a=1"}, {JSON, "1", "a=1&_=2"}, true},
	        {{NULL}, {"query:_"}, {JSON, "1", "_=1&a=1"}, {JSON, "1", "a=2&_=1"}, false},
	        {{NULL}, {"/t"}, {JSON, "{\"t\":1,}", ""}, {JSON, "{\"t\":2,}", ""}, false},
	};
	struct sample s;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		size_t n = 0, k = 0;

		while (n < 2 && row[i].fields[n])
			n++;
		while (k < 2 && row[i].ignore[k])
			k++;
		sample_init(&s);
		s.rule.fields = (struct text_list){(char **)(uintptr_t)row[i].fields, n};
		s.rule.ignore = (struct text_list){(char **)(uintptr_t)row[i].ignore, k};
		if (same_request(&s, row[i].a, row[i].b) != row[i].same)
			fail_msg("row %zu", i);
	}
}

static void headers_by_name(void **state)
{
	static char *name[] = {"header:X-Item"}, *ignored[] = {"header:x-tenant-id"};
	struct sample s;
	struct identity a, b;

	(void)state;
	sample_init(&s);
	s.rule.fields = (struct text_list){name, 1};
	sample_header(&s, "x-item: 1");
	a = sample_make(&s);
	s.header[0].value = span_of("2");
	b = sample_make(&s);
	assert_false(same_hash(a.content, b.content));
	sample_init(&s);
	a = sample_make(&s);
	s.rule.ignore = (struct text_list){ignored, 1};
	c_tenant_header(&s);
	b = sample_make(&s);
	assert_true(same_hash(a.content, b.content));
}

/* Ignored and must_match: a retry with another amount is the same write, and a conflict. */
static void must_match(void **state)
{
	struct sample s;
	struct identity a, b;

	(void)state;
	sample_init(&s);
	c_must_match(&s);
	c_ignore(&s);
	a = sample_make(&s);
	c_amount(&s);
	b = sample_make(&s);
	assert_true(same_hash(a.content, b.content));
	assert_false(same_hash(a.fingerprint, b.fingerprint));
	c_key_order(&s);
	b = sample_make(&s);
	assert_true(same_hash(a.fingerprint, b.fingerprint));
	s.rule.fields = (struct text_list){fields_id, 1};
	s.rule.must_match = (struct text_list){fields_query, 1};
	a = sample_make(&s);
	s.rule.must_match = (struct text_list){must, 1};
	b = sample_make(&s);
	assert_false(same_hash(a.fingerprint, b.fingerprint));
}

static void own_keys(void **state)
{
	static char longest[KEY_TEXT_MAX + 40] = "Idempotency-Key: ";
	static const struct {
		const char *line;
		int rc;
		const char *key;
	} row[] = {
	        {"Idempotency-Key: abc", IDENTITY_OK, "abc"},
	        {"idempotency-key:  \t abc \t", IDENTITY_OK, "abc"},
	        {"Idempotency-Key: \"a b\"", IDENTITY_OK, "\"a b\""},
	        {"Idempotency-Key:", IDENTITY_OK, ""},
	        {"Idempotency-Key: a\tb", IDENTITY_BAD_KEY, ""},
	        {"Idempotency-Key: a\nb", IDENTITY_BAD_KEY, ""},
	        {"Idempotency-Key: a\x7f", IDENTITY_BAD_KEY, ""},
	        {"X-Idempotency-Key: abc", IDENTITY_OK, ""},
	        {longest, IDENTITY_OK, longest + 17},
	};
	struct identity id;
	struct sample s;

	(void)state;
	memset(longest + 17, 'k', KEY_TEXT_MAX);
	for (size_t i = 0; i < COUNT(row); i++) {
		sample_init(&s);
		sample_header(&s, row[i].line);
		assert_int_equal(identity_make(&s.in, &id), row[i].rc);
		if (row[i].rc == IDENTITY_OK) {
			assert_string_equal(id.own_key_text, row[i].key);
			assert_int_equal(id.has_own_key, row[i].key[0] != '\0');
		}
	}
	strcat(longest, "k");
	sample_init(&s);
	sample_header(&s, longest);
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_BAD_KEY);
	sample_init(&s);
	sample_header(&s, "Idempotency-Key: a");
	sample_header(&s, "Idempotency-Key: a");
	assert_int_equal(identity_make(&s.in, &id), IDENTITY_BAD_KEY);
}

/* The own key's index: by scope, operation, target and key, whatever the content. */
static void own_key_hash(void **state)
{
	struct sample s;
	struct identity a, b;

	(void)state;
	sample_init(&s);
	sample_header(&s, "Idempotency-Key: k1");
	a = sample_make(&s);
	c_amount(&s);
	c_path(&s);
	c_method(&s);
	b = sample_make(&s);
	assert_true(same_hash(a.own_key, b.own_key));
	assert_false(same_hash(a.content, b.content));
	c_host(&s);
	b = sample_make(&s);
	assert_false(same_hash(a.own_key, b.own_key));
	sample_init(&s);
	sample_header(&s, "Idempotency-Key: k2");
	b = sample_make(&s);
	assert_false(same_hash(a.own_key, b.own_key));
	assert_true(same_hash(sample_make(&s).content, b.content));
	s.header[0].value = span_of("k1");
	c_scope(&s);
	b = sample_make(&s);
	assert_false(same_hash(a.own_key, b.own_key));
	sample_init(&s);
	sample_header(&s, "Idempotency-Key: k1");
	c_key_id(&s);
	b = sample_make(&s);
	assert_false(same_hash(a.own_key, b.own_key));
}

static bool looks_like(const char *key, const char *shape)
{
	size_t n = strlen(shape);

	if (strlen(key) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool hex = strchr("0123456789abcdef", key[i]) != NULL;

		if (shape[i] == 'x'   ? !hex
		    : shape[i] == 'v' ? !strchr("89ab", key[i])
		                      : key[i] != shape[i])
			return false;
	}
	return true;
}

static void key_formats(void **state)
{
	static const struct {
		enum key_format format;
		const char *shape;
	} row[] = {
	        {FORMAT_UUID, "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx"},
	        {FORMAT_UUID_NODASH, "xxxxxxxxxxxx4xxxvxxxxxxxxxxxxxxx"},
	        {FORMAT_HEX, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
	        {FORMAT_SF_STRING, "\"xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx\""},
	};
	char key[KEY_TEXT_MAX + 1], again[KEY_TEXT_MAX + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		for (uint32_t generation = 1; generation < 50; generation++) {
			struct sample s;
			struct identity id;

			sample_init(&s);
			s.rule.format = row[i].format;
			id = sample_make(&s);
			identity_key(&s.in, &id, generation, key);
			assert_true(looks_like(key, row[i].shape));
			identity_key(&s.in, &id, generation, again);
			assert_string_equal(key, again);
		}
	}
}

static void key_for(void (*apply)(struct sample *), uint32_t generation, char *key)
{
	struct sample s;
	struct identity id;

	sample_init(&s);
	if (apply)
		apply(&s);
	id = sample_make(&s);
	identity_key(&s.in, &id, generation, key);
}

static void key_of_what(void **state)
{
	char base[KEY_TEXT_MAX + 1], key[KEY_TEXT_MAX + 1];

	(void)state;
	key_for(NULL, 1, base);
	key_for(NULL, 2, key);
	assert_string_not_equal(base, key);
	key_for(NULL, 257, key);
	assert_string_not_equal(base, key);
	key_for(c_key_order, 1, key);
	assert_string_equal(base, key);
	key_for(c_scope, 1, key);
	assert_string_not_equal(base, key);
	key_for(c_secret, 1, key);
	assert_string_not_equal(base, key);
	key_for(c_amount, 1, key);
	assert_string_not_equal(base, key);
	key_for(c_user, 1, key);
	assert_string_not_equal(base, key);
	key_for(c_own_key, 1, key);
	assert_string_equal(base, key);
}

/* Lengths, not separators, keep the parts apart. */
static void no_shifting(void **state)
{
	struct sample a, b;
	struct identity x, y;

	(void)state;
	sample_init(&a);
	sample_init(&b);
	a.in.scope = span_of("ab");
	a.in.step = span_of("c");
	b.in.scope = span_of("a");
	b.in.step = span_of("bc");
	x = sample_make(&a);
	y = sample_make(&b);
	assert_false(same_hash(x.content, y.content));
	sample_init(&a);
	sample_init(&b);
	a.in.path = span_of("/a");
	a.in.method = span_of("POST");
	b.in.path = span_of("/");
	b.in.method = span_of("POSTa");
	x = sample_make(&a);
	y = sample_make(&b);
	assert_false(same_hash(x.content, y.content));
}

/* Not a benchmark: a guard against work that grows with the square of something. Sanitizers and a
 * busy machine stay far below. */
static void fast_enough(void **state)
{
	enum { ROUNDS = 2000 };
	struct timespec from, to;
	struct sample s;
	struct identity id;
	char body[400] = "{\"customer\":\"cus_123\"";
	double us;

	(void)state;
	while (strlen(body) < 290)
		snprintf(body + strlen(body), 40, ",\"k%zu\":%zu", 300 - strlen(body),
		         strlen(body));
	strcat(body, "}");
	sample_init(&s);
	s.in.body = span_of(body);
	sample_header(&s, "Authorization: Bearer sk_live_0123456789abcdef");
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(identity_make(&s.in, &id), IDENTITY_OK);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	us = ((double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3) /
	     ROUNDS;
	print_message("identity of a 300 byte POST: %.1f us\n", us);
	assert_true(us < 1000);
}

static void settings_of_a_loaded_rule_are_taken(void **state)
{
	struct sample s;
	struct identity made, taken;
	uint64_t settings;

	(void)state;
	sample_init(&s);
	made = sample_make(&s);
	assert_int_equal(identity_settings(&s.rule, &settings), IDENTITY_OK);
	assert_int_equal(made.settings, settings);
	s.rule.settings = settings + 1;
	taken = sample_make(&s);
	assert_int_equal(taken.settings, settings + 1);
	assert_memory_equal(taken.content, made.content, HASH_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(settings_of_a_loaded_rule_are_taken),
	        cmocka_unit_test(every_change),
	        cmocka_unit_test(no_two_alike),
	        cmocka_unit_test(named_target),
	        cmocka_unit_test(bodies),
	        cmocka_unit_test(kinds_never_meet),
	        cmocka_unit_test(wire_body_of_multipart),
	        cmocka_unit_test(chosen_fields),
	        cmocka_unit_test(headers_by_name),
	        cmocka_unit_test(must_match),
	        cmocka_unit_test(own_keys),
	        cmocka_unit_test(own_key_hash),
	        cmocka_unit_test(key_formats),
	        cmocka_unit_test(key_of_what),
	        cmocka_unit_test(no_shifting),
	        cmocka_unit_test(fast_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
