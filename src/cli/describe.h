/* What an identity is made of, for people: the encoded parts, read back from the bytes that are
 * hashed, so that what is shown is what counts. */
#ifndef SENDONCE_CLI_DESCRIBE_H
#define SENDONCE_CLI_DESCRIBE_H

#include "identity/identity.h"

struct described {
	char *name; /* method, target.host, query.page, header.x-tenant, body/amount, form.a, ... */
	char *value; /* as hashed; of a secret, and of what has no text, an HMAC of it */
	bool hidden; /* `value` is the HMAC */
};
struct description {
	struct described *list;
	size_t count, room;
	bool failed; /* out of memory */
};

/* 0, or an IDENTITY_ code; `out` is all zero before and given to describe_free. */
int describe_content(const struct identity_in *in, struct description *out);
int describe_must_match(const struct identity_in *in, struct description *out);
/* Whose credentials: the kinds that are present, each with an HMAC and never a value. */
int describe_account(const struct identity_in *in, struct description *out, bool *opaque);
/* A path with those segments hidden that look like a credential (Slack, Discord and Telegram put it
 * there): an HMAC under `secret`, or without one "{secret}". */
void describe_path(struct span path, struct span secret, struct buf *out);

void describe_free(struct description *d);

/* What two descriptions differ in: calls `each` with the name and the two values, null where one
 * has no such part. Returns how many there are. */
typedef void describe_each(void *ctx, const char *name, const char *a, const char *b);
size_t describe_compare(const struct description *a, const struct description *b,
                        describe_each *each, void *ctx);

#endif
