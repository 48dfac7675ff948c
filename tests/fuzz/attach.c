// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Fuzzes everything that a reader does with a segment: attach, look, lanes, ports, records, events,
 * open incidents, the clock conversions. Each input goes through memory and through a file.
 *
 * Input: byte 0 chooses what is mended before the attach, so that the fuzzer gets past the first
 * checks in most runs (bit 0 magic and version, bit 1 sizes, bit 2 instance name, bit 3 sections);
 * the rest is the segment. The corpus is seeded with a ring and an incidents segment when it is
 * empty.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdp_segment.h"
#include "pmdp_shm.h"
#include "pmdpulse.h"

#define MAX_SIZE 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char dir[64];
static char *memory; // MAX_SIZE bytes, page aligned, with a guard page behind

static void clean_up(void)
{
	char path[128];

	snprintf(path, sizeof path, "%s/fuzz.ring", dir);
	unlink(path);
	rmdir(dir);
}

static void mend(struct pmdp_header_shm *header, uint8_t what, size_t size)
{
	if (what & 1) {
		header->magic = PMDP_MAGIC;
		header->abi_version = PMDP_ABI_VERSION;
	}
	if (what & 2) {
		header->header_size_bytes = sizeof *header;
		header->segment_size_bytes = size;
		header->segment_kind = header->segment_kind % 2 + 1;
		header->clock_kind %= 2;
	}
	if (what & 4)
		memcpy(header->instance, "fuzz", 5);
	for (int i = 0; what & 8 && i < PMDP_N_SECTIONS; i++) {
		struct pmdp_section_shm *s = &header->sections[i];

		s->kind %= 8;
		s->n_items %= 64;
		s->item_size_bytes &= 0xfc0;
		s->offset_bytes &= 0xffc0;
	}
}

static void read_lanes(struct pmdp_reader *reader, uint32_t n_lanes)
{
	struct pmdp_record_body records[4];
	struct pmdp_lane_body body;

	for (uint32_t i = 0; i <= n_lanes; i++) {
		uint64_t cursor = 0, lost = 0;

		(void)pmdp_reader_lane(reader, i, &body);
		(void)pmdp_reader_records(reader, i, &cursor, records, 4, &lost);
		cursor = UINT64_MAX;
		(void)pmdp_reader_records(reader, i, &cursor, records, 4, &lost);
		(void)pmdp_reader_records(reader, i, &cursor, records, 4, NULL);
	}
}

// Something must be done with the bytes, else a sanitizer has nothing to watch.
static void use(const void *data, size_t size)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += ((const uint8_t *)data)[i];
	if (sum > 255 * size)
		abort();
}

static void read_all(struct pmdp_reader *reader)
{
	struct pmdp_incident *events = malloc(3 * sizeof *events);
	const struct pmdp_segment_info *info = pmdp_reader_info(reader);
	struct pmdp_port_body port;
	struct pmdp_look look;
	uint64_t cursor = 0, lost = 0, generation;

	if (!events)
		abort();
	for (int i = 0; i < 2; i++) {
		if (pmdp_reader_look(reader, &look) == 0)
			use(look.lanes, look.n_lanes * sizeof *look.lanes);
	}
	if (strlen(info->instance) >= PMDP_INSTANCE_BYTES)
		abort();
	read_lanes(reader, info->n_lanes);
	for (uint32_t i = 0; i <= info->n_ports; i++) {
		if (pmdp_reader_port(reader, i, &port, &generation) == 0)
			use(port.name, strlen(port.name));
	}
	for (int i = 0; i < 4; i++) {
		int n = pmdp_reader_events(reader, &cursor, events, 3, &lost);

		if (n > 3)
			abort();
		if (n > 0)
			use(events, (size_t)n * sizeof *events);
	}
	for (uint32_t i = 0; i <= info->n_incidents; i++)
		(void)pmdp_reader_incident(reader, i, events);
	(void)pmdp_reader_mono_ns(reader, lost);
	(void)pmdp_reader_writer_alive(reader);
	free(events);
}

static void through_file(size_t size)
{
	const struct pmdp_reader_opts opts = {.rundir = dir};
	struct pmdp_reader *reader;
	char path[128], reason[128];
	int fd;

	snprintf(path, sizeof path, "%s/fuzz.ring", dir);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (fd < 0 || write(fd, memory, size) != (ssize_t)size)
		abort();
	close(fd);
	if (pmdp_reader_open_why("fuzz", &opts, &reader, reason, sizeof reason) == 0) {
		read_all(reader);
		pmdp_reader_close(reader);
	} else if (!memchr(reason, 0, sizeof reason) || !*reason) {
		abort(); // a refusal without a reason
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pmdp_reader *reader;
	char *segment;

	if (size < 1 || size > MAX_SIZE)
		return 0;
	size--;
	// At the end of the buffer, so that a read behind it meets the guard page.
	segment = memory + MAX_SIZE - (size + 7) / 8 * 8;
	memcpy(segment, data + 1, size);
	if (size >= sizeof(struct pmdp_header_shm)) {
		struct pmdp_header_shm header;

		memcpy(&header, segment, sizeof header);
		mend(&header, data[0], size);
		memcpy(segment, &header, sizeof header);
	}
	if (pmdp_reader_open_memory(segment, size, &reader) == 0) {
		read_all(reader);
		pmdp_reader_close(reader);
	}
	memmove(memory, segment, size);
	through_file(size);
	return 0;
}

// Write a segment of ours, with something in it, as an input.
static void seed(const char *corpus, const char *name, uint8_t mended, const void *segment,
		 size_t size)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s-%u", corpus, name, mended);
	file = fopen(path, "w");
	if (!file)
		return;
	fputc(mended, file);
	fwrite(segment, 1, size, file);
	fclose(file);
}

static void seed_ring(const char *corpus, uint64_t tsc_hz)
{
	const struct pmdp_publisher_opts opts = {
		.rundir = dir, .n_lanes = 2, .n_ports = 1, .records_per_lane = 4, .tsc_hz = tsc_hz};
	const struct pmdp_port_body port = {.name = "p1", .ofport = 1};
	char path[128], *copy = malloc(MAX_SIZE);
	struct pmdp_publisher *pub;
	struct pmdp_lane *lane;
	size_t size;
	FILE *file;

	if (!copy || pmdp_publisher_open("seed", &opts, &pub) < 0)
		abort();
	if (pmdp_lane_claim(pub, "t", PMDP_LANE_PMD, -1, -1, 0, &lane) < 0)
		abort();
	pmdp_lane_polling(lane);
	for (int i = 0; i < 5; i++)
		pmdp_lane_beat(lane, lane->last_ticks + 1000000000);
	pmdp_lane_publish(lane, lane->last_ticks);
	pmdp_port_claim(pub, &port);
	snprintf(path, sizeof path, "%s", pmdp_publisher_path(pub));
	file = fopen(path, "r");
	size = file ? fread(copy, 1, MAX_SIZE, file) : 0;
	if (file)
		fclose(file);
	for (uint8_t mended = 0; mended < 16; mended += 15)
		seed(corpus, tsc_hz ? "ring-tsc" : "ring", mended, copy, size);
	pmdp_lane_release(lane);
	pmdp_publisher_close(pub);
	free(copy);
}

static void seed_incidents(const char *corpus)
{
	const struct pmdp_segment_opts opts = {
		.rundir = dir,
		.instance = "seed",
		.suffix = "incidents",
		.segment_kind = PMDP_SEGMENT_INCIDENTS,
		.ticks_hz = 1000000000,
		.n_sections = 2,
		.sections = {{PMDP_SECTION_EVENTS, 3, sizeof(struct pmdp_event_shm)},
			     {PMDP_SECTION_INCIDENTS, 1, sizeof(struct pmdp_event_shm)}},
	};
	const struct pmdp_incident incident = {.id = "seed-1-1", .kind = 1};
	struct pmdp_event_shm *events;
	struct pmdp_segment seg;

	if (pmdp_segment_create(&opts, &seg) < 0 || pmdp_segment_publish(&seg) < 0)
		abort();
	events = pmdp_segment_section(&seg, PMDP_SECTION_EVENTS, NULL);
	for (uint64_t n = 0; n < 4; n++)
		pmdp_ring_write(&events[n % 3].seq, &events[n % 3].body, &incident, sizeof incident,
				&seg.header->n_events, n);
	seed(corpus, "incidents", 0, seg.header, seg.size_bytes);
	seed(corpus, "incidents", 15, seg.header, seg.size_bytes);
	pmdp_segment_close(&seg, true);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct stat st;

	memory = mmap(NULL, MAX_SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	snprintf(dir, sizeof dir, "/dev/shm/pmdp-fuzz-XXXXXX");
	if (memory == MAP_FAILED || mprotect(memory + MAX_SIZE, 4096, PROT_NONE) < 0 ||
	    !mkdtemp(dir))
		abort();
	atexit(clean_up);
	for (int i = 1; i < *argc; i++) {
		if ((*argv)[i][0] != '-' && stat((*argv)[i], &st) == 0 && S_ISDIR(st.st_mode)) {
			seed_ring((*argv)[i], 0);
			if (pmdp_tsc_is_invariant())
				seed_ring((*argv)[i], 2500000000);
			seed_incidents((*argv)[i]);
			break;
		}
	}
	return 0;
}
