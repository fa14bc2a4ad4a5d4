/* A multipart body without its boundary, which is new in every request.
 *
 * The body is cut at its delimiter lines (CRLF, two hyphens, boundary, CRLF) and the parts are
 * kept as they are, headers and all. A boundary that merely occurs inside a part is content and
 * stays. A part that is itself multipart (several files of one field) is treated alike: its
 * boundary is as random. Preamble and epilogue must be empty; a body that is not exactly of this
 * shape has no canonical form. Nothing else inside a part is read: selectors do not reach it. */
#include "identity/parts.h"

#include <string.h>

enum { BOUNDARY_MAX = 70 /* RFC 2046 */, DEPTH_MAX = 8 };

/* After a delimiter: 1 another part follows, 0 the end, -1 neither. */
static int after_delimiter(struct span *left)
{
	if (span_starts(*left, "\r\n")) {
		left->p += 2;
		left->n -= 2;
		return 1;
	}
	if (!span_starts(*left, "--"))
		return -1;
	left->p += 2;
	left->n -= 2;
	return left->n == 0 || span_is(*left, "\r\n") ? 0 : -1;
}

/* Moves *left behind the next delimiter and gives what stood before it. A delimiter inside text
 * must be a whole line: followed by CRLF or the closing hyphens. */
static bool cut_part(struct span *left, struct span delimiter, struct span *part)
{
	const char *from = left->p, *end = left->p + left->n, *at = from;

	while ((at = memmem(at, (size_t)(end - at), delimiter.p, delimiter.n))) {
		struct span rest = {at + delimiter.n, (size_t)(end - at) - delimiter.n};

		if (span_starts(rest, "\r\n") || span_starts(rest, "--")) {
			*part = (struct span){from, (size_t)(at - from)};
			*left = rest;
			return true;
		}
		at++;
	}
	return false;
}

/* Where among a part's headers its boundary stands; p null: it has none, or no headers. */
static struct span part_boundary(struct span head)
{
	static const char name[] = "content-type:";

	while (head.n) {
		const char *end = memmem(head.p, head.n, "\r\n", 2);
		size_t n = end ? (size_t)(end - head.p) : head.n;

		if (n >= sizeof(name) - 1 &&
		    span_is_nocase((struct span){head.p, sizeof(name) - 1}, name))
			return content_type_boundary(
			        (struct span){head.p + sizeof(name) - 1, n - (sizeof(name) - 1)});
		n += end ? 2 : 0;
		head = (struct span){head.p + n, head.n - n};
	}
	return (struct span){0};
}

static int canonical(struct span body, struct span boundary, struct buf *out, int depth);

static void add_part(struct span part, struct buf *out, int depth)
{
	const char *blank = memmem(part.p, part.n, "\r\n\r\n", 4), *behind;
	struct span head = {part.p, blank ? (size_t)(blank - part.p) : 0};
	struct span boundary = depth < DEPTH_MAX ? part_boundary(head) : (struct span){0};
	size_t start = out->n, open;

	if (boundary.p) {
		behind = boundary.p + boundary.n;
		open = part_open(out, 'm');
		part_add(out, 'h', (struct span){head.p, (size_t)(boundary.p - head.p)});
		part_add(out, 'h', (struct span){behind, (size_t)(blank - behind)});
		if (canonical((struct span){blank + 4, part.n - head.n - 4}, boundary, out,
		              depth + 1) == 0) {
			part_close(out, open);
			return;
		}
		if (!out->failed)
			out->n = start;
	}
	part_add(out, 'p', part);
}

static int canonical(struct span body, struct span boundary, struct buf *out, int depth)
{
	char text[4 + BOUNDARY_MAX];
	struct span delimiter = {text, boundary.n + 4}, first = {text + 2, boundary.n + 2}, part;
	size_t start = out->n;
	int more;

	if (boundary.n == 0 || boundary.n > BOUNDARY_MAX || body.n < first.n)
		return -1;
	memcpy(text, "\r\n--", 4);
	memcpy(text + 4, boundary.p, boundary.n);
	if (memcmp(body.p, first.p, first.n) != 0)
		return -1;
	body = (struct span){body.p + first.n, body.n - first.n};
	while ((more = after_delimiter(&body)) == 1) {
		if (!cut_part(&body, delimiter, &part)) {
			more = -1;
			break;
		}
		add_part(part, out, depth);
	}
	if (more < 0 && !out->failed)
		out->n = start;
	return more < 0 ? -1 : 0;
}

int multipart_canonical(struct span body, struct span boundary, struct buf *out)
{
	return canonical(body, boundary, out, 0);
}
