// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_pump.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ag_log.h"
#include "pmdp_clock.h"

#define AG_PUMP_RETRY_NS UINT64_C(1000000000)

static void on_writable(void *ctx, uint32_t events)
{
	(void)events; // an error shows up at the write
	ag_pump_run(ctx);
}

static void on_retry(void *ctx, uint64_t now_ns)
{
	(void)now_ns;
	ag_pump_run(ctx);
}

int ag_pump_init(struct ag_pump *pump, struct ag_loop *loop, uint32_t n_max)
{
	pump->loop = loop;
	pump->source = (struct ag_source){.fd = -1, .fn = on_writable, .ctx = pump};
	pump->retry = (struct ag_timer){.slack_ns = AG_PUMP_RETRY_NS, .fn = on_retry, .ctx = pump};
	pump->is_waiting = pump->is_told = false;
	pump->lost_told = 0;
	pump->last_error = 0;
	int rc = ag_outq_init(&pump->q, n_max);
	if (!rc)
		ag_loop_add_timer(loop, &pump->retry);
	return rc;
}

void ag_pump_fini(struct ag_pump *pump)
{
	if (!pump->q.lines)
		return;
	ag_outq_flush(&pump->q);
	pump->q.n_lost += pump->q.n;
	if (pump->q.n_lost > pump->lost_told)
		ag_log(AG_WARNING, "%s: %llu incidents lost", pump->name,
		       (unsigned long long)(pump->q.n_lost - pump->lost_told));
	ag_pump_close(pump);
	ag_loop_remove_timer(pump->loop, &pump->retry);
	ag_outq_fini(&pump->q);
}

static void stop_waiting(struct ag_pump *pump)
{
	if (pump->is_waiting)
		ag_loop_remove(pump->loop, &pump->source);
	pump->is_waiting = false;
}

void ag_pump_close(struct ag_pump *pump)
{
	stop_waiting(pump);
	if (pump->q.fd >= 0)
		close(pump->q.fd);
	pump->q.fd = -1;
	// Half a line in a stream that is closed can't be taken back: what is left of it goes out
	// whole, to the next reader, as a line of its own.
	if (pump->q.n)
		pump->q.lines[pump->q.head]->done = 0;
}

void ag_pump_put(struct ag_pump *pump, const char *text, size_t len)
{
	ag_outq_put(&pump->q, text, len);
	ag_pump_run(pump);
}

static void tell_broken(struct ag_pump *pump, int error)
{
	bool is_slow = error == EAGAIN;

	pump->last_error = error;
	// A receiver that is only slow is no news until it costs something.
	if (pump->is_told || (is_slow && pump->q.n_lost == pump->lost_told))
		return;
	pump->is_told = true;
	ag_log(AG_WARNING, "%s: %s; up to %u incidents wait, older ones are lost and counted; %s",
	       pump->name, is_slow ? "not read" : strerror(error), pump->q.n_max, pump->remedy);
}

static void tell_well(struct ag_pump *pump)
{
	pump->last_error = 0;
	pump->retry.due_ns = 0;
	if (pump->is_told)
		ag_log(AG_NOTICE, "%s: written again, %llu incidents lost meanwhile", pump->name,
		       (unsigned long long)(pump->q.n_lost - pump->lost_told));
	pump->is_told = false;
	pump->lost_told = pump->q.n_lost;
}

// The descriptor can take nothing now: be woken when it can, or look again in a second.
static void wait_writable(struct ag_pump *pump)
{
	if (pump->is_waiting)
		return;
	pump->source.fd = pump->q.fd;
	pump->is_waiting = !ag_loop_add(pump->loop, &pump->source, EPOLLOUT);
	if (!pump->is_waiting)
		pump->retry.due_ns = pmdp_mono_now_ns() + AG_PUMP_RETRY_NS;
}

void ag_pump_run(struct ag_pump *pump)
{
	struct ag_outq *q = &pump->q;

	if (q->n && q->fd < 0) {
		int rc = pump->open(pump->ctx, pump);

		if (rc) {
			tell_broken(pump, -rc);
			pump->retry.due_ns = pmdp_mono_now_ns() + AG_PUMP_RETRY_NS;
			return;
		}
	}
	if (ag_outq_flush(q)) {
		stop_waiting(pump);
		tell_well(pump);
		return;
	}
	tell_broken(pump, q->error);
	if (q->error == EAGAIN) {
		wait_writable(pump);
		return;
	}
	// ENOSPC and EDQUOT pass by themselves; for the rest a new descriptor is the only hope.
	stop_waiting(pump);
	if (q->error != ENOSPC && q->error != EDQUOT)
		ag_pump_close(pump);
	pump->retry.due_ns = pmdp_mono_now_ns() + AG_PUMP_RETRY_NS;
}
