// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "test_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct pmdp_section_shm *find(const struct test_ring *ring, uint32_t kind)
{
	for (int i = 0; i < PMDP_N_SECTIONS; i++) {
		if (ring->header->sections[i].kind == kind)
			return &ring->header->sections[i];
	}
	return NULL;
}

static void *section(const struct test_ring *ring, uint32_t kind)
{
	const struct pmdp_section_shm *s = find(ring, kind);

	return s ? (char *)ring->header + s->offset_bytes : NULL;
}

void test_ring_map(struct test_ring *ring, const char *rundir, const char *name)
{
	char path[512];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "%s/%s", rundir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		abort();
	}
	ring->size = (size_t)st.st_size;
	ring->header = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ring->header == MAP_FAILED) {
		fprintf(stderr, "mmap of %s: %s\n", path, strerror(errno));
		abort();
	}
	ring->hot = section(ring, PMDP_SECTION_HOT);
	ring->hot_stride = ring->hot ? find(ring, PMDP_SECTION_HOT)->item_size_bytes : 0;
	ring->lanes = section(ring, PMDP_SECTION_LANES);
	ring->records = section(ring, PMDP_SECTION_RECORDS);
	ring->ports = section(ring, PMDP_SECTION_PORTS);
}

struct pmdp_hot_shm *test_ring_hot(const struct test_ring *ring, uint32_t lane)
{
	return (void *)((char *)ring->hot + (size_t)lane * ring->hot_stride);
}

void test_ring_unmap(struct test_ring *ring)
{
	munmap(ring->header, ring->size);
	memset(ring, 0, sizeof *ring);
}
