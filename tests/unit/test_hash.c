/* SHA-256 and HMAC-SHA-256 against published vectors and against the OpenSSL in this process. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "identity/identity.h"

static void assert_hash(const uint8_t *hash, const char *want)
{
	char text[2 * HASH_SIZE + 1];

	hex_encode(text, hash, HASH_SIZE);
	assert_string_equal(text, want);
}

/* FIPS 180-4 examples and NIST's short messages. */
static void sha256_vectors(void **state)
{
	static const struct {
		const char *text, *want;
	} row[] = {
	        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqk"
	         "lmno"
	         "pqrlmnopqrsmnopqrstnopqrstu",
	         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};
	uint8_t hash[HASH_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		hash_sha256(row[i].text, strlen(row[i].text), hash);
		assert_hash(hash, row[i].want);
	}
}

static void sha256_million(void **state)
{
	enum { N = 1000000 };
	char *text = malloc(N);
	uint8_t hash[HASH_SIZE];

	(void)state;
	assert_non_null(text);
	memset(text, 'a', N);
	hash_sha256(text, N, hash);
	assert_hash(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(text);
}

/* RFC 4231, cases 1 to 4, 6 and 7. */
static void hmac_vectors(void **state)
{
	static const struct {
		char key_byte;
		size_t key_n;
		const char *key, *data;
		const char *want;
	} row[] = {
	        {0x0b, 20, NULL, "Hi There",
	         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	        {0, 4, "Jefe", "what do ya want for nothing?",
	         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	        {(char)0xaa, 131, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
	         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	        {(char)0xaa, 131, NULL,
	         "This is a test using a larger than block-size key and a larger than block-size "
	         "data. "
	         "The key needs to be hashed before being used by the HMAC algorithm.",
	         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	};
	uint8_t hash[HASH_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		char key[131];

		if (row[i].key)
			memcpy(key, row[i].key, row[i].key_n);
		else
			memset(key, row[i].key_byte, row[i].key_n);
		hash_hmac((struct span){key, row[i].key_n}, row[i].data, strlen(row[i].data), hash);
		assert_hash(hash, row[i].want);
	}
}

static void hmac_binary_vectors(void **state)
{
	char key[25], data[50];
	uint8_t hash[HASH_SIZE];

	(void)state;
	memset(key, 0xaa, 20);
	memset(data, 0xdd, sizeof data);
	hash_hmac((struct span){key, 20}, data, sizeof data, hash);
	assert_hash(hash, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (char)(i + 1);
	memset(data, 0xcd, sizeof data);
	hash_hmac((struct span){key, 25}, data, sizeof data, hash);
	assert_hash(hash, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

typedef unsigned char *sha256_fn(const unsigned char *data, size_t n, unsigned char *out);

/* Every length around the block's edges, and the two libraries in turn: neither must see the
 * other's symbols or state. */
static void same_as_openssl(void **state)
{
	void *lib = dlopen("libcrypto.so.3", RTLD_NOW);
	sha256_fn *theirs = (sha256_fn *)(uintptr_t)dlsym(lib, "SHA256");
	unsigned char text[700], want[HASH_SIZE];
	uint8_t got[HASH_SIZE];

	(void)state;
	assert_non_null(lib);
	assert_non_null(theirs);
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (unsigned char)(i * 131 + (i >> 3));
	for (size_t n = 0; n <= sizeof text; n++) {
		assert_non_null(theirs(text, n, want));
		hash_sha256(text, n, got);
		assert_memory_equal(got, want, HASH_SIZE);
	}
	dlclose(lib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sha256_vectors),  cmocka_unit_test(sha256_million),
	        cmocka_unit_test(hmac_vectors),    cmocka_unit_test(hmac_binary_vectors),
	        cmocka_unit_test(same_as_openssl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
