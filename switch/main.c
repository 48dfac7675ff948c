// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "pmdp_clock.h"
#include "pmdpulse.h"
#include "sw_ctl.h"
#include "sw_eal.h"
#include "sw_flow.h"
#include "sw_impl.h"
#include "sw_log.h"
#include "sw_loop.h"
#include "sw_mac.h"
#include "sw_notify.h"
#include "sw_offload.h"
#include "sw_options.h"
#include "sw_plan.h"
#include "sw_pool.h"
#include "sw_sched.h"
#include "sw_startup.h"
#include "sw_switch.h"

static int open_publisher(struct sw_switch *sw, struct sw_error *err)
{
	struct pmdp_publisher_opts opts = {
		.rundir = sw->options.rundir,
		.n_lanes = SW_MAX_PMDS,
		.n_ports = SW_MAX_PORTS,
		.keepalive_interval_ns = sw->settings.keepalive_interval_ns,
		.keepalive_off = !sw->settings.enable_keepalive,
		.tsc_hz = rte_get_tsc_hz(),
	};
	int rc = pmdp_publisher_open(sw->options.instance, &opts, &sw->pub);

	if (rc == -EINVAL) {
		// No invariant time stamp counter: beats carry the system's clock.
		opts.tsc_hz = 0;
		rc = pmdp_publisher_open(sw->options.instance, &opts, &sw->pub);
	}
	sw->tsc_hz = opts.tsc_hz;
	if (rc == -EEXIST)
		return sw_fail(err, rc,
			       "instance %s runs already; stop it, or give another --instance",
			       sw->options.instance);
	if (rc == -ENOTSUP)
		return sw_fail(err, rc,
			       "%s is not on a tmpfs, and a beat must not wait for a disk: "
			       "give a --rundir below /run or /dev/shm",
			       sw->options.rundir);
	if (rc == -EPERM)
		return sw_fail(
			err, rc,
			"%s is a stranger's, a symbolic link, or anybody may rename in it: give "
			"it to root or this user with mode 0750, or give another --rundir",
			sw->options.rundir);
	if (rc != 0)
		return sw_fail(err, rc, "can't create %s/%s.ring: %s", sw->options.rundir,
			       sw->options.instance, strerror(-rc));
	return 0;
}

static int open_rcu(struct sw_switch *sw)
{
	size_t size = rte_rcu_qsbr_get_memsize(SW_MAX_PMDS);

	sw->qsbr = rte_zmalloc("qsbr", size, RTE_CACHE_LINE_SIZE);
	if (sw->qsbr == NULL || rte_rcu_qsbr_init(sw->qsbr, SW_MAX_PMDS) != 0)
		return -ENOMEM;
	return 0;
}

// In the order of their need of each other; close_all() goes back.
static int open_all(struct sw_switch *sw, int argc, char **argv, struct sw_error *err)
{
	int rc = sw_eal_init(sw, argc, argv, err);

	if (rc != 0)
		return rc;
	sw->has_eal = true;
	sw_sched_lock_memory();
	rc = open_publisher(sw, err);
	if (rc != 0)
		return rc;
	rc = open_rcu(sw);
	if (rc == 0)
		rc = sw_pools_create(&sw->pools);
	sw->impl = sw_impl_init();
	if (rc == 0)
		rc = sw_plan_create(sw);
	if (rc == 0)
		rc = sw_offload_create(sw);
	if (rc == 0) {
		sw->flows = sw_flow_table_create(sw->qsbr);
		sw->macs = sw_mac_create();
	}
	if (rc != 0 || sw->flows == NULL || sw->macs == NULL)
		return sw_fail(err, -ENOMEM, "no memory for the tables of the switch");
	rc = sw_ctl_create(sw, &sw->ctl, err);
	if (rc == 0)
		rc = sw_loop_open(sw, err);
	return rc;
}

static int start(struct sw_switch *sw, struct sw_error *err)
{
	int rc = 0;

	if (sw->options.file != NULL)
		rc = sw_startup_run(sw, sw->options.file, err);
	if (rc == 0)
		rc = sw_switch_start(sw, err);
	if (rc == -ETIMEDOUT) {
		sw_log(SW_LOG_WARNING, "%s", err->text);
		rc = 0;
	}
	if (rc == 0 && !sw->is_stopping) {
		sw_log(SW_LOG_INFO, "instance %s: %u port%s, %u PMD thread%s, %s",
		       sw->options.instance, sw->ports.n, sw->ports.n == 1 ? "" : "s", sw->pmds.n,
		       sw->pmds.n == 1 ? "" : "s", pmdp_publisher_path(sw->pub));
		sw_notify_ready(sw);
	}
	return rc;
}

/*
 * Clean stop. A PMD that can't be ended still runs in memory that would be taken from under it:
 * then the segment tells of the stop and the process ends on the spot; the kernel takes care of the
 * rest.
 */
static void close_all(struct sw_switch *sw)
{
	struct sw_error err;

	sw->is_stopping = true;
	sw_notify_stopping();
	sw_ctl_destroy(sw->ctl);
	sw->ctl = NULL;
	if (sw->plan != NULL && sw->flows != NULL && sw_plan_shutdown(sw, &err) != 0) {
		sw_log(SW_LOG_WARNING, "%s; ending without it", err.text);
		pmdp_publisher_stop(sw->pub);
		sw_eal_remove_files();
		_exit(EXIT_SUCCESS);
	}
	pmdp_publisher_close(sw->pub);
	sw_offload_destroy(sw);
	sw_flow_table_destroy(sw->flows);
	sw_mac_destroy(sw->macs);
	sw_plan_destroy(sw);
	sw_pools_destroy(sw->pools);
	rte_free(sw->qsbr);
	sw_loop_close(sw);
	if (sw->has_eal)
		sw_eal_cleanup();
}

int main(int argc, char **argv)
{
	static struct sw_switch sw = {.epoll_fd = -1, .timer_fd = -1, .signal_fd = -1};
	struct sw_error err = {.text = ""};
	int eal_argc;
	int rc = sw_options_parse(argc, argv, &sw.options, &eal_argc, &err);

	if (rc == SW_OPTIONS_DONE)
		return EXIT_SUCCESS;
	if (rc < 0) {
		sw_log(SW_LOG_ERR, "%s", err.text);
		return 2;
	}
	sw_loop_block_signals();
	sched_getaffinity(0, sizeof(sw.allowed_cpus), &sw.allowed_cpus);
	sw_settings_init(&sw.settings);
	sw_perf_limits_init(&sw.perf_limits);
	sw.start_ns = pmdp_mono_now_ns();
	sw.is_starting = true;
	rc = open_all(&sw, eal_argc, argv, &err);
	if (rc == 0)
		rc = start(&sw, &err);
	if (rc == 0)
		sw_loop_run(&sw);
	else
		sw_log(SW_LOG_ERR, "%s", err.text);
	close_all(&sw);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
