/* A request to make identities of, for the tests of src/identity. Include cmocka first. */
#ifndef SENDONCE_TESTS_IDENTITY_HERE_H
#define SENDONCE_TESTS_IDENTITY_HERE_H

#include <string.h>

#include "identity/identity.h"

enum { HEADERS_MAX = 12 };

struct sample {
	struct rule rule;
	struct header_view header[HEADERS_MAX];
	struct identity_in in;
};

static inline void sample_init(struct sample *s)
{
	static char carrier[] = "Idempotency-Key", id[] = "orders.create";

	memset(s, 0, sizeof *s);
	s->rule.carrier = CARRIER_HEADER;
	s->rule.carrier_name = carrier;
	s->rule.key_id = id;
	s->rule.operation = id;
	s->in.rule = &s->rule;
	s->in.secret = span_of("0123456789abcdef0123456789abcdef");
	s->in.scope = span_of("tenant-1");
	s->in.step = span_of("");
	s->in.method = span_of("POST");
	s->in.scheme = span_of("https");
	s->in.host = span_of("api.example.com");
	s->in.port = 443;
	s->in.path = span_of("/v1/orders");
	s->in.query = span_of("");
	s->in.headers = s->header;
	s->in.content_type = span_of("application/json");
	s->in.body = span_of("{\"amount\":500,\"to\":\"c1\"}");
}

/* "Name: value" */
static inline void sample_header(struct sample *s, const char *line)
{
	const char *colon = strchr(line, ':');

	assert_non_null(colon);
	assert_true(s->in.header_count < HEADERS_MAX);
	s->header[s->in.header_count++] = (struct header_view){
	        {line, (size_t)(colon - line)},
	        span_trim(span_of(colon + 1)),
	};
}

static inline struct identity sample_make(const struct sample *s)
{
	struct identity id;

	assert_int_equal(identity_make(&s->in, &id), IDENTITY_OK);
	return id;
}

static inline bool same_hash(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, HASH_SIZE) == 0;
}

#endif
