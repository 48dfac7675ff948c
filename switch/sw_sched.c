// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_sched.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sw_log.h"
#include "sw_pmd.h"
#include "sw_switch.h"

#define SW_PMD_NICE (-20)

void sw_sched_control_cpus(const cpu_set_t *allowed, const cpu_set_t *pmds, cpu_set_t *out_cpus)
{
	cpu_set_t cpus;
	int first = 0;

	CPU_AND(&cpus, allowed, pmds);
	CPU_XOR(&cpus, allowed, &cpus);
	if (CPU_COUNT(&cpus) == 0) {
		while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, allowed))
			first++;
		CPU_SET(first, &cpus);
	}
	*out_cpus = cpus;
}

static void control_cpus(struct sw_switch *sw, cpu_set_t *out_cpus)
{
	cpu_set_t pmds;

	sw_switch_pmd_cpus(sw, &sw->settings, &pmds);
	sw_sched_control_cpus(&sw->allowed_cpus, &pmds, out_cpus);
}

static bool is_pmd_tid(struct sw_switch *sw, long tid)
{
	struct sw_pmd *pmd = NULL;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		if ((long)pmd->tid == tid)
			return true;
	return false;
}

void sw_sched_move_control(struct sw_switch *sw)
{
	struct sw_pmd *pmd = NULL;
	struct dirent *entry;
	cpu_set_t cpus;
	DIR *dir;

	// Not yet running: its tid isn't known, and it must not be taken for a control thread.
	while ((pmd = sw_pmd_next(sw, pmd)) != NULL)
		if (atomic_load_explicit(&pmd->life, memory_order_acquire) == SW_PMD_STARTING)
			return;
	control_cpus(sw, &cpus);
	dir = opendir("/proc/self/task");
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0 && !is_pmd_tid(sw, tid))
			sched_setaffinity((pid_t)tid, sizeof(cpus), &cpus);
	}
	closedir(dir);
}

// The PMD would lose the rest of every period; a cgroup with a quota takes no real-time thread.
static void warn_rt_throttling(void)
{
	FILE *file = fopen("/proc/sys/kernel/sched_rt_runtime_us", "re");
	long runtime_us = -1;
	static bool is_said;

	if (file == NULL)
		return;
	if (fscanf(file, "%ld", &runtime_us) == 1 && runtime_us >= 0 && !is_said) {
		sw_log(SW_LOG_WARNING,
		       "pmd-sched: a SCHED_FIFO PMD alone on its core is stopped by real-time "
		       "throttling after %ld us of every period; set kernel.sched_rt_runtime_us=-1",
		       runtime_us);
		is_said = true;
	}
	fclose(file);
}

static bool try_fifo(const struct sw_pmd *pmd, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	if (sched_setscheduler((pid_t)pmd->tid, SCHED_FIFO, &param) == 0) {
		warn_rt_throttling();
		return true;
	}
	sw_log(SW_LOG_WARNING,
	       "%s: no SCHED_FIFO (%s): needs CAP_SYS_NICE or LimitRTPRIO=%d, and a cgroup without "
	       "a CPU quota; trying nice %d",
	       pmd->name, strerror(errno), priority, SW_PMD_NICE);
	return false;
}

/*
 * With autogroup scheduling (sched(7)) a nice value counts only among the tasks of one session:
 * beside a busy task of another session a PMD at nice -20 got 31 % of its core, and 94 % with the
 * session's group raised too. The group is ours to raise only where the session is.
 */
static void raise_autogroup(void)
{
	static bool is_done;
	FILE *file;
	bool is_ok;

	if (is_done)
		return;
	is_done = true;
	file = fopen("/proc/self/autogroup", "r+e");
	if (file == NULL)
		return; // a kernel without it
	if (getsid(0) != getpid()) {
		sw_log(SW_LOG_WARNING,
		       "nice counts only within this session (autogroup): start the switch by "
		       "setsid or systemd, or set kernel.sched_autogroup_enabled=0");
		fclose(file);
		return;
	}
	is_ok = fprintf(file, "%d", SW_PMD_NICE) > 0;
	if (fclose(file) != 0 || !is_ok)
		sw_log(SW_LOG_WARNING,
		       "/proc/self/autogroup: %s: tasks of other sessions share the PMDs' "
		       "cores evenly with them",
		       strerror(errno));
}

void sw_sched_pmd(struct sw_switch *sw, struct sw_pmd *pmd)
{
	const struct sched_param param = {.sched_priority = 0};
	static bool is_refusal_said;
	cpu_set_t control;
	int nice = SW_PMD_NICE;

	control_cpus(sw, &control);
	if (CPU_ISSET(pmd->core, &control)) {
		// Every core has a PMD: raised, this one would starve the control threads on its
		// core.
		if (!pmd->is_sharing_said)
			sw_log(SW_LOG_WARNING,
			       "%s shares core %d with the control threads, so it keeps nice 0 "
			       "whatever pmd-sched says: leave a core out of pmd-cpu-mask",
			       pmd->name, pmd->core);
		pmd->is_sharing_said = true;
		nice = 0;
	} else if (sw->settings.fifo_priority > 0 && try_fifo(pmd, sw->settings.fifo_priority)) {
		return;
	}
	sched_setscheduler((pid_t)pmd->tid, SCHED_OTHER, &param);
	if (setpriority(PRIO_PROCESS, (id_t)pmd->tid, nice) != 0 && nice < 0 && !is_refusal_said) {
		sw_log(SW_LOG_WARNING,
		       "%s: no nice %d (%s): needs CAP_SYS_NICE or LimitNICE=40; PMDs share their "
		       "cores as any other task",
		       pmd->name, nice, strerror(errno));
		is_refusal_said = true;
	} else if (nice < 0 && !is_refusal_said) {
		raise_autogroup();
	}
}

void sw_sched_lock_memory(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
		sw_log(SW_LOG_WARNING,
		       "memory is not locked (%s): needs CAP_IPC_LOCK or LimitMEMLOCK=infinity; "
		       "PMDs may fault when memory is short",
		       strerror(errno));
}
