// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Numbered frames between two interfaces, to prove that what lies between loses, doubles and
 * reorders nothing.
 *
 *	sequence send IFACE RATE_PER_S SECONDS    prints {"sent": n, "refused": n}
 *	sequence receive IFACE                    until SIGTERM; prints "ready", then
 *	                                          {"received": n, "out_of_order": n, "highest": n}
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_clock.h"

#define FRAME_BYTES 60
#define ETHERTYPE 0x88b5 // for local experiments
#define BUFFER_BYTES (32 << 20)
#define PAUSE_NS 200000

struct frame {
	uint8_t dst[6];
	uint8_t src[6];
	uint16_t type;
	uint8_t reserved[2];
	uint64_t number;
	uint8_t padding[FRAME_BYTES - 24];
};

_Static_assert(sizeof(struct frame) >= FRAME_BYTES, "a whole frame");

static atomic_int is_ended;

static void end(int number)
{
	(void)number;
	is_ended = 1;
}

static double now_s(void)
{
	return (double)pmdp_mono_now_ns() / 1e9;
}

static int open_interface(const char *name, uint16_t protocol)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = (int)if_nametoindex(name),
	};
	int bytes = BUFFER_BYTES;

	if (fd < 0 || address.sll_ifindex == 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		fprintf(stderr, "sequence: %s: %s\n", name, strerror(errno));
		exit(1);
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	return fd;
}

static int send_frames(const char *name, double rate, double seconds)
{
	struct frame frame = {.dst = {0x02, 0, 0, 0, 0, 1},
			      .src = {0x02, 0, 0, 0, 0, 2},
			      .type = htons(ETHERTYPE)};
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int fd = open_interface(name, 0);
	double begin_s = now_s();
	uint64_t n_sent = 0;
	uint64_t n_refused = 0;
	double elapsed_s;

	while ((elapsed_s = now_s() - begin_s) < seconds) {
		while ((double)n_sent < elapsed_s * rate) {
			frame.number = n_sent;
			if (send(fd, &frame, FRAME_BYTES, 0) == FRAME_BYTES)
				n_sent++;
			else
				n_refused++;
		}
		nanosleep(&pause, NULL);
	}
	printf("{\"sent\": %" PRIu64 ", \"refused\": %" PRIu64 "}\n", n_sent, n_refused);
	return 0;
}

static int receive_frames(const char *name)
{
	const struct sigaction action = {.sa_handler = end}; // without SA_RESTART: recvfrom ends
	int fd = open_interface(name, ETHERTYPE);
	uint64_t n_received = 0;
	uint64_t n_out_of_order = 0;
	uint64_t next = 0;

	sigaction(SIGTERM, &action, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!is_ended) {
		struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
		struct sockaddr_ll from;
		socklen_t from_size = sizeof(from);
		struct frame frame;

		if (poll(&poll_fd, 1, 100) <= 0)
			continue;
		if (recvfrom(fd, &frame, sizeof(frame), 0, (struct sockaddr *)&from, &from_size) <
			    FRAME_BYTES ||
		    from.sll_pkttype == PACKET_OUTGOING)
			continue;
		n_received++;
		if (frame.number < next)
			n_out_of_order++;
		else
			next = frame.number + 1;
	}
	printf("{\"received\": %" PRIu64 ", \"out_of_order\": %" PRIu64 ", \"highest\": %" PRIu64
	       "}\n",
	       n_received, n_out_of_order, next);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "send") == 0)
		return send_frames(argv[2], strtod(argv[3], NULL), strtod(argv[4], NULL));
	if (argc == 3 && strcmp(argv[1], "receive") == 0)
		return receive_frames(argv[2]);
	fprintf(stderr, "usage: sequence send IFACE RATE_PER_S SECONDS | receive IFACE\n");
	return 2;
}
