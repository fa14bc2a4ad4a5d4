# What reads bytes of others, under libFuzzer: $(BUILD)/fuzz/NAME for each fuzz_NAME.c, with all sources instrumented. Built with the
# other test tools, by clang whatever CC is, but not for the sanitizer builds: these have the sanitizers already.
FUZZ_CFLAGS = -std=c11 -D_GNU_SOURCE -Isrc -Iinclude -Itests -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
FUZZ_SRC := $(wildcard $(patsubst %,src/%/*.c,base policy identity request player ledger) \
	$(addprefix src/courier/,answer.c fields.c tape.c passes.c))
FUZZ_OBJ  = $(FUZZ_SRC:src/%.c=$(BUILD)/fuzz/obj/%.o)
FUZZ_BIN  = $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

# What the ledger compares are never bytes of its input, which is a list of changes to a file: noting them costs two fifths of its time.
$(BUILD)/fuzz/obj/ledger/%.o $(BUILD)/fuzz/ledger: private FUZZ_LESS = -fno-sanitize-coverage=trace-cmp

$(BUILD)/fuzz/obj/%.o: src/%.c
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link $(FUZZ_LESS) -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/core.a: $(FUZZ_OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(BUILD)/fuzz/core.a $(CRYPTO_OBJ)
	$(call say,FUZZ,$@)
	$(Q)clang $(FUZZ_CFLAGS) -fsanitize=fuzzer $(FUZZ_LESS) -MMD -MP -o $@ $< $(BUILD)/fuzz/core.a $(CRYPTO_OBJ) -l:libyaml.a -ldl -lpthread

fuzz: $(FUZZ_BIN)
ifeq ($(SAN),)
tools: fuzz
endif
.PHONY: fuzz
