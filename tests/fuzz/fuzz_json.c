/* Any bytes as JSON: no crash, a text that has a canonical form keeps it when it is read again, and
 * a key put into it is found there, and taken out again. */
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

/* The body without the key is, to its readers, what it was before one was put in. */
static void check_carried(struct span text, struct span pointer)
{
	struct buf with = {0}, key = {0}, back = {0}, a = {0}, b = {0};
	enum carry_found found = carry_json_find(text, pointer, &key);
	bool absent = json_canonical(text, &a) == 0 && found == CARRY_ABSENT;

	buf_reset(&key);
	if (carry_json_with(text, pointer, span_of("k\"\\1"), &with) == 0) {
		if (carry_json_find(span_buf(&with), pointer, &key) != CARRY_FOUND ||
		    !span_is(span_buf(&key), "k\"\\1"))
			abort();
		if (carry_json_without(span_buf(&with), pointer, &back) != 0 ||
		    json_canonical(span_buf(&back), &b) != 0)
			abort();
	} else if (absent) {
		abort(); /* there was a place */
	}
	buf_free(&with);
	buf_free(&key);
	buf_free(&back);
	buf_free(&a);
	buf_free(&b);
}

static void check_echo(struct span text)
{
	static char *items[] = {"/id", "/a/b"};
	struct text_list list = {items, 2};
	struct buf out = {0}, again = {0};

	echo_answer(&list, span_of("{\"id\":\"x\",\"a\":{\"b\":1}}"), span_of("text/event-stream"),
	            text, &out);
	buf_reset(&out);
	if (echo_answer(&list, span_of("{\"id\":\"x\",\"a\":{\"b\":1}}"), span_of("a/json"), text,
	                &out) &&
	    json_canonical(span_buf(&out), &again) != 0)
		abort();
	sse_answer(text);
	graphql_has(text, span_of("mutation"));
	buf_free(&out);
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
	check_carried(text, span_of("/k"));
	check_carried(text, span_of("/a/~1k"));
	check_echo(text);
	return 0;
}
