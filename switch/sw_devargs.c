// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_devargs.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

static bool is_endless(const struct rte_kvargs *args)
{
	const char *value = rte_kvargs_get(args, "infinite_rx");

	return value != NULL && atoi(value) > 0; // as the driver reads it
}

// A handler of rte_kvargs_process(): not 0 for a file without a frame, whose name goes to *empty.
static int look_for_frame(const char *key, const char *path, void *empty)
{
	char why[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	const unsigned char *bytes;
	pcap_t *capture = path != NULL ? pcap_open_offline(path, why) : NULL;
	int rc = 0;

	(void)key;
	if (capture == NULL)
		return 0;
	if (pcap_next_ex(capture, &header, &bytes) != 1) {
		*(const char **)empty = path;
		rc = -1;
	}
	pcap_close(capture);
	return rc;
}

static int check_pcap(const char *port_name, const struct rte_kvargs *args, struct sw_error *err)
{
	const char *empty = NULL;

	if (is_endless(args))
		rte_kvargs_process(args, "rx_pcap", look_for_frame, &empty);
	if (empty == NULL)
		return 0;
	return sw_fail(err, -EINVAL,
		       "port %s: %s holds no whole frame that infinite_rx could replay (give a "
		       "capture with frames, or leave infinite_rx out)",
		       port_name, empty);
}

static int check_null(const char *port_name, const struct rte_kvargs *args, uint32_t room_bytes,
		      struct sw_error *err)
{
	const char *size = rte_kvargs_get(args, "size");

	if (size == NULL || strtoul(size, NULL, 0) <= room_bytes)
		return 0;
	return sw_fail(err, -EINVAL,
		       "port %s: size=%s: frames of net_null must fit into a buffer of %u bytes "
		       "(mtu=N makes larger ones)",
		       port_name, size, room_bytes);
}

int sw_devargs_check(const char *port_name, const char *devargs, uint32_t room_bytes,
		     struct sw_error *err)
{
	const char *comma = strchr(devargs, ',');
	const char *equals = strchr(devargs, '=');
	struct rte_kvargs *args;
	int rc = 0;

	if (equals != NULL && (comma == NULL || equals < comma))
		return sw_fail(err, -EINVAL,
			       "port %s: '%s' does not begin with a device (write its driver and "
			       "number, such as net_null0, or its address, such as 0000:3b:00.0)",
			       port_name, devargs);
	args = comma != NULL ? rte_kvargs_parse(comma + 1, NULL) : NULL;
	if (args == NULL)
		return 0;
	if (strncmp(devargs, "net_pcap", 8) == 0)
		rc = check_pcap(port_name, args, err);
	else if (strncmp(devargs, "net_null", 8) == 0)
		rc = check_null(port_name, args, room_bytes, err);
	rte_kvargs_free(args);
	return rc;
}
