// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "cp_values.h"

#include <pthread.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/core/daemon/plugin.h>
#include <collectd/core/utils/common/common.h>

#include "cp_metrics.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
// Under lock.
static struct cp_round due; // time 0: none is asked for
static bool is_stopping;

static pthread_t thread;
static bool is_running;

static void *values_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!is_stopping) {
		struct cp_round round = due;

		if (round.time == 0) {
			pthread_cond_wait(&asked, &lock);
			continue;
		}
		due.time = 0;
		pthread_mutex_unlock(&lock);
		cp_metrics_dispatch(&round);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int cp_values_start(void)
{
	int rc;

	due.time = 0;
	is_stopping = false;
	rc = plugin_thread_create(&thread, values_main, NULL, "pmdpulse values");
	is_running = rc == 0;
	return -rc;
}

void cp_values_stop(void)
{
	if (!is_running)
		return;
	pthread_mutex_lock(&lock);
	is_stopping = true;
	pthread_cond_signal(&asked);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	is_running = false;
}

int cp_values_read(void)
{
	double begin_s = cp_mono_s();

	pthread_mutex_lock(&lock);
	due.time = cdtime();
	due.interval = plugin_get_interval();
	due.callback_s = cp_mono_s() - begin_s;
	pthread_cond_signal(&asked);
	pthread_mutex_unlock(&lock);
	return 0;
}
