/* Any bytes as a URL: libcurl's parser, the policy, and the key in the query. No crash; with the
 * key in its query the target is the same one, and the key is found in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "identity/parts.h"
#include "policy/policy.h"
#include "request/request.h"
#include "unit/flavour_here.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct policy *policy_here(void)
{
	static const char text[] =
	        "version: 1\nwrites:\n"
	        "  - {operation: a, match: 'POST *://*.example.com:*/v1/{id}/**'}\n"
	        "  - {operation: b, match: 'POST http://[::1]:*/a%2fb'}\n"
	        "  - {operation: c, match: 'POST *://**'}\n";
	static struct policy *policy;
	struct policy_error error;

	if (!policy && policy_parse("p", text, sizeof(text) - 1, NULL, NULL, &policy, &error))
		abort();
	return policy;
}

static void parse(const char *url, struct request_target *t)
{
	struct options options;

	options_init(&options);
	if (options_set(&options, CURLOPT_URL, (uintptr_t)url) != 0 ||
	    request_target_update(t, flavour_here(), &options) != 0)
		abort();
	options_free(&options);
}

static void match(const struct request_target *t)
{
	struct policy_target target = {span_of("POST"), span_of(t->scheme), span_of(t->host),
	                               t->port, span_of(t->path)};

	if (!policy_match(policy_here(), &target))
		abort(); /* the last rule names every URL */
}

static void carry(const char *url, const struct request_target *t)
{
	struct request_target with = {0};
	struct buf made = {0}, key = {0}, left = {0};

	carry_url_with(span_of(url), span_of("the key"), span_of("a+b&c"), &made);
	parse(made.data, &with);
	if (!with.valid || strcmp(with.host, t->host) != 0 || strcmp(with.path, t->path) != 0 ||
	    with.port != t->port || !form_value(span_of(with.query), span_of("the key"), &key) ||
	    !span_is(span_buf(&key), "a+b&c"))
		abort();
	carry_query_without(span_of(with.query), span_of("the key"), &left);
	buf_free(&made);
	buf_free(&key);
	buf_free(&left);
	request_target_free(&with);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *url = span_dup((struct span){(const char *)data, n});
	struct request_target t = {0};

	parse(url, &t);
	if (t.valid) {
		match(&t);
		carry(url, &t);
	}
	request_target_free(&t);
	free(url);
	return 0;
}
