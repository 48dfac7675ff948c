#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent costs, against an empty timer loop that wakes as often.

agent_cost.py [--rounds N] [--seconds S] [--interval MS]: alternates the two, S seconds each, on the
same CPU, with the same priority, and prints one JSON line: CPU time a wake of each (medians), and
the ratio. Target: at most 1.5.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

# pylint: disable=wrong-import-position
from lib.process import built  # noqa: E402
from lib.programs import Agent, Publisher  # noqa: E402


def cpu_ns(pid):
    """CPU time of all threads of a process."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def run_agent(agent, seconds):
    """(CPU ns a wake, wakes a second); the two status requests are wakes too, and counted."""
    wakes, cpu, begin = agent.status()["wakes"], cpu_ns(agent.pid), time.monotonic()
    time.sleep(seconds)
    took, cpu = time.monotonic() - begin, cpu_ns(agent.pid) - cpu
    wakes = agent.status()["wakes"] - wakes
    return cpu / wakes, wakes / took


def run_empty(rate, seconds):
    done = subprocess.run([built("tests/tools/timer_loop"), str(rate), str(seconds)],
                          check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    return result["cpu_ns"] / result["wakes"]


def measure(options, rundir, folder):
    publisher = Publisher(rundir, folder, interval=options.interval)
    agent = None
    try:
        for lane in range(options.lanes):
            publisher.do(f"lane p{lane} {os.cpu_count() - 1 - lane} busy")
        agent = Agent(rundir, folder)
        agent.wait_alive(options.lanes)
        agent_ns, empty_ns, rates = [], [], []
        for _ in range(options.rounds):
            ns, rate = run_agent(agent, options.seconds)
            agent_ns.append(ns)
            rates.append(rate)
            empty_ns.append(run_empty(rate, options.seconds))
        ratio = statistics.median(agent_ns) / statistics.median(empty_ns)
        return {"bench": "agent_cost", "interval_ms": options.interval, "lanes": options.lanes,
                "wakes_per_s": round(statistics.median(rates), 1),
                "agent_us_per_wake": round(statistics.median(agent_ns) / 1e3, 2),
                "empty_us_per_wake": round(statistics.median(empty_ns) / 1e3, 2),
                "ratio": round(ratio, 3), "target": 1.5,
                "rights": agent.status()["rights"], "rounds": options.rounds}
    finally:
        for process in (agent, publisher):
            if process:
                process.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--interval", type=int, default=5, help="keepalive-interval in ms")
    parser.add_argument("--lanes", type=int, default=1)
    options = parser.parse_args()
    os.sched_setaffinity(0, {0})  # inherited: the empty loop stays where the agent goes
    rundir = tempfile.mkdtemp(prefix="pmdpulse-bench-", dir="/dev/shm")
    folder = tempfile.mkdtemp(prefix="pmdpulse-bench-")
    try:
        print(json.dumps(measure(options, rundir, folder)))
    finally:
        shutil.rmtree(rundir)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
