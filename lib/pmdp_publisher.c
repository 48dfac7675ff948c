// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_publisher.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "pmdp_takeover.h"

#define DEFAULT_N_LANES 64
#define DEFAULT_N_PORTS 64
#define DEFAULT_RECORDS_PER_LANE 256
#define DEFAULT_INTERVAL_NS UINT64_C(50000000)
#define DEFAULT_GAP_LIMIT_NS UINT64_C(250000)
#define MIN_INTERVAL_NS UINT64_C(1000000)
#define MAX_INTERVAL_NS (3600 * PMDP_NS_PER_S)
#define MIN_TSC_HZ UINT64_C(1000000)
#define MAX_TSC_HZ UINT64_C(100000000000)

static uint32_t or_default(uint32_t value, uint32_t other)
{
	return value ? value : other;
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static bool is_interval(uint64_t interval_ns)
{
	return interval_ns >= MIN_INTERVAL_NS && interval_ns <= MAX_INTERVAL_NS;
}

static int check_opts(const struct pmdp_publisher_opts *opts)
{
	if (opts->n_lanes > PMDP_MAX_LANES || opts->n_ports > PMDP_MAX_PORTS ||
	    opts->records_per_lane > PMDP_MAX_RECORDS_PER_LANE)
		return -EINVAL;
	if (opts->keepalive_interval_ns && !is_interval(opts->keepalive_interval_ns))
		return -EINVAL;
	if (opts->tsc_hz &&
	    (!pmdp_tsc_is_invariant() || opts->tsc_hz < MIN_TSC_HZ || opts->tsc_hz > MAX_TSC_HZ))
		return -EINVAL;
	return 0;
}

static void fill_segment_opts(const char *instance, const struct pmdp_publisher_opts *opts,
			      struct pmdp_segment_opts *out_seg_opts)
{
	uint32_t n_lanes = or_default(opts->n_lanes, DEFAULT_N_LANES);
	uint32_t n_records =
		power_of_two(or_default(opts->records_per_lane, DEFAULT_RECORDS_PER_LANE));

	*out_seg_opts = (struct pmdp_segment_opts){
		.rundir = opts->rundir,
		.instance = instance,
		.suffix = "ring",
		.group = opts->group,
		.mode = opts->mode,
		.segment_kind = PMDP_SEGMENT_RING,
		.clock_kind = opts->tsc_hz ? PMDP_CLOCK_TSC : PMDP_CLOCK_MONOTONIC,
		.records_per_lane = n_records,
		.ticks_hz = opts->tsc_hz ? opts->tsc_hz : PMDP_NS_PER_S,
		.n_sections = 4,
		.sections =
			{
				{PMDP_SECTION_HOT, n_lanes, sizeof(struct pmdp_hot_item)},
				{PMDP_SECTION_LANES, n_lanes, sizeof(struct pmdp_lane_shm)},
				{PMDP_SECTION_RECORDS, n_lanes * n_records,
				 sizeof(struct pmdp_record_shm)},
				{PMDP_SECTION_PORTS, or_default(opts->n_ports, DEFAULT_N_PORTS),
				 sizeof(struct pmdp_port_shm)},
			},
	};
}

static void bind_segment(struct pmdp_publisher *pub, const struct pmdp_segment_opts *seg_opts)
{
	pub->header = pub->seg.header;
	pub->hot = pmdp_segment_section(&pub->seg, PMDP_SECTION_HOT, &pub->n_lanes);
	pub->lanes = pmdp_segment_section(&pub->seg, PMDP_SECTION_LANES, NULL);
	pub->records = pmdp_segment_section(&pub->seg, PMDP_SECTION_RECORDS, NULL);
	pub->ports = pmdp_segment_section(&pub->seg, PMDP_SECTION_PORTS, &pub->n_ports);
	pub->records_per_lane = seg_opts->records_per_lane;
	pub->ticks_hz = seg_opts->ticks_hz;
	pub->is_tsc = seg_opts->clock_kind == PMDP_CLOCK_TSC;
}

static uint64_t or_default_ns(uint64_t value_ns, uint64_t other_ns)
{
	return value_ns ? value_ns : other_ns;
}

static void set_settings(struct pmdp_publisher *pub, const struct pmdp_publisher_opts *opts)
{
	uint64_t interval_ns = or_default_ns(opts->keepalive_interval_ns, DEFAULT_INTERVAL_NS);
	uint64_t gap_limit_ns = or_default_ns(opts->gap_limit_ns, DEFAULT_GAP_LIMIT_NS);

	atomic_store_explicit(&pub->header->keepalive_interval_ns, interval_ns,
			      memory_order_relaxed);
	atomic_store_explicit(&pub->header->gap_limit_ns, gap_limit_ns, memory_order_relaxed);
	pmdp_publisher_set_keepalive(pub, !opts->keepalive_off);
}

int pmdp_publisher_open(const char *instance, const struct pmdp_publisher_opts *opts,
			struct pmdp_publisher **out_pub)
{
	static const struct pmdp_publisher_opts no_opts;
	struct pmdp_segment_opts seg_opts;
	struct pmdp_publisher *pub;
	int rc;

	if (!opts)
		opts = &no_opts;
	rc = check_opts(opts);
	if (rc < 0)
		return rc;
	pub = calloc(1, sizeof *pub);
	if (!pub)
		return -ENOMEM;
	fill_segment_opts(instance, opts, &seg_opts);
	rc = pmdp_segment_create(&seg_opts, &pub->seg);
	if (rc < 0)
		goto fail;
	pub->pid = getpid();
	bind_segment(pub, &seg_opts);
	set_settings(pub, opts);
	pub->handles = calloc(pub->n_lanes, sizeof *pub->handles);
	rc = pub->handles ? pmdp_segment_publish(&pub->seg) : -ENOMEM;
	if (rc < 0)
		goto fail;
	*out_pub = pub;
	return 0;

fail:
	pmdp_segment_close(&pub->seg, false);
	free(pub->handles);
	free(pub);
	return rc;
}

// Every lane is out of use by its thread: say so for those that did not.
static void end_lanes(struct pmdp_publisher *pub)
{
	const uint64_t word = pmdp_announce_word(PMDP_ANNOUNCE_EXITED, PMDP_REASON_STOP);

	for (uint32_t i = 0; i < pub->n_lanes; i++) {
		if (atomic_load_explicit(&pub->lanes[i].claimed, memory_order_relaxed))
			atomic_store_explicit(&pub->hot[i].slot.announce, word,
					      memory_order_relaxed);
	}
}

void pmdp_publisher_stop(struct pmdp_publisher *pub)
{
	if (pub->pid != getpid())
		return;
	end_lanes(pub);
	atomic_store_explicit(&pub->header->stopped_ns, pmdp_mono_now_ns(),
			      memory_order_release); // T1: the ends before the stop
	pmdp_takeover_unlink(&pub->seg);
}

void pmdp_publisher_close(struct pmdp_publisher *pub)
{
	if (!pub)
		return;
	pmdp_publisher_stop(pub);
	for (uint32_t i = 0; i < pub->n_lanes; i++)
		free(atomic_load_explicit(&pub->handles[i], memory_order_relaxed));
	free(pub->handles);
	pmdp_segment_close(&pub->seg, false);
	free(pub);
}

void pmdp_publisher_housekeep(struct pmdp_publisher *pub)
{
	pmdp_segment_alive(&pub->seg);
}

int pmdp_publisher_set_interval(struct pmdp_publisher *pub, uint64_t interval_ns)
{
	if (!is_interval(interval_ns))
		return -ERANGE;
	atomic_store_explicit(&pub->header->keepalive_interval_ns, interval_ns,
			      memory_order_relaxed);
	return 0;
}

void pmdp_publisher_set_keepalive(struct pmdp_publisher *pub, bool on)
{
	atomic_store_explicit(&pub->header->flags, on ? PMDP_FLAG_KEEPALIVE : 0,
			      memory_order_release); // K1: the restarted beats before the flag
}

uint64_t pmdp_publisher_interval_ns(const struct pmdp_publisher *pub)
{
	return atomic_load_explicit(&pub->header->keepalive_interval_ns, memory_order_relaxed);
}

uint64_t pmdp_publisher_generation(const struct pmdp_publisher *pub)
{
	return pub->header->generation;
}

const char *pmdp_publisher_path(const struct pmdp_publisher *pub)
{
	return pub->seg.path;
}
