// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_capture.h"

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
static int look(const char *key, const char *path, void *empty)
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

int sw_capture_check(const char *port_name, const char *devargs, struct sw_error *err)
{
	const char *behind_name = strchr(devargs, ',');
	const char *empty = NULL;
	struct rte_kvargs *args;
	int rc = 0;

	if (strncmp(devargs, "net_pcap", 8) != 0 || behind_name == NULL)
		return 0;
	args = rte_kvargs_parse(behind_name + 1, NULL);
	if (args == NULL)
		return 0;
	if (is_endless(args))
		rte_kvargs_process(args, "rx_pcap", look, &empty);
	if (empty != NULL)
		rc = sw_fail(err, -EINVAL,
			     "port %s: %s holds no whole frame that infinite_rx could replay (give "
			     "a capture with frames, or leave infinite_rx out)",
			     port_name, empty);
	rte_kvargs_free(args);
	return rc;
}
