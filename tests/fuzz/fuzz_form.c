/* Any bytes as a form, and as a multipart body whose boundary is their first byte. */
#include <stdint.h>
#include <stdlib.h>

#include "identity/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A pair in front of the text changes the form, one that is ignored does not. */
static void check_ignored(struct span text, const struct text_list *ignore, const struct buf *want)
{
	struct buf longer = {0}, out = {0};

	buf_add_text(&longer, "zz%7a=1&");
	buf_add_span(&longer, text);
	if (form_canonical(span_buf(&longer), NULL, ignore, &out) != 0 ||
	    !span_equal(span_buf(&out), span_buf(want)))
		abort();
	buf_reset(&out);
	if (form_canonical(span_buf(&longer), NULL, NULL, &out) != 0 ||
	    span_equal(span_buf(&out), span_buf(want)))
		abort();
	buf_free(&longer);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char *items[] = {"zzz", "a", "query:b"};
	struct text_list ignore = {items, 1}, fields = {items + 1, 2};
	struct span text = {(const char *)data, n};
	struct buf out = {0};

	if (form_canonical(text, NULL, &ignore, &out) != 0)
		abort();
	check_ignored(text, &ignore, &out);
	form_canonical(text, &fields, &ignore, &out);
	if (n > 0)
		multipart_canonical((struct span){text.p + 1, n - 1}, (struct span){text.p, 1},
		                    &out);
	buf_free(&out);
	return 0;
}
