// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "pmdp_takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdp_process.h"

#define LOCK_TRIES 100
#define LOCK_WAIT_NS 1000000
#define NAME_TRIES 100

int pmdp_takeover_lock(int fd, int byte)
{
	const struct timespec wait = {.tv_nsec = LOCK_WAIT_NS};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	// The lock of the name is held for the few system calls of a rename: waiting is rare and
	// short.
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		nanosleep(&wait, NULL);
	}
	return -EEXIST;
}

int pmdp_segment_is_locked(int fd)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = PMDP_LOCK_WRITER, .l_len = 1};

	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	return lock.l_type != F_UNLCK;
}

/*
 * What stands in an open file. The first 128 bytes of the header and the offsets of alive_ns and
 * stopped_ns are the same in every ABI version, so that this works across them.
 * 0: a segment whose writer is gone; 1: not a segment; -EEXIST: its writer lives.
 */
static int judge(int fd, struct pmdp_header_shm *out_header)
{
	ssize_t len = pread(fd, out_header, sizeof *out_header, 0);
	int rc;

	if (len != (ssize_t)sizeof *out_header ||
	    atomic_load_explicit(&out_header->magic, memory_order_relaxed) != PMDP_MAGIC)
		return 1;
	if (atomic_load_explicit(&out_header->stopped_ns, memory_order_relaxed))
		return 0;
	rc = pmdp_process_writer_alive(out_header, fd);
	return rc ? -EEXIST : 0; // unknown counts as alive
}

int pmdp_takeover_check(int dir_fd, const char *name)
{
	struct pmdp_header_shm header;
	int rc, fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return 0; // whatever is wrong shows again when the name is taken
	rc = judge(fd, &header);
	close(fd);
	return rc < 0 ? rc : 0;
}

// The last words of the header. M1 pairs with M2: who sees the magic sees the constant part whole.
static void seal(struct pmdp_segment *seg, uint64_t predecessor_generation)
{
	struct pmdp_header_shm *header = seg->header;
	uint64_t generation = pmdp_realtime_now_us() / 1000;

	// A number that only damage can explain is not counted on from.
	if (predecessor_generation < UINT64_MAX / 2 && generation <= predecessor_generation)
		generation = predecessor_generation + 1;
	header->generation = generation;
	atomic_store_explicit(&header->magic, PMDP_MAGIC, memory_order_release); // M1
}

// Give the nameless file a name that is not there yet. -EEXIST: it is there.
static int link_file(struct pmdp_segment *seg, const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", seg->fd);
	if (linkat(AT_FDCWD, path, seg->dir_fd, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return 0;
}

// Does the name lead to this open file?
static int leads_to(int dir_fd, const char *name, int fd)
{
	struct stat at_name, at_fd;

	if (fstat(fd, &at_fd) < 0)
		return -errno;
	if (fstatat(dir_fd, name, &at_name, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return at_name.st_dev == at_fd.st_dev && at_name.st_ino == at_fd.st_ino;
}

// Under the predecessor's lock: its name is ours to replace. 1: try again.
static int replace(struct pmdp_segment *seg, int old_fd)
{
	char side_name[NAME_MAX + 8];
	struct pmdp_header_shm old;
	int rc = judge(old_fd, &old);
	bool is_damaged = rc == 1 || seg->is_unreadable;

	if (rc < 0)
		return rc;
	seg->was_damaged |= is_damaged;
	if (is_damaged && seg->is_damaged_kept) {
		snprintf(side_name, sizeof side_name, "%s.bad", seg->name);
		if (renameat(seg->dir_fd, seg->name, seg->dir_fd, side_name) < 0)
			return -errno;
		seg->is_unreadable = false; // said of this file, not of one that comes next
		return 1;
	}
	seal(seg, rc == 1 ? 0 : old.generation);
	// Two steps, because no call links over an existing name. The lock makes the side name ours
	// too; one that stands there is left over from a starter that was killed between the steps.
	snprintf(side_name, sizeof side_name, ".%s.new", seg->name);
	if (unlinkat(seg->dir_fd, side_name, 0) < 0 && errno != ENOENT)
		return -errno;
	rc = link_file(seg, side_name);
	if (rc == 0 && renameat(seg->dir_fd, side_name, seg->dir_fd, seg->name) < 0) {
		rc = -errno;
		unlinkat(seg->dir_fd, side_name, 0);
	}
	return rc;
}

static int take_over(struct pmdp_segment *seg, int old_fd)
{
	struct stat st;
	int rc;

	if (fstat(old_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENXIO;
	rc = pmdp_takeover_lock(old_fd, PMDP_LOCK_NAME);
	if (rc < 0)
		return rc;
	rc = leads_to(seg->dir_fd, seg->name, old_fd);
	if (rc <= 0)
		return rc < 0 ? rc : 1; // another starter was faster: look at what stands there now
	return replace(seg, old_fd);
}

int pmdp_takeover_name(struct pmdp_segment *seg)
{
	int rc, fd;

	for (int i = 0; i < NAME_TRIES; i++) {
		fd = openat(seg->dir_fd, seg->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0) {
			rc = take_over(seg, fd);
			close(fd); // and its lock with it
			if (rc <= 0)
				return rc;
		} else if (errno == ENOENT) {
			seal(seg, 0);
			rc = link_file(seg, seg->name);
			if (rc != -EEXIST)
				return rc;
		} else {
			return -errno;
		}
	}
	return -EEXIST;
}

void pmdp_takeover_unlink(struct pmdp_segment *seg)
{
	if (pmdp_takeover_lock(seg->fd, PMDP_LOCK_NAME) == 0 &&
	    leads_to(seg->dir_fd, seg->name, seg->fd) == 1)
		unlinkat(seg->dir_fd, seg->name, 0);
}
