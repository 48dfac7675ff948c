# SPDX-License-Identifier: Apache-2.0
# Debian packages. debian/ is put beside a copy of the sources, so the top level stays clean; what
# is compiled stays in that copy for the next time.

deb_folder := $(abspath $(BUILD))/deb

deb:
	@$(deps_script) build deb
	@contrib/packaging/build.sh '$(deb_folder)'

# In a clean Debian, made by debootstrap once and booted in a container. Takes minutes, and root.
check-deb: deb
	@$(deps_script) build test deb
	@$(run_tests) --pytest tests/deb --pytest-args='-x $(PYTEST_ARGS)'

.PHONY: deb check-deb
