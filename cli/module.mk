# SPDX-License-Identifier: Apache-2.0
# The operator's command.

cli_sources := $(wildcard cli/*.c)
cli_objects := $(cli_sources:%.c=$(O)/%.o)
objects += $(cli_objects)
programs += $(BUILD)/pmdpulse

cli_cppflags = $(YAJL_CFLAGS)
cli_libs = $(YAJL_LIBS) -lm

$(O)/cli/%.o $(BUILD)/lint/cli/%: ROOM_CPPFLAGS = $(cli_cppflags)

$(BUILD)/pmdpulse: LIBS = $(cli_libs)
$(BUILD)/pmdpulse: $(cli_objects) $(lib_a)
	$(say) LD $@
	$(Q)$(call link,$^)

cli: $(BUILD)/pmdpulse
.PHONY: cli
