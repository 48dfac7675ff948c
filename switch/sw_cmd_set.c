// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// set and get.
#include <errno.h>
#include <string.h>

#include "pmdp_json.h"
#include "sw_cmd_impl.h"
#include "sw_switch.h"

// All or nothing: keys are changed in a copy, which is then applied as a whole.
int sw_cmd_set(const struct sw_cmd_call *call, struct sw_error *err)
{
	struct sw_settings wanted = call->sw->settings;

	for (int i = 0; i < call->argc; i++) {
		const char *equals = strchr(call->argv[i], '=');
		char key[64];
		int rc;

		if (!equals || equals == call->argv[i])
			return sw_fail(err, -EINVAL, "%.100s: write KEY=VALUE (get lists the keys)",
				       call->argv[i]);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - call->argv[i]), call->argv[i]);
		rc = sw_settings_set(&wanted, key, equals + 1, err);
		if (rc < 0)
			return rc;
	}
	return sw_switch_apply(call->sw, &wanted, err);
}

int sw_cmd_get(const struct sw_cmd_call *call, struct sw_error *err)
{
	char value[SW_SETTINGS_VALUE_BYTES];
	struct sw_settings defaults;
	const char *key;
	int rc = call->argc ? sw_settings_check(call->argv[0], err) : 0;

	if (rc < 0)
		return rc;
	sw_settings_init(&defaults);
	yajl_gen_map_open(call->gen);
	pmdp_json_key(call->gen, "settings");
	yajl_gen_array_open(call->gen);
	for (size_t i = 0; (key = sw_settings_key(i)); i++) {
		if (call->argc && strcmp(call->argv[0], key) != 0)
			continue;
		yajl_gen_map_open(call->gen);
		pmdp_json_kv_text(call->gen, "key", key);
		if (sw_settings_get(&call->sw->settings, key, value, sizeof(value)) == 0)
			pmdp_json_kv_text(call->gen, "value", value);
		if (sw_settings_get(&defaults, key, value, sizeof(value)) == 0)
			pmdp_json_kv_text(call->gen, "default", value);
		pmdp_json_kv_text(call->gen, "help", sw_settings_help(key));
		yajl_gen_map_close(call->gen);
	}
	yajl_gen_array_close(call->gen);
	yajl_gen_map_close(call->gen);
	return 0;
}
