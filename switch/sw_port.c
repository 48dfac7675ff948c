// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_port.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "pmdp_clock.h"
#include "pmdp_text.h"
#include "pmdpulse.h"
#include "sw_device.h"
#include "sw_flow_count_fast.h"
#include "sw_log.h"
#include "sw_mac.h"
#include "sw_offload.h"
#include "sw_plan.h"
#include "sw_plan_fast.h"
#include "sw_pool.h"
#include "sw_sched.h"
#include "sw_stats.h"
#include "sw_switch.h"

int sw_port_conf_init(struct sw_port_conf *conf, const char *name, const char *devargs,
		      struct sw_error *err)
{
	size_t len = strlen(name);

	if (len == 0 || len >= sizeof(conf->name))
		return sw_fail(err, -EINVAL, "port name '%s': must have 1 to %zu characters", name,
			       sizeof(conf->name) - 1);
	// A quote at the beginning would be taken off again where flow rules name a port.
	if (!pmdp_utf8_is_valid(name, len) || strchr("\"'", name[0]) != NULL)
		return sw_fail(err, -EINVAL,
			       "port name '%s': must be UTF-8 and not begin with a quote", name);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] <= ' ' || strchr(",=\x7f", name[i]) != NULL)
			return sw_fail(err, -EINVAL,
				       "port name '%s': no space, comma or '=' in a name", name);
	if (devargs[0] == '\0' || strlen(devargs) >= sizeof(conf->devargs))
		return sw_fail(err, -EINVAL, "port %s: devargs must have 1 to %zu characters", name,
			       sizeof(conf->devargs) - 1);
	*conf = (struct sw_port_conf){.tx_retries = SW_TX_RETRIES_DEFAULT,
				      .emc_inv_prob = SW_EMC_AS_SET};
	memcpy(conf->name, name, len + 1);
	strcpy(conf->devargs, devargs);
	return 0;
}

struct conf_key {
	const char *name;
	size_t offset;
	uint32_t min;
	uint32_t max;
};

#define CONF_KEY(name, field, min, max)                              \
	{                                                            \
		name, offsetof(struct sw_port_conf, field), min, max \
	}

static const struct conf_key conf_keys[] = {
	CONF_KEY("ofport", ofport, 1, SW_OFPORT_MAX),
	CONF_KEY("n_rxq", n_rxq, 1, SW_MAX_RXQ),
	CONF_KEY("n_txq", n_txq, 1, SW_MAX_RXQ),
	CONF_KEY("n_rxq_desc", n_rxq_desc, 1, 32768),
	CONF_KEY("n_txq_desc", n_txq_desc, 1, 32768),
	CONF_KEY("mtu", mtu, 68, 9600),
	CONF_KEY("tx-retries", tx_retries, 0, SW_TX_RETRIES_MAX),
	CONF_KEY("emc-insert-inv-prob", emc_inv_prob, 0, UINT32_MAX - 1),
	CONF_KEY("mbufs", n_mbufs, 512, 1u << 24),
};

int sw_port_conf_set(struct sw_port_conf *conf, const char *key, const char *value,
		     struct sw_error *err)
{
	char known[256] = "";
	char *end;
	unsigned long number;

	for (size_t i = 0; i < sizeof(conf_keys) / sizeof(conf_keys[0]); i++) {
		const struct conf_key *k = &conf_keys[i];

		if (strcmp(k->name, key) != 0) {
			strcat(strcat(known, i == 0 ? "" : ", "), k->name);
			continue;
		}
		errno = 0;
		number = strtoul(value, &end, 10);
		if (!isdigit((unsigned char)value[0]) || *end != '\0' || errno != 0 ||
		    number < k->min || number > k->max)
			return sw_fail(err, -EINVAL, "port %s: %s=%s: must be %u to %u", conf->name,
				       key, value, k->min, k->max);
		*(uint32_t *)((char *)conf + k->offset) = (uint32_t)number;
		return 0;
	}
	return sw_fail(err, -ENOENT, "port %s: no key '%s'; there are %s", conf->name, key, known);
}

struct sw_port *sw_port_next(struct sw_switch *sw, const struct sw_port *port)
{
	for (uint32_t i = port == NULL ? 0 : port->index + 1u; i < SW_MAX_PORTS; i++)
		if (sw->ports.slots[i] != NULL)
			return sw->ports.slots[i];
	return NULL;
}

struct sw_port *sw_port_find(struct sw_switch *sw, const char *name)
{
	struct sw_port *port = NULL;

	while ((port = sw_port_next(sw, port)) != NULL && strcmp(port->conf.name, name) != 0)
		;
	return port;
}

struct sw_port *sw_port_by_ofport(struct sw_switch *sw, uint16_t ofport)
{
	struct sw_port *port = NULL;

	while ((port = sw_port_next(sw, port)) != NULL && port->ofport != ofport)
		;
	return port;
}

// Name, ofport and slot for a new port.
static int choose(struct sw_switch *sw, struct sw_port *port, struct sw_error *err)
{
	const char *name = port->conf.name;
	const struct sw_port *other = sw_port_find(sw, name);

	if (other != NULL)
		return sw_fail(err, -EEXIST, "port %s: %s", name,
			       other->state == SW_PORT_REMOVING
				       ? "is still being removed, a PMD does not answer"
				       : "there is one of this name");
	port->ofport = (uint16_t)port->conf.ofport;
	for (uint16_t n = 1; port->ofport == 0 && n <= SW_OFPORT_MAX; n++)
		if (sw_port_by_ofport(sw, n) == NULL)
			port->ofport = n;
	other = sw_port_by_ofport(sw, port->ofport);
	if (other != NULL)
		return sw_fail(err, -EEXIST, "port %s: ofport=%u is taken by port %s", name,
			       port->ofport, other->conf.name);
	while (port->index < SW_MAX_PORTS && sw->ports.slots[port->index] != NULL)
		port->index++;
	if (port->index == SW_MAX_PORTS)
		return sw_fail(err, -ENOSPC, "port %s: there are %d ports already", name,
			       SW_MAX_PORTS);
	port->conf.ofport = port->ofport;
	return 0;
}

static uint32_t n_pmds_wanted(const struct sw_switch *sw)
{
	cpu_set_t cpus;

	sw_switch_pmd_cpus(sw, &sw->settings, &cpus);
	return (uint32_t)CPU_COUNT(&cpus);
}

// Counters of a slot go on from the port that had it before; each port starts at 0.
static void count_base(struct sw_switch *sw, struct sw_port *port)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		for (uint32_t i = 0; i < PMDP_P_N_COUNTERS; i++)
			port->base[i] += atomic_load_explicit(&pmd->port_counts[port->index].n[i],
							      memory_order_relaxed);
}

static int open_device(struct sw_switch *sw, struct sw_port *port, struct sw_error *err)
{
	int rc = sw_device_attach(sw, port, err);

	if (rc != 0)
		return rc;
	rc = sw_device_start(sw, port, n_pmds_wanted(sw), err);
	if (rc != 0)
		sw_device_detach(port);
	return rc;
}

int sw_port_add(struct sw_switch *sw, const struct sw_port_conf *conf, struct sw_error *err)
{
	struct sw_port *port = calloc(1, sizeof(*port));
	int rc;

	if (port == NULL)
		return sw_fail(err, -ENOMEM, "port %s: no memory", conf->name);
	port->conf = *conf;
	port->slot = -1;
	port->state = SW_PORT_ACTIVE;
	port->marker = &sw_marker_rte;
	port->port_id = UINT16_MAX;
	rc = choose(sw, port, err);
	pmdp_publisher_housekeep(sw->pub); // a device may take its time
	if (rc == 0)
		rc = open_device(sw, port, err);
	pmdp_publisher_housekeep(sw->pub);
	if (rc != 0) {
		free(port);
		return rc;
	}
	port->claims = rte_zmalloc("claims", port->n_txq * sizeof(*port->claims), 64);
	if (port->claims == NULL) {
		sw_port_destroy(sw, port);
		return sw_fail(err, -ENOMEM, "port %s: no memory", conf->name);
	}
	count_base(sw, port);
	sw->ports.slots[port->index] = port;
	sw->ports.n++;
	sw_sched_move_control(sw); // drivers start threads
	sw_port_publish(sw, port, pmdp_mono_now_ns());
	sw_plan_changed(sw);
	return sw_plan_settle(sw, err);
}

int sw_port_del(struct sw_switch *sw, const char *name, struct sw_error *err)
{
	struct sw_port *port = sw_port_find(sw, name);

	if (port == NULL)
		return sw_fail(err, -ENOENT, "no port %s; see dump-ports", name);
	if (port->state != SW_PORT_REMOVING) {
		port->state = SW_PORT_REMOVING;
		port->removing_since_ns = pmdp_mono_now_ns();
		sw_plan_changed(sw);
	}
	return sw_plan_settle(sw, err);
}

void sw_port_destroy(struct sw_switch *sw, struct sw_port *port)
{
	sw_offload_forget_port(sw, port);
	if (port->slot >= 0)
		pmdp_port_release(sw->pub, port->slot);
	sw_device_stop(port);
	sw_device_detach(port);
	if (sw->macs != NULL)
		sw_mac_flush(sw->macs, port->ofport);
	sw_pool_release(port->pool);
	if (sw->ports.slots[port->index] == port) {
		sw->ports.slots[port->index] = NULL;
		sw->ports.n--;
	}
	rte_free(port->claims);
	free(port);
}

void sw_port_publish(struct sw_switch *sw, struct sw_port *port, uint64_t now_ns)
{
	struct pmdp_port_body body = {0};
	struct sw_port_stats stats;

	sw_stats_port(sw, port, &stats);
	memcpy(body.name, port->conf.name, sizeof(body.name));
	body.ofport = port->ofport;
	body.admin_state = stats.admin_state;
	body.link_state = stats.link_state;
	body.link_speed_mbps = stats.link_speed_mbps;
	body.n_rxq = port->n_rxq;
	body.n_txq = port->n_txq;
	body.mtu = port->mtu;
	body.snapshot_ns = now_ns;
	memcpy(body.counters, stats.counters, sizeof(body.counters));
	if (port->slot >= 0) {
		pmdp_port_publish(sw->pub, port->slot, &body);
		return;
	}
	port->slot = pmdp_port_claim(sw->pub, &body);
	if (port->slot < 0 && !port->is_slot_said) {
		sw_log(SW_LOG_WARNING, "port %s: no free slot in the segment; readers don't see it",
		       port->conf.name);
		port->is_slot_said = true;
	}
}
