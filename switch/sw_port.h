// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Ports: ethdevs by devargs, from probe to removal. Control thread only; may block on the device.
 *
 * A port lives in a slot of struct sw_ports; the slot's index is how PMDs and plans name it.
 * States: ACTIVE ports are in the plans; a REMOVING port is in no new plan and is closed by the
 * control loop as soon as no PMD can hold it any more (sw_plan.h). Its name and slot are taken
 * until then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#include "pmdp_abi.h"
#include "sw_error.h"

struct sw_marker;
struct sw_pool;
struct sw_switch;
struct sw_tx_claim;

#define SW_MAX_PORTS 256
#define SW_MAX_RXQ 64
#define SW_DEVARGS_BYTES 512
#define SW_TX_RETRIES_DEFAULT 8
#define SW_TX_RETRIES_MAX 32
#define SW_EMC_AS_SET UINT32_MAX

#define SW_PORT_ACTIVE 1
#define SW_PORT_REMOVING 2

// What add-port asks for. 0 is the default of each number unless said otherwise.
struct sw_port_conf {
	char name[PMDP_NAME_BYTES];
	char devargs[SW_DEVARGS_BYTES];
	uint32_t ofport; // 0: the lowest free one
	uint32_t n_rxq;  // 0: 1
	uint32_t n_txq;  // 0: one per PMD, as far as the device has them
	uint32_t n_rxq_desc;
	uint32_t n_txq_desc;
	uint32_t mtu;          // 0: as the device has it
	uint32_t tx_retries;   // SW_TX_RETRIES_DEFAULT
	uint32_t emc_inv_prob; // emc-insert-inv-prob of the port; SW_EMC_AS_SET: the setting
	uint32_t
		n_mbufs; // 0: the shared pool, or an own one that grows if the device asks for more
};

struct sw_port {
	struct sw_port_conf conf; // as asked for, with ofport resolved
	uint32_t state;           // SW_PORT_*
	uint16_t index;           // of its slot in struct sw_ports
	uint16_t port_id;         // ethdev
	uint16_t ofport;
	uint16_t n_rxq, n_txq; // as configured
	uint16_t mtu;
	bool is_probed; // we attached the device, so we detach it
	char driver[32];
	struct sw_pool *pool;
	const struct sw_marker *marker; // how its device gets rules that mark
	struct sw_tx_claim *claims;     // one per tx queue, for PMDs that share it
	int slot;                       // in the segment, -1 = none
	uint64_t link_changes;
	uint32_t link_state; // PMDP_LINK_*, as last seen
	uint32_t link_speed_mbps;
	bool is_link_seen;
	bool is_slot_said;
	struct rte_eth_stats eth; // as last read
	uint64_t removing_since_ns;
	uint64_t
		base[PMDP_P_N_COUNTERS]; // what the slot's per-PMD counters held when the port came
	uint64_t retired[PMDP_P_N_COUNTERS]; // what ended PMDs counted for this slot
};

struct sw_ports {
	struct sw_port *slots[SW_MAX_PORTS]; // NULL = free
	uint16_t n;
};

// An empty request with defaults. -EINVAL: name or devargs empty, too long or with odd characters.
int sw_port_conf_init(struct sw_port_conf *conf, const char *name, const char *devargs,
		      struct sw_error *err);

// One key=value of add-port. -ENOENT no such key, -EINVAL bad value (err lists what is right).
int sw_port_conf_set(struct sw_port_conf *conf, const char *key, const char *value,
		     struct sw_error *err);

/*
 * Probe, configure and start the device, give it a slot, put it into the plan and wait for the PMDs
 * (sw_plan_settle). 0 and the port, or
 * -EEXIST name, ofport or device in use; -ENOSPC no slot; -ENODEV no such device; -ETIMEDOUT:
 * added, but a PMD does not answer, the port starts when it does; other: of the driver.
 */
int sw_port_add(struct sw_switch *sw, const struct sw_port_conf *conf, struct sw_error *err);

/*
 * Take the port out of the plan, wait, close and detach. -ENOENT; -ETIMEDOUT: a PMD does not
 * answer, the port is closed by the control loop when it does.
 */
int sw_port_del(struct sw_switch *sw, const char *name, struct sw_error *err);

// NULL if there is none; a REMOVING port counts.
struct sw_port *sw_port_find(struct sw_switch *sw, const char *name);
struct sw_port *sw_port_by_ofport(struct sw_switch *sw, uint16_t ofport);

// Iterate by index: pass NULL first; NULL after the last. The port must not be deleted meanwhile.
struct sw_port *sw_port_next(struct sw_switch *sw, const struct sw_port *port);

// For the control loop: query the link, publish the port's slot.
void sw_port_publish(struct sw_switch *sw, struct sw_port *port, uint64_t now_ns);

// For sw_plan.c: no PMD holds the port any more. Stops, closes, detaches and frees it.
void sw_port_destroy(struct sw_switch *sw, struct sw_port *port);
