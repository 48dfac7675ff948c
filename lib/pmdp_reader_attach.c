// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The checks of an attach. Nothing found in the file is believed: each number is checked against
 * the size of the file and the bounds of pmdp_abi.h, once, in a private copy; later reads use that
 * copy.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmdp_process.h"
#include "pmdp_reader.h"
#include "pmdp_shm.h"

struct refusal {
	char *reason;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct refusal *to, int rc,
							const char *format, ...)
{
	va_list args;

	if (to->reason && to->size) {
		va_start(args, format);
		vsnprintf(to->reason, to->size, format, args);
		va_end(args);
	}
	return rc;
}

// M2: the magic first, with acquire, then the rest (pairs with M1).
static int read_header(struct pmdp_reader *reader, uint64_t file_size, const struct refusal *to)
{
	uint64_t magic;
	int rc;

	if (file_size < sizeof reader->header)
		return refuse(to, -EBADMSG, "%s: %llu bytes, a header has %zu",
			      file_size ? "too short" : "empty", (unsigned long long)file_size,
			      sizeof reader->header);
	rc = pmdp_reader_fetch(reader, 0, &magic, sizeof magic);
	if (rc < 0)
		return refuse(to, rc, "the file was truncated or can't be read");
	if (magic != PMDP_MAGIC)
		return refuse(to, -EBADMSG,
			      "wrong magic %016llx: not a segment, or of a big-endian host",
			      (unsigned long long)magic);
	atomic_thread_fence(memory_order_acquire); // M2
	rc = pmdp_reader_fetch(reader, 0, &reader->header, sizeof reader->header);
	if (rc < 0)
		return refuse(to, rc, "the file was truncated or can't be read");
	return 0;
}

static int check_sizes(const struct pmdp_header_shm *header, uint64_t file_size,
		       const struct refusal *to)
{
	if (header->abi_version != PMDP_ABI_VERSION)
		return refuse(to, -EPROTONOSUPPORT, "ABI version %u, this build reads version %u",
			      header->abi_version, PMDP_ABI_VERSION);
	if (header->header_size_bytes != sizeof *header)
		return refuse(to, -EBADMSG, "header size %u, not %zu", header->header_size_bytes,
			      sizeof *header);
	if (header->segment_size_bytes != file_size || file_size > PMDP_MAX_SEGMENT_BYTES)
		return refuse(to, -EBADMSG, "segment size %llu in a file of %llu bytes",
			      (unsigned long long)header->segment_size_bytes,
			      (unsigned long long)file_size);
	return 0;
}

static int check_words(const struct pmdp_header_shm *header, const struct refusal *to)
{
	uint32_t n = header->records_per_lane;

	if (header->segment_kind != PMDP_SEGMENT_RING &&
	    header->segment_kind != PMDP_SEGMENT_INCIDENTS)
		return refuse(to, -EBADMSG, "unknown segment kind %u", header->segment_kind);
	if (header->clock_kind != PMDP_CLOCK_MONOTONIC && header->clock_kind != PMDP_CLOCK_TSC)
		return refuse(to, -EBADMSG, "unknown clock kind %u", header->clock_kind);
	if (!memchr(header->instance, 0, sizeof header->instance) ||
	    pmdp_instance_check(header->instance) < 0)
		return refuse(to, -EBADMSG, "the instance name in the header is not one");
	if (n > PMDP_MAX_RECORDS_PER_LANE || (n & (n - 1)))
		return refuse(to, -EBADMSG, "%u records per lane: out of bounds or no power of two",
			      n);
	return 0;
}

// Size of the struct that this build knows, 0 for a kind that it does not.
static uint32_t known_item_size(uint32_t kind)
{
	switch (kind) {
	case PMDP_SECTION_HOT:
		return sizeof(struct pmdp_hot_shm);
	case PMDP_SECTION_LANES:
		return sizeof(struct pmdp_lane_shm);
	case PMDP_SECTION_RECORDS:
		return sizeof(struct pmdp_record_shm);
	case PMDP_SECTION_PORTS:
		return sizeof(struct pmdp_port_shm);
	case PMDP_SECTION_EVENTS:
	case PMDP_SECTION_INCIDENTS:
		return sizeof(struct pmdp_event_shm);
	default:
		return 0;
	}
}

static uint32_t max_items(uint32_t kind)
{
	switch (kind) {
	case PMDP_SECTION_HOT:
	case PMDP_SECTION_LANES:
		return PMDP_MAX_LANES;
	case PMDP_SECTION_RECORDS:
		return (uint32_t)PMDP_MAX_LANES * PMDP_MAX_RECORDS_PER_LANE;
	case PMDP_SECTION_PORTS:
		return PMDP_MAX_PORTS;
	case PMDP_SECTION_EVENTS:
	case PMDP_SECTION_INCIDENTS:
		return PMDP_MAX_EVENTS;
	default:
		return UINT32_MAX;
	}
}

static uint64_t section_end(const struct pmdp_section_shm *s)
{
	return s->offset_bytes + (uint64_t)s->n_items * s->item_size_bytes;
}

static int check_section(const struct pmdp_header_shm *header, uint32_t i, const struct refusal *to)
{
	const struct pmdp_section_shm *s = &header->sections[i];
	uint64_t size = header->segment_size_bytes;

	// The bounds of item size and offset come first: with them no sum below can wrap.
	if (s->item_size_bytes % 64 || s->item_size_bytes == 0 ||
	    s->item_size_bytes < known_item_size(s->kind) || s->item_size_bytes > size)
		return refuse(to, -EBADMSG, "section %u (kind %u): item size %u", i, s->kind,
			      s->item_size_bytes);
	if (s->n_items > max_items(s->kind))
		return refuse(to, -EBADMSG, "section %u (kind %u): %u items", i, s->kind,
			      s->n_items);
	if (s->offset_bytes % 64 || s->offset_bytes < sizeof *header || s->offset_bytes > size ||
	    (uint64_t)s->n_items * s->item_size_bytes > size - s->offset_bytes)
		return refuse(to, -EBADMSG,
			      "section %u (kind %u): offset %llu, beyond the file or askew", i,
			      s->kind, (unsigned long long)s->offset_bytes);
	for (uint32_t j = 0; j < i; j++) {
		const struct pmdp_section_shm *other = &header->sections[j];

		if (!other->kind)
			continue;
		if (other->kind == s->kind)
			return refuse(to, -EBADMSG, "two sections of kind %u", s->kind);
		if (s->offset_bytes < section_end(other) && other->offset_bytes < section_end(s))
			return refuse(to, -EBADMSG, "sections %u and %u overlap", j, i);
	}
	return 0;
}

static struct pmdp_reader_section *section_of(struct pmdp_reader *reader, uint32_t kind)
{
	switch (kind) {
	case PMDP_SECTION_HOT:
		return &reader->hot;
	case PMDP_SECTION_LANES:
		return &reader->lanes;
	case PMDP_SECTION_RECORDS:
		return &reader->records;
	case PMDP_SECTION_PORTS:
		return &reader->ports;
	case PMDP_SECTION_EVENTS:
		return &reader->events;
	case PMDP_SECTION_INCIDENTS:
		return &reader->incidents;
	default:
		return NULL; // a later version's: not ours to read
	}
}

static int take_sections(struct pmdp_reader *reader, const struct refusal *to)
{
	const struct pmdp_header_shm *header = &reader->header;
	struct pmdp_reader_section *mine;
	int rc;

	for (uint32_t i = 0; i < PMDP_N_SECTIONS; i++) {
		const struct pmdp_section_shm *s = &header->sections[i];

		if (!s->kind)
			continue;
		rc = check_section(header, i, to);
		if (rc < 0)
			return rc;
		mine = section_of(reader, s->kind);
		if (mine) {
			mine->offset_bytes = s->offset_bytes;
			mine->n_items = s->n_items;
			mine->stride_bytes = s->item_size_bytes;
		}
	}
	return 0;
}

// What the sections must be to one another.
static int check_together(const struct pmdp_reader *reader, const struct refusal *to)
{
	uint64_t n_records = (uint64_t)reader->lanes.n_items * reader->header.records_per_lane;

	if (reader->header.segment_kind == PMDP_SEGMENT_INCIDENTS)
		return reader->events.n_items ? 0 : refuse(to, -EBADMSG, "no event ring");
	if (!reader->hot.n_items)
		return refuse(to, -EBADMSG, "no hot table");
	if (reader->lanes.n_items != reader->hot.n_items || reader->records.n_items != n_records)
		return refuse(to, -EBADMSG, "%u hot slots, %u lanes and %u records do not match",
			      reader->hot.n_items, reader->lanes.n_items, reader->records.n_items);
	return 0;
}

static void fill_info(struct pmdp_reader *reader)
{
	const struct pmdp_header_shm *header = &reader->header;
	struct pmdp_segment_info *info = &reader->info;
	uint64_t pidns = pmdp_process_pidns();
	uint8_t boot_id[16];

	memcpy(info->instance, header->instance, sizeof info->instance);
	info->segment_kind = header->segment_kind;
	info->clock_kind = header->clock_kind;
	info->n_lanes = reader->hot.n_items;
	info->n_ports = reader->ports.n_items;
	info->n_events = reader->events.n_items;
	info->n_incidents = reader->incidents.n_items;
	info->records_per_lane = header->records_per_lane;
	info->writer_pid = header->writer_pid;
	info->writer_start_ticks = header->writer_start_ticks;
	info->generation = header->generation;
	info->created_realtime_us = header->created_realtime_us;
	info->is_same_pidns = pidns && pidns == header->pidns_inode;
	// Where the boot id can't be read: a tmpfs does not outlive a boot.
	info->is_same_boot = pmdp_process_boot_id(boot_id) < 0 ||
			     memcmp(boot_id, header->boot_id, sizeof boot_id) == 0;
}

static int allocate(struct pmdp_reader *reader)
{
	reader->front = malloc(sizeof reader->header +
			       (size_t)reader->hot.n_items * reader->hot.stride_bytes);
	reader->looks = calloc(reader->hot.n_items + 1, sizeof *reader->looks);
	return reader->front && reader->looks ? 0 : -ENOMEM;
}

int pmdp_reader_attach(struct pmdp_reader *reader, uint64_t file_size_bytes, char *reason,
		       size_t reason_size)
{
	const struct refusal to = {reason, reason_size};
	int rc = read_header(reader, file_size_bytes, &to);

	if (rc == 0)
		rc = check_sizes(&reader->header, file_size_bytes, &to);
	if (rc == 0)
		rc = check_words(&reader->header, &to);
	if (rc == 0)
		rc = take_sections(reader, &to);
	if (rc == 0)
		rc = check_together(reader, &to);
	if (rc < 0)
		return rc;
	if (allocate(reader) < 0)
		return refuse(&to, -ENOMEM, "out of memory");
	rc = pmdp_reader_refresh(reader);
	if (rc < 0)
		return refuse(&to, rc, "the file changed while it was being attached");
	if (!reader->pair.ticks_hz)
		return refuse(&to, -EBADMSG, "a beat clock of unbelievable frequency");
	fill_info(reader);
	return 0;
}
