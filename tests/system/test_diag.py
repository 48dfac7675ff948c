# SPDX-License-Identifier: Apache-2.0
"""Is the cause right? Real faults, done to a spinning thread; the truth is kept by who did them.

A fault that something else came between (others used the CPU, too) is set aside, and counted.
PMDP_DIAG_REPEAT=N repeats each fault N times (3 if not set). At least 98 % of all answers must be
right, and 9 of 10 for each fault (with few repetitions: all but one).
"""

import os
import time

import pytest

from lib import diag

REPEAT = int(os.environ.get("PMDP_DIAG_REPEAT", "3"))
RESULTS = {}


def check_right(probe, name, repeat=REPEAT, faults=diag.FAULTS, key=None):
    """Do a fault several times and count the right answers."""
    wrong, n, n_aside = [], 0, 0
    for _ in range(repeat):
        truths = faults[name](probe)
        n_aside += not truths
        for truth in truths:
            n += 1
            try:
                stall = probe.stall_of(truth)
            except AssertionError as error:
                wrong.append(str(error))
                continue
            fault = truth.fault_of(stall["final"], probe.took_tolerance)
            if fault:
                wrong.append(f"{fault}; {truth}; {stall}")
    RESULTS[key or name] = (n - len(wrong), n, n_aside)
    if n == 0:
        pytest.skip("the fault could not be made on a machine this busy")
    assert len(wrong) <= max(1, n // 10), "\n".join(wrong)
    for line in wrong:
        print("wrong:", line)


PROBE = []


@pytest.fixture
def probe(tmp_path_factory):
    """One probe for all faults that leave it alive: each spins on the same core."""
    if os.geteuid() != 0 or os.cpu_count() < 2:
        pytest.skip("needs root and two cores")
    if PROBE and PROBE[0].popen.poll() is not None:
        PROBE.pop().cleanup()
    if not PROBE:
        PROBE.append(diag.Probe(str(tmp_path_factory.mktemp("probe")), "--self-ms", 5,
                                seconds=120 + 60 * REPEAT))
    return PROBE[0]


@pytest.fixture(scope="module", autouse=True)
def end_probe():
    yield
    while PROBE:
        PROBE.pop().cleanup()


@pytest.mark.parametrize("name", diag.FAULTS)
def test_cause_is_right(probe, name):
    if diag.missing(name):
        pytest.skip(diag.missing(name))
    check_right(probe, name)


def test_decoy_on_another_core_raises_nothing(probe):
    begin = diag.now_ns()
    diag.hogs("--class", "fifo", core=0, ms=100)
    time.sleep(0.1)
    # A machine that is busy may take the CPU from the probe as well; never this one.
    for stall in probe.stalls():
        if stall["begin_ns"] >= begin:
            assert "hog-" not in str(stall["final"]["culprit"]), stall


def test_raise_is_quick(probe):
    """The first answer about a stall: what the agent does before it raises."""
    took = sorted(stall["raise_us"] for stall in probe.stalls())
    assert took, "no stall was told"
    median = took[len(took) // 2]
    print(f"first answer of {len(took)} stalls: median {median} us, p90 {took[len(took) * 9 // 10]} us")
    assert median < 300
    PROBE.pop().cleanup()  # the last test that needs it


# What needs perf is concluded from /proc where perf is refused.
@pytest.mark.parametrize("name", ["fifo", "round_robin", "stop", "debugger", "nap", "loop"])
def test_cause_is_right_without_perf(folder, name):
    if diag.missing(name):
        pytest.skip(diag.missing(name))
    probe = diag.Probe(folder, drop=("perfmon", "sys_admin"), seconds=20 + 3 * REPEAT)
    try:
        assert "-perf: needs CAP_PERFMON" in probe.err()
        check_right(probe, name, key=name + " (no perf)")
    finally:
        probe.cleanup()


# A thread that sleeps between its beats is woken into the hog's time; and one that is bound to no core,
# as far as the diagnosis knows, has no records of switches.
@pytest.mark.parametrize("name", ["fifo", "stop", "nap", "loop"])
@pytest.mark.parametrize("option", ["--pause-us=1000", "--no-core"])
def test_cause_is_right_of_other_threads(folder, name, option):
    if diag.missing(name):
        pytest.skip(diag.missing(name))
    probe = diag.Probe(folder, option, seconds=20 + 3 * REPEAT)
    # Nobody can tell who has the CPU of a thread that has none.
    faults = {name: lambda p: [t.anonymous() if option == "--no-core" else t
                               for t in diag.FAULTS[name](p)]}
    try:
        check_right(probe, name, faults=faults, key=f"{name} ({option})")
    finally:
        probe.cleanup()


def test_exit_of_the_thread(folder):
    check_end(folder, lambda probe: probe.order("exit"), "exited")


def test_death_of_the_process(folder):
    check_end(folder, lambda probe: os.kill(probe.thread["pid"], 9), "process-died")


def check_end(folder, end, cause):
    if os.geteuid() != 0 or os.cpu_count() < 2:
        pytest.skip("needs root and two cores")
    n_right = 0
    for i in range(REPEAT):
        probe = diag.Probe(folder, seconds=20, name=f"probe{i}")
        try:
            end(probe)
            time.sleep(3 * diag.THRESHOLD_MS / 1e3)
            probe.order("quit")
            probe.wait()
            n_right += probe.stalls()[-1]["final"]["cause"] == cause
        finally:
            probe.cleanup()
    RESULTS[cause] = (n_right, REPEAT, 0)
    assert n_right >= REPEAT - REPEAT // 4


def test_over_all():
    if not RESULTS:
        pytest.skip("no fault could be made")
    right, total, aside = (sum(column) for column in zip(*RESULTS.values()))
    for name, (n_right, n, n_aside) in RESULTS.items():
        print(f"{name:32} {n_right:4} of {n}" + (f", {n_aside} set aside" if n_aside else ""))
    print(f"{'all':32} {right:4} of {total}, {100 * right / total:.1f} %, {aside} set aside")
    assert right >= 0.98 * total or total - right <= 1
