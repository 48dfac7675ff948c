#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""From the start of a stall to the notification that a plugin of collectd receives.

collectd_latency.py [--stalls N] [--interval MS] [--seed N]: stalls of 60 ms at random phase, by threads
of a small publisher that tell when their last beat was (the injector's clock), on the real agent and
the real collectd. Prints one JSON line: milliseconds above the threshold (two intervals) until the
agent had published and until collectd had dispatched, p50 and p99. Every stall is counted: one that met
an incident still open of its thread (a stall that nobody injected) is an update, not a raise, and is
given as set aside, with the steal time of the run. Target: 10 ms above the threshold at p99.
"""

import argparse
import datetime
import json
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

# pylint: disable=wrong-import-position
from lib import collectd  # noqa: E402
from lib.programs import Agent, Publisher  # noqa: E402
from lib.wait import wait_for  # noqa: E402

LANES = 24  # so that a thread's incident has cleared (1 s) before its turn comes again
STALL_MS = 60
MATCH_NS = 500_000_000


def steal_s():
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def cpu_s(pid, thread):
    """CPU seconds of the thread of that name."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
            if file.read().strip() != thread:
                continue
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9
    raise LookupError(thread)


def mono_ns(rfc3339):
    """A wall-clock text as CLOCK_MONOTONIC; the two clocks do not drift apart within a run."""
    seconds = datetime.datetime.fromisoformat(rfc3339).timestamp()
    return int((seconds - time.time()) * 1e9) + time.monotonic_ns()


def inject(publisher, options):
    """[(lane, time of its last beat)] of all stalls."""
    rng = random.Random(options.seed)
    for number in range(options.stalls):
        publisher.do(f"stall l{number % LANES} {STALL_MS}")
        time.sleep(rng.uniform(0.06, 0.09))

    def over():
        lines = [line.split() for line in publisher.out().splitlines() if line.startswith("done ")]
        return lines if len(lines) == options.stalls else None
    return [(line[1], int(line[2])) for line in wait_for(over, what="all stalls to end")]


def quantiles(values):
    values = sorted(values)
    return {"p50": round(values[len(values) // 2], 3),
            "p99": round(values[min(len(values) - 1, int(len(values) * 0.99))], 3),
            "max": round(values[-1], 3)}


def evaluate(stalls, raises, threshold_ns):
    published, received, aside = [], [], 0
    for lane, begin in stalls:
        found = [n for n in raises if n["meta"]["thread"] == lane and
                 begin + threshold_ns <= n["received_ns"] < begin + MATCH_NS]
        if not found:
            aside += 1
            continue
        published.append((mono_ns(found[0]["meta"]["emitted_at"]) - begin - threshold_ns) / 1e6)
        received.append((found[0]["received_ns"] - begin - threshold_ns) / 1e6)
    return published, received, aside


def measure(options, rundir, folder):
    processes = [Publisher(rundir, folder, interval=options.interval)]
    try:
        publisher = processes[0]
        for lane in range(LANES):
            publisher.do(f"lane l{lane}")
        processes.append(Agent(rundir, folder))
        daemon = collectd.Collectd(rundir, folder, interval=10)
        processes.append(daemon)
        wait_for(lambda: "relaying the agent" in daemon.log(), what="the relay")
        cpu, begin = cpu_s(daemon.pid, "pmdpulse look"), time.monotonic()
        time.sleep(5)
        idle_pct = (cpu_s(daemon.pid, "pmdpulse look") - cpu) / (time.monotonic() - begin) * 100
        steal = steal_s()
        stalls = inject(publisher, options)
        time.sleep(0.5)  # for the last to arrive, which is 50 times the target
        raises = daemon.notifications(kind="pmd-stall", phase="raise")
        threshold_ns = 2 * options.interval * 1_000_000
        published, received, aside = evaluate(stalls, raises, threshold_ns)
        return {"bench": "collectd_latency", "stalls": options.stalls, "interval_ms": options.interval,
                "seed": options.seed, "counted": len(received), "set_aside": aside,
                "steal_s": round(steal_s() - steal, 2), "not_injected": len(raises) - len(received),
                "published_above_threshold_ms": quantiles(published),
                "notified_above_threshold_ms": quantiles(received),
                "look_thread_idle_cpu_pct": round(idle_pct, 3)}
    finally:
        for process in reversed(processes):
            process.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stalls", type=int, default=200)
    parser.add_argument("--interval", type=int, default=5, metavar="MS")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    if collectd.missing():
        print(f"skipped: {collectd.missing()}")
        return 77
    rundir = tempfile.mkdtemp(prefix="pmdpulse-bench-", dir="/dev/shm")
    folder = tempfile.mkdtemp(prefix="pmdpulse-bench-")
    try:
        print(json.dumps(measure(options, rundir, folder)))
    finally:
        shutil.rmtree(rundir, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
