# SPDX-License-Identifier: Apache-2.0
"""Statistics of PMDs: identities under load and reconfiguration, pmd-perf-show and pmd-perf-log."""

import os
import re
import time

import pytest

from lib.flow_switch import PMD_CORE, FlowSwitch, Refused
from lib.lab import Lab, identities
from lib.lanes import BUSY, IDLE, SLEEP, Lanes
from lib.switch import NULL_PORTS
from lib.wait import wait_for
from test_datapath_caches import udp

pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")


@pytest.fixture
def start(processes, rundir, folder):
    def start_it(*lines, **keywords):
        processes.append(FlowSwitch(rundir, folder, *lines, **keywords))
        return processes[-1]
    return start_it


def test_identities_hold_in_every_snapshot_under_change(processes, rundir, folder):
    """Full rate with recirculation, several outputs, drops and caches, while everything is changed."""
    lab = Lab(processes, rundir, folder, "set smc-enable=true emc-insert-inv-prob=5")
    frames = [udp(i, dport=60 + i % 6) for i in range(2000)] + [b"\x02" * 13] * 5
    rule_sets = [
        ["in_port=1,udp,tp_dst=60,actions=output:2,output:3", "in_port=1,udp,tp_dst=61,actions=recirc(table=3)",
         "in_port=1,udp,tp_dst=62,actions=drop", "in_port=1,udp,tp_dst=63,actions=mod_nw_tos:4,output:2,output:99",
         "table=3,actions=dec_ttl,output:4"],
        ["in_port=1,actions=NORMAL"],
        ["in_port=1,actions=output:2"],
        ["in_port=1,udp,tp_dst=60/0xfffe,actions=recirc(table=7)", "table=7,actions=recirc(table=7)"],
    ]
    lab.flows(*rule_sets[0])
    lab.feed_endless(1, frames)
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < 3:
        lab.flows(*rule_sets[n % len(rule_sets)])
        if n % 5 == 0:
            lab.do("set", f"smc-enable={'true' if n % 2 else 'false'}", f"emc-insert-inv-prob={n % 3}")
        if n % 7 == 0:
            lab.do("pmd-stats-clear")
        if n % 11 == 5:
            lab.do("del-port", "p4")
        if n % 11 == 9:
            lab.add(4)
        for _ in range(5):
            identities(lab.stats())
        n += 1
    assert n > 20 and lab.stats()["packets_received"] > 0
    # At quiescence, across threads and ports, exactly.
    if n % 11 > 5 and n % 11 <= 9:
        lab.add(4)
    lab.do("del-port", "p1")
    wait_for(lambda: lab.stats()["in_flight"] == 0, what="nothing in flight")
    identities(lab.stats())


def test_cycles_are_busy_idle_or_asleep_at_every_sample(processes, rundir, folder):
    """By the PMD's own clock, between any two of its snapshots, to the cycle, whatever happens to it."""
    lab = Lab(processes, rundir, folder, ports=2)
    lanes, samples = Lanes(rundir), []

    def look(n=20):
        for _ in range(n):
            samples.append(next(iter(lanes.snapshot().values()), None) or samples[-1])

    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2")
    look()
    lab.feed_endless(1, [udp(i) for i in range(100)])
    look()
    for n in range(4):
        lab.flows(f"in_port=1,udp,tp_dst={63 + n % 2},actions=output:2")
        lab.do("set", f"enable-keepalive={'true' if n % 2 else 'false'}",
               f"pmd-perf-metrics={'true' if n < 2 else 'false'}")
        look()
        lab.do("del-port", "p2")
        look()
        lab.do("del-port", "p1")
        look()  # asleep
        lab.add(2)
        look()
        lab.feed_first(1, [udp(i) for i in range(100)])
        look()
    spent = [0, 0, 0]
    for (ticks, before), (now, after) in zip(samples, samples[1:]):
        parts = [after[i] - before[i] for i in (BUSY, IDLE, SLEEP)]
        assert min(parts) >= 0 and sum(parts) == now - ticks, (parts, now - ticks)
        spent = [a + b for a, b in zip(spent, parts)]
    assert len(set(ticks for ticks, _ in samples)) > 50 and min(spent) > 0, spent


def test_clear_begins_anew_and_gauges_stay(processes, rundir, folder):
    lab = Lab(processes, rundir, folder)
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2")
    lab.feed(1, [udp(0)] * 10)
    lab.do("pmd-stats-clear")
    stats = lab.stats()
    assert stats["packets_received"] == 0 and stats["misses"] == 0
    assert stats["megaflows"] == 1 and stats["megaflow_shapes"] == 1
    text = lab.command.text("pmd-stats-show")
    for line in ("packets received: 0", "megaflow shapes: 1", "avg. subtable lookups per megaflow hit: 0.00"):
        assert line in text
    assert re.search(r"emc entries: 0 \(0\.0% full\)", text), text


def test_one_pmd_of_several_by_its_core(start):
    """-pmd CORE shows and clears that one; of two PMDs for one queue, one sleeps."""
    switch = start("set pmd-cpu-mask=0x3", "add-port p1 net_null0", "add-flow in_port=1,actions=drop")
    for command in ("pmd-stats-show", "pmd-rxq-show", "pmd-perf-show"):
        assert sorted(pmd["core"] for pmd in switch.do(command)["pmds"]) == [0, 1]
        for core in ("0", "1"):
            assert [pmd["core"] for pmd in switch.do(command, "-pmd", core)["pmds"]] == [int(core)]
            assert re.findall(r"core_id (\d+)", switch.command.text(command, "-pmd", core)) == [core]
    for command in ("pmd-stats-show", "pmd-rxq-show", "pmd-stats-clear", "pmd-perf-log"):
        for wrong in (["-pmd", "7"], ["-pmd"], ["-pmd", "x"], ["-core", "1"], ["-nh"]):
            with pytest.raises(Refused):
                switch.do(command, *wrong)

    def one(core):
        return wait_for(lambda: [pmd for pmd in switch.do("pmd-perf-show", "-pmd", core)["pmds"]
                                 if pmd["readable"]], what=f"counters of the PMD on core {core}")[0]
    busy = next(str(pmd["core"]) for pmd in switch.do("pmd-rxq-show")["pmds"] if pmd["rxqs"])
    idle = "1" if busy == "0" else "0"
    before = wait_for(lambda: (lambda pmd: pmd if pmd["packets_received"] > 1000 else None)(one(busy)), what="packets")
    switch.do("pmd-stats-clear", "-pmd", idle)
    after = one(busy)
    assert after["packets_received"] >= before["packets_received"] and after["measured_s"] > before["measured_s"]
    assert one(idle)["measured_s"] < one(busy)["measured_s"]
    switch.do("pmd-stats-clear", "-pmd", busy)
    assert one(busy)["measured_s"] < one(idle)["measured_s"]
    text = switch.command.text("pmd-stats-show", "-pmd", idle)
    assert re.search(r"^  sleep cycles: \d+$", text, re.M) and "core_id " + busy not in text, text


OVS_RXQ_LINE = r"  port: %s {14,}queue-id: {1,2}0 \(enabled\)   pmd usage: +(\d+) %%$"


def test_usage_says_which_queue_takes_a_pmd(processes, rundir, folder):
    """As ovs-appctl dpif-netdev/pmd-rxq-show lays it out: of one PMD, what each queue takes, and none of them."""
    lab = Lab(processes, rundir, folder, "set pmd-cpu-mask=0x2", ports=3)

    def usage(*options):
        pmd = lab.do("pmd-rxq-show", *options)["pmds"][0]
        return {rxq["port"]: rxq["usage_pct"] for rxq in pmd["rxqs"]}, pmd["overhead_pct"]

    wait_for(lambda: usage()[0] == {"p1": 0, "p2": 0, "p3": 0}, what=lambda: f"the usage of idle queues: {usage()}")
    lab.flows("in_port=1,actions=drop", "in_port=2,udp,tp_dst=63,actions=dec_ttl,output:3")
    lab.feed_endless(1, [udp(i) for i in range(64)])
    wait_for(lambda: (usage()[0]["p1"] or 0) > 40, what=lambda: f"p1 to take the PMD's time: {usage()}")
    queues, overhead = usage("-secs", "5")
    assert queues["p2"] == queues["p3"] == 0 and 0 <= overhead < queues["p1"], (queues, overhead)
    lab.feed_endless(2, [udp(i) for i in range(64)])
    # The one whose packets are changed and sent costs more.
    wait_for(lambda: (usage()[0]["p2"] or 0) > (usage()[0]["p1"] or 0) > 0, what=lambda: f"the dearer queue: {usage()}")
    queues, overhead = usage()
    assert queues["p3"] == 0 and sum(queues.values()) + overhead <= 100.01, (queues, overhead)
    text = lab.command.text("pmd-rxq-show")
    assert text.startswith("Displaying last 60 seconds pmd usage %\npmd thread numa_id 0 core_id 1:\n  isolated : false\n")
    for port in ("p1", "p2", "p3"):
        assert re.search(OVS_RXQ_LINE % port, text, re.M), text
    assert re.search(r"^  overhead: +\d+ %$", text, re.M), text
    assert lab.command.text("pmd-rxq-show", "-pmd", "1", "-secs", "10").startswith("Displaying last 10 seconds")
    for wrong in ("0", "7", "61", "x"):
        lab.command.refused("pmd-rxq-show", "-secs", wrong)


def test_usage_of_a_single_queue_is_all_there_is(start):
    switch = start("add-port p1 net_null0", "add-flow in_port=1,actions=drop")
    pmd = wait_for(lambda: next((pmd for pmd in switch.do("pmd-rxq-show")["pmds"]
                                 if (pmd["rxqs"][0]["usage_pct"] or 0) > 50), None), what="usage")
    assert pmd["overhead_pct"] == 0 and pmd["rxqs"][0]["usage_pct"] <= 100, pmd
    switch.do("del-port", "p1")
    pmd = switch.do("pmd-rxq-show")["pmds"][0]
    assert pmd["rxqs"] == [] and pmd["overhead_pct"] is None
    assert "queue-id" not in switch.command.text("pmd-rxq-show")


def perf(switch, *options):
    document = switch.do("pmd-perf-show", *options)
    return document, document["pmds"][0]["perf"]


def test_perf_show_adds_up(start):
    switch = start("set pmd-perf-metrics=true", *NULL_PORTS)
    for _ in range(20):
        document, one = perf(switch)
        assert document["pmd_perf_metrics"] is True
        bins = {name: sum(b["n"] for b in list_) for name, list_ in one["histograms"].items()}
        assert bins["cycles_per_iteration"] == bins["packets_per_iteration"] == one["iterations"]
        assert bins["cycles_per_packet"] == one["iterations"] - one["iterations_idle"]
        assert bins["upcalls_per_iteration"] == bins["batches_per_iteration"] == one["iterations"]
        assert one["cycles_idle"] <= one["cycles"]
    _, one = perf(switch, "-nh", "-it", "50", "-ms", "10")
    assert "histograms" not in one
    its = one["recent_iterations"]
    assert 1 < len(its) <= 50
    for before, after in zip(its, its[1:]):
        assert after["begin_cycles"] >= before["begin_cycles"] + before["cycles"]
        assert after["batches"] == 2 and after["packets"] == 64
    wait_for(lambda: len(perf(switch, "-ms", "10")[1]["recent_ms"]) == 10, what="ten milliseconds")
    text = switch.command.text("pmd-perf-show", "-it", "3", "-ms", "3")
    for words in ("Iterations:", "Rx packets:", "Histograms", "batches/it", "Last 3 iterations", "Last 3 milliseconds"):
        assert words in text, text


def test_perf_of_an_idle_pmd_is_always_there(processes, rundir, folder):
    """Its iterations are shorter than control takes to copy what they add up to."""
    lab = Lab(processes, rundir, folder, "set pmd-perf-metrics=true", ports=1)
    seen = [wait_for(lambda: perf(lab)[1], what="the first publication")]
    seen += [perf(lab)[1] for _ in range(50)]
    assert all(one is not None for one in seen)
    assert seen[-1]["iterations_idle"] > seen[0]["iterations_idle"]
    assert "cycles/it" in lab.command.text("pmd-perf-show")
    lab.do("pmd-stats-clear")
    assert perf(lab)[1]["iterations"] < seen[-1]["iterations"]


def test_perf_is_off_by_default_and_stays_so(start):
    switch = start(*NULL_PORTS)
    assert switch.command.text("get", "pmd-perf-metrics").strip() == "false"
    document, one = perf(switch)
    assert one is None and document["pmd_perf_metrics"] is False
    text = switch.command.text("pmd-perf-show")
    assert "not recorded" in text and "Rx packets:" in text and "Histograms" not in text
    switch.do("set", "pmd-perf-metrics=true")
    wait_for(lambda: perf(switch)[1]["iterations"] > 0, what="iterations to be recorded")
    switch.do("set", "pmd-perf-metrics=false")

    def published_anew():
        """What it adds up to after the PMD has published twice."""
        for _ in range(2):
            seen = switch.stats()["iterations"]
            wait_for(lambda seen=seen: switch.stats()["iterations"] > seen, what="the PMD to publish")
        return perf(switch)[1]["iterations"]

    last = wait_for(lambda: (lambda a, b: a if a == b else None)(
        *[published_anew() for _ in range(2)]), what="recording to end")
    assert published_anew() == last > 0


def test_a_stall_is_logged_with_its_neighbours(start):
    switch = start("set pmd-perf-metrics=true", "pmd-perf-log-set on -b 4 -a 3 -us 2000", *NULL_PORTS, hooks=True)
    switch.hook("spin", 30)
    log = wait_for(lambda: next((log for log in switch.do("pmd-perf-log")["pmds"][0]["logs"]
                                 if log["iterations"][log["at"]]["cycles"] / switch.stats()["tsc_hz"] > 0.03), None),
                   what="the stall in the log")
    its, at = log["iterations"], log["at"]
    assert at == 4 and len(its) == 8
    assert its[at]["cycles"] / switch.stats()["tsc_hz"] < 1
    for before, after in zip(its, its[1:]):
        assert after["begin_cycles"] >= before["begin_cycles"] + before["cycles"]
    assert "suspicious iteration" in switch.err()
    text = switch.command.text("pmd-perf-log")
    assert re.search(r"Suspicious iteration of \d+\.\d us", text) and " <\n" in text, text
    switch.do("pmd-perf-log-set", "off")
    assert switch.do("pmd-perf-log")["on"] is False


@pytest.mark.parametrize("words", [["-us", "0"], ["-b", "1000"], ["maybe"], ["-a"]])
def test_log_limits_are_checked(start, words):
    switch = start()
    with pytest.raises(Refused):
        switch.do("pmd-perf-log-set", *words)
