# SPDX-License-Identifier: Apache-2.0
# The DPDK program, and the same with test hooks for the system tests.

switch_sources := $(wildcard switch/*.c)
switch_objects := $(switch_sources:%.c=$(O)/%.o)
switch_hooks_objects := $(switch_sources:switch/%.c=$(O)/switch-hooks/%.o)
switch_hooks := $(BUILD)/tests/pmdpulse-switch-hooks
objects += $(switch_objects) $(switch_hooks_objects)
programs += $(BUILD)/pmdpulse-switch

switch_cppflags = $(DPDK_CFLAGS) $(SYSTEMD_CFLAGS) $(YAJL_CFLAGS)
switch_libs = $(DPDK_LIBS) $(SYSTEMD_LIBS) $(YAJL_LIBS) -lm

$(O)/switch/%.o $(BUILD)/lint/switch/%: ROOM_CPPFLAGS = $(switch_cppflags)
$(O)/switch-hooks/%.o: ROOM_CPPFLAGS = $(switch_cppflags) -DPMDP_TEST_HOOKS

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
