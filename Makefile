# sendonce. `make demo` and `make test` install what they need and do everything else themselves.
#
# Overridable: CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR, BUILD, SAN (address,undefined | thread), V=1.

PREFIX  = /usr
LIBDIR  = $(PREFIX)/lib/sendonce
BINDIR  = $(PREFIX)/bin
BUILD   = build
CC      = gcc
CFLAGS  = -O2 -g
SAN     =
PYTHON  = /usr/bin/python3
ARCH   := $(shell uname -m)
JOBS   := $(shell nproc)

WARN    = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARN) -Isrc -Iinclude $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CORE_CFLAGS = $(ALL_CFLAGS) $(COPY_CFLAGS) -fPIC -fvisibility=hidden
ALL_LDFLAGS = $(LDFLAGS) $(if $(SAN),-fsanitize=$(SAN))
# The preload has no libc under it: nothing may be called that the compiler invents either.
PRELOAD_CFLAGS = -std=c11 $(WARN) -Isrc -O2 -g -fPIC -fvisibility=hidden -ffreestanding -fno-builtin \
	-fno-stack-protector -U_FORTIFY_SOURCE -fno-lto -fno-asynchronous-unwind-tables -ftls-model=initial-exec \
	-Wframe-larger-than=1024 $(if $(filter aarch64,$(ARCH)),-mno-outline-atomics)

MAKEFLAGS += --no-print-directory
Q = $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$(2)")

# Rooms whose objects make up the core; the cli takes the ones it needs from the same archive.
CORE_ROOMS = base intercept request policy identity verdict ledger courier player
CORE_SRC  := $(wildcard $(CORE_ROOMS:%=src/%/*.c))
CORE_OBJ   = $(CORE_SRC:src/%.c=$(BUILD)/obj/%.o)
CLI_SRC   := $(wildcard src/cli/*.c src/report/*.c)
CLI_OBJ    = $(CLI_SRC:src/%.c=$(BUILD)/obj/%.o)
PRELOAD_SRC := $(wildcard src/preload/*.c)
PRELOAD_OBJ = $(PRELOAD_SRC:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/preload/stubs-$(ARCH).o
UNIT_SRC  := $(wildcard tests/unit/test_*.c)
UNIT_BIN   = $(UNIT_SRC:tests/unit/%.c=$(BUILD)/unit/%)
TOOL_SRC  := $(wildcard tests/clients/*.c tests/gates/*.c tests/crash/*.c tests/bench/*.c)
TOOL_BIN   = $(TOOL_SRC:tests/%.c=$(BUILD)/tests/%)

CRYPTO_OBJ = $(BUILD)/crypto/libsha256.a

all: $(BUILD)/libsendonce.so $(BUILD)/libsendonce-core.so $(BUILD)/sendonce

$(BUILD)/obj/preload/%.o: src/preload/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/preload/%.o: src/preload/%.S
	$(call say,AS,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -Isrc -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: src/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CORE_CFLAGS) -MMD -MP -c -o $@ $<

# SHA-256 alone, taken out of the static libcrypto: see src/identity/hash.c.
$(BUILD)/crypto/libsha256.a: src/identity/libsha256.mk
	$(call say,AR,$@)
	$(Q)$(MAKE) -s -f src/identity/libsha256.mk OUT=$@ CC="$(CC)"

$(BUILD)/core.a: $(CORE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# Two segments instead of four and no mprotect: a third of what it costs every process to load this.
$(BUILD)/libsendonce.so: $(PRELOAD_OBJ) src/preload/exports.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -nostdlib -nostartfiles -Wl,--version-script=src/preload/exports.map -Wl,-z,now \
		-Wl,-z,norelro -Wl,-z,noseparate-code -Wl,-z,noexecstack -Wl,--strip-debug \
		-Wl,--hash-style=both -Wl,-Bsymbolic -o $@ $(PRELOAD_OBJ)

$(BUILD)/libsendonce-core.so: $(CORE_OBJ) $(CRYPTO_OBJ) src/intercept/core.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=src/intercept/core.map -Wl,-z,now -Wl,-z,noexecstack \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--gc-sections -o $@ $(CORE_OBJ) $(CRYPTO_OBJ) -l:libyaml.a -lpthread

$(BUILD)/sendonce: $(CLI_OBJ) $(BUILD)/core.a $(CRYPTO_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(CLI_OBJ) $(BUILD)/core.a $(CRYPTO_OBJ) -l:libyaml.a -lpthread

# Unit tests are a process each; one that wants to redefine system calls includes the source it tests.
$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/core.a $(CRYPTO_OBJ)
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests -MMD -MP -o $@ $< $(ALL_LDFLAGS) $(BUILD)/core.a $(CRYPTO_OBJ) \
		-lcmocka -l:libyaml.a -lcurl -ldl -lpthread

$(BUILD)/tests/%: tests/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(ALL_LDFLAGS) -lcurl -ldl -lpthread

$(BUILD)/tests/crash/%: tests/crash/%.c $(BUILD)/core.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) -Itests -MMD -MP -o $@ $< $(ALL_LDFLAGS) $(BUILD)/core.a \
		$(if $(filter crash_images,$*),-Xlinker --wrap=shared_in -Xlinker --wrap=heap_give) -lpthread

$(BUILD)/tests/nolocale.so: tests/gates/parts/nolocale.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(WARN) -shared -fPIC -o $@ $<

unit: $(UNIT_BIN)
tools: $(TOOL_BIN) $(if $(SAN),$(BUILD)/tests/nolocale.so)

packages:
	$(Q)tests/install-packages

demo: packages
	$(Q)$(MAKE) -j$(JOBS) all
	$(Q)BUILD=$(BUILD) tests/demo

test: packages
	$(Q)$(MAKE) -j$(JOBS) all unit tools
	$(Q)BUILD=$(BUILD) PYTHON=$(PYTHON) tests/run

asan: packages
	$(Q)$(MAKE) -j$(JOBS) BUILD=$(BUILD)/asan SAN=address,undefined CFLAGS="-O1 -g" all unit tools
	$(Q)BUILD=$(BUILD)/asan SAN=address PYTHON=$(PYTHON) tests/run --san

tsan: packages
	$(Q)$(MAKE) -j$(JOBS) BUILD=$(BUILD)/tsan SAN=thread CFLAGS="-O1 -g" all unit tools
	$(Q)BUILD=$(BUILD)/tsan SAN=thread PYTHON=$(PYTHON) tests/run --san

include tests/bench/bench.mk tests/curlsuite/curlsuite.mk tests/fuzz/fuzz.mk tests/model/model.mk policy/policy.mk src/report/page.mk src/base/copy.mk

soak: packages
	$(Q)$(MAKE) -j$(JOBS) all unit tools
	$(Q)BUILD=$(BUILD) PYTHON=$(PYTHON) SENDONCE_SOAK=1 tests/run

install: all install-policy
	install -d $(DESTDIR)$(LIBDIR) $(DESTDIR)$(BINDIR)
	install -m 644 $(BUILD)/libsendonce.so $(BUILD)/libsendonce-core.so $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/sendonce $(DESTDIR)$(BINDIR)
	install -D -m 644 include/sendonce.h $(DESTDIR)$(PREFIX)/include/sendonce.h

format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all unit tools packages demo test asan tsan soak install format clean
.SECONDARY:
