/* Any bytes as an Authorization header, and as a token. */
#include <stdint.h>
#include <stdlib.h>

#include "identity/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A credential always gives an account, whatever it looks like. */
static void check_account(struct span value)
{
	struct rule rule = {0};
	struct header_view header = {span_of("Authorization"), value};
	struct identity_in in = {.rule = &rule, .headers = &header, .header_count = 1};
	struct buf out = {0};
	bool opaque;

	if (account_parts(&in, &out, &opaque) != IDENTITY_OK || out.n == 0)
		abort();
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span text = {(const char *)data, n};
	struct buf out = {0};

	check_account(text);
	if (!token_claims(text, &out) && out.n != 0)
		abort();
	token_base64(text, &out);
	token_param(text, "username");
	buf_free(&out);
	return 0;
}
