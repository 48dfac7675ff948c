// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The ethdev under a port: found or probed by devargs, configured, started, and given back. Control
 * thread only; blocks on the device.
 */
#pragma once

#include "sw_port.h"

struct sw_switch;

/*
 * Find or probe the device of port->conf.devargs; sets port_id, is_probed, driver.
 * -ENODEV, -EEXIST (another port of ours has it), -EINVAL (sw_devargs.h), or the bus's error.
 */
int sw_device_attach(struct sw_switch *sw, struct sw_port *port, struct sw_error *err);
// Close and, if we probed it, remove it.
void sw_device_detach(struct sw_port *port);

/*
 * Configure queues, buffers and MTU as port->conf says and start; sets n_rxq, n_txq, mtu, pool.
 * n_pmds: how many transmit queues would be good. On failure nothing is left but the attached
 * device.
 */
int sw_device_start(struct sw_switch *sw, struct sw_port *port, uint32_t n_pmds,
		    struct sw_error *err);
void sw_device_stop(struct sw_port *port);
