#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What keepalive costs: the rate with it on against off, toggled in one running switch.

cost.py [--ports null|flows] [--windows N] [--window-ms MS] [--seed N]

enable-keepalive is set to on and off in pairs of random order. A window lies between two snapshots
that the PMD itself made of its counters and its clock, both of them saying in which mode it ran, so
neither the command nor its way is inside. Each pair gives the logarithm of the ratio of its two rates.
Told is the mean over the pairs with the tenth on either side trimmed (a host that steals time spoils
single windows by any amount, in both modes alike) with its 95 % interval after Yuen, and the plain
mean beside it. The agent is not running; what readers cost is another question.
"""
import argparse
import json
import math
import os
import random
import socket
import statistics
import time

from bed import folders, steal_s, switch_on
from lib.lanes import PACKETS, Lanes

# What the switch's control thread does after a toggle is not the PMD's cost.
SETTLE_S = 0.002
C_KEEPALIVE = 18  # of docs/abi.md's counters


def snapshot(lanes):
    """(ticks, packets, is_keepalive) of the one PMD."""
    while True:
        for ticks, counters in lanes.snapshot().values():
            return ticks, counters[PACKETS], bool(counters[C_KEEPALIVE])


class Control:
    """One connection to the switch for all toggles."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.replies = self.sock.makefile("rb")

    def keepalive(self, on):
        request = {"id": 1, "cmd": "set", "args": [f"enable-keepalive={'true' if on else 'false'}"]}
        self.sock.sendall(json.dumps(request).encode() + b"\n")
        reply = json.loads(self.replies.readline())
        assert reply["ok"], reply


def window(lanes, control, on, window_s):
    """Packets per tick between two of the PMD's own snapshots in that mode."""
    control.keepalive(on)
    deadline = time.monotonic() + 5
    while snapshot(lanes)[2] != on:
        assert time.monotonic() < deadline, "the PMD does not follow enable-keepalive"
    time.sleep(SETTLE_S)
    first = snapshot(lanes)
    time.sleep(window_s)
    last = snapshot(lanes)
    assert last[2] == on
    return (last[1] - first[1]) / (last[0] - first[0])


def interval(values, trim):
    """Trimmed mean and the half-width of its 95 % interval (Yuen: winsorized variance)."""
    values = sorted(values)
    n, cut = len(values), int(len(values) * trim)
    kept = values[cut:n - cut]
    winsorized = [values[cut]] * cut + kept + [values[n - cut - 1]] * cut
    error = statistics.stdev(winsorized) / ((1 - 2 * trim) * math.sqrt(n))
    return statistics.fmean(kept), 1.96 * error


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ports", choices=("null", "flows"), default="null")
    parser.add_argument("--windows", type=int, default=7000)
    parser.add_argument("--window-ms", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    ratios, rates = [], {True: [], False: []}
    with folders() as (rundir, folder), switch_on(args.ports, rundir, folder) as switch:
        core = switch.pmd()["core"]
        lanes = Lanes(rundir)
        control = Control(os.path.join(rundir, "default.ctl"))
        steal = steal_s(core)
        for _ in range(args.windows // 2):
            pair = {}
            for on in rng.sample((True, False), 2):
                pair[on] = window(lanes, control, on, args.window_ms / 1e3)
                rates[on].append(pair[on])
            ratios.append(math.log(pair[True] / pair[False]))
        steal = steal_s(core) - steal
    cost, half = interval([-100 * r for r in ratios], 0.10)
    plain, plain_half = interval([-100 * r for r in ratios], 0)
    print(json.dumps({
        "bench": "cost", "ports": args.ports, "windows": 2 * len(ratios), "window_ms": args.window_ms,
        "seed": args.seed, "steal_s": round(steal, 2),
        "cost_pct": round(cost, 4), "interval_95_pct": round(half, 4),
        "plain_cost_pct": round(plain, 4), "plain_interval_95_pct": round(plain_half, 4),
        "cycles_per_packet_on": round(1 / statistics.median(rates[True]), 3),
        "cycles_per_packet_off": round(1 / statistics.median(rates[False]), 3)}))


if __name__ == "__main__":
    main()
