// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Incidents as collectd notifications, dispatched by a thread of their own, because
 * plugin_dispatch_notification() calls every receiver in the caller's thread.
 *
 * Fields: host, plugin pmdpulse, plugin instance INSTANCE[:THREAD|:PORT] (cp_label.h), type
 * "incidents", type instance the kind: the identifier of the counter of that kind. Severity
 * FAILURE, WARNING or OKAY; OKAY clears. Meta: the fields of the incident, flat, and "ves".
 */
#pragma once

#include <stdint.h>

#include "cp_instance.h"

// Start in init. 0 or -errno.
int cp_notify_start(void);

/*
 * Close the queue, give what is left half a second, join the thread. It can stand in another
 * plugin's receiver: then this waits until that returns, since collectd frees the receivers
 * afterwards.
 */
void cp_notify_stop(void);

// Hand an event over. Never waits; a loss is counted.
void cp_notify_submit(struct cp_instance *instance, const struct pmdp_incident *incident);
