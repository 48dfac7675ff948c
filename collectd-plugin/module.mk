# SPDX-License-Identifier: Apache-2.0
# collectd's plugin. The daemon itself provides collectd's symbols, so no -z defs here.

plugin_sources := $(wildcard collectd-plugin/*.c)
plugin_objects := $(plugin_sources:%.c=$(O)/%.o)
objects += $(plugin_objects)
programs += $(BUILD)/pmdpulse.so

plugin_cppflags = $(COLLECTD_CFLAGS) $(YAJL_CFLAGS)

$(O)/collectd-plugin/%.o: ROOM_CPPFLAGS = $(plugin_cppflags)
$(O)/collectd-plugin/%.o: ROOM_CFLAGS = -fPIC
# HAVE_CONFIG_H means collectd's config.h: ours must not be in reach.
$(O)/collectd-plugin/%.o: PMDP_CPPFLAGS := -D_GNU_SOURCE -Ilib

$(BUILD)/pmdpulse.so: LIBS = $(YAJL_LIBS)
$(BUILD)/pmdpulse.so: $(plugin_objects) $(lib_a)
	$(say) LD $@
	$(Q)$(call link,-shared -Wl$(comma)--exclude-libs$(comma)ALL $^)

plugin: $(BUILD)/pmdpulse.so
.PHONY: plugin
