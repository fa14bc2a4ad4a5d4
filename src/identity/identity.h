/* What makes two requests the same write (section 4 of the design).
 *
 * Everything here is a pure function of its input: no clock, no ledger, no libcurl. Never a secret
 * is kept: credentials enter only an HMAC under the ledger's own random secret. */
#ifndef SENDONCE_IDENTITY_IDENTITY_H
#define SENDONCE_IDENTITY_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "policy/policy.h"

enum { HASH_SIZE = 32, KEY_TEXT_MAX = 255 };

struct header_view {
	struct span name, value;
};

/* Credentials libcurl would use that are not in a header. Any span may be empty. */
struct credential_view {
	struct span user, password; /* USERPWD, USERNAME/PASSWORD, userinfo of the URL, or netrc */
	bool digest;                /* only Digest is allowed: the user name alone is the account */
	struct span bearer;         /* XOAUTH2_BEARER */
	struct span client_cert;    /* SSLCERT path */
};

struct identity_in {
	const struct rule *rule;
	struct span secret;      /* HMAC key, 32 random bytes or the operator's file */
	struct span scope, step; /* step may be empty */
	struct span method, scheme, host, path; /* effective; host without the port */
	unsigned port;
	struct span query;                 /* raw, without '?'; empty when there is none */
	struct span unix_socket;           /* path, or empty */
	const struct header_view *headers; /* as they would be sent, the program's own */
	size_t header_count;
	struct span
	        content_type; /* effective, libcurl's default included; empty when there is none */
	struct span body;     /* bytes as they would be sent */
	struct credential_view credentials;
	policy_env *env;
	void *env_ctx;
};

struct identity {
	uint8_t content[HASH_SIZE];     /* scope, account, operation id, step, identity parts */
	uint8_t any_account[HASH_SIZE]; /* the same without the account */
	uint8_t own_key[HASH_SIZE];     /* scope, operation id, target and the program's own key */
	uint8_t place[HASH_SIZE];       /* scope, account, target: where `settings-changed` looks */
	uint8_t fingerprint[HASH_SIZE]; /* identity parts and must_match */
	uint8_t wire_body[HASH_SIZE];   /* of the body, the key's carrier taken out */
	uint64_t settings;              /* of everything in the rule that shapes the hashes above */
	bool complete;                  /* any_account, place and wire_body are there too */
	bool has_own_key;
	bool account_opaque; /* from a credential that may rotate (no stable part was found in it)
	                      */
	char own_key_text[KEY_TEXT_MAX + 1]; /* the program's own key, "" without one */
	uint8_t account[HASH_SIZE], content_parts[HASH_SIZE]; /* for identity_complete */
};

enum {
	IDENTITY_OK = 0,
	IDENTITY_NOMEM = -1,
	IDENTITY_BAD_KEY = -2, /* own key too long, not printable, or no text */
	IDENTITY_NO_PLACE =
	        -3 /* the body has no place for the key: not JSON, or of another shape */
};

/* Everything in the rule that shapes the hashes: two requests of different settings can't be
 * compared. The operation's name is not in it (it may be renamed under a fixed key.id). */
int identity_settings(const struct rule *rule, uint64_t *settings);

/* What a repeat of a finished write needs; the rest when it is wanted, from the same `in`: it
 * hashes the body once more. */
int identity_begin(const struct identity_in *in, struct identity *out);
int identity_complete(const struct identity_in *in, struct identity *out);
int identity_make(const struct identity_in *in, struct identity *out); /* both */

/* The derived Idempotency-Key of a generation (1, 2, ...): HMAC over scope, content identity and
 * generation, in the rule's format. `out` has room for KEY_TEXT_MAX + 1. */
void identity_key(const struct identity_in *in, const struct identity *id, uint32_t generation,
                  char *out);

/* The leaves of query and body, for the audit log: a JSON object, appended to `out`, that names
 * each (JSON pointer, form name, `query`) and gives its sort and 8 hex digits of an HMAC of it:
 * {"/amount":"n1f3a5b7c"}. At most 64 and "..." for the rest. leaves.c says what the sorts are. */
int identity_leaves(const struct identity_in *in, struct buf *out);

/* --- the parts, each with its own file and tests --- */

/* Canonical form of a JSON text, appended to `out`; 0, or -1 when it has none (invalid JSON,
 * invalid UTF-8, duplicate members, too deep): the raw bytes are then the identity. json.c */
int json_canonical(struct span text, struct buf *out);
/* As above, but only the members named by JSON pointers (`fields`), or all except `ignore`.
 * Absent fields are marked as absent, so that absent and null differ. */
int json_canonical_parts(struct span text, const struct text_list *fields,
                         const struct text_list *ignore, struct buf *out);

/* application/x-www-form-urlencoded or a query: decoded pairs sorted by name, order of equal names
 * kept. form.c */
int form_canonical(struct span text, const struct text_list *fields, const struct text_list *ignore,
                   struct buf *out);

/* SHA-256 and HMAC-SHA-256, from libcrypto's low-level objects. hash.c */
void hash_sha256(const void *data, size_t n, uint8_t out[HASH_SIZE]);
void hash_hmac(struct span key, const void *data, size_t n, uint8_t out[HASH_SIZE]);

#endif
