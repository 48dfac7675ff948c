// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * sw_key_dump FILE: the key of each frame of a capture, a line each, as fields of ovs-fields(7)
 * with "malformed=REASON" behind them. Numbers are hexadecimal, absent fields are left out.
 *
 * The frame stands at the end of a page behind which nothing can be read.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sw_key_fast.h"

#define FRAME_BYTES 65536

struct pcap_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snap_bytes, link;
};

struct pcap_item {
	uint32_t seconds, fraction, captured_bytes, bytes;
};

static void print_mac(const char *name, const uint8_t *mac)
{
	printf(",%s=%02x:%02x:%02x:%02x:%02x:%02x", name, mac[0], mac[1], mac[2], mac[3], mac[4],
	       mac[5]);
}

static void print_ip(const char *name, int family, const void *address)
{
	char text[INET6_ADDRSTRLEN];

	printf(",%s=%s", name, inet_ntop(family, address, text, sizeof(text)));
}

static void print_number(const char *name, uint32_t value)
{
	printf(",%s=0x%x", name, value);
}

static void print_l3(const struct sw_key *key, uint16_t type)
{
	if (type == 0x0806 || type == 0x8035) {
		print_number("arp_op", key->nw_proto);
		print_ip("arp_spa", AF_INET, &key->nw_src);
		print_ip("arp_tpa", AF_INET, &key->nw_dst);
		print_mac("arp_sha", key->arp_sha);
		print_mac("arp_tha", key->arp_tha);
		return;
	}
	if (type == 0x0800) {
		print_ip("nw_src", AF_INET, &key->nw_src);
		print_ip("nw_dst", AF_INET, &key->nw_dst);
	} else {
		print_ip("ipv6_src", AF_INET6, key->ipv6_src);
		print_ip("ipv6_dst", AF_INET6, key->ipv6_dst);
		print_number("ipv6_label", ntohl(key->ipv6_label));
	}
	print_number("nw_proto", key->nw_proto);
	print_number("nw_tos", key->nw_tos);
	print_number("nw_ttl", key->nw_ttl);
	print_number("nw_frag", key->nw_frag);
	print_number("tp_src", ntohs(key->tp_src));
	print_number("tp_dst", ntohs(key->tp_dst));
	print_number("tcp_flags", ntohs(key->tcp_flags));
	if (type == 0x86dd) {
		print_ip("nd_target", AF_INET6, key->nd_target);
		print_mac("nd_sll", key->nd_sll);
		print_mac("nd_tll", key->nd_tll);
	}
}

static void print_key(const struct sw_key *key, uint32_t bad)
{
	uint16_t type = ntohs(key->dl_type);

	printf("dl_type=0x%x", type);
	print_mac("dl_dst", key->dl_dst);
	print_mac("dl_src", key->dl_src);
	print_number("vlan_tci", ntohs(key->vlan_tci));
	print_number("vlan_tci1", ntohs(key->vlan_tci1));
	if (type == 0x0806 || type == 0x8035 || type == 0x0800 || type == 0x86dd)
		print_l3(key, type);
	if (bad != SW_BAD_NONE)
		printf(",malformed=%s", sw_bad_name(bad));
	putchar('\n');
}

static uint8_t *guarded(void)
{
	uint8_t *pages = mmap(NULL, FRAME_BYTES + (size_t)getpagesize(), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED ||
	    mprotect(pages + FRAME_BYTES, (size_t)getpagesize(), PROT_NONE) != 0) {
		perror("sw_key_dump: mmap");
		exit(1);
	}
	return pages + FRAME_BYTES;
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	uint8_t *end = guarded();
	struct pcap_head head;
	struct pcap_item item;
	struct sw_key key;

	if (file == NULL || fread(&head, sizeof(head), 1, file) != 1 || head.magic != 0xa1b2c3d4) {
		fprintf(stderr, "usage: sw_key_dump FILE (a pcap of this machine's byte order)\n");
		return 2;
	}
	while (fread(&item, sizeof(item), 1, file) == 1) {
		uint32_t n = item.captured_bytes;

		if (n > FRAME_BYTES || (n > 0 && fread(end - n, n, 1, file) != 1)) {
			fprintf(stderr, "%s: cut off\n", argv[1]);
			return 1;
		}
		print_key(&key, sw_key_extract(end - n, n, n, SW_DEPTH_FULL, &key));
	}
	fclose(file);
	return 0;
}
