# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition instead of for a time."""

import time

# Long enough for a machine that builds something else meanwhile; a test that passes never waits so long.
TIMEOUT_S = 20


def wait_for(condition, timeout=TIMEOUT_S, what="condition", every=0.01):
    """The first true value of condition(), or AssertionError naming what was waited for.

    what may be a function: its result at the deadline goes into the message.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(every)


def holds_for(condition, seconds, what="condition", every=0.02):
    """Assert that condition() stays true for that long: the proof that nothing happens."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), what() if callable(what) else what
        time.sleep(every)
