// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
#pragma once

#include "sw_flow.h"

// A random rule comes, or some go, in the tables and in the plain evaluation alike.
void sw_change(struct sw_flow_table *table);
