/* SHA-256 and HMAC-SHA-256.
 *
 * The digest is libcrypto's own low-level code, taken out of its static archive by libsha256.mk:
 * no EVP, no providers, no configuration file, no constructor. Its objects want two things of the
 * rest of libcrypto, a cleanse and the processor's flags; both are here. The flags are asked for
 * at the first hash, and only the two that need nothing of the operating system are passed on
 * (SHA extensions and SSSE3); without them the portable assembly runs, with the same results.
 *
 * No promise of constant time beyond libcrypto's. */
#include "identity/parts.h"

#include <stdatomic.h>
#include <string.h>

#include <openssl/sha.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum { BLOCK = 64 };

#define HIDDEN __attribute__((visibility("hidden")))

int sendonce_sha256_init(SHA256_CTX *c);
int sendonce_sha256_update(SHA256_CTX *c, const void *data, size_t n);
int sendonce_sha256_final(unsigned char *out, SHA256_CTX *c);

#if defined(__aarch64__) || defined(__arm__)
extern HIDDEN uint32_t sendonce_sha256_arm; /* OPENSSL_armcap_P: always the portable code */
uint32_t sendonce_sha256_arm;
#endif

/* libcrypto's OPENSSL_ia32cap_P, read by the assembly. */
extern HIDDEN _Atomic uint32_t sendonce_sha256_cpu[4];
_Atomic uint32_t sendonce_sha256_cpu[4];

HIDDEN void sendonce_sha256_cleanse(void *p, size_t n);
void sendonce_sha256_cleanse(void *p, size_t n)
{
	memset(p, 0, n);
	__asm__ volatile("" : : "r"(p) : "memory"); /* the compiler may not drop the memset */
}

/* Relaxed: every thread computes the same two words, each of which is right on its own, and
 * nothing else is published by them. */
static void find_cpu(void)
{
#if defined(__x86_64__)
	static atomic_bool asked;
	unsigned a, b, c, d;

	if (atomic_load_explicit(&asked, memory_order_relaxed))
		return;
	if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3)) {
		atomic_store_explicit(&sendonce_sha256_cpu[1], c & bit_SSSE3, memory_order_relaxed);
		if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
			atomic_store_explicit(&sendonce_sha256_cpu[2], b & bit_SHA,
			                      memory_order_relaxed);
	}
	atomic_store_explicit(&asked, true, memory_order_relaxed);
#endif
}

void hash_sha256(const void *data, size_t n, uint8_t out[HASH_SIZE])
{
	SHA256_CTX c;

	find_cpu();
	sendonce_sha256_init(&c);
	sendonce_sha256_update(&c, data, n);
	sendonce_sha256_final(out, &c);
}

static void start_pad(SHA256_CTX *c, const uint8_t key[BLOCK], uint8_t pad)
{
	uint8_t block[BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = (uint8_t)(key[i] ^ pad);
	sendonce_sha256_init(c);
	sendonce_sha256_update(c, block, sizeof block);
	sendonce_sha256_cleanse(block, sizeof block);
}

static void make_key(struct hash_key *made, struct span key)
{
	uint8_t block[BLOCK] = {0};

	find_cpu();
	if (key.n > BLOCK)
		hash_sha256(key.p, key.n, block);
	else if (key.n)
		memcpy(block, key.p, key.n);
	start_pad(&made->inner, block, 0x36);
	start_pad(&made->outer, block, 0x5c);
	sendonce_sha256_cleanse(block, sizeof block);
}

/* Four keys are made for each write, of one secret: that of the ledger, which is in our memory as
 * long as the ledger is. */
void hash_key_make(struct hash_key *made, struct span key)
{
	static __thread struct {
		uint8_t secret[HASH_SIZE];
		bool known;
		struct hash_key made;
	} last;

	if (key.n != sizeof last.secret) {
		make_key(made, key);
		return;
	}
	if (!last.known || memcmp(last.secret, key.p, key.n) != 0) {
		make_key(&last.made, key);
		memcpy(last.secret, key.p, key.n);
		last.known = true;
	}
	*made = last.made;
}

void hash_key_wipe(struct hash_key *key)
{
	sendonce_sha256_cleanse(key, sizeof *key);
}

void hash_keyed(const struct hash_key *key, const void *data, size_t n, uint8_t out[HASH_SIZE])
{
	SHA256_CTX c = key->inner;

	sendonce_sha256_update(&c, data, n);
	sendonce_sha256_final(out, &c);
	c = key->outer;
	sendonce_sha256_update(&c, out, HASH_SIZE);
	sendonce_sha256_final(out, &c);
	sendonce_sha256_cleanse(&c, sizeof c);
}

void hash_hmac(struct span key, const void *data, size_t n, uint8_t out[HASH_SIZE])
{
	struct hash_key made;

	hash_key_make(&made, key);
	hash_keyed(&made, data, n, out);
	hash_key_wipe(&made);
}
