# $(OUT): SHA-256 and nothing else, out of the static libcrypto.
#
# Only the digest's own objects are taken, joined into one, and given names of our own, so that they
# can't be mistaken for those of a libcrypto the host program has loaded. x86_64cpuid.o stays out: its
# .init section would run in every process and read OPENSSL_ia32cap. What it would have provided
# (processor flags, a cleanse) is in hash.c. No EVP: that costs milliseconds and reads configuration.

CC      = gcc
OUT     = libsha256.a
WORK    = $(OUT).work
OBJCOPY = objcopy

LIBCRYPTO := $(shell $(CC) -print-file-name=libcrypto.a)
MEMBERS   := $(shell ar t $(LIBCRYPTO) | grep -E '^libcrypto-lib-sha256(-[a-z0-9_]+)?\.o$$')

RENAME = SHA256_Init=sendonce_sha256_init SHA256_Update=sendonce_sha256_update \
	SHA256_Final=sendonce_sha256_final OPENSSL_cleanse=sendonce_sha256_cleanse \
	OPENSSL_ia32cap_P=sendonce_sha256_cpu OPENSSL_armcap_P=sendonce_sha256_arm
KEEP   = sendonce_sha256_init sendonce_sha256_update sendonce_sha256_final

$(OUT): $(LIBCRYPTO)
	$(if $(MEMBERS),,$(error no SHA-256 objects in '$(LIBCRYPTO)': is libssl-dev installed?))
	mkdir -p $(WORK)
	cd $(WORK) && rm -f *.o && ar x $(LIBCRYPTO) $(MEMBERS) && ld -r -o joined.o $(MEMBERS)
	$(OBJCOPY) $(RENAME:%=--redefine-sym %) $(WORK)/joined.o $(WORK)/renamed.o
	$(OBJCOPY) $(KEEP:%=--keep-global-symbol=%) $(WORK)/renamed.o $(WORK)/sha256.o
	rm -f $@ && ar rcsD $@ $(WORK)/sha256.o
