/* Reading the request that libcurl rendered for us: its Content-Type and the bytes of its body. */
#ifndef SENDONCE_REQUEST_RENDERED_H
#define SENDONCE_REQUEST_RENDERED_H

#include "base/payload.h"

/* All zero but for `body` is the start. */
struct rendered {
	struct payload *body; /* borrowed: added to, not sealed */
	struct buf head;
	char *type;     /* Content-Type; null: none was sent */
	int64_t length; /* Content-Length; -1: in chunks */
	int64_t left;   /* of the body, or of the chunk */
	int state;
	char size[16]; /* a chunk's, hexadecimal */
	size_t digits;
	bool started; /* the chunk has its first byte */
};

enum { RENDERED_MORE = 0, RENDERED_WHOLE = 1, RENDERED_BAD = -1, RENDERED_NO_MEMORY = -2 };
/* One of the above. After RENDERED_WHOLE nothing may follow. */
int rendered_feed(struct rendered *r, const char *data, size_t n);
bool rendered_has_head(const struct rendered *r);
/* Some of the body that was announced has not come. */
bool rendered_is_short(const struct rendered *r);
void rendered_free(struct rendered *r);

#endif
