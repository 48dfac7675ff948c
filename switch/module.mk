# SPDX-License-Identifier: Apache-2.0
# The DPDK program, and the same with test hooks for the system tests.

switch_sources := $(wildcard switch/*.c)
switch_objects := $(switch_sources:%.c=$(O)/%.o)
switch_hooks_objects := $(switch_sources:switch/%.c=$(O)/switch-hooks/%.o)
switch_hooks := $(BUILD)/tests/pmdpulse-switch-hooks
objects += $(switch_objects) $(switch_hooks_objects)
programs += $(BUILD)/pmdpulse-switch

switch_cppflags = $(DPDK_CFLAGS) $(PCAP_CFLAGS) $(SYSTEMD_CFLAGS) $(YAJL_CFLAGS)
switch_libs = $(DPDK_LIBS) $(PCAP_LIBS) $(SYSTEMD_LIBS) $(YAJL_LIBS) -lm

$(O)/switch/%.o $(BUILD)/lint/switch/%: ROOM_CPPFLAGS = $(switch_cppflags)
$(O)/switch-hooks/%.o: ROOM_CPPFLAGS = $(switch_cppflags) -DPMDP_TEST_HOOKS

# Variants for CPUs that the rest does not ask for: sw_impl.c looks before it calls them. The preceding
# flags of the build hold; these come last.
avx2_flags := -mavx2 -mbmi -mbmi2 -mlzcnt -mfma
avx512_flags := $(avx2_flags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vbmi
avx_targets = $(O)/switch/%_$1_fast.o $(O)/switch-hooks/%_$1_fast.o $(BUILD)/lint/switch/%_$1_fast.c.tidy
$(call avx_targets,avx2): ROOM_CFLAGS += $(avx2_flags)
$(call avx_targets,avx512): ROOM_CFLAGS += $(avx512_flags)

$(O)/switch-hooks/%.o: switch/%.c $(BUILD)/build_info.h
	@mkdir -p $(@D)
	$(say) CC '$< (test hooks)'
	$(Q)$(compile)

$(BUILD)/pmdpulse-switch: $(switch_objects) $(lib_a)
$(switch_hooks): $(switch_hooks_objects) $(lib_a)
$(BUILD)/pmdpulse-switch $(switch_hooks): LIBS = $(switch_libs)
$(BUILD)/pmdpulse-switch $(switch_hooks):
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(call link,$^)

switch: $(BUILD)/pmdpulse-switch
.PHONY: switch
