#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cycles per packet of the switch, of OVS-DPDK and of testpmd in io mode on the same captures.

peers.py [--points NAME,...] [--rounds N] [--seconds S] [--list]

Two net_pcap ports replay a shuffled capture at full rate, one thread on core 1 forwards it from one to
the other by the same rules. The programs take turns, in an order that changes from round to round. A
figure is time stamp counter cycles that passed for each packet that the output ports counted, whatever
the program says about itself. OVS runs in the setting that is fastest at that point, found before the
rounds; ours as it comes, keepalive on, once with the best and once with the scalar implementation.

gross is ours / OVS; net is (ours - io) / (OVS - io), both of the same round; told is the median.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

import captures
from bed import folders, steal_s
from peer_programs import CORE, Ours, Ovs, Testpmd, missing

SUBTABLES = 39  # equally busy: a packet visits 20 of them on average
IP4 = "ip,nw_dst=198.19.0.0/24,udp,tp_dst=63"
OVS_SETTINGS = {
    "EMC 1/100": (),
    "EMC always": ("emc-insert-inv-prob=1",),
    "SMC": ("smc-enable=true", "emc-insert-inv-prob=0"),
    "EMC 1/100 and SMC": ("smc-enable=true",),
    "no cache": ("emc-insert-inv-prob=0",),
}
NO_CACHE = ("emc-insert-inv-prob=0", "smc-enable=false")


def both_ways(match):
    return [f"in_port={port},{match}actions=output:{3 - port}" for port in (1, 2)]


def subtable_rules():
    """A table for each group of flows, each with a mask of its own."""
    rules = []
    for group in range(SUBTABLES):
        mac = captures.group_mac(group).hex(":")
        more = f"nw_dst=198.19.0.1/{32 - group % 20},udp" + (",tp_dst=63" if group >= 20 else "")
        for port in (1, 2):
            rules.append(f"in_port={port},dl_dst={mac},actions=resubmit(,{group + 1})")
            rules.append(f"table={group + 1},in_port={port},ip,{more},actions=output:{3 - port}")
    return rules


def group_rules(n_rules, n_flows):
    """Rules of one mask that share the flows of captures.udp4 among them: a megaflow for each."""
    assert n_flows == 8 * n_rules
    return [rule for n in range(n_rules)
            for rule in both_ways(f"ip,nw_src=198.18.{8 * n // 256}.{8 * n % 256}/29,udp,tp_dst=63,")]


class Point:  # pylint: disable=too-few-public-methods
    """One line of the table."""

    def __init__(self, text, frame, flows, rules, only_ours=False, settings=None):
        self.text, self.frame, self.flows, self.rules = text, frame, flows, rules
        self.only_ours = only_ours
        self.settings = settings  # of both, in place of the default and of the search


def udp4_point(flows, text=None, size=60, match=IP4 + ",", **more):
    return Point(text or f"{flows} flows, 5-tuple rule", lambda i: captures.udp4(i, size), flows,
                 both_ways(match), **more)


POINTS = {
    "flows1": udp4_point(1, "1 flow, 5-tuple rule"),
    "flows100": udp4_point(100),
    "flows1k": udp4_point(1000),
    "flows10k": udp4_point(10000),
    "flows100k": udp4_point(100000),
    "flows1m": udp4_point(1000000, only_ours=True),
    "rules": Point("1000 flows, 125 5-tuple rules", lambda i: captures.udp4(i, 60), 1000, group_rules(125, 1000)),
    "in_port": udp4_point(1000, "1000 flows, in_port rule", match=""),
    "size1500": udp4_point(1000, "1000 flows, 1500 bytes", size=1500),
    "subtables": Point("10000 flows, 20 subtables visited, caches off",
                       lambda i: captures.grouped(i, 60, SUBTABLES), 10000, subtable_rules(), settings=NO_CACHE),
    "ipv6": Point("1000 flows, IPv6", lambda i: captures.udp6(i, 62), 1000,
                  both_ways("ipv6,ipv6_dst=2001:2::/64,udp6,tp_dst=63,")),
    "qinq": Point("1000 flows, QinQ", lambda i: captures.udp4(i, 60, "qinq"), 1000,
                  both_ways("dl_vlan=100,ip,nw_dst=198.19.0.0/24,udp,tp_dst=63,")),
}


def tsc_hz():
    """As the switch measured it: asked of a switch without work."""
    with folders() as (_, folder):
        capture = os.path.join(folder, "one.pcap")
        captures.write(capture, lambda i: captures.udp4(i, 60), 1)
        with Ours((capture, capture), both_ways("")) as ours:
            return ours.facts()["tsc_hz"]


def measure(make, seconds, hz):
    """Cycles per packet, with what the program says of itself."""
    begin = time.monotonic()
    with make() as program:
        time.sleep(0.5)  # caches and megaflows fill
        program.clear()
        stolen = steal_s(CORE)
        t0, n0 = program.sent()
        time.sleep(seconds)
        t1, n1 = program.sent()
        stolen = steal_s(CORE) - stolen
        if n1 == n0:
            raise RuntimeError("no packet was sent")
        return {"cycles": round((t1 - t0) * hz / (n1 - n0), 2), "mpps": round((n1 - n0) / (t1 - t0) / 1e6, 3),
                "stolen_pct": round(100 * stolen / (t1 - t0), 1), "took_s": round(time.monotonic() - begin, 1),
                **program.facts()}


def attempt(make, seconds, hz):
    try:
        return measure(make, seconds, hz)
    except (RuntimeError, AssertionError, OSError, StopIteration) as error:
        return {"error": str(error).strip().splitlines()[-1][:200] if str(error).strip() else repr(error)}


def best_ovs(point, files, hz, seconds):
    """The fastest setting: (name, keywords of Ovs, what the others took)."""
    choices = {name: {"settings": settings} for name, settings in OVS_SETTINGS.items()}
    if point.settings:
        choices = {"caches off": {"settings": point.settings}}
    tried = {name: attempt(lambda kw=keywords: Ovs(files, point.rules, **kw), seconds, hz)
             for name, keywords in choices.items()}
    works = {name: result["cycles"] for name, result in tried.items() if "cycles" in result}
    if not works:
        return None, None, {name: result.get("error") for name, result in tried.items()}
    best = min(works, key=works.get)
    return best, choices[best], works


def programs_of(point, files, ovs):
    settings = point.settings or ()
    if point.only_ours:
        settings = (*settings, f"mbufs={2 * point.flows + 65536}")
    makers = {"ours": lambda: Ours(files, point.rules, settings),
              "scalar": lambda: Ours(files, point.rules, settings, impl="scalar")}
    if not point.only_ours:
        makers["io"] = lambda: Testpmd(files)
        if ovs is not None:
            makers["ovs"] = lambda: Ovs(files, point.rules, **ovs)
    return makers


def summary(rounds):
    cycles = [one["cycles"] for one in rounds if "cycles" in one]
    result = {"rounds": rounds}
    if cycles:
        result.update(median=round(statistics.median(cycles), 2), least=min(cycles), most=max(cycles))
    errors = {one["error"] for one in rounds if "error" in one}
    if errors:
        result["errors"] = sorted(errors)
    return result


def ratios(results, mine):
    gross, net = [], []
    for ours, ovs, io in zip(results[mine], results.get("ovs", ()), results.get("io", ())):
        if "cycles" in ours and "cycles" in ovs:
            gross.append(ours["cycles"] / ovs["cycles"])
            if "cycles" in io and ovs["cycles"] > io["cycles"]:
                net.append((ours["cycles"] - io["cycles"]) / (ovs["cycles"] - io["cycles"]))
    return {"gross": round(statistics.median(gross), 3) if gross else None,
            "net": round(statistics.median(net), 3) if net else None}


def lacks_memory(point):
    """Every frame of a capture has a buffer of its own, for each port."""
    needed = 400 + (2 * point.flows + 65536) * 2560 // (2 << 20)
    with open("/proc/meminfo", encoding="ascii") as file:
        free = next(int(line.split()[1]) for line in file if line.startswith("HugePages_Free"))
    return f"needs {needed} free hugepages of 2 MiB, there are {free}" if free < needed else None


def run_point(name, args, hz):
    point = POINTS[name]
    reason = lacks_memory(point)
    if reason:
        print(f"{name} skipped: {reason}", file=sys.stderr, flush=True)
        return {"text": point.text, "flows": point.flows, "skipped": reason}
    folder = tempfile.mkdtemp(prefix="pmdpulse-captures-")
    try:
        capture = os.path.join(folder, "flows.pcap")
        captures.write(capture, point.frame, point.flows)
        files = (capture, capture)
        setting, ovs, tried = (None, None, None) if point.only_ours else best_ovs(point, files, hz, args.seconds / 2)
        makers = programs_of(point, files, ovs)
        results = {program: [] for program in makers}
        order = list(makers)
        for i in range(args.rounds):
            for program in order[i % len(order):] + order[:i % len(order)]:
                results[program].append(attempt(makers[program], args.seconds, hz))
                print(f"{name} {program}: {results[program][-1]}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    document = {"text": point.text, "flows": point.flows, "ovs_setting": setting, "ovs_settings_tried": tried}
    document.update({program: summary(rounds) for program, rounds in results.items()})
    document["ratio"] = {mine: ratios(results, mine) for mine in ("ours", "scalar")}
    return document


def cell(result):
    if not result:
        return "-"
    if "median" not in result:
        return "failed"
    return f"{result['median']:.1f} ({result['least']:.1f}-{result['most']:.1f})"


def print_table(points):
    heads = ("point", "ours", "scalar", "OVS", "its setting", "testpmd io", "gross", "net", "run hits")
    rows = [heads]
    for point in points.values():
        if "skipped" in point:
            rows.append((point["text"], "skipped: " + point["skipped"]))
            continue
        ratio = point["ratio"]["ours"]
        facts = [one["hits_pct"]["run"] for one in point["ours"]["rounds"] if "hits_pct" in one]
        rows.append((point["text"], cell(point["ours"]), cell(point["scalar"]), cell(point.get("ovs")),
                     point["ovs_setting"] or "-", cell(point.get("io")),
                     *("-" if ratio[kind] is None else f"{ratio[kind]:.2f}" for kind in ("gross", "net")),
                     f"{statistics.median(facts):.1f} %" if facts else "-"))
    widths = [max(len(row[i]) for row in rows if len(row) == len(heads)) for i in range(len(heads))]
    print("cycles per packet, median (least-most) of the rounds")
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    for point in points.values():
        for program in ("ours", "scalar", "ovs", "io"):
            for error in point.get(program, {}).get("errors", ()):
                print(f"{point['text']}: {program}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--points", default=",".join(POINTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--list", action="store_true", help="name the points")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{name}: {point.text}" for name, point in POINTS.items()))
        return 0
    names = args.points.split(",")
    unknown = [name for name in names if name not in POINTS]
    if unknown:
        parser.error(f"no such point: {unknown[0]} (there are {' '.join(POINTS)})")
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return 77
    hz = tsc_hz()
    points = {name: run_point(name, args, hz) for name in names}
    print_table(points)
    print(json.dumps({"bench": "peers", "seconds": args.seconds, "tsc_hz": hz, "points": points}))
    failed = [name for name, point in points.items() if "skipped" not in point and "median" not in point["ours"]]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
