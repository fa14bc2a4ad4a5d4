# Every state of the model of a record (record.pml), and the bugs that it must find.
model: packages
	$(Q)BUILD=$(BUILD) $(PYTHON) tests/model/run

.PHONY: model
