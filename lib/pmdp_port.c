// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
// Port slots: written by the owner alone, so the only order is that of the sequence word (S1).
#include <errno.h>

#include "pmdp_publisher.h"
#include "pmdp_shm.h"

static void write_slot(struct pmdp_port_shm *slot, bool is_new, const struct pmdp_port_body *body)
{
	uint64_t generation = atomic_load_explicit(&slot->slot_generation, memory_order_relaxed);
	uint64_t seq = pmdp_seq_write_begin(&slot->seq);

	if (is_new)
		atomic_store_explicit(&slot->slot_generation, generation + 1, memory_order_relaxed);
	atomic_store_explicit(&slot->in_use, body ? 1 : 0, memory_order_relaxed);
	if (body)
		pmdp_words_store(&slot->body, body, sizeof *body);
	pmdp_seq_write_end(&slot->seq, seq);
}

static bool is_in_use(const struct pmdp_publisher *pub, int slot)
{
	return slot >= 0 && (uint32_t)slot < pub->n_ports &&
	       atomic_load_explicit(&pub->ports[slot].in_use, memory_order_relaxed);
}

int pmdp_port_claim(struct pmdp_publisher *pub, const struct pmdp_port_body *body)
{
	for (uint32_t i = 0; i < pub->n_ports; i++) {
		if (is_in_use(pub, (int)i))
			continue;
		write_slot(&pub->ports[i], true, body);
		return (int)i;
	}
	return -ENOSPC;
}

void pmdp_port_publish(struct pmdp_publisher *pub, int slot, const struct pmdp_port_body *body)
{
	if (is_in_use(pub, slot))
		write_slot(&pub->ports[slot], false, body);
}

void pmdp_port_release(struct pmdp_publisher *pub, int slot)
{
	if (is_in_use(pub, slot))
		write_slot(&pub->ports[slot], false, NULL);
}
