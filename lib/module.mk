# SPDX-License-Identifier: Apache-2.0
# libpmdpulse: static for our own programs, shared for everyone else's.

lib_sources := $(wildcard lib/*.c)
lib_objects := $(lib_sources:%.c=$(O)/%.o)
lib_a := $(BUILD)/libpmdpulse.a
lib_so := $(BUILD)/libpmdpulse.so
lib_soname := libpmdpulse.so.1
objects += $(lib_objects)
programs += $(lib_a) $(lib_so)

$(O)/lib/%.o $(BUILD)/lint/lib/%: ROOM_CPPFLAGS = $(YAJL_CFLAGS)
$(O)/lib/%.o $(BUILD)/lint/lib/%: ROOM_CFLAGS = -fPIC -Wconversion

$(lib_a): $(lib_objects)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# lib/libpmdpulse.map decides what the shared library exports.
$(BUILD)/$(lib_soname): LIBS = $(YAJL_LIBS)
$(BUILD)/$(lib_soname): $(lib_objects) lib/libpmdpulse.map
	$(say) LD $@
	$(Q)$(call link,-shared -Wl$(comma)-soname$(comma)$(lib_soname) \
		-Wl$(comma)--version-script=lib/libpmdpulse.map \
		$(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) $(lib_objects))

$(lib_so): $(BUILD)/$(lib_soname)
	@ln -sf $(lib_soname) $@

lib: $(lib_a) $(lib_so)
.PHONY: lib
