// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_device.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "sw_devargs.h"
#include "sw_log.h"
#include "sw_pool.h"
#include "sw_switch.h"

#define SW_FRAME_OVERHEAD 22
#define SW_OWN_POOL_MBUFS 131071 // first try of an own pool
#define SW_OWN_POOL_MAX_MBUFS 1048575

static struct sw_port *user_of(struct sw_switch *sw, uint16_t port_id, const struct sw_port *self)
{
	struct sw_port *port = NULL;

	while ((port = sw_port_next(sw, port)) != NULL)
		if (port != self && port->port_id == port_id)
			return port;
	return NULL;
}

// 0: as by default.
static uint32_t longest_frame(const struct sw_port *port)
{
	return port->conf.mtu != 0 ? port->conf.mtu + SW_FRAME_OVERHEAD : 0;
}

// Up to the first comma: the device's name on its bus.
static void device_name(const char *devargs, char *out_name, size_t size)
{
	size_t len = strcspn(devargs, ",");

	len = RTE_MIN(len, size - 1);
	memcpy(out_name, devargs, len);
	out_name[len] = '\0';
}

static int find_probed(const char *devargs, const char *name, uint16_t *out_port_id)
{
	struct rte_dev_iterator iterator;
	uint16_t port_id;

	RTE_ETH_FOREACH_MATCHING_DEV(port_id, devargs, &iterator)
	{
		rte_eth_iterator_cleanup(&iterator);
		*out_port_id = port_id;
		return 0;
	}
	return rte_eth_dev_get_port_by_name(name, out_port_id);
}

int sw_device_attach(struct sw_switch *sw, struct sw_port *port, struct sw_error *err)
{
	const char *devargs = port->conf.devargs;
	char name[SW_DEVARGS_BYTES];
	struct rte_eth_dev_info info;
	const struct sw_port *user;
	int rc;

	device_name(devargs, name, sizeof(name));
	rc = sw_devargs_check(port->conf.name, devargs,
			      RTE_MAX(longest_frame(port), RTE_MBUF_DEFAULT_DATAROOM), err);
	if (rc != 0)
		return rc;
	if (rte_eth_dev_get_port_by_name(name, &port->port_id) != 0) {
		rc = rte_dev_probe(devargs);
		if (rc == 0)
			rc = find_probed(devargs, name, &port->port_id);
		if (rc != 0)
			return sw_fail(err, rc,
				       "port %s: no device from '%s' (%s): check driver name and "
				       "arguments; the lines of the driver above say more",
				       port->conf.name, devargs, rte_strerror(-rc));
		port->is_probed = true;
	}
	user = user_of(sw, port->port_id, port);
	if (user != NULL)
		return sw_fail(err, -EEXIST, "port %s: device %s is in use by port %s",
			       port->conf.name, name, user->conf.name);
	rc = rte_eth_dev_info_get(port->port_id, &info);
	if (rc != 0) {
		sw_device_detach(port);
		return sw_fail(err, rc, "port %s: the device gives no information: %s",
			       port->conf.name, rte_strerror(-rc));
	}
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	return 0;
}

void sw_device_detach(struct sw_port *port)
{
	struct rte_eth_dev_info info = {0};
	int rc = rte_eth_dev_info_get(port->port_id, &info);

	if (!port->is_probed)
		return;
	rte_eth_dev_close(port->port_id);
	if (rc == 0 && info.device != NULL)
		rc = rte_dev_remove(info.device);
	if (rc != 0)
		sw_log(SW_LOG_WARNING, "port %s: can't remove its device: %s", port->conf.name,
		       rte_strerror(-rc));
}

static int check_counts(const struct sw_port *port, const struct rte_eth_dev_info *info,
			struct sw_error *err)
{
	const struct sw_port_conf *conf = &port->conf;

	if (conf->n_rxq > info->max_rx_queues)
		return sw_fail(err, -EINVAL, "port %s: n_rxq=%u, but %s has at most %u", conf->name,
			       conf->n_rxq, port->driver, info->max_rx_queues);
	if (conf->n_txq > info->max_tx_queues)
		return sw_fail(err, -EINVAL, "port %s: n_txq=%u, but %s has at most %u", conf->name,
			       conf->n_txq, port->driver, info->max_tx_queues);
	if (info->max_rx_queues == 0 || info->max_tx_queues == 0)
		return sw_fail(err, -EINVAL, "port %s: %s has no queues", conf->name, port->driver);
	return 0;
}

static int configure(struct sw_port *port, const struct rte_eth_dev_info *info, uint32_t n_pmds)
{
	const uint64_t rss = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP;
	const struct sw_port_conf *conf = &port->conf;
	struct rte_eth_conf eth = {0};
	int rc;

	port->n_rxq = (uint16_t)RTE_MAX(conf->n_rxq, 1u);
	port->n_txq = (uint16_t)(conf->n_txq != 0 ? conf->n_txq : RTE_MAX(n_pmds, 1u));
	port->n_txq = RTE_MIN(port->n_txq, info->max_tx_queues);
	if (port->n_rxq > 1 && (info->flow_type_rss_offloads & rss) != 0) {
		eth.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		eth.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & rss;
	}
	eth.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	rc = rte_eth_dev_configure(port->port_id, port->n_rxq, port->n_txq, &eth);
	if (rc != 0 && conf->n_txq == 0 && port->n_rxq <= info->max_tx_queues &&
	    port->n_rxq != port->n_txq) {
		// Some devices, tap for one, want as many transmit as receive queues.
		port->n_txq = port->n_rxq;
		rc = rte_eth_dev_configure(port->port_id, port->n_rxq, port->n_txq, &eth);
	}
	return rc;
}

static int setup_queues(struct sw_port *port, const struct rte_eth_dev_info *info)
{
	uint16_t n_rxd = (uint16_t)port->conf.n_rxq_desc;
	uint16_t n_txd = (uint16_t)port->conf.n_txq_desc;
	int socket = rte_eth_dev_socket_id(port->port_id);
	int rc;

	if (n_rxd == 0)
		n_rxd = info->default_rxportconf.ring_size > 0 ? info->default_rxportconf.ring_size
							       : 1024;
	if (n_txd == 0)
		n_txd = info->default_txportconf.ring_size > 0 ? info->default_txportconf.ring_size
							       : 1024;
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->port_id, &n_rxd, &n_txd);
	for (uint16_t q = 0; rc == 0 && q < port->n_rxq; q++)
		rc = rte_eth_rx_queue_setup(port->port_id, q, n_rxd, (unsigned int)socket, NULL,
					    port->pool->mp);
	for (uint16_t q = 0; rc == 0 && q < port->n_txq; q++)
		rc = rte_eth_tx_queue_setup(port->port_id, q, n_txd, (unsigned int)socket, NULL);
	return rc;
}

/*
 * Some devices need more buffers than descriptors tell (pcap with infinite_rx keeps the whole file
 * in buffers) and say so only by failing. Unless the user gave a number: try the shared pool, then
 * own ones of growing size, as far as memory goes.
 */
static int setup_with_pool(struct sw_switch *sw, struct sw_port *port,
			   const struct rte_eth_dev_info *info, uint32_t data_bytes,
			   struct sw_error *err)
{
	uint32_t n = port->conf.n_mbufs;
	int socket = rte_eth_dev_socket_id(port->port_id);
	struct sw_error pool_error = {.text = ""};
	int first_rc = 0;
	int rc = -E2BIG;

	if (n == 0)
		rc = sw_pools_shared(sw->pools, sw->settings.n_mbufs, data_bytes, &port->pool, err);
	if (rc == -E2BIG)
		rc = sw_pools_own(sw->pools, n != 0 ? n : SW_OWN_POOL_MBUFS / 4, data_bytes, socket,
				  &port->pool, err);
	for (uint32_t next = SW_OWN_POOL_MBUFS; rc == 0; next = next * 2 + 1) {
		rc = setup_queues(port, info);
		if (rc == 0)
			return 0;
		if (first_rc == 0)
			first_rc = rc;
		sw_pool_release(port->pool);
		port->pool = NULL;
		if ((rc != -ENOMEM && rc != -EINVAL) || port->conf.n_mbufs != 0 ||
		    next > SW_OWN_POOL_MAX_MBUFS)
			break;
		rc = sw_pools_own(sw->pools, next, data_bytes, socket, &port->pool, &pool_error);
		sw_pools_reap(sw->pools);
	}
	if (first_rc != 0)
		return sw_fail(
			err, first_rc, "port %s: %s refuses its queues (%s): %s", port->conf.name,
			port->driver, rte_strerror(-first_rc),
			pool_error.text[0] != '\0'
				? pool_error.text
				: "too few packet buffers (mbufs=N), or n_rxq_desc, n_txq_desc "
				  "out of its range");
	return rc;
}

static int set_mtu(struct sw_port *port, struct sw_error *err)
{
	int rc;

	if (port->conf.mtu != 0) {
		rc = rte_eth_dev_set_mtu(port->port_id, (uint16_t)port->conf.mtu);
		if (rc != 0)
			return sw_fail(err, rc, "port %s: %s takes no mtu=%u: %s", port->conf.name,
				       port->driver, port->conf.mtu, rte_strerror(-rc));
	}
	if (rte_eth_dev_get_mtu(port->port_id, &port->mtu) != 0 || port->mtu == 0)
		port->mtu = RTE_ETHER_MTU;
	return 0;
}

int sw_device_start(struct sw_switch *sw, struct sw_port *port, uint32_t n_pmds,
		    struct sw_error *err)
{
	uint32_t data_bytes = longest_frame(port);
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port->port_id, &info);

	if (rc != 0)
		return sw_fail(err, rc, "port %s: the device is gone", port->conf.name);
	rc = check_counts(port, &info, err);
	if (rc != 0)
		return rc;
	rc = configure(port, &info, n_pmds);
	if (rc != 0)
		return sw_fail(err, rc, "port %s: %s refuses %u receive and %u transmit queues: %s",
			       port->conf.name, port->driver, port->n_rxq, port->n_txq,
			       rte_strerror(-rc));
	rc = set_mtu(port, err);
	if (rc == 0)
		rc = setup_with_pool(sw, port, &info, data_bytes, err);
	if (rc != 0)
		return rc;
	rc = rte_eth_dev_start(port->port_id);
	if (rc != 0) {
		sw_pool_release(port->pool);
		port->pool = NULL;
		return sw_fail(err, rc, "port %s: %s does not start: %s", port->conf.name,
			       port->driver, rte_strerror(-rc));
	}
	// A switch takes every frame. Devices without addresses have nothing to set.
	rte_eth_promiscuous_enable(port->port_id);
	rte_eth_allmulticast_enable(port->port_id);
	return 0;
}

void sw_device_stop(struct sw_port *port)
{
	int rc = rte_eth_dev_stop(port->port_id);

	if (rc != 0)
		sw_log(SW_LOG_WARNING, "port %s: does not stop: %s", port->conf.name,
		       rte_strerror(-rc));
}
