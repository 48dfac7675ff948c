#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""From the start of a real stall to the incident, and to collectd's notification.

latency.py [--stalls N] [--interval MS] [--ms MS] [--seed N]

The switch on null ports, the agent and the real collectd; a SCHED_FIFO hog takes the PMD's core N times
at random phase and tells by its own clock when. Told are the milliseconds above the threshold (two
intervals) from the hog's start until the agent published the raise (the time in the event) and until
a plugin of collectd received the notification. A stall is counted when the raise that it caused was
found; it is set aside only when the host took time from either core meanwhile or an incident was open
already, and then it is listed with that. The targets are 1 ms and 10 ms at p99.
"""
import argparse
import datetime
import json
import os
import random
import sys
import time

from bed import folders, steal_s, switch_on

# pylint: disable=wrong-import-order
from lib import collectd
from lib.diag import hogs
from lib.programs import Agent
from lib.wait import wait_for

HOLD_MS = 50
TICK_NS = 10_000_000  # steal is counted in ticks


def mono_ns(rfc3339, offset_ns):
    when = datetime.datetime.fromisoformat(rfc3339)
    seconds = int(when.replace(microsecond=0).timestamp())
    return seconds * 1_000_000_000 + when.microsecond * 1000 - offset_ns


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def summary(values):
    return {"n": len(values), "p50": round(quantile(values, 0.5), 3), "p99": round(quantile(values, 0.99), 3),
            "max": round(max(values), 3)}


class Run:
    def __init__(self, args, switch, agent, daemon):
        self.args, self.switch, self.agent, self.daemon = args, switch, agent, daemon
        self.threshold_ns = 2 * args.interval * 1_000_000
        self.core = switch.pmd()["core"]
        self.offset_ns = time.time_ns() - time.monotonic_ns()
        self.published, self.notified, self.aside, self.missed = [], [], [], []

    def quiet(self):
        """No incident is open."""
        wait_for(lambda: self.agent.status()["open_incidents"] == 0, 30, self.agent.events.describe)

    def stall(self):
        steal = [steal_s(cpu) for cpu in range(os.cpu_count())]
        hog = hogs("--class", "fifo", core=self.core, ms=self.args.ms)[0]
        begin = hog["begin_ns"]

        def mine():
            return [e for e in self.agent.events.all(kind="pmd-stall", phase="raise")
                    if begin - TICK_NS < mono_ns(e["started_at"], self.offset_ns) < hog["end_ns"]]
        try:
            event = wait_for(mine, 2)[0]
        except AssertionError:
            event = None
        steal = [round(steal_s(cpu) - before, 3) for cpu, before in enumerate(steal)]
        if event is None:
            self.without_raise(hog, steal)
            return
        id_ = event["id"]
        got = wait_for(lambda: self.daemon.notifications(id=id_, phase="raise"), 5, "the notification")[0]
        late_ms = (mono_ns(event["emitted_at"], self.offset_ns) - begin - self.threshold_ns) / 1e6
        notified_ms = (got["received_ns"] - begin - self.threshold_ns) / 1e6
        began_before_ms = (begin - mono_ns(event["started_at"], self.offset_ns)) / 1e6
        if sum(steal) > 0 and (late_ms > 1 or late_ms < -1):
            self.aside.append({"late_ms": round(late_ms, 3), "steal_s": steal,
                               "began_before_ms": round(began_before_ms, 3)})
            return
        self.published.append(late_ms)
        self.notified.append(notified_ms)

    def without_raise(self, hog, steal):
        """The host may have stopped the PMD before the hog did: then this stall is the end of that one."""
        for event in self.agent.events.all(kind="pmd-stall", phase="clear"):
            started = mono_ns(event["started_at"], self.offset_ns)
            if sum(steal) > 0 and started < hog["begin_ns"] < started + event["duration_s"] * 1e9:
                self.aside.append({"steal_s": steal, "began_before_ms": round((hog["begin_ns"] - started) / 1e6, 3)})
                return
        self.missed.append({"begin_ns": hog["begin_ns"], "steal_s": steal, "spun_ns": hog["spun_ns"],
                            "events": [e for e in self.agent.events.all()
                                       if mono_ns(e["emitted_at"], self.offset_ns) > hog["begin_ns"] - 1e9]})

    def report(self):
        return {"bench": "latency", "stalls": self.args.stalls, "interval_ms": self.args.interval,
                "stall_ms": self.args.ms, "seed": self.args.seed, "counted": len(self.published),
                "set_aside": self.aside, "missed": self.missed,
                "published_above_threshold_ms": summary(self.published),
                "notified_above_threshold_ms": summary(self.notified)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stalls", type=int, default=200)
    parser.add_argument("--interval", type=int, default=5, metavar="MS")
    parser.add_argument("--ms", type=int, default=40, help="length of a stall")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    if os.geteuid() != 0 or os.cpu_count() < 2 or collectd.missing():
        print(f"skipped: {collectd.missing() or 'needs root and two cores'}")
        return 77
    rng = random.Random(args.seed)
    with folders() as (rundir, folder), \
         switch_on("null", rundir, folder, f"keepalive-interval={args.interval}") as switch:
        others = []
        try:
            agent = Agent(rundir, folder, f"--hold-time={HOLD_MS}")
            others.append(agent)
            agent.wait_alive(1)
            daemon = collectd.Collectd(rundir, folder, interval=10)
            others.append(daemon)
            daemon.wait_log("relaying the agent")
            run = Run(args, switch, agent, daemon)
            for _ in range(args.stalls):
                run.quiet()
                time.sleep(rng.uniform(0, 4 * args.interval / 1e3))
                run.stall()
            print(json.dumps(run.report()))
        finally:
            for process in reversed(others):
                process.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main())
