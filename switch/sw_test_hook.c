// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Faults on order, for tests of the watchers. Not in release builds.
#ifdef PMDP_TEST_HOOKS

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "sw_pmd.h"
#include "sw_pmd_run.h"
#include "sw_switch.h"

// For ever, unless ms > 0. The name is what a stack sample is expected to show.
void sw_test_spin(uint32_t ms);
__attribute__((noinline)) void sw_test_spin(uint32_t ms)
{
	uint64_t end_ns = pmdp_mono_now_ns() + ms * UINT64_C(1000000);

	while (ms == 0 || pmdp_mono_now_ns() < end_ns)
		for (uint32_t i = 0; i < 100000; i++)
			__asm__ __volatile__("" ::: "memory");
}

// In the kernel, reading a pipe into which somebody writes after ms.
struct pipe_writer {
	int fd;
	uint32_t ms;
};

static void *write_later(void *arg)
{
	struct pipe_writer *writer = arg;

	poll(NULL, 0, (int)writer->ms);
	if (write(writer->fd, "", 1) < 0)
		close(writer->fd);
	return NULL;
}

static void block_in_pipe(uint32_t ms)
{
	struct pipe_writer writer = {.ms = ms};
	pthread_t thread;
	int fds[2];
	char byte;

	if (pipe(fds) != 0)
		return;
	writer.fd = fds[1];
	if (pthread_create(&thread, NULL, write_later, &writer) == 0) {
		if (read(fds[0], &byte, 1) < 0)
			sw_test_spin(1);
		pthread_join(thread, NULL);
	}
	close(fds[0]);
	close(fds[1]);
}

// Minor page faults, one after the other, for ms.
static void fault_pages(uint32_t ms)
{
	const size_t size = 16u << 20;
	uint64_t end_ns = pmdp_mono_now_ns() + ms * UINT64_C(1000000);
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return;
	madvise(map, size, MADV_NOHUGEPAGE);
	munlock(map, size);
	while (pmdp_mono_now_ns() < end_ns) {
		madvise(map, size, MADV_DONTNEED);
		for (size_t i = 0; i < size && pmdp_mono_now_ns() < end_ns; i += 4096)
			map[i] = 1;
	}
	munmap(map, size);
}

void sw_test_act(struct sw_pmd *pmd)
{
	uint32_t action = atomic_load_explicit(&pmd->test_action, memory_order_acquire);
	uint32_t ms = atomic_load_explicit(&pmd->test_ms, memory_order_relaxed);

	if (action == SW_TEST_NONE)
		return;
	atomic_store_explicit(&pmd->test_action, SW_TEST_NONE, memory_order_relaxed);
	switch (action) {
	case SW_TEST_SPIN:
		sw_test_spin(ms);
		break;
	case SW_TEST_BLOCK:
		block_in_pipe(ms);
		break;
	case SW_TEST_FAULT:
		fault_pages(ms);
		break;
	case SW_TEST_EXIT:
		pthread_exit(NULL);
	default:
		break;
	}
}

static struct sw_pmd *find_pmd(struct sw_switch *sw, const char *text)
{
	char *end;
	long core;

	if (strncmp(text, "core:", 5) != 0)
		return sw_pmd_by_name(sw, text);
	core = strtol(text + 5, &end, 10);
	return end == text + 5 || *end != '\0' ? NULL : sw_pmd_by_core(sw, (int)core);
}

int sw_test_hook(struct sw_switch *sw, int argc, const char *const *argv, struct sw_error *err)
{
	static const char *const actions[] = {[SW_TEST_SPIN] = "spin",
					      [SW_TEST_BLOCK] = "block",
					      [SW_TEST_FAULT] = "fault",
					      [SW_TEST_EXIT] = "exit"};
	struct sw_pmd *pmd;
	uint32_t action = SW_TEST_SPIN;
	uint32_t ms;

	if (argc < 2 || argc > 3)
		return sw_fail(err, -EINVAL, "usage: test-hook PMD spin|block|fault|exit [MS]");
	if (argc == 2 && strcmp(argv[1], "mark") == 0)
		return sw_test_mark(sw, argv[0], err);
	pmd = find_pmd(sw, argv[0]);
	if (pmd == NULL)
		return sw_fail(err, -ENOENT, "no PMD '%s': give its name, or core:N", argv[0]);
	while (action <= SW_TEST_EXIT && strcmp(actions[action], argv[1]) != 0)
		action++;
	if (action > SW_TEST_EXIT)
		return sw_fail(err, -EINVAL, "no action '%s': spin, block, fault or exit", argv[1]);
	ms = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	if (ms == 0 && (action == SW_TEST_BLOCK || action == SW_TEST_FAULT))
		return sw_fail(err, -EINVAL, "%s needs MS, at least 1", argv[1]);
	atomic_store_explicit(&pmd->test_ms, ms, memory_order_relaxed);
	atomic_store_explicit(&pmd->test_action, action, memory_order_release);
	return 0;
}

#else
typedef int sw_no_test_hooks; // a translation unit must not be empty
#endif
