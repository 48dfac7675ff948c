# SPDX-License-Identifier: Apache-2.0
# The only entry of the build.
#
## make                 everything, into build/
## make run             switch, agent and collectd in the foreground; DURATION=S stops after S seconds
## make demo            the same with a real fault: see an alarm raised and cleared
## make check           all tests; check-unit, check-stress, check-system for a part
## make bench           the benchmarks, into build/bench.json
## make lint            static analysis, house rules, formatting; make format mends the latter
## make fuzz            all fuzzers of tests/fuzz, each FUZZ_SECONDS=60 with ASan; needs clang
## make install         DESTDIR= PREFIX=/usr/local
## make man             the manual pages, where scdoc is
## make deb             Debian packages, into build/deb; make check-deb tries them in a clean Debian
## make lib | switch | agent | plugin | cli | ves | tests     one room
## make clean | distclean | deps
##
## Variables: CC=clang, CFLAGS, CPPFLAGS, LDFLAGS, BUILD=folder, SANITIZE=address,undefined or
## thread (in folders of their own), WERROR=1, V=1, PYTHON, PYTEST_ARGS='-k name', DEPS=no (do not
## look for missing packages).
#
# Each room (lib, switch, agent, ...) describes itself in its module.mk. Sources are
# found by wildcard. Everything is written below $(BUILD), configure's output too.

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

all:

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin AR),default)
AR := ar
endif
ifneq ($(wildcard /usr/bin/python3),)
PYTHON ?= /usr/bin/python3
else
PYTHON ?= python3
endif
AUTOCONF ?= autoconf
INSTALL ?= install
deps_script := contrib/scripts/deps.sh

# A sanitizer build never shares objects with the plain one.
comma := ,
SANITIZE ?=
BUILD ?= build$(if $(SANITIZE),/sanitize-$(subst $(comma),-,$(SANITIZE)))
# Scripts hand it on as an absolute path; dependency files know an object by one name only.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
O := $(BUILD)/obj

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
endif

# Which packages a goal needs beside those of the build (see deps.sh).
goals := $(or $(MAKECMDGOALS),all)
deps_run := $(filter run demo bench,$(goals))
deps_test := $(filter tests unit stress check% bench,$(goals))
deps_bench := $(filter bench,$(goals))
deps_lint := $(filter lint% format,$(goals))
deps_fuzz := $(filter fuzz,$(goals))
deps_deb := $(filter deb check-deb,$(goals))
dep_groups := build $(foreach g,run test bench lint fuzz deb,$(if $(deps_$g),$g))

# --- configuration -----------------------------------------------------------------

no_config := help clean distclean format lint-rules lint-observe lint-shell deps deb check-deb
ifneq ($(filter-out $(no_config),$(goals)),)

include $(BUILD)/config.mk

$(BUILD)/configure: configure.ac
	@mkdir -p $(@D)
	@$(deps_script) $(dep_groups)
	$(say) AUTOCONF $@
	$(Q)cd $(@D) && $(AUTOCONF) -o configure '$(CURDIR)/$<'

$(BUILD)/config.mk: $(BUILD)/configure config.mk.in config.h.in
	@$(deps_script) $(dep_groups)
	$(say) CONF $@
	$(Q)cd $(@D) && CC='$(CC)' ./configure --quiet --srcdir='$(CURDIR)'
	@touch $@

# Configured before the test packages came: look again, once.
ifneq ($(deps_test)$(deps_bench),)
ifeq ($(HAVE_CMOCKA)$(MAKE_RESTARTS),no)
$(BUILD)/config.mk: FORCE
endif
endif
endif

# --- flags -------------------------------------------------------------------------
# Three sets that never mix: configure's (config.mk: DPDK_CFLAGS, ...), ours (PMDP_*),
# and the user's (CPPFLAGS, CFLAGS, LDFLAGS), which come last and so win.

PMDP_CPPFLAGS := -D_GNU_SOURCE -I$(BUILD) -Ilib
PMDP_CFLAGS := -std=gnu11 -O2 -g -march=x86-64-v2 -pthread \
	-Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes
PMDP_LDFLAGS := -pthread

ifeq ($(WERROR),1)
PMDP_CFLAGS += -Werror
endif
ifneq ($(SANITIZE),)
sanitize_flags := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
PMDP_CFLAGS += -O1 $(sanitize_flags)
PMDP_LDFLAGS += $(sanitize_flags)
endif

# ROOM_CPPFLAGS and ROOM_CFLAGS are set per folder of objects, in module.mk.
compile = $(CC) $(ROOM_CPPFLAGS) $(PMDP_CPPFLAGS) $(CPPFLAGS) \
	$(PMDP_CFLAGS) $(ROOM_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
link = $(CC) $(PMDP_CFLAGS) $(CFLAGS) $(PMDP_LDFLAGS) $(LDFLAGS) -o $@ $(1) $(LIBS)

# Written anew only when something changed; every object depends on it, so that other
# flags mean other objects.
# The folder that a package is built in is no part of what it is.
build_flags := $(filter-out -ffile-prefix-map=%,$(strip $(CPPFLAGS) $(PMDP_CFLAGS) $(CFLAGS) $(LDFLAGS)))
$(BUILD)/build_info.h: contrib/scripts/build-info.sh FORCE
	@mkdir -p $(@D)
	@CC='$(CC)' VERSION='$(VERSION)' FLAGS='$(subst ','\'',$(build_flags))' $< $@

$(O)/%.o: %.c $(BUILD)/build_info.h
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(compile)

# --- rooms -------------------------------------------------------------------------

rooms := lib switch agent collectd-plugin cli ves tests
objects :=
programs :=
include contrib/install.mk $(rooms:%=%/module.mk) docs/man/module.mk contrib/packaging/module.mk \
	contrib/lint.mk

all: $(programs)

-include $(objects:.o=.d)

# --- doing something with it -------------------------------------------------------

# Scripts find the build and what was asked for in their environment.
script_env = BUILD='$(abspath $(BUILD))' PYTHON='$(PYTHON)' SANITIZE='$(SANITIZE)' \
	CC='$(CC)' $(if $(DURATION),DURATION='$(DURATION)')

run: all tools
	@$(deps_script) build run
	@$(script_env) contrib/dev/run.sh

demo: all tools
	@$(deps_script) build run
	@$(script_env) contrib/dev/run.sh demo

bench: all tools bench-programs
	@$(deps_script) build run test bench
	@$(script_env) tests/bench/run.sh

deps:
	@$(deps_script) build run test bench lint fuzz

clean:
	rm -rf $(BUILD)

distclean:
	rm -rf build build-*

help:
	@sed -n 's/^## \{0,1\}//p' Makefile

FORCE:
.PHONY: all run demo bench deps clean distclean help FORCE
