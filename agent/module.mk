# SPDX-License-Identifier: Apache-2.0
# The fault monitor.

agent_sources := $(wildcard agent/*.c)
agent_objects := $(agent_sources:%.c=$(O)/%.o)
objects += $(agent_objects)
programs += $(BUILD)/pmdpulse-agent

agent_cppflags = $(SYSTEMD_CFLAGS) $(YAJL_CFLAGS) $(ELFUTILS_CFLAGS)
agent_libs = $(SYSTEMD_LIBS) $(YAJL_LIBS) $(ELFUTILS_LIBS) -lm

$(O)/agent/%.o $(BUILD)/lint/agent/%: ROOM_CPPFLAGS = $(agent_cppflags)

$(BUILD)/pmdpulse-agent: LIBS = $(agent_libs)
$(BUILD)/pmdpulse-agent: $(agent_objects) $(lib_a)
	$(say) LD $@
	$(Q)$(call link,$^)

agent: $(BUILD)/pmdpulse-agent
.PHONY: agent
