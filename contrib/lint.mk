# SPDX-License-Identifier: Apache-2.0
# Static analysis, house rules and formatting; FILES='agent/*.c' limits the latter.

CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
CPPCHECK ?= cppcheck
SHELLCHECK ?= shellcheck

c_rooms := lib switch agent collectd-plugin cli ves
FILES ?= $(foreach r,$(c_rooms),$r/*.c $r/*.h) tests/*/*.c tests/*/*.h
c_files := $(wildcard $(FILES))
shell_files := $(wildcard .ci/run contrib/*/*.sh contrib/*/*.bash contrib/packaging/*/*.sh \
	contrib/packaging/debian/*.p*inst contrib/packaging/debian/*.p*rm tests/*.sh tests/*/*.sh)

lint: lint-rules lint-observe lint-format lint-shell lint-units lint-c lint-tidy

lint-rules: lint-rules-self-test
	@$(PYTHON) contrib/scripts/check-rules.py
lint-rules-self-test:
	@$(PYTHON) contrib/scripts/check-rules.py --self-test

# Prometheus' and Grafana's files come from tables, which must agree with the plugin's.
lint-observe:
	@$(PYTHON) contrib/observe/generate.py --check

# These two need Node.js 20 or later, which Debian 12 has not, with npm and its registry, so lint and check
# do without: the dashboards against Grafana's own types, and their pictures, from what
# tests/system/test_pictures.py left in the folder ANSWERS.
pictures_dir := $(BUILD)/pictures
ANSWERS ?= $(BUILD)/answers
$(pictures_dir)/node_modules: $(wildcard contrib/observe/pictures/*)
	@mkdir -p $(pictures_dir)
	cp contrib/observe/pictures/* $(pictures_dir)/
	cd $(pictures_dir) && npm install --no-audit --no-fund --no-package-lock --legacy-peer-deps
	@touch $@
lint-grafana: $(pictures_dir)/node_modules
	node $(pictures_dir)/types.mjs contrib/grafana/dashboards
pictures: $(pictures_dir)/node_modules
	@$(deps_script) pictures
	node $(pictures_dir)/draw.mjs $(ANSWERS) docs/images
	pngquant --force --ext .png --speed 1 --nofs --strip 96 docs/images/pmdpulse-*.png

lint-deps:
	@$(deps_script) lint

lint-format: lint-deps
	@bad=; for f in $(c_files); do \
		$(CLANG_FORMAT) $$f | diff -u --label $$f --label 'make format' $$f - || bad=1; \
	done; test -z "$$bad"

format: lint-deps
	$(if $(c_files),$(CLANG_FORMAT) -i $(c_files))

lint-shell: lint-deps
	@$(SHELLCHECK) $(shell_files)

lint-units: lint-deps
	@contrib/scripts/check-units.sh

lint-c: $(BUILD)/build_info.h lint-deps
	@mkdir -p $(BUILD)/lint/cppcheck
	@$(CPPCHECK) --quiet --error-exitcode=1 --std=c11 --inline-suppr \
		--enable=warning,performance,portability --cppcheck-build-dir=$(BUILD)/lint/cppcheck \
		--suppress=missingIncludeSystem -Ilib -I$(BUILD) $(c_rooms:%=%/)

# clang-tidy is slow, so each file leaves a stamp, which hangs on the object: that one knows the
# headers. A smaller budget of paths makes the analyzer three times as fast.
tidy_budget := -Xclang -analyzer-config -Xclang max-nodes=30000
tidy_stamps := $(foreach f,$(lib_sources) $(switch_sources) $(agent_sources) $(plugin_sources) \
	$(cli_sources) $(ves_sources),$(BUILD)/lint/$f.tidy)
lint-tidy: $(tidy_stamps)
$(BUILD)/lint/%.c.tidy: $(O)/%.o .clang-tidy | lint-deps
	@mkdir -p $(@D)
	$(say) TIDY $*.c
	$(Q)$(CLANG_TIDY) --quiet $*.c -- $(filter-out -M%,$(ROOM_CPPFLAGS) $(PMDP_CPPFLAGS)) \
		$(CPPFLAGS) $(PMDP_CFLAGS) $(ROOM_CFLAGS) $(tidy_budget)
	@touch $@

.PHONY: lint lint-rules lint-rules-self-test lint-format lint-shell lint-units lint-c lint-tidy \
	lint-deps lint-observe lint-grafana pictures format
