// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_emit.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_log.h"

static void emit(const struct cp_object *object, enum cp_type_id id, const char *detail,
		 value_t *values)
{
	value_list_t vl = VALUE_LIST_INIT;

	vl.values = values;
	vl.values_len = cp_types[id].n_sources;
	vl.time = object->time;
	vl.interval = object->interval;
	sstrncpy(vl.host, hostname_g, sizeof(vl.host));
	sstrncpy(vl.plugin, "pmdpulse", sizeof(vl.plugin));
	sstrncpy(vl.plugin_instance, object->label, sizeof(vl.plugin_instance));
	sstrncpy(vl.type, cp_types[id].name, sizeof(vl.type));
	if (detail != NULL)
		sstrncpy(vl.type_instance, detail, sizeof(vl.type_instance));
	plugin_dispatch_values(&vl);
}

void cp_gauge(const struct cp_object *object, enum cp_type_id id, const char *detail, double value)
{
	emit(object, id, detail, &(value_t){.gauge = value});
}

void cp_count(const struct cp_object *object, enum cp_type_id id, const char *detail,
	      uint64_t value)
{
	emit(object, id, detail, &(value_t){.derive = (derive_t)value});
}

void cp_count2(const struct cp_object *object, enum cp_type_id id, const char *detail,
	       uint64_t first, uint64_t second)
{
	value_t values[2] = {{.derive = (derive_t)first}, {.derive = (derive_t)second}};

	emit(object, id, detail, values);
}

void cp_types_register(void)
{
	for (size_t i = 0; i < CP_N_TYPES; i++) {
		const struct cp_type *type = &cp_types[i];
		data_source_t sources[2] = {0};
		data_set_t set = {.ds_num = type->n_sources, .ds = sources};

		sstrncpy(set.type, type->name, sizeof(set.type));
		for (size_t j = 0; j < type->n_sources; j++) {
			sstrncpy(sources[j].name, type->sources[j].name, sizeof(sources[j].name));
			sources[j].type = type->sources[j].kind == CP_GAUGE ? DS_TYPE_GAUGE
									    : DS_TYPE_DERIVE;
			sources[j].min = type->sources[j].min;
			sources[j].max = type->sources[j].max;
		}
		if (plugin_register_data_set(&set) != 0) // which copies it
			cp_log(LOG_ERR, "data set %s can't be registered", type->name);
	}
}
