// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#include "sw_impl.h"

#include <string.h>

#include "sw_impl_fast.h"

// From the reference to the best.
static const struct sw_impl *const impls[] = {
	&sw_impl_scalar,
	&sw_impl_avx2,
	&sw_impl_avx512,
	&sw_impl_autovalidator,
};

#define N_IMPLS (sizeof(impls) / sizeof(impls[0]))

const struct sw_impl *sw_impls_usable[SW_IMPL_MAX];
uint32_t sw_impls_n_usable;
_Atomic uint64_t sw_impl_differences;

bool sw_impl_is_usable(const struct sw_impl *impl)
{
	__builtin_cpu_init();
	if (impl == &sw_impl_avx2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
	if (impl == &sw_impl_avx512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("bmi2");
	return true;
}

const struct sw_impl *sw_impl_init(void)
{
	sw_impls_n_usable = 0;
	for (size_t i = 0; i < N_IMPLS && sw_impls_n_usable < SW_IMPL_MAX; i++) {
		if (impls[i] != &sw_impl_autovalidator && sw_impl_is_usable(impls[i]))
			sw_impls_usable[sw_impls_n_usable++] = impls[i];
	}
	return sw_impls_usable[sw_impls_n_usable - 1];
}

const struct sw_impl *sw_impl_at(uint32_t i)
{
	return i < N_IMPLS ? impls[i] : NULL;
}

const struct sw_impl *sw_impl_find(const char *name)
{
	for (size_t i = 0; i < N_IMPLS; i++) {
		if (strcmp(impls[i]->name, name) == 0 && sw_impl_is_usable(impls[i]))
			return impls[i];
	}
	return NULL;
}

uint64_t sw_impl_n_differences(void)
{
	return atomic_load_explicit(&sw_impl_differences, memory_order_relaxed);
}
