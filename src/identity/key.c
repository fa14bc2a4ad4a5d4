/* The key a provider sees: an HMAC of the identity in the spelling the provider takes.
 *
 * It tells nothing about the content without the ledger's secret, so that it may follow a
 * redirect. The UUID carries the bits of version 4, the only kind some providers take. */
#include "identity/parts.h"

#include <string.h>

enum { UUID_BYTES = 16, UUID_TEXT = 37 };

static void put_byte(char *to, size_t *n, uint8_t b)
{
	char hex[3];

	hex_encode(hex, &b, 1);
	to[(*n)++] = hex[0];
	to[(*n)++] = hex[1];
}

static void put_uuid(char *to, const uint8_t *b, bool dashes)
{
	size_t n = 0;

	for (size_t i = 0; i < UUID_BYTES; i++) {
		if (dashes && (i == 4 || i == 6 || i == 8 || i == 10))
			to[n++] = '-';
		put_byte(to, &n, b[i]);
	}
	to[n] = '\0';
}

/* Built without an allocation: a record that was found can always be given its key. The scope is
 * in the content's hash already; it is hashed once more so that the key is a function of both. */
static void hash_key(const struct identity_in *in, const struct identity *id, uint32_t generation,
                     uint8_t out[HASH_SIZE])
{
	static const char label[] = "sendonce key";
	uint8_t text[sizeof label + 2 * HASH_SIZE + 4];
	size_t n = sizeof label;

	memcpy(text, label, n);
	hash_hmac(in->secret, in->scope.p, in->scope.n, text + n);
	n += HASH_SIZE;
	memcpy(text + n, id->content, HASH_SIZE);
	n += HASH_SIZE;
	for (int shift = 24; shift >= 0; shift -= 8)
		text[n++] = (uint8_t)(generation >> shift & 255);
	hash_hmac(in->secret, text, n, out);
}

void identity_key(const struct identity_in *in, const struct identity *id, uint32_t generation,
                  char *out)
{
	uint8_t hash[HASH_SIZE];

	hash_key(in, id, generation, hash);
	if (in->rule->format == FORMAT_HEX) {
		hex_encode(out, hash, HASH_SIZE);
		return;
	}
	hash[6] = (uint8_t)((hash[6] & 0x0f) | 0x40);
	hash[8] = (uint8_t)((hash[8] & 0x3f) | 0x80);
	if (in->rule->format != FORMAT_SF_STRING) {
		put_uuid(out, hash, in->rule->format == FORMAT_UUID);
		return;
	}
	out[0] = '"';
	put_uuid(out + 1, hash, true);
	memcpy(out + UUID_TEXT, "\"", 2);
}
