# curl's own tests, with sendonce in the client: tests/curlsuite/run says how. What they need of Debian, they alone install.
CURLSUITE_MODES =

curlsuite: packages
	$(Q)tests/install-packages tests/curlsuite/packages
	$(Q)$(MAKE) -j$(JOBS) all
	$(Q)BUILD=$(BUILD) $(PYTHON) tests/curlsuite/run $(CURLSUITE_MODES)

.PHONY: curlsuite
