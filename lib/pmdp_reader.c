// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Open, close, and the one way in for bytes of a segment.
#include "pmdp_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmdp_process.h"
#include "pmdp_shm.h"

int pmdp_reader_fetch(const struct pmdp_reader *reader, uint64_t offset_bytes, void *out,
		      size_t size)
{
	size_t done = 0;
	ssize_t len;

	if (reader->memory) {
		if (offset_bytes > reader->memory_size || size > reader->memory_size - offset_bytes)
			return -EBADMSG;
		pmdp_words_load(out, reader->memory + offset_bytes, size);
		return 0;
	}
	while (done < size) {
		len = pread(reader->fd, (char *)out + done, size - done,
			    (off_t)(offset_bytes + done));
		if (len == 0)
			return -EBADMSG;
		if (len > 0)
			done += (size_t)len;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static void say(char *reason, size_t reason_size, const char *text)
{
	if (reason && reason_size)
		snprintf(reason, reason_size, "%s", text);
}

static void say_errno(char *reason, size_t reason_size, const char *what, int error)
{
	if (reason && reason_size)
		snprintf(reason, reason_size, "%s: %s", what, strerrordesc_np(error));
}

// Open without being led astray: no link is followed, a FIFO does not block.
static int open_file(const char *path, char *reason, size_t reason_size)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ELOOP || errno == ENXIO) {
		say(reason, reason_size, "not a regular file but a symbolic link or a socket");
		return -EPERM;
	}
	fd = -errno;
	say_errno(reason, reason_size, "open", -fd);
	return fd;
}

static int check_file(int fd, const struct pmdp_reader_opts *opts, uint64_t *out_size_bytes,
		      char *reason, size_t reason_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		say_errno(reason, reason_size, "fstat", errno);
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		say(reason, reason_size, "not a regular file");
		return -EPERM;
	}
	if (st.st_uid != 0 && st.st_uid != geteuid() &&
	    !(opts->has_publisher_uid && st.st_uid == opts->publisher_uid) &&
	    !pmdp_process_is_service(st.st_uid, opts->suffix)) {
		if (reason && reason_size)
			snprintf(
				reason, reason_size,
				"owned by uid %u: neither root, oneself, the installed service nor "
				"publisher-user",
				(unsigned int)st.st_uid);
		return -EPERM;
	}
	*out_size_bytes = (uint64_t)st.st_size;
	return 0;
}

int pmdp_reader_open_why(const char *instance, const struct pmdp_reader_opts *opts,
			 struct pmdp_reader **out_reader, char *reason, size_t reason_size)
{
	static const struct pmdp_reader_opts no_opts;
	struct pmdp_reader *reader;
	char path[PATH_MAX];
	uint64_t size_bytes = 0;
	int rc;

	if (!opts)
		opts = &no_opts;
	rc = pmdp_path(opts->rundir, instance, opts->suffix ? opts->suffix : "ring", path,
		       sizeof path);
	if (rc < 0) {
		say_errno(reason, reason_size, "instance name or folder", -rc);
		return rc;
	}
	reader = calloc(1, sizeof *reader);
	if (!reader) {
		say(reason, reason_size, "out of memory");
		return -ENOMEM;
	}
	reader->path = strdup(path);
	rc = reader->fd = open_file(path, reason, reason_size);
	if (rc >= 0)
		rc = check_file(reader->fd, opts, &size_bytes, reason, reason_size);
	if (rc >= 0)
		rc = reader->path ? pmdp_reader_attach(reader, size_bytes, reason, reason_size)
				  : -ENOMEM;
	if (rc < 0) {
		pmdp_reader_close(reader);
		return rc;
	}
	*out_reader = reader;
	return 0;
}

int pmdp_reader_open(const char *instance, const struct pmdp_reader_opts *opts,
		     struct pmdp_reader **out_reader)
{
	return pmdp_reader_open_why(instance, opts, out_reader, NULL, 0);
}

int pmdp_reader_open_memory(const void *segment, size_t size, struct pmdp_reader **out_reader)
{
	struct pmdp_reader *reader = calloc(1, sizeof *reader);
	int rc;

	if (!reader)
		return -ENOMEM;
	reader->fd = -1;
	reader->memory = segment;
	reader->memory_size = size;
	rc = pmdp_reader_attach(reader, size, NULL, 0);
	if (rc < 0) {
		pmdp_reader_close(reader);
		return rc;
	}
	*out_reader = reader;
	return 0;
}

void pmdp_reader_close(struct pmdp_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	free(reader->path);
	free(reader->front);
	free(reader->looks);
	free(reader);
}

const struct pmdp_segment_info *pmdp_reader_info(const struct pmdp_reader *reader)
{
	return &reader->info;
}

int pmdp_reader_check(const struct pmdp_reader *reader)
{
	struct stat at_name, at_fd;

	if (reader->memory)
		return 0;
	if (fstat(reader->fd, &at_fd) < 0)
		return -errno;
	if (lstat(reader->path, &at_name) < 0)
		return -errno;
	return at_name.st_dev == at_fd.st_dev && at_name.st_ino == at_fd.st_ino ? 0 : -ESTALE;
}

int pmdp_reader_writer_alive(const struct pmdp_reader *reader)
{
	return pmdp_process_writer_alive(&reader->header, reader->fd);
}
