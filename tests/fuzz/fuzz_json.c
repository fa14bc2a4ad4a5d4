/* Any bytes as JSON: no crash, and a text that has a canonical form keeps it when it is read again.
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/fuzz_json.c
 *     src/base/bytes.c src/identity/json.c src/identity/json_text.c src/identity/select.c
 *     src/identity/encode.c */
#include <stdint.h>
#include <stdlib.h>

#include "identity/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_again(const struct buf *form)
{
	struct buf again = {0};

	if (json_canonical(span_buf(form), &again) != 0)
		abort();
	if (!span_equal(span_buf(form), span_buf(&again)))
		abort();
	buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char *items[] = {"/a", "/a/0", "", "x", "/~0~1/", "query:q"};
	struct text_list one = {items, 2}, two = {items + 1, 5}, none = {NULL, 0};
	struct span text = {(const char *)data, n};
	struct buf out = {0};

	if (json_canonical(text, &out) == 0)
		check_again(&out);
	buf_reset(&out);
	json_canonical_parts(text, &one, &two, &out);
	json_canonical_parts(text, &none, &one, &out);
	json_canonical_parts(text, &two, &none, &out);
	buf_free(&out);
	return 0;
}
