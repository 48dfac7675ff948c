# SPDX-License-Identifier: Apache-2.0
"""Caches, megaflows and their counters: the same packets give the same counts, and hit rates recover."""

import os
import time

import pytest

from lib.flow_switch import PMD_CORE, Refused
from lib.lab import Lab, identities
from lib.wait import TIMEOUT_S, wait_for

pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")
MACS = bytes.fromhex("020000000002020000000001")


def udp(i, dst=b"\xc6\x13\x00\x01", dport=63):
    """Flow i: a 60-byte frame; no checksums, which no rule looks at."""
    ip = b"\x45\x00\x00\x2e\x00\x00\x00\x00\x40\x11\x00\x00" + (0xc6120000 | i & 0x1ffff).to_bytes(4, "big") + dst
    return MACS + b"\x08\x00" + ip + (1024 + i % 50000).to_bytes(2, "big") + dport.to_bytes(2, "big") + bytes(22)


@pytest.fixture
def lab(processes, rundir, folder):
    return Lab(processes, rundir, folder, "set cache-bypass=false")


def counts(lab):
    stats = lab.stats()
    identities(stats)
    return {key: stats[key] for key in ("phwol_hits", "emc_hits", "smc_hits", "megaflow_hits", "misses",
                                        "recirculations")}


@pytest.mark.parametrize("settings, hits", [
    (("emc-insert-inv-prob=1", "smc-enable=false"), "emc_hits"),
    (("emc-insert-inv-prob=0", "smc-enable=true"), "smc_hits"),
    (("emc-insert-inv-prob=0", "smc-enable=false"), "megaflow_hits"),
])
def test_twenty_equal_packets_are_one_miss_and_nineteen_hits(lab, settings, hits):
    lab.do("set", *settings)
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2")
    lab.do("pmd-stats-clear")
    lab.feed(1, [udp(0)] * 20)
    assert counts(lab) == {"phwol_hits": 0, "emc_hits": 0, "smc_hits": 0, "megaflow_hits": 0, "misses": 1,
                           "recirculations": 0, hits: 19}
    stats = lab.stats()
    assert stats["megaflows"] == 1 and stats["megaflow_shapes"] == 1
    assert stats["emc_entries"] == int(hits == "emc_hits")
    assert stats["smc_entries"] == int(hits == "smc_hits")


def test_a_port_has_an_insertion_probability_of_its_own(lab):
    """Port 1 never puts a flow into the EMC, port 2 always, port 3 as the setting says, which comes and goes."""
    lab.do("set", "emc-insert-inv-prob=0", "smc-enable=false")
    lab.flows("udp,tp_dst=63,actions=output:4", "udp,tp_dst=64,actions=output:4")
    for setting, expected in (0, {1: 0, 2: 19, 3: 0}), (1, {1: 0, 2: 19, 3: 19}):
        lab.do("set", f"emc-insert-inv-prob={setting}")
        for port, hits in expected.items():
            options = {1: ["emc-insert-inv-prob=0"], 2: ["emc-insert-inv-prob=1"], 3: []}[port]
            lab.do("pmd-stats-clear")
            lab.feed(port, [udp(0, dport=63 + setting)] * 20, *options)
            assert counts(lab) == {"phwol_hits": 0, "emc_hits": hits, "smc_hits": 0, "megaflow_hits": 19 - hits,
                                   "misses": 1, "recirculations": 0}, (setting, port)


def test_recirculated_packets_are_counted_as_passes(lab):
    lab.do("set", "emc-insert-inv-prob=0")
    lab.flows("table=0,in_port=1,actions=recirc(table=1)", "table=1,udp,tp_dst=63,actions=output:2")
    lab.do("pmd-stats-clear")
    lab.feed(1, [udp(0)] * 20)
    assert counts(lab) == {"phwol_hits": 0, "emc_hits": 0, "smc_hits": 0, "megaflow_hits": 38, "misses": 2,
                           "recirculations": 20}


def test_megaflow_is_as_wide_as_the_rules_allow(lab):
    """A rule for ports needs no address: all flows share a megaflow; one for a prefix needs the prefix."""
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2")
    lab.feed(1, [udp(i) for i in range(500)])
    assert lab.stats()["megaflows"] == 1
    text = lab.command.text("dump-flows", "-m")
    assert "nw_src" not in text and "tp_dst=63" in text and "tp_src" not in text, text
    lab.flows("in_port=1,ip,nw_dst=198.19.0.0/24,actions=output:2", "in_port=1,priority=1,actions=drop")
    lab.feed(1, [udp(i, dst=bytes([198, 19, i % 2, i % 251])) for i in range(500)])
    wait_for(lambda: lab.stats()["megaflows"] == 2, what=lambda: lab.command.text("dump-flows", "-m"))
    assert "nw_dst=198.19.0.0/24" in lab.command.text("dump-flows", "-m")


def test_megaflows_are_shown_by_match(lab):
    """As with ovs-dpctl: those that packets within the match may go by, also wider ones."""
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2", "in_port=1,udp,tp_dst=64,actions=output:3",
              "in_port=2,actions=output:1")
    lab.feed(1, [udp(0), udp(0, dport=64)])
    lab.feed(2, [udp(0)])
    found = {match: sorted(flow["actions"][-1] for flow in lab.do("dump-flows", *args)["megaflows"])
             for match, args in {"all": ("-m",), "port": ("-m", "udp,tp_dst=64"), "behind": ("in_port=1", "-m"),
                                 "wide": ("-m", "in_port=2,udp,tp_dst=9"), "none": ("-m", "in_port=1,tcp")}.items()}
    assert found == {"all": ["1", "2", "3"], "port": ["1", "3"], "behind": ["2", "3"], "wide": ["1"], "none": []}
    assert "output:3" not in lab.command.text("dump-flows", "-m", "udp,tp_dst=63")
    for args, reason in {("-m", "table=1"): "of rules", ("-m", "nonsense"): "no such protocol",
                         ("udp", "tcp"): "one match"}.items():
        with pytest.raises(Refused, match=reason):
            lab.do("dump-flows", *args)


def test_flow_counters_are_exact_at_quiescence(lab):
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2", "in_port=1,udp,tp_dst=64,actions=resubmit(,1)",
              "table=1,actions=output:3", "in_port=1,priority=1,actions=drop")
    lab.feed(1, [udp(i, dport=63 + i % 3) for i in range(3000)])
    flows = wait_for(lambda: (lambda f: f if sum(x["n_packets"] for x in f if x["table"] == 0) == 3000 else None)(
        lab.do("dump-flows")["flows"]), what=lambda: lab.command.text("dump-flows"))
    assert sorted((flow["table"], flow["n_packets"], flow["n_bytes"]) for flow in flows) == \
        [(0, 1000, 60000)] * 3 + [(1, 1000, 60000)]


def test_a_changed_rule_takes_effect_at_once_and_exactly(lab):
    """No packet that comes after the reply to a change goes by the old rule."""
    for i in range(30):
        lab.flows(f"in_port=1,udp,tp_dst=63,actions=output:{2 + i % 3}")
        before = lab.sent()
        lab.feed(1, [udp(0)] * 50)
        sent = lab.sent()
        assert {port: sent[port] - before[port] for port in (2, 3, 4)} == \
            {port: 50 * (port == 2 + i % 3) for port in (2, 3, 4)}


def test_a_modified_rule_takes_effect_at_once_and_goes_on_counting(lab):
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2", "in_port=1,priority=1,actions=output:4")
    for i in range(10):
        to = 2 + (i + 1) % 3
        which = ("in_port=1,udp",) if i % 2 else ("--strict", "in_port=1,udp,tp_dst=63")
        lab.command.text("mod-flows", *which[:-1], f"{which[-1]},actions=output:{to}")
        before = lab.sent()
        lab.feed(1, [udp(0)] * 50)
        sent = lab.sent()
        assert {port: sent[port] - before[port] for port in (2, 3, 4)} == {port: 50 * (port == to) for port in (2, 3, 4)}
        wait_for(lambda i=i, to=to: lab.switch.flows() == {
            f"udp,in_port=1,tp_dst=63 actions=output:{to}": 50 * (i + 1), "in_port=1 actions=output:4": 0},
                 what=lambda: f"the rule to go on counting: {lab.switch.flows()}")
    assert "actions" in lab.command.refused("mod-flows", "in_port=1")
    assert "--strict" in lab.command.refused("mod-flows", "priority=1,actions=drop")
    lab.command.text("mod-flows", "in_port=3,actions=drop")  # nobody is meant
    assert len(lab.switch.flows()) == 2


def test_idle_megaflows_expire(lab):
    lab.do("set", "max-idle=500")
    lab.flows("in_port=1,udp,tp_dst=63,ip,nw_dst=198.19.0.0/16,actions=output:2",
              *[f"in_port=1,priority=40000,udp,tp_dst=63,nw_dst=198.19.0.{i},actions=output:3" for i in range(50)])
    lab.feed(1, [udp(0, dst=bytes([198, 19, 0, i])) for i in range(50)])
    assert lab.stats()["megaflows"] == 50
    wait_for(lambda: lab.stats()["megaflows"] == 0, what=lambda: f"idle megaflows to end: {lab.stats()}")
    assert lab.stats()["emc_entries"] == 0
    assert sum(lab.switch.flows().values()) == 50


def test_flow_limit_is_kept_and_counted(lab):
    lab.do("set", "flow-limit=100")
    lab.flows(*[f"in_port=1,udp,tp_dst={port},actions=output:2" for port in range(300)])
    lab.feed(1, [udp(0, dport=port) for port in range(300)])
    stats = lab.stats()
    assert stats["megaflows"] == 100 and stats["flow_limit_hits"] == 200
    assert stats["packets_sent"] == 300
    identities(stats)


def hit_share(lab, seconds=0.3):
    """Shares of the caches over a while."""
    lab.do("pmd-stats-clear")
    time.sleep(seconds)  # what is measured is this time
    stats = lab.stats()
    identities(stats)
    n = max(stats["packets_received"], 1)
    return {key: stats[key + "_hits"] / n for key in ("emc", "smc", "megaflow")}


def test_hit_rates_recover_after_many_flows(lab):
    """100 000 flows round robin go through the caches; then 10 flows have them to themselves."""
    rules = ["in_port=1,udp,tp_dst=63,nw_dst=198.19.0.0/24,actions=output:2"]
    lab.do("set", "emc-insert-inv-prob=20", "smc-enable=true")
    lab.flows(*rules)
    lab.feed_endless(1, [udp(i) for i in range(100000)])
    wait_for(lambda: lab.stats()["emc_entries"] > 4096, what=lambda: f"the EMC to fill: {lab.stats()}")
    crowded = hit_share(lab)
    assert crowded["emc"] < 0.5, crowded
    lab.feed_endless(1, [udp(i) for i in range(10)])
    deadline = time.monotonic() + TIMEOUT_S
    while (share := hit_share(lab))["emc"] < 0.95 and time.monotonic() < deadline:
        pass
    assert share["emc"] >= 0.95, share
    assert lab.stats()["drops"]["no_rule"] == 0


def test_many_masks_are_bounded_and_shown(lab):
    """512 flows, each with a mask of its own: a port has 128 at most, the rest is translated, counted, and right."""
    lab.do("set", "emc-insert-inv-prob=0")
    good = udp(1, dport=7)
    rules = ["in_port=1,priority=50000,udp,tp_dst=7,actions=output:2"]
    # One of 16 lengths of one prefix, and one of 32 lengths of another.
    rules += [f"in_port=1,udp,tp_dst={1000 + i},actions=resubmit(,{1 + i % 16}),resubmit(,{20 + i // 16})"
              for i in range(512)]
    rules += [f"table={1 + i},ip,nw_src=198.18.0.0/{1 + i},actions=output:3" for i in range(16)]
    rules += [f"table={20 + i},ip,nw_dst=198.19.0.1/{1 + i},actions=output:4" for i in range(32)]
    lab.flows(*rules)
    lab.feed(1, [good] * 1000)
    lab.do("pmd-stats-clear")
    for n in range(1, 3):
        lab.feed(1, [udp(i, dport=1000 + i) for i in range(512)])
        stats = lab.stats()
        identities(stats)
        assert stats["megaflow_shapes"] == 128 and stats["megaflows"] == 128
        assert stats["misses"] == 127 + n * 385 and stats["shape_limit_hits"] == n * 385
    lab.do("pmd-stats-clear")
    lab.feed(1, [good] * 1000)
    after = lab.stats()
    assert after["misses"] == 0 and after["packets_sent"] == 1000
    # The bound: no packet visits more subtables than a port may have masks.
    assert after["subtable_lookups"] <= 1000 * 128
    out = lab.out()
    assert [len(out[port]) for port in (2, 3, 4)] == [2000, 1024, 1024]
