#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Forwarding rate of the switch alone, keepalive on: null ports and the capture of make run.

rate.py [--seconds S] [--rounds N]: alternating; packets and cycles per packet by the switch's counters.
"""
import argparse
import json
import statistics
import time

from bed import folders, switch_on


def measure(ports, seconds):
    with folders() as (rundir, folder), switch_on(ports, rundir, folder) as switch:
        time.sleep(0.5)
        switch.command.text("pmd-stats-clear")
        begin = time.monotonic()
        time.sleep(seconds)
        pmds = switch.command.json("pmd-stats-show")["pmds"]
        took = time.monotonic() - begin
        packets = sum(pmd["packets_received"] for pmd in pmds)
        cycles = sum(pmd["cycles_busy"] + pmd["cycles_idle"] for pmd in pmds)
        return packets / took / 1e6, cycles / packets


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rounds = {"null": [], "flows": []}
    for _ in range(args.rounds):
        for ports, results in rounds.items():
            results.append(measure(ports, args.seconds))
    document = {"bench": "rate", "seconds": args.seconds}
    for ports, results in rounds.items():
        document[ports] = {"mpps": [round(m, 3) for m, _ in results],
                           "mpps_median": round(statistics.median(m for m, _ in results), 3),
                           "cycles_per_packet": [round(c, 2) for _, c in results],
                           "cycles_per_packet_median": round(statistics.median(c for _, c in results), 2)}
    print(json.dumps(document))


if __name__ == "__main__":
    main()
