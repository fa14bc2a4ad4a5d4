# The ready-made rules, where `include` and people look for them.
DATADIR = $(PREFIX)/share/sendonce

install-policy:
	install -d $(DESTDIR)$(DATADIR)/policy
	install -m 644 policy/*.yaml $(DESTDIR)$(DATADIR)/policy

.PHONY: install-policy
