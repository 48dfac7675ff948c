# SPDX-License-Identifier: Apache-2.0
# Installation. Files of contrib/ and docs/ are taken along as they appear.

PREFIX ?= /usr/local
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
SYSCONFDIR ?= /etc
COLLECTD_PLUGINDIR ?= $(PREFIX)/lib/collectd
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),$(SYSTEMD_UNITDIR),$(PREFIX)/lib/systemd/system)

installed_headers := lib/pmdpulse.h lib/pmdp_abi.h

# $1 mode, $2 folder, $3 files
install_files = $(if $(strip $3),$(INSTALL) -D -m $1 -t '$(DESTDIR)$2' $3)

install-lib: lib install-man-lib
	$(call install_files,644,$(LIBDIR),$(lib_a) $(BUILD)/$(lib_soname))
	ln -sf $(lib_soname) '$(DESTDIR)$(LIBDIR)/libpmdpulse.so'
	$(call install_files,644,$(INCLUDEDIR)/pmdpulse,$(installed_headers))
	@mkdir -p '$(DESTDIR)$(LIBDIR)/pkgconfig'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' lib/pmdpulse.pc.in \
		> '$(DESTDIR)$(LIBDIR)/pkgconfig/pmdpulse.pc'

# Files of /etc belong to the operator: they are laid down once and never overwritten.
# $1 folder, $2 files
install_once = for f in $2; do \
	test -e '$(DESTDIR)$1'/$${f\#\#*/} || $(INSTALL) -D -m 644 -t '$(DESTDIR)$1' $$f || exit 1; \
	done
# $1 folder; below it, files stay where they are below contrib/
install_tree = find $1 -type f ! -name '*.py' ! -name '.*' -printf '%P\n' | while read -r f; do \
	$(INSTALL) -D -m 644 $1/"$$f" '$(DESTDIR)$(DATADIR)/pmdpulse/$(notdir $1)'/"$$f" || exit 1; done

install: all install-lib install-man
	$(call install_files,755,$(SBINDIR),$(BUILD)/pmdpulse-switch $(BUILD)/pmdpulse-agent \
		$(filter %/pmdpulse-ves,$(programs)))
	$(call install_files,755,$(BINDIR),$(BUILD)/pmdpulse)
	$(INSTALL) -D -m 644 contrib/completion/pmdpulse.bash \
		'$(DESTDIR)$(DATADIR)/bash-completion/completions/pmdpulse'
	$(call install_files,644,$(COLLECTD_PLUGINDIR),$(BUILD)/pmdpulse.so)
	$(INSTALL) -D -m 755 contrib/collectd/preflight.sh \
		'$(DESTDIR)$(PREFIX)/lib/pmdpulse/collectd-preflight'
	$(call install_files,644,$(DATADIR)/collectd,$(wildcard contrib/collectd/*_types.db))
	$(call install_files,644,$(DATADIR)/pmdpulse/collectd,$(wildcard contrib/collectd/*.conf))
	$(call install_files,644,$(UNITDIR),$(wildcard contrib/systemd/*.service))
	$(if $(filter /usr/sbin,$(SBINDIR)),,sed -i 's|=/usr/sbin/pmdpulse|=$(SBINDIR)/pmdpulse|' \
		'$(DESTDIR)$(UNITDIR)'/pmdpulse-*.service)
	$(call install_files,644,$(UNITDIR)/collectd.service.d,\
		$(wildcard contrib/systemd/collectd.service.d/*.conf))
	$(call install_files,644,$(PREFIX)/lib/tmpfiles.d,$(wildcard contrib/systemd/tmpfiles.d/*.conf))
	$(call install_files,644,$(PREFIX)/lib/sysusers.d,$(wildcard contrib/systemd/sysusers.d/*.conf))
	$(call install_files,644,$(PREFIX)/lib/systemd/catalog,$(wildcard contrib/systemd/*.catalog))
	$(call install_once,$(SYSCONFDIR)/pmdpulse,$(wildcard contrib/conf/*.conf))
	$(call install_files,644,$(DATADIR)/doc/pmdpulse/examples,$(wildcard contrib/conf/*.example))
	$(call install_once,$(SYSCONFDIR)/default,$(wildcard contrib/default/*))
	$(foreach d,$(wildcard contrib/alertmanager contrib/grafana contrib/prometheus),\
		$(call install_tree,$d);)
	$(call install_files,644,$(DATADIR)/doc/pmdpulse,README.md $(wildcard docs/*.md))
	$(call install_files,644,$(DATADIR)/doc/pmdpulse/images,$(wildcard docs/images/*.png))
	$(call install_files,644,$(DATADIR)/doc/pmdpulse/examples,$(wildcard contrib/python/*.py))

.PHONY: install install-lib
