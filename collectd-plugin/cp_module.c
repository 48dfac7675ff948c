// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// The plugin as collectd sees it: registration and callbacks.
#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_config.h"
#include "cp_emit.h"
#include "cp_instance.h"
#include "cp_log.h"
#include "cp_metrics.h"
#include "cp_notify.h"
#include "cp_relay.h"
#include "cp_sample.h"
#include "cp_values.h"
#include "cp_watch.h"

static int on_shutdown(void)
{
	// The look thread before the queue: nobody hands over any more when it closes.
	cp_values_stop();
	cp_watch_stop();
	cp_notify_stop();
	cp_instances_clear(cp_relay_free, cp_sampler_free);
	cp_metrics_clear();
	cp_config_clear();
	return 0;
}

static int on_init(void)
{
	static bool is_done;
	int rc = 0;

	if (is_done)
		return 0;
	is_done = true;
	for (size_t i = 0; i < cp_config.n_instances; i++)
		cp_instances_add(cp_config.instances[i]);
	if (cp_config.is_dispatching) {
		rc = cp_values_start();
		plugin_register_read("pmdpulse", cp_values_read);
	}
	if (rc == 0 && cp_config.is_notifying)
		rc = cp_notify_start();
	if (rc == 0)
		rc = cp_watch_start();
	if (rc < 0) {
		cp_log(LOG_ERR, "its threads can't be started: %s", strerror(-rc));
		on_shutdown();
	}
	return rc;
}

// collectd looks for this name.
void module_register(void);
void module_register(void)
{
	cp_types_register();
	plugin_register_complex_config("pmdpulse", cp_config_read);
	plugin_register_init("pmdpulse", on_init);
	plugin_register_shutdown("pmdpulse", on_shutdown);
}
