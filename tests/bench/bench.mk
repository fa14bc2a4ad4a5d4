# Figures: `make bench` those of the README, `make bench-ledger` those of the ledger.
bench: packages
	$(Q)$(MAKE) -j$(JOBS) all tools
	$(Q)BUILD=$(BUILD) PYTHON=$(PYTHON) tests/bench/run

# The ledger beside other stores. What it needs of Debian, it alone installs.
$(BUILD)/ledger-worker: $(wildcard tests/bench/ledger/*.[ch]) $(BUILD)/core.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Wl,-z,now -o $@ $(filter %.c,$^) $(BUILD)/core.a -llmdb -lsqlite3 -lhiredis -lpthread

bench-ledger: packages
	$(Q)tests/install-packages tests/bench/ledger/packages
	$(Q)$(MAKE) -j$(JOBS) $(BUILD)/ledger-worker $(BUILD)/tests/crash/storm
	$(Q)BUILD=$(BUILD) $(PYTHON) tests/bench/ledger/run
	$(Q)folder=$$(mktemp -d) && $(BUILD)/tests/crash/storm $$folder 5 300 4; code=$$?; rm -r $$folder; exit $$code

.PHONY: bench bench-ledger
