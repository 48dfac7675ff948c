// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 200000
#define N_WANTED 20
#define PATIENCE_MS 12
#define RING_BYTES ((size_t)8192)

struct sample_record {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
};

static int open_event(pid_t tid, bool with_kernel)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.wakeup_events = N_WANTED,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = !with_kernel,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_allowed(pid_t tid)
{
	int fd = open_event(tid, true);

	return fd == -EACCES || fd == -EPERM ? open_event(tid, false) : fd;
}

int ag_sample_probe(void)
{
	int fd = open_allowed(0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static void collect(const struct perf_event_mmap_page *page, struct ag_sample_set *set)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	uint64_t head =
		atomic_load_explicit((const _Atomic __u64 *)&page->data_head, memory_order_acquire);
	struct ag_sample *sample;
	const struct sample_record *r;
	uint64_t at = 0;

	// The ring is larger than all the records that we wait for: it neither wraps nor
	// overwrites.
	while (at + sizeof(r->header) <= head && at < RING_BYTES &&
	       set->n_samples < AG_SAMPLE_MAX) {
		r = (const void *)(data + at);
		if (r->header.size < sizeof(r->header) || at + r->header.size > RING_BYTES)
			break;
		if (r->header.type == PERF_RECORD_SAMPLE && r->header.size >= sizeof(*r)) {
			sample = &set->samples[set->n_samples++];
			sample->time_ns = r->time_ns;
			sample->ip = r->ip;
			sample->is_kernel = (r->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
					    PERF_RECORD_MISC_KERNEL;
			sample->function = AG_SAMPLE_FUNCTIONS;
		}
		at += r->header.size;
	}
}

int ag_sample_take(pid_t tid, struct ag_sample_set *out_set)
{
	struct pollfd poller = {.events = POLLIN};
	size_t map_bytes = (size_t)getpagesize() + RING_BYTES;
	void *map;
	int fd, rc = 0;

	memset(out_set, 0, sizeof(*out_set));
	fd = open_allowed(tid);
	if (fd < 0)
		return fd;
	map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		rc = -errno;
	} else {
		poller.fd = fd;
		poll(&poller, 1, PATIENCE_MS);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		collect(map, out_set);
		munmap(map, map_bytes);
	}
	close(fd);
	return rc;
}

uint32_t ag_sample_top(const struct ag_sample_set *set, uint64_t begin_ns, uint64_t end_ns,
		       const struct ag_sample_function **out_function, uint32_t *out_n)
{
	uint32_t counts[AG_SAMPLE_FUNCTIONS + 1] = {0}, i, top = AG_SAMPLE_FUNCTIONS, n = 0;

	for (i = 0; i < set->n_samples; i++) {
		if (set->samples[i].time_ns < begin_ns || set->samples[i].time_ns > end_ns)
			continue;
		n++;
		counts[set->samples[i].function]++;
	}
	for (i = 0; i < set->n_functions; i++)
		if (counts[i] > 0 && (top == AG_SAMPLE_FUNCTIONS || counts[i] > counts[top]))
			top = i;
	*out_function = top < AG_SAMPLE_FUNCTIONS ? &set->functions[top] : NULL;
	*out_n = n;
	return top < AG_SAMPLE_FUNCTIONS ? counts[top] : 0;
}
