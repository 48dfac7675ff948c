// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * The values of one thread, one port, and of agent and relay.
 */
#pragma once

#include <stdint.h>

#include "cp_emit.h"
#include "cp_instance.h"
#include "cp_sample.h"

void cp_emit_thread(const struct cp_object *object, const struct cp_thread *thread,
		    const struct cp_sample *sample);
// What stopped the thread of that name.
void cp_emit_tally(const struct cp_object *object, const char *thread_name, struct cp_tally *tally);
void cp_emit_port(const struct cp_object *object, const struct pmdp_port_body *port);
void cp_emit_relay(const struct cp_object *object, struct cp_relay_numbers *numbers,
		   uint64_t now_ns);

// Upper bound of histogram bucket n in seconds, as Prometheus writes numbers: "1.6384e-05", "+Inf".
#define CP_N_BUCKETS 24
const char *cp_bucket_bound(uint32_t bucket, char *out, size_t size);
// Cumulative counts of a gap histogram: bucket i counts the iterations up to its bound.
void cp_buckets(const struct pmdp_lane_body *body, uint64_t out_counts[CP_N_BUCKETS]);
