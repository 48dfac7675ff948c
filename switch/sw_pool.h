// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Packet buffers: one shared pool, and own pools for ports that need more or longer ones.
 *
 * A pool outlives its port: its buffers may still lie in other devices' rings. A pool without users
 * is freed by sw_pools_reap() when all its buffers are back. Control thread only; allocates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sw_error.h"

struct rte_mempool;
struct sw_pools;

struct sw_pool {
	struct sw_pool *next;
	struct rte_mempool *mp;
	uint32_t n_mbufs;
	uint32_t data_room; // bytes of packet that one buffer holds
	uint32_t n_users;
	bool is_shared;
};

// -ENOMEM
int sw_pools_create(struct sw_pools **out_pools);
// No port may be left. Accepts NULL.
void sw_pools_destroy(struct sw_pools *pools);

/*
 * The shared pool, if its buffers hold frames of data_bytes. The first call makes it, with n_mbufs
 * (0: by default, less where memory is short). -ENOMEM, -E2BIG (longer frames than it holds).
 */
int sw_pools_shared(struct sw_pools *pools, uint32_t n_mbufs, uint32_t data_bytes,
		    struct sw_pool **out_pool, struct sw_error *err);
// A pool of its own. -ENOMEM.
int sw_pools_own(struct sw_pools *pools, uint32_t n_mbufs, uint32_t data_bytes, int numa,
		 struct sw_pool **out_pool, struct sw_error *err);
void sw_pool_release(struct sw_pool *pool); // accepts NULL
void sw_pools_reap(struct sw_pools *pools);
