# SPDX-License-Identifier: Apache-2.0
# Manual pages, from *.scd by scdoc. Without scdoc there are none; nothing else needs them.

SCDOC ?= $(shell command -v scdoc)
MANDIR ?= $(DATADIR)/man
man_sources := $(wildcard docs/man/*.scd)
man_pages := $(if $(SCDOC),$(man_sources:docs/man/%.scd=$(BUILD)/man/%))

$(BUILD)/man/%: docs/man/%.scd
	@mkdir -p $(@D)
	$(say) MAN $@
	$(Q)$(SCDOC) < $< > $@

all: $(man_pages)
man: $(man_pages)
	$(if $(SCDOC),,@echo 'no manual pages: install scdoc for them' >&2)

# pmdpulse(3) is of the library, the rest of the programs.
install-man-lib: man
	$(call install_files,644,$(MANDIR)/man3,$(filter %.3,$(man_pages)))
install-man: man install-man-lib
	$(foreach s,1 5 7 8,$(or $(call install_files,644,$(MANDIR)/man$s,$(filter %.$s,$(man_pages))),:);)

.PHONY: man install-man install-man-lib
