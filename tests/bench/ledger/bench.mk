# The ledger beside other stores. What it needs of Debian only it installs.
$(BUILD)/ledger-worker: $(wildcard tests/bench/ledger/*.[ch]) $(BUILD)/core.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/core.a -llmdb -lsqlite3 -lhiredis -lpthread

bench-ledger: packages
	$(Q)tests/install-packages tests/bench/ledger/packages
	$(Q)$(MAKE) -j$(JOBS) $(BUILD)/ledger-worker
	$(Q)BUILD=$(BUILD) $(PYTHON) tests/bench/ledger/run

.PHONY: bench-ledger
