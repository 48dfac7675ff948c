// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_prio.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ag_log.h"

#define AG_NICE -20

// Attributes of the process, so one set of them.
static struct {
	cpu_set_t original;
	cpu_set_t avoided;
	bool has_original;
	char sched[96];
	char mlock[96];
} prio;

static bool may_lock_all(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur == RLIM_INFINITY)
		return true;
	return !syscall(SYS_capget, &header, data) && (data[0].effective & (1U << CAP_IPC_LOCK));
}

static void lock_memory(void)
{
	// What is mapped now is brought in; what comes later (symbol files among it) is locked page
	// by page as it is touched. Under a limit, later mappings would be refused: leave them
	// unlocked.
	if (mlockall(MCL_CURRENT) || (may_lock_all() && mlockall(MCL_FUTURE | MCL_ONFAULT))) {
		snprintf(prio.mlock, sizeof(prio.mlock), "-mlock: %s", strerror(errno));
		ag_log(AG_NOTICE,
		       "memory is not locked (%s): a page fault may make the agent late; "
		       "give it LimitMEMLOCK=infinity or CAP_IPC_LOCK",
		       strerror(errno));
		return;
	}
	strcpy(prio.mlock, "mlock");
}

// Where autogroup scheduling (sched(7)) is on, nice counts only within a session: raise the
// session's group where the session is the agent's own. Returns false when nice counts less than it
// should.
static bool raise_autogroup(void)
{
	char is_on = '0';
	FILE *file = fopen("/proc/sys/kernel/sched_autogroup_enabled", "re");

	if (file) {
		is_on = (char)fgetc(file);
		fclose(file);
	}
	if (is_on != '1')
		return true;
	file = fopen("/proc/self/autogroup", "r+e");
	if (!file)
		return false;
	bool is_ok = getsid(0) == getpid() && fprintf(file, "%d", AG_NICE) > 0;
	return !fclose(file) && is_ok;
}

static void raise_nice(void)
{
	if (setpriority(PRIO_PROCESS, 0, AG_NICE)) {
		snprintf(prio.sched, sizeof(prio.sched), "-nice: %s", strerror(errno));
		ag_log(AG_NOTICE,
		       "priority is not raised (%s): on a busy machine the agent wakes some "
		       "milliseconds late; give it CAP_SYS_NICE, or LimitRTPRIO=1, or "
		       "LimitNICE=-20",
		       strerror(errno));
	} else if (!raise_autogroup()) {
		strcpy(prio.sched, "nice within its session (autogroup)");
		ag_log(AG_NOTICE,
		       "nice counts only within this session (autogroup): start the agent by "
		       "setsid or systemd, or set kernel.sched_autogroup_enabled=0");
	} else {
		strcpy(prio.sched, "nice");
	}
}

// Children and threads made later go back to normal: only the loop needs it.
static bool raise_fifo(uint32_t fifo_prio)
{
	struct sched_param param = {.sched_priority = (int)fifo_prio};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		return false;
	snprintf(prio.sched, sizeof(prio.sched), "fifo:%u", fifo_prio);
	return true;
}

void ag_prio_raise(uint32_t fifo_prio, bool is_fifo_required)
{
	prio.has_original = !sched_getaffinity(0, sizeof(prio.original), &prio.original);
	prctl(PR_SET_TIMERSLACK, 1UL);
	if (!fifo_prio || !raise_fifo(fifo_prio)) {
		if (is_fifo_required)
			ag_log(AG_NOTICE,
			       "SCHED_FIFO %u is refused (%s): nice is tried; give it "
			       "CAP_SYS_NICE or LimitRTPRIO=%u",
			       fifo_prio, strerror(errno), fifo_prio);
		raise_nice();
	}
	lock_memory();
}

void ag_prio_reset(void)
{
	sigset_t none;
	struct sched_param param = {0};

	prctl(PR_SET_TIMERSLACK, 0UL); // the default
	sched_setscheduler(0, SCHED_OTHER, &param);
	setpriority(PRIO_PROCESS, 0, 0);
	if (prio.has_original)
		sched_setaffinity(0, sizeof(prio.original), &prio.original);
	munlockall();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

// Affinity belongs to a thread: the diagnosis' helper has to leave those CPUs too. 0 or -1 with
// errno.
static int set_all_threads(const cpu_set_t *cpus)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	int rc = 0;

	if (!tasks)
		return sched_setaffinity(0, sizeof(*cpus), cpus);
	while ((entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);

		// One that has ended meanwhile is on no CPU.
		if (tid > 0 && sched_setaffinity(tid, sizeof(*cpus), cpus) && errno != ESRCH)
			rc = -1;
	}
	closedir(tasks);
	return rc;
}

void ag_prio_avoid(const cpu_set_t *pmd_cpus)
{
	cpu_set_t rest;

	if (!prio.has_original || CPU_EQUAL(pmd_cpus, &prio.avoided))
		return;
	prio.avoided = *pmd_cpus;
	CPU_XOR(&rest, &prio.original, pmd_cpus);
	CPU_AND(&rest, &rest, &prio.original);
	if (!CPU_COUNT(&rest)) {
		ag_log(AG_NOTICE,
		       "PMDs use all %d CPUs that the agent may use: it shares one with them",
		       CPU_COUNT(&prio.original));
		rest = prio.original;
	}
	if (set_all_threads(&rest))
		ag_log(AG_NOTICE, "the agent stays on the PMDs' CPUs: sched_setaffinity: %s",
		       strerror(errno));
}

uint32_t ag_prio_rights(const char **out_names, uint32_t n)
{
	uint32_t used = 0;

	if (prio.sched[0] && used < n)
		out_names[used++] = prio.sched;
	if (prio.mlock[0] && used < n)
		out_names[used++] = prio.mlock;
	return used;
}
