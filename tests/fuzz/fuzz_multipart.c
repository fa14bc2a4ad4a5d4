/* Any bytes as a multipart body: no crash, and the boundary is no part of what is left. The first
 * bytes, up to a newline, are the boundary. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "identity/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char other[] = "another-boundary-that-no-input-holds-7f3a";

/* The body with each whole delimiter line under another name. */
static void rename_boundary(struct span body, struct span boundary, struct buf *out)
{
	struct buf delimiter = {0};

	buf_add_text(&delimiter, "\r\n--");
	buf_add_span(&delimiter, boundary);
	for (size_t i = 0; i < body.n;) {
		size_t skip = i == 0 ? 2 : 0; /* the first one has no line before it */
		struct span line = {delimiter.data + skip, delimiter.n - skip};
		struct span rest = {body.p + i, body.n - i};
		bool here = rest.n >= line.n && memcmp(rest.p, line.p, line.n) == 0;
		struct span behind = {rest.p + line.n, here ? rest.n - line.n : 0};

		if (!here || !(span_starts(behind, "\r\n") || span_starts(behind, "--"))) {
			buf_add_char(out, body.p[i++]);
			continue;
		}
		buf_add(out, line.p, line.n - boundary.n);
		buf_add_text(out, other);
		buf_add(out, behind.p, 2); /* the end of this line is not the start of the next */
		i += line.n + 2;
	}
	buf_free(&delimiter);
}

static void check_renamed(struct span body, struct span boundary, const struct buf *form)
{
	struct buf renamed = {0}, again = {0};

	rename_boundary(body, boundary, &renamed);
	if (memmem(body.p, body.n, other, sizeof(other) - 1) == NULL &&
	    multipart_canonical(span_buf(&renamed), span_of(other), &again) == 0 &&
	    !span_equal(span_buf(form), span_buf(&again)))
		abort();
	buf_free(&renamed);
	buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span body, boundary = span_cut((struct span){(const char *)data, n}, '\n', &body);
	struct identity_in in = {.content_type = boundary, .body = body};
	struct buf out = {0};

	if (multipart_canonical(body, boundary, &out) == 0)
		check_renamed(body, boundary, &out);
	else if (out.n)
		abort(); /* nothing may be left of a try that failed */
	content_type_boundary(boundary);
	content_boundary(&in);
	buf_free(&out);
	return 0;
}
