// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#define SW_POOL_CACHE 256
#define SW_POOL_SHARED_MBUFS 32767 // 2^n - 1 wastes the least memory
#define SW_POOL_LEAST_MBUFS 2047

struct sw_pools {
	struct sw_pool *first;
	struct sw_pool *shared;
	uint32_t next_id;
};

int sw_pools_create(struct sw_pools **out_pools)
{
	struct sw_pools *pools = calloc(1, sizeof(*pools));

	if (pools == NULL)
		return -ENOMEM;
	*out_pools = pools;
	return 0;
}

static void pool_free(struct sw_pools *pools, struct sw_pool *pool)
{
	struct sw_pool **link = &pools->first;

	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	rte_mempool_free(pool->mp);
	free(pool);
}

void sw_pools_destroy(struct sw_pools *pools)
{
	if (pools == NULL)
		return;
	while (pools->first != NULL)
		pool_free(pools, pools->first);
	free(pools);
}

static struct sw_pool *pool_make(struct sw_pools *pools, uint32_t n_mbufs, uint32_t data_bytes,
				 int numa)
{
	uint32_t data_room = RTE_MAX(RTE_MBUF_DEFAULT_DATAROOM, RTE_ALIGN_CEIL(data_bytes, 1024));
	struct sw_pool *pool = calloc(1, sizeof(*pool));
	char name[RTE_MEMPOOL_NAMESIZE];

	if (pool == NULL)
		return NULL;
	snprintf(name, sizeof(name), "sw_pool_%u", pools->next_id++);
	pool->mp = rte_pktmbuf_pool_create(name, n_mbufs, SW_POOL_CACHE, 0,
					   (uint16_t)(data_room + RTE_PKTMBUF_HEADROOM), numa);
	if (pool->mp == NULL) {
		free(pool);
		return NULL;
	}
	pool->n_mbufs = n_mbufs;
	pool->data_room = data_room;
	pool->next = pools->first;
	pools->first = pool;
	return pool;
}

int sw_pools_shared(struct sw_pools *pools, uint32_t n_mbufs, uint32_t data_bytes,
		    struct sw_pool **out_pool, struct sw_error *err)
{
	uint32_t n = n_mbufs != 0 ? n_mbufs : SW_POOL_SHARED_MBUFS;

	if (data_bytes > RTE_MBUF_DEFAULT_DATAROOM)
		return -E2BIG;
	// By default, what there is room for; a number that was asked for is not reduced in
	// silence.
	while (pools->shared == NULL) {
		pools->shared = pool_make(pools, n, 0, SOCKET_ID_ANY);
		if (pools->shared == NULL && (n_mbufs != 0 || n <= SW_POOL_LEAST_MBUFS))
			return sw_fail(err, -ENOMEM,
				       "no memory for %u packet buffers: reserve more hugepages "
				       "(vm.nr_hugepages), or set mbufs to less",
				       n);
		n /= 2;
	}
	pools->shared->is_shared = true;
	pools->shared->n_users++;
	*out_pool = pools->shared;
	return 0;
}

int sw_pools_own(struct sw_pools *pools, uint32_t n_mbufs, uint32_t data_bytes, int numa,
		 struct sw_pool **out_pool, struct sw_error *err)
{
	struct sw_pool *pool = pool_make(pools, n_mbufs, data_bytes, numa);

	if (pool == NULL)
		return sw_fail(err, -ENOMEM,
			       "no memory for %u packet buffers of its own: reserve more hugepages "
			       "(vm.nr_hugepages), or give the port mbufs=N",
			       n_mbufs);
	pool->n_users = 1;
	*out_pool = pool;
	return 0;
}

void sw_pool_release(struct sw_pool *pool)
{
	if (pool != NULL)
		pool->n_users--;
}

void sw_pools_reap(struct sw_pools *pools)
{
	struct sw_pool *next;

	for (struct sw_pool *pool = pools->first; pool != NULL; pool = next) {
		next = pool->next;
		if (pool->n_users == 0 && !pool->is_shared && rte_mempool_full(pool->mp))
			pool_free(pools, pool);
	}
}
