// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "ag_diag_worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define N_SLOTS 32

enum slot_state {
	SLOT_FREE,
	SLOT_ASKED,
	SLOT_BUSY,
	SLOT_DONE
};

struct slot {
	enum slot_state state;
	struct ag_job job;
};

struct ag_worker {
	pthread_t thread;
	pthread_mutex_t mutex; // over all below; never held while a job is done
	pthread_cond_t asked;
	bool is_ending;
	struct slot slots[N_SLOTS];
};

static struct slot *next_asked(struct ag_worker *worker)
{
	struct slot *first = NULL;
	int i;

	for (i = 0; i < N_SLOTS; i++)
		if (worker->slots[i].state == SLOT_ASKED &&
		    (!first || worker->slots[i].job.asked_ns < first->job.asked_ns))
			first = &worker->slots[i];
	return first;
}

static void do_job(struct ag_job *job)
{
	switch (job->kind) {
	case AG_JOB_SAMPLE:
		job->rc = ag_sample_take(job->tid, &job->samples);
		if (job->rc == 0)
			ag_sample_name(job->pid, &job->samples);
		break;
	case AG_JOB_SCAN:
		ag_scan_core(job->core, job->tid, &job->scan);
		job->rc = 0;
		break;
	default:
		job->rc = -EINVAL;
	}
}

static void *work(void *arg)
{
	struct ag_worker *worker = arg;
	struct slot *slot;
	struct ag_job job;

	pthread_mutex_lock(&worker->mutex);
	while (!worker->is_ending) {
		slot = next_asked(worker);
		if (!slot) {
			pthread_cond_wait(&worker->asked, &worker->mutex);
			continue;
		}
		slot->state = SLOT_BUSY;
		job = slot->job;
		pthread_mutex_unlock(&worker->mutex);
		do_job(&job);
		pthread_mutex_lock(&worker->mutex);
		slot->job = job;
		slot->state = SLOT_DONE;
	}
	pthread_mutex_unlock(&worker->mutex);
	return NULL;
}

int ag_worker_new(struct ag_worker **out_worker)
{
	struct ag_worker *worker = calloc(1, sizeof(*worker));
	sigset_t all, old;
	int rc;

	if (!worker)
		return -ENOMEM;
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_cond_init(&worker->asked, NULL);
	// Signals belong to the agent's loop.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&worker->thread, NULL, work, worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		free(worker);
		return -rc;
	}
	pthread_setname_np(worker->thread, "ag-diag");
	*out_worker = worker;
	return 0;
}

void ag_worker_free(struct ag_worker *worker)
{
	if (!worker)
		return;
	pthread_mutex_lock(&worker->mutex);
	worker->is_ending = true;
	pthread_cond_signal(&worker->asked);
	pthread_mutex_unlock(&worker->mutex);
	pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->asked);
	pthread_mutex_destroy(&worker->mutex);
	free(worker);
}

static struct slot *find(struct ag_worker *worker, uint32_t lane, int kind)
{
	int i;

	for (i = 0; i < N_SLOTS; i++)
		if (worker->slots[i].state != SLOT_FREE && worker->slots[i].job.lane == lane &&
		    worker->slots[i].job.kind == kind)
			return &worker->slots[i];
	return NULL;
}

// A slot for a lane without one: a free one, else the one with the oldest answer.
static struct slot *claim(struct ag_worker *worker)
{
	struct slot *oldest = NULL;
	int i;

	for (i = 0; i < N_SLOTS; i++) {
		if (worker->slots[i].state == SLOT_FREE)
			return &worker->slots[i];
		if (worker->slots[i].state == SLOT_DONE &&
		    (!oldest || worker->slots[i].job.asked_ns < oldest->job.asked_ns))
			oldest = &worker->slots[i];
	}
	return oldest;
}

bool ag_worker_ask(struct ag_worker *worker, const struct ag_job *job)
{
	struct slot *slot;
	bool is_asked = false;

	pthread_mutex_lock(&worker->mutex);
	slot = find(worker, job->lane, job->kind);
	if (!slot)
		slot = claim(worker);
	if (slot && slot->state != SLOT_ASKED && slot->state != SLOT_BUSY) {
		slot->job = *job;
		slot->state = SLOT_ASKED;
		is_asked = true;
		pthread_cond_signal(&worker->asked);
	}
	pthread_mutex_unlock(&worker->mutex);
	return is_asked;
}

bool ag_worker_is_busy(struct ag_worker *worker, uint32_t lane, int kind)
{
	struct slot *slot;
	bool is_busy;

	pthread_mutex_lock(&worker->mutex);
	slot = find(worker, lane, kind);
	is_busy = slot && (slot->state == SLOT_ASKED || slot->state == SLOT_BUSY);
	pthread_mutex_unlock(&worker->mutex);
	return is_busy;
}

bool ag_worker_answer(struct ag_worker *worker, uint32_t lane, int kind, struct ag_job *out_job)
{
	struct slot *slot;
	bool is_done;

	pthread_mutex_lock(&worker->mutex);
	slot = find(worker, lane, kind);
	is_done = slot && slot->state == SLOT_DONE;
	if (is_done)
		*out_job = slot->job;
	pthread_mutex_unlock(&worker->mutex);
	return is_done;
}
