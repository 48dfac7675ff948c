# SPDX-License-Identifier: Apache-2.0
# Every .c file here is a program of its own, found by wildcard:
#   unit/test_*.c   cmocka           stress/*.c   cmocka or plain (0 pass, 77 skip)
#   bench/*.c       benchmarks       tools/*.c    injectors and small helpers
#   fuzz/*.c        libFuzzer        foreign/*.c  plain, knows the installed library alone
#   common/*.c      no programs: linked where they are used
#   unit/*.c        without test_: the same, for unit tests alone
#
# What is built without the test packages (tools, for make run) is common/ and tools/: no cmocka
# there.
#
# A program may use the objects of a room beside libpmdpulse; its name's prefix says which
# (after test_): sw_ switch, ag_ agent, cp_ collectd-plugin, cli_ the command, vs_ ves. The file
# with the room's main() (main.c or *_main.c) is left out.

unit_sources := $(wildcard tests/unit/test_*.c)
stress_sources := $(wildcard tests/stress/*.c)
bench_sources := $(wildcard tests/bench/*.c)
tools_sources := $(wildcard tests/tools/*.c)
fuzz_sources := $(wildcard tests/fuzz/*.c)
common_sources := $(wildcard tests/common/*.c)
unit_common_sources := $(filter-out $(unit_sources),$(wildcard tests/unit/*.c))
test_sources := $(unit_sources) $(stress_sources) $(bench_sources) $(tools_sources)

# The thread sanitizer is for lib/ alone: DPDK and collectd are not built for it.
room_prefixes := sw ag cp cli vs
room_of = $(word 1,$(foreach p,$(room_prefixes),$(if $(filter $p_% test_$p_%,$(notdir $1)),$p)))
ifneq ($(filter thread,$(SANITIZE)),)
unit_sources := $(foreach s,$(unit_sources),$(if $(call room_of,$s),,$s))
stress_sources := $(foreach s,$(stress_sources),$(if $(call room_of,$s),,$s))
endif

sources_programs = $(patsubst %.c,$(BUILD)/%,$1)
unit_programs := $(call sources_programs,$(unit_sources))
stress_programs := $(call sources_programs,$(stress_sources))
bench_programs := $(call sources_programs,$(bench_sources))
tools_programs := $(call sources_programs,$(tools_sources))
fuzz_programs := $(call sources_programs,$(fuzz_sources))

# Rooms as archives without main(), so that a test pulls in only what it calls.
room_archive = $(O)/room-$1.a
without_main = $(foreach o,$1,$(if $(filter main.o %_main.o,$(notdir $o)),,$o))
$(call room_archive,sw): $(call without_main,$(switch_objects))
$(call room_archive,ag): $(call without_main,$(agent_objects))
$(call room_archive,cp): $(call without_main,$(plugin_objects))
$(call room_archive,cli): $(call without_main,$(cli_objects))
$(call room_archive,vs): $(call without_main,$(ves_objects))
$(call room_archive,common): $(common_sources:%.c=$(O)/%.o)
$(call room_archive,unit): $(unit_common_sources:%.c=$(O)/%.o)
$(O)/room-%.a:
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

sw_cppflags = -Iswitch $(switch_cppflags)
ag_cppflags = -Iagent $(agent_cppflags)
cp_cppflags = -Icollectd-plugin $(plugin_cppflags)
cli_cppflags_tests = -Icli $(cli_cppflags)
vs_cppflags = -Ives $(ves_cppflags)
sw_libs = $(switch_libs)
ag_libs = $(agent_libs)
vs_libs = $(ves_libs)

$(O)/tests/%.o: ROOM_CPPFLAGS = $(TEST_CPPFLAGS) -I. -Itests/common $(YAJL_CFLAGS) $(CMOCKA_CFLAGS)

# $1 source, $2 room prefix or empty, $3 extra libraries
define test_program
objects += $(O)/$(1:.c=.o)
$(O)/$(1:.c=.o): TEST_CPPFLAGS = $(if $2,$$($2_cppflags$(if $(filter cli,$2),_tests)))
$(BUILD)/$(1:.c=): LIBS = $3 $(if $2,$$($2_libs)) $$(YAJL_LIBS) -lm
$(BUILD)/$(1:.c=): $(O)/$(1:.c=.o) $(if $(filter tests/unit/%,$1),$(call room_archive,unit)) \
	$(if $2,$(call room_archive,$2)) $(call room_archive,common) $(lib_a)
endef
# Of unit/*.c without test_, those of the switch.
$(O)/tests/unit/sw_%.o: TEST_CPPFLAGS = $(sw_cppflags)
$(foreach s,$(unit_sources) $(stress_sources),\
	$(eval $(call test_program,$s,$(call room_of,$s),$$(CMOCKA_LIBS))))
$(foreach s,$(bench_sources) $(tools_sources),\
	$(eval $(call test_program,$s,$(call room_of,$s),)))
objects += $(patsubst %.c,$(O)/%.o,$(common_sources) $(unit_common_sources))

$(unit_programs) $(stress_programs) $(bench_programs) $(tools_programs):
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(call link,$^)

# The fuzzer needs clang and an instrumented library, whatever the rest is built with.
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 60
# Those of the switch (sw_*.c) are linked with all of it but main().
fuzz_sw_sources := $(filter-out switch/main.c,$(switch_sources))
fuzz_sw_programs := $(filter $(BUILD)/tests/fuzz/sw_%,$(fuzz_programs))
fuzz_objects := $(patsubst %.c,$(O)/fuzz/%.o,$(lib_sources) $(fuzz_sources) $(fuzz_sw_sources))
objects += $(fuzz_objects)
$(fuzz_objects): private CC := $(FUZZ_CC)
$(fuzz_objects): ROOM_CPPFLAGS = $(YAJL_CFLAGS)
$(filter $(O)/fuzz/switch/% $(O)/fuzz/tests/fuzz/sw_%,$(fuzz_objects)): ROOM_CPPFLAGS = -I. $(sw_cppflags)
$(fuzz_objects): ROOM_CFLAGS = -fsanitize=fuzzer-no-link,address,undefined
$(filter %_avx2_fast.o,$(fuzz_objects)): ROOM_CFLAGS += $(avx2_flags)
$(filter %_avx512_fast.o,$(fuzz_objects)): ROOM_CFLAGS += $(avx512_flags)
$(O)/fuzz/%.o: %.c $(BUILD)/build_info.h
	@mkdir -p $(@D)
	$(say) CC '$< (fuzz)'
	$(Q)$(compile)
$(fuzz_programs): private CC := $(FUZZ_CC)
$(fuzz_programs): LIBS = -fsanitize=fuzzer,address,undefined $(YAJL_LIBS)
$(fuzz_sw_programs): LIBS = -fsanitize=fuzzer,address,undefined $(switch_libs)
$(fuzz_sw_programs): $(fuzz_sw_sources:%.c=$(O)/fuzz/%.o)
$(fuzz_programs): $(BUILD)/%: $(O)/fuzz/%.o $(lib_sources:%.c=$(O)/fuzz/%.o)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(call link,$^)

# A foreign program sees what `make install` and pkg-config give it.
foreign_programs := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/foreign/*.c))
stage := $(abspath $(BUILD))/stage
stage_pc = PKG_CONFIG_SYSROOT_DIR='$(stage)' PKG_CONFIG_PATH='$(stage)/usr/lib/pkgconfig' pkg-config
$(foreign_programs): $(BUILD)/%: %.c $(lib_a) $(lib_so) $(installed_headers) lib/pmdpulse.pc.in
	@mkdir -p $(@D)
	$(say) FOREIGN $@
	$(Q)$(MAKE) --no-print-directory --silent install-lib DESTDIR='$(stage)' PREFIX=/usr
	$(Q)$(CC) $(PMDP_CFLAGS) $(CFLAGS) $(PMDP_LDFLAGS) $(LDFLAGS) -o $@ $< \
		$$($(stage_pc) --cflags --libs pmdpulse) -Wl,-rpath,'$(stage)/usr/lib'

unit: $(unit_programs)
stress: $(stress_programs) $(foreign_programs)
tools: $(tools_programs)
bench-programs: $(bench_programs)
tests: unit stress tools bench-programs $(switch_hooks)

run_tests = $(script_env) $(PYTHON) contrib/scripts/run-tests.py --build '$(BUILD)'

check-unit: unit
	@$(run_tests) --side-by-side='$(unit_programs)'
check-stress: stress
	@$(run_tests) $(stress_programs) $(foreign_programs)
check-system: all tools $(switch_hooks)
	@$(deps_script) build run test
	@$(run_tests) --pytest tests/system --pytest-args='$(PYTEST_ARGS)'

ifneq ($(filter thread,$(SANITIZE)),)
# One thread that looks at other processes, in real time: nothing for this sanitizer.
check: unit stress
	@$(run_tests) --side-by-side='$(filter-out %/test_watch $(BUILD)/tests/unit/test_watch_%,$(unit_programs))' \
		$(stress_programs) $(foreign_programs)
else
check: all tests lint-rules-self-test
	@$(deps_script) build run test
	@$(run_tests) --side-by-side='$(unit_programs)' $(stress_programs) $(foreign_programs) --pytest tests/system --pytest-args='$(PYTEST_ARGS)'
endif

fuzz-programs: $(fuzz_programs)
# As many at once as there are cores; each adds to a corpus of its own, and begins with what is kept.
fuzz: fuzz-programs
	$(Q)printf '%s\n' $(fuzz_programs) | xargs -P "$$(nproc)" -I PROGRAM sh -c '\
		name=$$(basename PROGRAM) && mkdir -p $(BUILD)/corpus/$$name && echo PROGRAM && \
		PROGRAM -verbosity=0 -print_final_stats=1 -max_total_time=$(FUZZ_SECONDS) \
			-artifact_prefix=$(BUILD)/ $(BUILD)/corpus/$$name \
			$$(ls -d tests/fuzz/corpus/$$name 2> /dev/null)'

.PHONY: unit stress tools bench-programs tests check check-unit check-stress check-system fuzz fuzz-programs
