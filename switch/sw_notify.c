// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_notify.h"

#include <stdio.h>

#include <systemd/sd-daemon.h>

#include "pmdpulse.h"
#include "sw_pmd.h"
#include "sw_switch.h"

#define SW_STATUS_NS UINT64_C(1000000000)

/*
 * With watchdog-needs-pmds: has a PMD that should beat made no beat for two intervals? This only
 * withholds the watchdog; who judges and why is the agent's business.
 */
static bool is_pmd_dead(struct sw_switch *sw, uint64_t now_ns)
{
	uint64_t limit_ns = 2 * sw->settings.keepalive_interval_ns;
	struct sw_pmd *pmd = NULL;
	bool is_dead = false;

	while ((pmd = sw_pmd_next(sw, pmd)) != NULL) {
		uint64_t beats;
		uint64_t announce;

		if (atomic_load_explicit(&pmd->life, memory_order_acquire) != SW_PMD_RUNNING)
			continue;
		beats = atomic_load_explicit(&pmd->hot->beats, memory_order_relaxed);
		announce = atomic_load_explicit(&pmd->hot->announce, memory_order_relaxed) & 0xff;
		if (beats != pmd->seen_beats || announce != PMDP_ANNOUNCE_POLLING) {
			pmd->seen_beats = beats;
			pmd->seen_ns = now_ns;
		}
		is_dead |= now_ns - pmd->seen_ns > limit_ns;
	}
	return is_dead;
}

static void feed_watchdog(struct sw_switch *sw, uint64_t now_ns)
{
	struct sw_notify *notify = &sw->notify;
	bool is_dead = sw->settings.watchdog_needs_pmds && sw->settings.enable_keepalive &&
		       is_pmd_dead(sw, now_ns);

	if (notify->watchdog_us == 0 || is_dead ||
	    now_ns - notify->fed_ns < notify->watchdog_us * 1000 / 2)
		return;
	sd_notify(0, "WATCHDOG=1");
	notify->fed_ns = now_ns;
}

static void tell_status(struct sw_switch *sw, const char *more)
{
	sd_notifyf(0, "%sSTATUS=%u port%s, %u PMD thread%s", more, sw->ports.n,
		   sw->ports.n == 1 ? "" : "s", sw->pmds.n, sw->pmds.n == 1 ? "" : "s");
}

void sw_notify_ready(struct sw_switch *sw)
{
	if (sd_watchdog_enabled(0, &sw->notify.watchdog_us) <= 0)
		sw->notify.watchdog_us = 0;
	tell_status(sw, "READY=1\n");
}

void sw_notify_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=stopping");
}

void sw_notify_tick(struct sw_switch *sw, uint64_t now_ns)
{
	feed_watchdog(sw, now_ns);
	if (now_ns - sw->notify.status_ns < SW_STATUS_NS)
		return;
	sw->notify.status_ns = now_ns;
	if (!sw->is_stopping && !sw->is_starting)
		tell_status(sw, "");
}
