# SPDX-License-Identifier: Apache-2.0
# Debian packages. debian/ is put beside a copy of the sources, so the top level stays clean; what
# is compiled stays in that copy for the next time.

deb_folder := $(abspath $(BUILD))/deb

deb:
	@$(deps_script) build deb
	@contrib/packaging/build.sh '$(deb_folder)'

check-deb: deb
	@$(deps_script) deb
	@contrib/packaging/check.sh '$(deb_folder)'

.PHONY: deb check-deb
