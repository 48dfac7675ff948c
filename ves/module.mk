# SPDX-License-Identifier: Apache-2.0
# The poster of VES events: the only part that talks to the network.

ves_sources := $(wildcard ves/*.c)
ves_objects := $(ves_sources:%.c=$(O)/%.o)
objects += $(ves_objects)
programs += $(BUILD)/pmdpulse-ves

ves_cppflags = $(SYSTEMD_CFLAGS) $(YAJL_CFLAGS) $(CURL_CFLAGS)
ves_libs = $(SYSTEMD_LIBS) $(YAJL_LIBS) $(CURL_LIBS)

$(O)/ves/%.o $(BUILD)/lint/ves/%: ROOM_CPPFLAGS = $(ves_cppflags)

$(BUILD)/pmdpulse-ves: LIBS = $(ves_libs)
$(BUILD)/pmdpulse-ves: $(ves_objects) $(lib_a)
	$(say) LD $@
	$(Q)$(call link,$^)

ves: $(BUILD)/pmdpulse-ves
.PHONY: ves
