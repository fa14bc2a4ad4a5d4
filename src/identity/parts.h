/* What the files of this room share: the length-prefixed encoding everything is hashed in, the
 * selectors of `fields`, `ignore` and `must_match`, and the JSON tree. */
#ifndef SENDONCE_IDENTITY_PARTS_H
#define SENDONCE_IDENTITY_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/sha.h>

#include "base/bytes.h"
#include "identity/carry.h"
#include "identity/echo.h"
#include "identity/identity.h"

/* --- encode.c: tag, eight bytes of length (big endian), bytes. Two different sequences of parts
 * never give the same bytes, whatever is in them. */
void part_add(struct buf *out, char tag, struct span value);
/* A part whose value is appended afterwards: part_close(out, part_open(out, tag)). */
size_t part_open(struct buf *out, char tag);
void part_close(struct buf *out, size_t at);
void part_add_lower(struct buf *out, char tag, struct span value); /* ASCII case folded */
bool span_has_nocase(struct span text, const char *word);
/* What stands before the first `c`; `rest` is what follows it (p null when there is no `c`). */
struct span span_cut(struct span text, char c, struct span *rest);

/* --- hash.c: a key of HMAC-SHA-256, its two blocks already hashed; for several hashes under it. */
struct hash_key {
	SHA256_CTX inner, outer;
};
void hash_key_make(struct hash_key *made, struct span key);
void hash_key_wipe(struct hash_key *key);
void hash_keyed(const struct hash_key *key, const void *data, size_t n, uint8_t out[HASH_SIZE]);

/* --- select.c: "/json/pointer", "query:x", "header:x", and else the name in a form. */
enum selector_kind { SELECT_JSON, SELECT_FORM, SELECT_QUERY, SELECT_HEADER };
struct selector {
	enum selector_kind kind;
	struct span name;
};
struct selector selector_of(const char *item);
/* Does the list (null: empty) select `name`? Header names are compared without case. */
bool selector_names(const struct text_list *list, enum selector_kind kind, struct span name);
bool selector_has_kind(const struct text_list *list, enum selector_kind kind);

/* --- json.c, json_text.c */
enum { JSON_NONE = 0, JSON_ROOT = 1, JSON_NODES_MAX = 1 << 20 };
enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_WORD };
struct json_node {
	struct span text; /* the token; of a string what is between the quotes */
	struct span name; /* of an object's member, between the quotes, escapes as written */
	uint32_t parent, first, last, next; /* indexes, JSON_NONE: there is none */
	enum json_kind kind;
	bool ignored;
};
enum { JSON_FIRST = 16 };
struct json_doc {
	struct json_node *node; /* [0] holds the root as its only child; `first`, or allocated */
	uint32_t count, room;
	struct json_node first[JSON_FIRST]; /* so a parsed one cannot be copied */
};
enum { JSON_INVALID = -1, JSON_NOMEM = -2 };
/* 0 or negative; `doc` is all zero before and freed by json_free in any case. Borrows `text`. The
 * members of every object are sorted. */
int json_parse(struct json_doc *doc, struct span text);
void json_free(struct json_doc *doc);
uint32_t json_find(const struct json_doc *doc, struct span pointer); /* RFC 6901; JSON_NONE */
/* The member or element that one token of a pointer names. */
uint32_t json_child(const struct json_doc *doc, uint32_t at, struct span token);
/* Marks what the JSON selectors of a list name as ignored. */
void json_mark(struct json_doc *doc, const struct text_list *list);
void json_emit(const struct json_doc *doc, uint32_t at, struct buf *out);
/* What goes out with the key at `pointer`: its node, or the objects that hold nothing else.
 * JSON_NONE: there is no key. carry.c */
uint32_t carry_node(const struct json_doc *doc, struct span pointer);
/* See json_canonical_parts. Returns how many of `fields` are there. */
size_t json_emit_parts(struct json_doc *doc, const struct text_list *fields,
                       const struct text_list *ignore, struct buf *out);

/* Between the quotes, at least one byte after them: 0, or -1. `p` moves to the closing quote. */
int json_scan_string(const char **p, const char *end);
int json_scan_number(const char **p, const char *end);
/* By UTF-16 code units, escapes resolved. */
int json_compare_names(struct span a, struct span b);
bool json_name_is(struct span name, struct span token); /* a JSON pointer's token, as written */
void json_emit_string(struct span text, struct buf *out);
void json_emit_number(struct span text, struct buf *out);
/* The text of a string, its escapes resolved. */
void json_decode_string(struct span text, struct buf *out);

/* --- form.c: as form_canonical, for the selectors of one kind. `found` (may be null) counts the
 * fields that are there. */
int form_parts(struct span text, enum selector_kind kind, const struct text_list *fields,
               const struct text_list *ignore, struct buf *out, size_t *found);

/* The first pair of that name, its value decoded; false when there is none. */
bool form_value(struct span text, struct span name, struct buf *out);
bool form_name_is(struct span raw, struct span name); /* raw, once decoded */

/* --- sse.c: server-sent events. */
bool sse_is(struct span content_type);
/* The next `data:` line's text, as it stands in the body; false: there is none. */
bool sse_next(struct span *rest, struct span *data);
/* JSON, and no request or notification of its own (no `method`). */
bool sse_is_answer(struct span data);
/* The last one that answers something: JSON without a `method`. Empty when there is none. */
struct span sse_answer(struct span body);

/* --- graphql.c: is an operation of that kind (query, mutation, subscription) in the document? */
bool graphql_has(struct span text, struct span kind);

/* --- multipart.c: the parts, without the boundary; -1 when it isn't well-formed. */
int multipart_canonical(struct span body, struct span boundary, struct buf *out);

/* --- content.c: the identity parts that aren't the account. */
struct span content_type_boundary(struct span content_type); /* p null: no multipart */
struct span content_boundary(const struct identity_in *in);  /* the same, of a form of any type */
/* Authority: the rule's target name, or scheme, host, port, socket and Host header. */
void content_target(const struct identity_in *in, bool named, struct buf *out);
enum body_kind { BODY_RAW, BODY_JSON, BODY_FORM, BODY_MULTIPART };
enum body_kind content_body_kind(const struct identity_in *in);
int content_parts(const struct identity_in *in, struct buf *out);
int content_must_match(const struct identity_in *in, struct buf *out);
bool header_is_carrier(const struct rule *rule, struct span name);
bool body_holds_key(const struct identity_in *in); /* may hold it: read it as JSON */

/* --- account.c: whose credentials these are, in parts. Sets *opaque. */
int account_parts(const struct identity_in *in, struct buf *out, bool *opaque);
/* --- token.c */
/* The stable claims of a JWT, appended; false when it isn't one or has none of them. */
bool token_claims(struct span token, struct buf *out);
/* 0, or -1 when it isn't base64 (either alphabet, padding optional). */
int token_base64(struct span text, struct buf *out);
/* The value of `name` in `a="x", b=y`; p null when absent. */
struct span token_param(struct span list, const char *name);

#endif
