// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_eal.h"

#include <errno.h>
#include <linux/mman.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "sw_log.h"
#include "sw_sched.h"

#define SW_MAX_ARGS 128
#define SW_ARG_BYTES 1024
#define SW_HUGEPAGE_BYTES (2ul << 20)
#define SW_LEAST_HUGEPAGES 64 // 128 MiB: the shared pool, plans, queues
#define SW_NO_HUGE_MB 2048    // address space; touched only as needed
#define SW_LEAST_NO_HUGE_MB 256

struct args {
	int argc;
	char *argv[SW_MAX_ARGS];
	char text[SW_MAX_ARGS][SW_ARG_BYTES];
};

__attribute__((format(printf, 2, 3))) static void add_arg(struct args *args, const char *format,
							  ...)
{
	va_list list;

	if (args->argc == SW_MAX_ARGS - 1)
		return;
	va_start(list, format);
	vsnprintf(args->text[args->argc], SW_ARG_BYTES, format, list);
	va_end(list);
	args->argv[args->argc] = args->text[args->argc];
	args->argc++;
}

// Is one of the options there, as "-x", "-xVALUE", "--long" or "--long=VALUE"?
static bool has_option(int argc, char **argv, const char *const *options)
{
	for (int i = 1; i < argc; i++) {
		for (const char *const *option = options; *option != NULL; option++) {
			size_t len = strlen(*option);
			bool is_long = strncmp(*option, "--", 2) == 0;

			if (strncmp(argv[i], *option, len) != 0)
				continue;
			if (!is_long && strncmp(argv[i], "--", 2) == 0)
				continue;
			if (!is_long || argv[i][len] == '\0' || argv[i][len] == '=')
				return true;
		}
	}
	return false;
}

/*
 * Can this process have bytes of hugepages of a size (flag MAP_HUGE_*)? Reserve them, without
 * taking them, and fault one in by a call that reports a refusal (a cgroup's limit, say) instead of
 * killing us. 0, or -errno.
 */
static int probe_hugepages(int size_flag, size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size_flag, -1, 0);
	int rc = 0;

	if (map == MAP_FAILED)
		return -errno;
	// EINVAL: a kernel before 5.14 can't tell.
	if (madvise(map, SW_HUGEPAGE_BYTES, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		rc = -errno;
	munmap(map, bytes);
	return rc;
}

static bool has_hugepages(char *why, size_t size)
{
	int rc = probe_hugepages(MAP_HUGE_2MB, SW_LEAST_HUGEPAGES * SW_HUGEPAGE_BYTES);

	if (rc == 0 || probe_hugepages(MAP_HUGE_1GB, 1ul << 30) == 0)
		return true;
	if (rc == -ENOMEM)
		snprintf(why, size, "fewer than %d free hugepages of 2 MiB (see vm.nr_hugepages)",
			 SW_LEAST_HUGEPAGES);
	else
		snprintf(why, size, "hugepages are refused: %s", strerror(-rc));
	return false;
}

// Three quarters of what is available, at most SW_NO_HUGE_MB.
static unsigned long no_huge_mb(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long available_kb = 0;
	unsigned long mb;
	char line[128];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "MemAvailable: %lu kB", &available_kb) == 1)
			break;
	if (file != NULL)
		fclose(file);
	mb = available_kb / 1024 / 4 * 3;
	if (mb < SW_LEAST_NO_HUGE_MB)
		return SW_LEAST_NO_HUGE_MB;
	return mb < SW_NO_HUGE_MB ? mb : SW_NO_HUGE_MB;
}

static void add_memory(struct sw_switch *sw, struct args *args, int argc, char **argv)
{
	static const char *const user_memory[] = {"--no-huge",     "--in-memory",  "--huge-dir",
						  "--huge-unlink", "--legacy-mem", NULL};
	static const char *const no_huge[] = {"--no-huge", NULL};
	static const char *const amount[] = {"-m", "--socket-mem", NULL};
	char why[128] = "";
	bool is_no_huge = has_option(argc, argv, no_huge);

	sw->has_hugepages = !is_no_huge;
	if (!is_no_huge) {
		if (has_option(argc, argv, user_memory))
			return;
		if (has_hugepages(why, sizeof(why))) {
			// In memory only: nothing to clean up, and an ordinary user may do it.
			add_arg(args, "--in-memory");
			return;
		}
		sw_log(SW_LOG_WARNING, "running without hugepages: %s; expect a lower rate", why);
		add_arg(args, "--no-huge");
		sw->has_hugepages = false;
	}
	// --in-memory and --no-huge exclude each other; this is the part that matters without
	// files.
	add_arg(args, "--no-shconf");
	if (!has_option(argc, argv, amount))
		add_arg(args, "-m%lu", no_huge_mb());
}

// One EAL lcore for the main thread, on all control cores: EAL puts its own threads there too, and
// the PMDs are not EAL's.
static void add_lcores(struct sw_switch *sw, struct args *args, int argc, char **argv)
{
	static const char *const lcores[] = {"-l", "-c", "--lcores", "-s", "-S", NULL};
	char list[SW_ARG_BYTES / 2] = "";
	cpu_set_t control;
	cpu_set_t pmds;
	size_t len = 0;

	if (has_option(argc, argv, lcores))
		return;
	sw_switch_pmd_cpus(sw, &sw->settings, &pmds);
	sw_sched_control_cpus(&sw->allowed_cpus, &pmds, &control);
	sched_setaffinity(0, sizeof(control), &control);
	for (int cpu = 0; cpu < CPU_SETSIZE && len < sizeof(list) - 16; cpu++)
		if (CPU_ISSET(cpu, &control))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%d",
						len == 0 ? "" : ",", cpu);
	add_arg(args, "--lcores=0@(%s)", list);
}

int sw_eal_init(struct sw_switch *sw, int argc, char **argv, struct sw_error *err)
{
	static const char *const prefix[] = {"--file-prefix", NULL};
	static const char *const devices[] = {"-a", "--allow", "-w", "--no-pci", NULL};
	static const char *const telemetry[] = {"--telemetry", NULL};
	static struct args memory; // EAL keeps pointers into its arguments
	struct args *args = &memory;
	int rc;

	add_arg(args, "pmdpulse-switch");
	add_arg(args, "--log-level=lib.eal:error"); // the user's own levels come later and win
	add_memory(sw, args, argc, argv);
	add_lcores(sw, args, argc, argv);
	if (!has_option(argc, argv, prefix))
		add_arg(args, "--file-prefix=pmdpulse-%s", sw->options.instance);
	if (!has_option(argc, argv, devices))
		add_arg(args, "--no-pci");
	if (!has_option(argc, argv, telemetry))
		add_arg(args, "--no-telemetry");
	for (int i = 1; i < argc; i++)
		add_arg(args, "%s", argv[i]);
	rc = rte_eal_init(args->argc, args->argv);
	if (rc < 0)
		return sw_fail(err, -EIO,
			       "DPDK does not start: %s; see the lines above and the EAL options "
			       "before '--'",
			       rte_strerror(rte_errno));
	return 0;
}

void sw_eal_remove_files(void)
{
	const char *folder = rte_eal_get_runtime_dir();

	// Empty, as nothing is shared; a folder with files is somebody's and stays.
	if (folder != NULL)
		rmdir(folder);
}

void sw_eal_cleanup(void)
{
	char folder[512];

	snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(folder);
}
