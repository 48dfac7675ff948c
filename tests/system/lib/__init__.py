# SPDX-License-Identifier: Apache-2.0
"""Helpers of the system tests: real processes, their events, and waiting with a deadline."""
