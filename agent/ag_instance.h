// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * One followed instance: its watch, diagnosis, incident segment, book and control socket, and the
 * timers that drive them. Alive before the switch exists and after it is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ag_book.h"
#include "ag_ctl.h"
#include "ag_loop.h"
#include "pmdp_watch.h"

struct ag_agent;

struct ag_lane {
	uint64_t incarnation;
	uint32_t tid;
	int32_t core;
	bool is_watched;
	bool is_pmd;
};

struct ag_instance {
	struct ag_agent *agent;
	char name[PMDP_INSTANCE_BYTES];
	struct pmdp_watch *watch;
	struct pmdp_incident_log *log;
	struct ag_diag *diag;
	struct ag_book book;
	struct ag_ctl ctl;
	struct ag_timer look_timer;
	struct ag_timer learn_timer; // a diagnosis that will know more
	struct ag_timer alive_timer;
	struct ag_source exit_source; // the writer's pidfd; fd -1: none
	uint64_t slow_ns;             // threads and CPUs of the lanes are compared next
	uint64_t tick_ns;             // the diagnosis gets its next turn
	uint64_t generation;          // of the attached segment, 0: none
	struct ag_lane *lanes;
	uint32_t n_lanes;
	uint32_t status; // PMDP_WATCH_* told last
};

/*
 * Begin to follow. Errors have been logged with their remedy.
 * -EEXIST another agent follows it; -ENOTSUP no tmpfs; -ENOMEM; others of pmdp_incident_log_open.
 */
int ag_instance_new(struct ag_agent *agent, const char *name, struct ag_instance **out_instance);
void ag_instance_free(struct ag_instance *instance);

// Look now: something changed in the run directory.
AG_HOT void ag_instance_look(struct ag_instance *instance);

// "up, 2 PMDs alive, 0 open incidents". Returns out.
char *ag_instance_summary(const struct ag_instance *instance, char *out, size_t size);
