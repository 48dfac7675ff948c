# SPDX-License-Identifier: Apache-2.0
# libpmdpulse: static for our own programs, shared for everyone else's.

lib_sources := $(wildcard lib/*.c)
lib_objects := $(lib_sources:%.c=$(O)/%.o)
lib_a := $(BUILD)/libpmdpulse.a
lib_so := $(BUILD)/libpmdpulse.so
lib_soname := libpmdpulse.so.1
objects += $(lib_objects)
programs += $(lib_a) $(lib_so) $(BUILD)/libpmdpulse.pc

$(O)/lib/%.o: ROOM_CPPFLAGS = $(YAJL_CFLAGS)
$(O)/lib/%.o: ROOM_CFLAGS = -fPIC -Wconversion

$(lib_a): $(lib_objects)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/$(lib_soname): $(lib_objects) lib/libpmdpulse.map
	$(say) LD $@
	$(Q)$(call link,-shared -Wl$(comma)-soname$(comma)$(lib_soname) \
		-Wl$(comma)--version-script=lib/libpmdpulse.map \
		$(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) $(lib_objects))
$(BUILD)/$(lib_soname): LIBS = $(YAJL_LIBS)

$(lib_so): $(BUILD)/$(lib_soname)
	@ln -sf $(lib_soname) $@

$(BUILD)/libpmdpulse.pc: lib/pmdpulse.pc.in $(BUILD)/config.mk
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@

lib: $(lib_a) $(lib_so)
.PHONY: lib
