# SPDX-License-Identifier: Apache-2.0
# collectd's plugin. The daemon itself provides collectd's symbols, so no -z defs here.

plugin_sources := $(wildcard collectd-plugin/*.c)
plugin_objects := $(plugin_sources:%.c=$(O)/%.o)
objects += $(plugin_objects)
programs += $(BUILD)/pmdpulse.so

plugin_cppflags = $(COLLECTD_CFLAGS) $(YAJL_CFLAGS)

plugin_outputs := $(O)/collectd-plugin/% $(BUILD)/lint/collectd-plugin/%
$(plugin_outputs): ROOM_CPPFLAGS = $(plugin_cppflags)
$(plugin_outputs): ROOM_CFLAGS = -fPIC
# HAVE_CONFIG_H means collectd's config.h: ours must not be in reach.
$(plugin_outputs): PMDP_CPPFLAGS := $(filter-out -I$(BUILD),$(PMDP_CPPFLAGS))

$(BUILD)/pmdpulse.so: LIBS = $(YAJL_LIBS)
$(BUILD)/pmdpulse.so: $(plugin_objects) $(lib_a) collectd-plugin/pmdpulse.map
	$(say) LD $@
	$(Q)$(call link,-shared -Wl$(comma)--version-script=collectd-plugin/pmdpulse.map \
		$(plugin_objects) $(lib_a))
	@# The linker can't tell collectd's symbols from ones that we forgot.
	@! nm -D --undefined-only $@ | grep -E ' (cp|pmdp)_'

plugin: $(BUILD)/pmdpulse.so
.PHONY: plugin
