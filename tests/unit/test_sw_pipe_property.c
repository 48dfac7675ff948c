// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * What the pipeline does with frames against a plain evaluation of the rules, while rules come and
 * go: each packet leaves where, as often and as changed as the rules say, or is dropped for the
 * reason that they give, whatever caches and implementation know of it, and of older rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pmdp_clock.h"
#include "sw_impl_fast.h"
#include "sw_key_fast.h"
#include "sw_mac.h"
#include "sw_pipe.h"
#include "test_dir.h"
#include "tests/unit/sw_bed.h"
#include "tests/unit/sw_change.h"
#include "tests/unit/sw_frame.h"
#include "tests/unit/sw_plain.h"
#include "tests/unit/sw_random.h"

#define dice sw_random_dice
#define POOL 100 // keys that come again, so that caches know them

// What must come out of a burst.
struct wanted {
	uint32_t n_sent[BED_DEVICES];
	uint64_t drops[PMDP_N_DROPS];
	bool is_recirculated;
};

static struct wanted wanted;
static struct bed_frame sent[BED_DEVICES][BED_MAX_SENT];
static bool is_full; // no place in sent

static struct sw_key keys[POOL];

// A packet between two passes.
struct passenger {
	struct sw_plain_packet packet; // as rules see it
	struct sw_key below;           // what stands behind all tags
	uint32_t number;
};

static uint32_t all_tags(const struct sw_plain_packet *packet, uint16_t *tags)
{
	uint32_t n = 0;

	while (n < SW_PLAIN_TAGS && packet->tags[n] != 0) {
		tags[n] = packet->tags[n];
		n++;
	}
	memcpy(tags + n, packet->deep, packet->n_deep * sizeof(tags[0]));
	return n + packet->n_deep;
}

// The packet as it is on the wire: behind more than two tags, rules have seen nothing and changed
// nothing.
static struct sw_key wire_key(const struct passenger *from, const struct sw_plain_packet *packet)
{
	struct sw_key key = packet->key;

	if (packet->key.dl_type != RTE_BE16(0x8100))
		return key;
	key = from->below;
	memcpy(key.dl_dst, packet->key.dl_dst, sizeof(key.dl_dst));
	memcpy(key.dl_src, packet->key.dl_src, sizeof(key.dl_src));
	return key;
}

static struct bed_frame frame_of(const struct passenger *from, const struct sw_plain_packet *packet)
{
	uint16_t tags[SW_PLAIN_TAGS + SW_PLAIN_MAX_DEEP];
	uint32_t n = all_tags(packet, tags);
	struct sw_key key = wire_key(from, packet);

	return sw_frame_make(&key, tags, n, from->number);
}

// As a recirculated packet is read again.
static void board(struct passenger *p, const struct sw_plain_left *left, uint16_t in_port)
{
	uint16_t tags[SW_PLAIN_TAGS + SW_PLAIN_MAX_DEEP];
	uint32_t n = all_tags(&left->packet, tags);
	struct sw_key key = wire_key(p, &left->packet);
	struct sw_key seen = key;

	if (n > 2) {
		memset(&seen, 0, sizeof(seen));
		memcpy(seen.dl_dst, key.dl_dst, sizeof(seen.dl_dst));
		memcpy(seen.dl_src, key.dl_src, sizeof(seen.dl_src));
		seen.dl_type = RTE_BE16(0x8100);
	}
	seen.vlan_tci = n > 0 ? tags[0] : 0;
	seen.vlan_tci1 = n > 1 ? tags[1] : 0;
	seen.in_port = in_port;
	seen.recirc_id = left->arg;
	p->below = key;
	p->packet = sw_plain_packet_of(&seen);
	if (n > 2) {
		p->packet.n_deep = n - 2;
		memcpy(p->packet.deep, tags + 2, (n - 2) * sizeof(tags[0]));
	}
}

static void want(uint32_t port, const struct bed_frame *frame, uint32_t max_len)
{
	uint32_t device = port - 1, at;

	assert_true(device < BED_DEVICES);
	at = wanted.n_sent[device];
	if (at == BED_MAX_SENT) {
		is_full = true;
		return;
	}
	sent[device][at] = *frame;
	if (max_len != 0 && frame->len > max_len)
		sent[device][at].len = (uint16_t)max_len;
	wanted.n_sent[device]++;
}

static void want_flood(uint32_t in_port, const struct bed_frame *frame)
{
	for (uint32_t port = 1; port <= BED_DEVICES; port++) {
		if (port != in_port)
			want(port, frame, 0);
	}
}

// Addresses that are known all the time; no others are learnt.
static const struct {
	uint8_t mac[6];
	uint16_t vid, port;
} known[] = {
	{{2, 0, 0, 0, 0, 0}, 0, 1},
	{{2, 0, 0, 0, 0, 1}, 0, 2},
	{{2, 0, 0, 0, 0, 2}, 1, 3},
};

// Whether it goes anywhere.
static bool want_normal(uint32_t in_port, const struct sw_plain_packet *packet,
			const struct bed_frame *frame)
{
	uint16_t vid = rte_be_to_cpu_16(packet->tags[0]) & 0xfff;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (memcmp(known[i].mac, packet->key.dl_dst, 6) != 0 || known[i].vid != vid)
			continue;
		if (known[i].port == in_port)
			return false;
		want(known[i].port, frame, 0);
		return true;
	}
	want_flood(in_port, frame);
	return true;
}

// One thing that leaves. Returns whether it is a next pass.
static bool want_left(struct passenger *p, const struct sw_plain_left *left, uint16_t in_port,
		      bool is_last, uint32_t depth)
{
	struct bed_frame frame = frame_of(p, &left->packet);

	switch (left->type) {
	case SW_ACT_OUTPUT:
		want(left->port, &frame, left->arg);
		break;
	case SW_ACT_FLOOD:
		want_flood(in_port, &frame);
		break;
	case SW_ACT_NORMAL:
		if (!want_normal(in_port, &left->packet, &frame) && is_last)
			wanted.drops[PMDP_DROP_ACTION]++;
		break;
	default:
		assert_int_equal(left->type, SW_ACT_RECIRC);
		if (depth < SW_RECIRC_LIMIT)
			return true;
		wanted.drops[PMDP_DROP_RECIRC_LIMIT]++;
	}
	return false;
}

// Carry a packet to its end. false: it is one of those whose megaflow has too many actions.
static bool expect(const struct passenger *first, uint16_t in_port)
{
	struct passenger p = *first;
	bool is_again = true;

	for (uint32_t depth = 0; is_again; depth++) {
		const struct sw_plain_way *way = sw_plain_walk(&p.packet);
		uint32_t n = way->n_out + way->n_late;

		is_again = false;
		if (way->n_acts > SW_XLATE_MAX_ACTS && !way->is_limited)
			return false;
		if (way->is_limited)
			wanted.drops[PMDP_DROP_RECIRC_LIMIT]++;
		else if (n == 0)
			wanted.drops[way->is_missed ? PMDP_DROP_NO_RULE : PMDP_DROP_ACTION]++;
		else if (way->n_late > 0)
			wanted.drops[PMDP_DROP_ACTION]++;
		for (uint32_t i = 0; i < way->n_out && !way->is_limited; i++)
			is_again = want_left(&p, &way->out[i], in_port, i + 1 == n, depth);
		if (is_again)
			board(&p, &way->out[way->n_out - 1], in_port);
		wanted.is_recirculated = wanted.is_recirculated || depth > 0;
	}
	return true;
}

static void print_frame(const char *what, const struct bed_frame *frame)
{
	print_message("%s:", what);
	for (uint32_t i = 0; i < frame->len; i++)
		print_message(" %02x", frame->bytes[i]);
	print_message("\n");
}

static void check_frames(const struct sw_key *first)
{
	static bool is_taken[BED_MAX_SENT];

	for (uint32_t device = 0; device < BED_DEVICES; device++) {
		uint32_t n = wanted.n_sent[device];

		if (bed.n_sent[device] != n) {
			print_message("device %u: %u frames, not %u\n", device, bed.n_sent[device],
				      n);
			sw_plain_explain(first, "number of frames");
		}
		memset(is_taken, 0, sizeof(is_taken));
		for (uint32_t i = 0; i < n; i++) {
			// Those of one pass keep their order.
			uint32_t at = i;

			if (wanted.is_recirculated) {
				at = 0;
				while (at < n &&
				       (is_taken[at] ||
					!sw_frame_is_same(&bed.sent[device][i], &sent[device][at])))
					at++;
			}
			if (at == n || !sw_frame_is_same(&bed.sent[device][i], &sent[device][at])) {
				print_message("device %u, frame %u\n", device, i);
				print_frame("sent", &bed.sent[device][i]);
				print_frame("wanted", &sent[device][i]);
				sw_plain_explain(first, "a frame that the rules do not send");
			}
			is_taken[at] = true;
		}
	}
}

static struct passenger random_passenger(uint16_t in_port, uint32_t number)
{
	uint32_t at = dice(POOL);
	struct passenger p = {.number = number};

	if (dice(40) == 0) {
		keys[at] = sw_random_key();
		keys[at].recirc_id = 0;
		sw_frame_settle(&keys[at]);
	}
	p.below = keys[at];
	p.below.in_port = in_port;
	p.packet = sw_plain_packet_of(&p.below);
	return p;
}

static void give(uint16_t device, const struct passenger *p)
{
	struct bed_frame frame = frame_of(p, &p->packet);
	struct sw_key key;

	// It must be what is meant.
	assert_int_equal(sw_key_extract(frame.bytes, frame.len, frame.len, SW_DEPTH_FULL, &key), 0);
	key.in_port = p->packet.key.in_port;
	assert_memory_equal(&key, &p->packet.key, sizeof(key));
	if (dice(4) == 0)
		bed_give_cut(device, frame.bytes, frame.len, (uint16_t)(1 + dice(frame.len - 1u)));
	else
		bed_give(device, frame.bytes, frame.len);
}

// A burst on a device. Returns how many packets.
static uint32_t burst(uint16_t device, uint32_t number, uint64_t *n_dropped)
{
	uint32_t n_max = dice(3) == 0 ? 1 : 1 + dice(SW_BURST), n = 0;
	uint64_t before[PMDP_N_DROPS];
	struct sw_key first = {.word = {0}};

	memset(&wanted, 0, sizeof(wanted));
	is_full = false;
	for (uint32_t i = 0; i < n_max && !is_full; i++) {
		struct passenger p = random_passenger(device + 1, number + i);
		const struct wanted old = wanted;

		if (!expect(&p, device + 1) || is_full) {
			wanted = old;
			continue;
		}
		if (n++ == 0)
			first = p.packet.key;
		give(device, &p);
	}
	memcpy(before, &bed.n[PMDP_C_DROP0], sizeof(before));
	memset(bed.n_sent, 0, sizeof(bed.n_sent));
	bed_poll();
	check_frames(&first);
	for (uint32_t i = 0; i < PMDP_N_DROPS; i++) {
		*n_dropped += wanted.drops[i];
		if (bed.n[PMDP_C_DROP0 + i] - before[i] == wanted.drops[i])
			continue;
		print_message("%llu drops for reason %u, not %llu\n",
			      (unsigned long long)(bed.n[PMDP_C_DROP0 + i] - before[i]), i,
			      (unsigned long long)wanted.drops[i]);
		sw_plain_explain(&first, "reason of a drop");
	}
	return n;
}

// Caches on and off, few megaflows or many, one implementation or another.
static void random_mode(void)
{
	static const uint32_t inv_probs[] = {0, 1, 1, 3};
	struct sw_plan_pmd *plan = bed.run.plan;
	uint32_t impl = dice(sw_impls_n_usable + 1);

	for (uint32_t i = 0; i < BED_DEVICES; i++) {
		plan->rxqs[i].emc_inv_prob = inv_probs[dice(4)];
		plan->rxqs[i].is_bypass = dice(2);
	}
	plan->smc = dice(2) ? sw_pipe_smc(bed.run.pipe) : NULL;
	plan->impl = impl < sw_impls_n_usable ? sw_impls_usable[impl] : &sw_impl_autovalidator;
	plan->flow_limit = dice(4) ? 4096 : 8;
	plan->max_idle_used = dice(4) ? UINT32_MAX : 1;
}

static void begin(void)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		sw_mac_learn(bed.run.macs, known[i].mac, known[i].vid, known[i].port, 0);
	sw_mac_poll(bed.run.macs, 0);
	for (uint32_t i = 0; i < POOL; i++) {
		keys[i] = sw_random_key();
		keys[i].recirc_id = 0;
		sw_frame_settle(&keys[i]);
	}
}

// PMDP_TEST_PACKETS: how many packets; without it, what fits into some seconds.
static void test_pipe_equals_a_plain_evaluation(void **state)
{
	const char *asked = getenv("PMDP_TEST_PACKETS");
	uint64_t n_asked = asked ? strtoull(asked, NULL, 10) : 1000000;
	uint64_t end_ns = pmdp_mono_now_ns() + UINT64_C(5000000000);
	uint64_t n_packets = 0, n_dropped = 0, n_changes = 0;

	(void)state;
	sw_random_seed = test_seed("sw_pipe");
	begin();
	while (n_packets < n_asked && (asked || n_packets < 20000 || pmdp_mono_now_ns() < end_ns)) {
		random_mode();
		for (uint32_t i = dice(6); i > 0; i--, n_changes++)
			sw_change(bed.flows);
		sw_flow_reap(bed.flows);
		for (uint32_t i = 1 + dice(30); i > 0; i--) {
			n_packets +=
				burst((uint16_t)dice(BED_DEVICES), (uint32_t)n_packets, &n_dropped);
			for (uint32_t j = dice(4); j > 0; j--)
				sw_sweep(&bed.run);
			if (dice(4) == 0) {
				sw_change(bed.flows);
				n_changes++;
			}
		}
		if (dice(32) == 0)
			bed_sweep();
	}
	print_message("%llu packets, %llu changes, %u rules, %llu recirculations, %llu copies, "
		      "%llu drops\n",
		      (unsigned long long)n_packets, (unsigned long long)n_changes,
		      sw_plain_count(), (unsigned long long)bed.n[PMDP_C_RECIRCULATIONS],
		      (unsigned long long)bed.n[PMDP_C_COPIES], (unsigned long long)n_dropped);
	print_message("%llu EMC hits, %llu SMC hits, %llu megaflow hits, %llu misses\n",
		      (unsigned long long)bed.n[PMDP_C_EMC_HITS],
		      (unsigned long long)bed.n[PMDP_C_SMC_HITS],
		      (unsigned long long)bed.n[PMDP_C_MEGAFLOW_HITS],
		      (unsigned long long)bed.n[PMDP_C_MISSES]);
	// Each of them has given answers, where there were packets enough for any rules.
	if (n_packets >= 200000) {
		assert_true(bed.n[PMDP_C_EMC_HITS] > 0);
		assert_true(bed.n[PMDP_C_SMC_HITS] > 0);
		assert_true(bed.n[PMDP_C_MEGAFLOW_HITS] > 0);
		assert_true(bed.n[PMDP_C_RECIRCULATIONS] > 0);
	}
	sw_plain_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pipe_equals_a_plain_evaluation, bed_open,
						bed_close),
	};

	return cmocka_run_group_tests_name("sw_pipe_property", tests, bed_start, bed_stop);
}
