// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdp_process.h"
#include "pmdp_shm.h"
#include "pmdp_stat.h"
#include "pmdp_takeover.h"
#include "pmdpulse.h"

// Group by name or number. -ENOENT: unknown.
static int find_group(const char *name, gid_t *out_gid)
{
	struct group group, *found = NULL;
	char buf[16384], *end;
	unsigned long number = strtoul(name, &end, 10);
	int rc;

	if (*name && !*end) {
		*out_gid = (gid_t)number;
		return 0;
	}
	rc = getgrnam_r(name, &group, buf, sizeof buf, &found);
	if (!found)
		return rc ? -rc : -ENOENT;
	*out_gid = group.gr_gid;
	return 0;
}

/*
 * Whose folder is it? Who owns it, or may rename in it, can put another file under our name: its
 * owner must be root, oneself, the believed publisher or the user of an installed service, and what
 * everybody may write must have the sticky bit. An ordinary user's default is easily guessed.
 */
static int check_rundir(int fd, const struct pmdp_segment_opts *opts)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
		return -EPERM;
	if (st.st_uid == 0 || st.st_uid == geteuid() ||
	    (opts->has_publisher_uid && st.st_uid == opts->publisher_uid))
		return 0;
	return pmdp_process_is_service(st.st_uid, "ring") ||
			       pmdp_process_is_service(st.st_uid, "incidents")
		       ? 0
		       : -EPERM;
}

// A symbolic link in its place leads wherever whoever made it wants.
static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0)
		return fd;
	fd = -errno;
	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? -EPERM : fd;
}

// Open the folder; make it when it is not there. Whatever the umask, the mode is ours to say.
static int open_rundir(const char *path, const struct pmdp_segment_opts *opts, bool *out_was_made)
{
	const char *group = opts->group;
	bool was_made = false;
	gid_t gid = (gid_t)-1;
	int fd, rc;

	if (group) {
		rc = find_group(group, &gid);
		if (rc < 0)
			return rc;
	}
	if (mkdir(path, 0700) == 0)
		was_made = true;
	else if (errno != EEXIST)
		return -errno;
	if (was_made)
		(void)chmod(path, 0700); // an odd umask leaves less than the open needs
	fd = open_dir(path);
	if (fd < 0)
		return fd;
	rc = check_rundir(fd, opts);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	if (was_made && ((group && fchown(fd, (uid_t)-1, gid) < 0) ||
			 fchmod(fd, geteuid() == 0 ? 03770 : 0750) < 0)) {
		rc = -errno;
		close(fd);
		rmdir(path);
		return rc;
	}
	*out_was_made = was_made;
	return fd;
}

static int set_owner(int fd, int dir_fd, const struct pmdp_segment_opts *opts)
{
	struct stat st;
	gid_t gid;
	int rc;

	if (opts->group) {
		rc = find_group(opts->group, &gid);
		if (rc < 0)
			return rc;
		if (fchown(fd, (uid_t)-1, gid) < 0)
			return -errno;
	} else if (fstat(dir_fd, &st) < 0) {
		return -errno;
	} else if (fchown(fd, (uid_t)-1, st.st_gid) < 0 && errno != EPERM) {
		return -errno; // EPERM: an ordinary user outside the folder's group keeps his own
	}
	return fchmod(fd, opts->mode ? opts->mode : 0640) < 0 ? -errno : 0;
}

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

// Lay the sections out one after the other. Returns the size of the file, 0: out of bounds.
static uint64_t lay_out(const struct pmdp_segment_opts *opts,
			struct pmdp_section_shm out_sections[PMDP_N_SECTIONS])
{
	uint64_t offset = sizeof(struct pmdp_header_shm);

	if (opts->n_sections > PMDP_N_SECTIONS)
		return 0;
	for (uint32_t i = 0; i < opts->n_sections; i++) {
		const struct pmdp_segment_section *s = &opts->sections[i];

		out_sections[i].kind = s->kind;
		out_sections[i].n_items = s->n_items;
		out_sections[i].item_size_bytes = s->item_size_bytes;
		out_sections[i].offset_bytes = offset;
		offset += round_up((uint64_t)s->n_items * s->item_size_bytes, 128);
		if (s->item_size_bytes % 64 || offset > PMDP_MAX_SEGMENT_BYTES)
			return 0;
	}
	return round_up(offset, 4096);
}

static int fill_header(struct pmdp_segment *seg, const struct pmdp_segment_opts *opts,
		       const struct pmdp_section_shm *sections)
{
	struct pmdp_header_shm *header = seg->header;
	struct pmdp_stat stat;
	int rc;

	header->abi_version = PMDP_ABI_VERSION;
	header->segment_kind = opts->segment_kind;
	header->segment_size_bytes = seg->size_bytes;
	header->header_size_bytes = sizeof *header;
	header->clock_kind = opts->clock_kind;
	header->writer_pid = (uint32_t)getpid();
	header->records_per_lane = opts->records_per_lane;
	header->pidns_inode = pmdp_process_pidns();
	header->created_realtime_us = pmdp_realtime_now_us();
	rc = pmdp_process_boot_id(header->boot_id);
	if (rc == 0)
		rc = pmdp_stat_read(0, 0, &stat);
	if (rc == 0)
		header->writer_start_ticks = stat.start_ticks;
	memcpy(header->instance, opts->instance, strlen(opts->instance));
	memcpy(header->sections, sections, sizeof header->sections);
	return rc;
}

// The nameless file: sized now, because a full tmpfs must fail here and not as SIGBUS in a beat.
static int make_file(struct pmdp_segment *seg, const struct pmdp_segment_opts *opts)
{
	int rc;

	seg->fd = openat(seg->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (seg->fd < 0)
		return -errno;
	rc = pmdp_takeover_lock(seg->fd, PMDP_LOCK_WRITER);
	if (rc == 0)
		rc = set_owner(seg->fd, seg->dir_fd, opts);
	if (rc < 0)
		return rc;
	do { // a signal makes tmpfs give up and undo
		rc = posix_fallocate(seg->fd, 0, (off_t)seg->size_bytes);
	} while (rc == EINTR);
	if (rc)
		return -rc;
	seg->header = mmap(NULL, seg->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			   seg->fd, 0);
	if (seg->header == MAP_FAILED) {
		seg->header = NULL;
		return -errno;
	}
	// Refused beyond RLIMIT_MEMLOCK: pages of a tmpfs then only go if the machine swaps.
	(void)mlock(seg->header, seg->size_bytes);
	return 0;
}

static int open_folder(struct pmdp_segment *seg, const struct pmdp_segment_opts *opts)
{
	char dir[PATH_MAX];
	struct statfs fs;
	bool was_made = false;
	int rc = pmdp_rundir(opts->rundir, dir, sizeof dir);

	if (rc < 0)
		return rc;
	seg->dir_fd = open_rundir(dir, opts, &was_made);
	if (seg->dir_fd < 0)
		return seg->dir_fd;
	if (fstatfs(seg->dir_fd, &fs) < 0)
		rc = -errno;
	else if (fs.f_type != TMPFS_MAGIC)
		rc = -ENOTSUP;
	if (rc < 0 && was_made)
		rmdir(dir);
	return rc;
}

int pmdp_segment_create(const struct pmdp_segment_opts *opts, struct pmdp_segment *out_seg)
{
	struct pmdp_section_shm sections[PMDP_N_SECTIONS] = {0};
	struct pmdp_segment seg = {.fd = -1, .dir_fd = -1};
	char path[PATH_MAX];
	int rc;

	seg.is_damaged_kept = opts->is_damaged_kept;
	seg.ticks_hz = opts->ticks_hz;
	seg.size_bytes = lay_out(opts, sections);
	if (!seg.size_bytes || !opts->ticks_hz)
		return -EINVAL;
	rc = pmdp_path(opts->rundir, opts->instance, opts->suffix, path, sizeof path);
	if (rc < 0)
		return rc;
	seg.path = strdup(path);
	if (!seg.path)
		return -ENOMEM;
	seg.name = strrchr(seg.path, '/') ? strrchr(seg.path, '/') + 1 : seg.path;
	rc = open_folder(&seg, opts);
	if (rc == 0)
		rc = pmdp_takeover_check(seg.dir_fd, seg.name); // early, before memory is taken
	if (rc == 0)
		rc = make_file(&seg, opts);
	if (rc == 0)
		rc = fill_header(&seg, opts, sections);
	if (rc < 0) {
		pmdp_segment_close(&seg, false);
		return rc;
	}
	pmdp_segment_alive(&seg);
	*out_seg = seg;
	return 0;
}

int pmdp_segment_publish(struct pmdp_segment *seg)
{
	return pmdp_takeover_name(seg);
}

void pmdp_segment_close(struct pmdp_segment *seg, bool is_unlinked)
{
	if (!seg->path)
		return;
	if (seg->header) {
		if (is_unlinked)
			pmdp_takeover_unlink(seg);
		munmap(seg->header, seg->size_bytes);
	}
	if (seg->fd >= 0)
		close(seg->fd);
	if (seg->dir_fd >= 0)
		close(seg->dir_fd);
	free(seg->path);
	memset(seg, 0, sizeof *seg);
	seg->fd = seg->dir_fd = -1;
}

void *pmdp_segment_section(const struct pmdp_segment *seg, uint32_t kind, uint32_t *out_n_items)
{
	for (uint32_t i = 0; i < PMDP_N_SECTIONS; i++) {
		const struct pmdp_section_shm *s = &seg->header->sections[i];

		if (s->kind != kind)
			continue;
		if (out_n_items)
			*out_n_items = s->n_items;
		return (char *)seg->header + s->offset_bytes;
	}
	return NULL;
}

// A count and a time that belong together: of three tries the one that took the shortest.
static void read_pair(uint64_t *out_ticks, uint64_t *out_mono_ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t before = pmdp_tsc_now();
		uint64_t mono_ns = pmdp_mono_now_ns();
		uint64_t took = pmdp_tsc_now() - before;

		if (took >= best)
			continue;
		best = took;
		*out_ticks = before + took / 2;
		*out_mono_ns = mono_ns;
	}
}

void pmdp_segment_alive(struct pmdp_segment *seg)
{
	struct pmdp_clock_pair_shm *pair = &seg->header->clock;
	uint64_t ticks, mono_ns, seq;

	if (seg->header->clock_kind == PMDP_CLOCK_TSC)
		read_pair(&ticks, &mono_ns);
	else
		ticks = mono_ns = pmdp_mono_now_ns();
	seq = pmdp_seq_write_begin(&pair->seq);
	atomic_store_explicit(&pair->ticks, ticks, memory_order_relaxed);
	atomic_store_explicit(&pair->mono_ns, mono_ns, memory_order_relaxed);
	atomic_store_explicit(&pair->ticks_hz, seg->ticks_hz, memory_order_relaxed);
	pmdp_seq_write_end(&pair->seq, seq);
	atomic_store_explicit(&seg->header->alive_ns, mono_ns, memory_order_relaxed);
}
