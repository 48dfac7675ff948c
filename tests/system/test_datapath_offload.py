# SPDX-License-Identifier: Apache-2.0
"""Flow marks: a device that marks saves the lookup, one that can't is named, and a mark never outlives its flow."""

import os

import pytest

from lib.flow_switch import PMD_CORE
from lib.lab import Lab, identities
from lib.wait import wait_for
from test_datapath_caches import udp

pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")


def test_marked_packets_skip_the_lookup(processes, rundir, folder):
    lab = Lab(processes, rundir, folder, "set hw-offload=true", hooks=True)
    lab.flows("in_port=1,udp,tp_dst=63,actions=output:2", "in_port=1,udp,tp_dst=64,actions=output:3")
    lab.feed_endless(1, [udp(i, dport=63 + i % 2) for i in range(64)])
    # net_pcap has no rte_flow: asked, refused, said, once.
    wait_for(lambda: "p1: net_pcap marks no packets" in lab.switch.err(), what=lab.switch.err)
    stats = lab.stats()
    assert stats["phwol_hits"] == 0 and stats["marked_megaflows"] == 0
    lab.do("test-hook", "p1", "mark")
    wait_for(lambda: lab.stats()["marked_megaflows"] == 2, what=lab.stats)
    lab.do("pmd-stats-clear")
    wait_for(lambda: lab.stats()["phwol_hits"] > 100000, what=lab.stats)
    stats = lab.stats()
    identities(stats)
    assert stats["phwol_hits"] == stats["packets_received"]
    # The rules change: no packet follows a mark of before.
    lab.flows("in_port=1,actions=drop")
    sent = lab.sent()
    lab.do("pmd-stats-clear")
    wait_for(lambda: lab.stats()["packets_received"] > 100000, what=lab.stats)
    assert lab.sent() == sent
    wait_for(lambda: lab.stats()["marked_megaflows"] <= 1, what=lab.stats)
    lab.do("set", "hw-offload=false")
    wait_for(lambda: lab.stats()["marked_megaflows"] == 0, what=lab.stats)
    identities(lab.stats())
    assert lab.switch.err().count("marks no packets") == 1
    lab.do("del-port", "p1")
    assert lab.switch.stop() == 0, lab.switch.err()
