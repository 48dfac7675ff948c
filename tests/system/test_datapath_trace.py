# SPDX-License-Identifier: Apache-2.0
"""trace FLOW: which rules a packet meets, which megaflow it makes, what is done to it."""

import os

import pytest

from lib.flow_switch import PMD_CORE, FlowSwitch

pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")


@pytest.fixture
def switch(processes, rundir, folder):
    switch = FlowSwitch(rundir, folder, "add-port p1 net_null1 ofport=1", "add-port p2 net_null2 ofport=2")
    processes.append(switch)
    switch.do("replace-flows",
              "table=0,priority=10,in_port=1,ip,nw_dst=192.0.2.0/24,actions=mod_tp_dst:7,resubmit(,3)",
              "table=0,priority=1,actions=drop",
              "table=3,udp,tp_dst=7,actions=dec_ttl,output:2",
              "table=3,priority=1,actions=output:1")
    return switch


def test_trace_names_rules_megaflow_and_actions(switch):
    text = switch.command.text("trace", "in_port=1,udp,nw_src=10.0.0.1,nw_dst=192.0.2.5,nw_ttl=64,tp_src=9,tp_dst=53")
    for words in ("nw_dst=192.0.2.0/24", "dec_ttl", "output:2", "tp_dst"):
        assert words in text, text
    # The rules in the order in which they are met, each with its table.
    assert text.index("nw_dst=192.0.2.0/24") < text.index("dec_ttl"), text
    assert "3" in text[text.index("nw_dst=192.0.2.0/24"):], text


def megaflows(text):
    """The match of each megaflow that is named."""
    prefix = "Megaflow: "
    return [line[len(prefix):] for line in text.splitlines() if line.startswith(prefix)]


def test_trace_says_the_megaflow_to_the_bit(switch):
    text = switch.command.text("trace", "in_port=1,udp,nw_src=10.0.0.1,nw_dst=192.0.2.5,nw_ttl=64,tp_src=9,tp_dst=53")
    # What the rules look at, and no more: no source and no port, of which one is set on the way.
    assert megaflows(text) == ["recirc_id=0,udp,in_port=1,nw_dst=192.0.2.0/24,nw_frag=not_later"], text


def test_trace_follows_a_recirculated_packet(switch):
    switch.do("replace-flows", "table=0,in_port=1,udp,tp_dst=53,actions=mod_nw_dst:192.0.2.9,recirc(table=5)",
              "table=5,ip,nw_dst=192.0.2.0/24,actions=output:2", "table=5,priority=1,actions=drop")
    packet = "in_port=1,udp,nw_dst=198.51.100.1,tp_dst=53"
    text = switch.command.text("trace", packet)
    # The second pass sees the address that the first has set.
    assert megaflows(text) == ["recirc_id=0,udp,in_port=1,tp_dst=53", "recirc_id=6,ip,in_port=1,nw_dst=192.0.2.0/24"]
    first, second = text.split("Recirculated to table 5:")
    assert "Datapath actions: set(nw_dst=192.0.2.9),recirc(6)\n" in first and "Datapath actions: output:2\n" in second
    assert "nw_dst=192.0.2.0/24, priority 32768" in second and "output:2" not in first, text
    assert len(switch.do("trace", packet)["passes"]) == 2


def test_trace_says_where_a_packet_ends_for_its_ttl(switch):
    """The megaflow is for all TTLs; this packet has one."""
    packet = "in_port=1,udp,nw_dst=192.0.2.5,nw_ttl="
    for ttl, is_end in ((1, True), (2, False)):
        text = switch.command.text("trace", f"{packet}{ttl}")
        assert ("dec_ttl is as far as this packet goes" in text) == is_end, text
        assert "nw_ttl" not in megaflows(text)[0], text


def test_trace_is_of_a_packet(switch):
    for wrong in ("table=3", "cookie=7", "out_port=2"):
        assert "a packet has none" in switch.command.refused("trace", f"in_port=1,ip,{wrong}")
    assert " 3. " in switch.command.text("trace", "in_port=1,udp,tp_dst=7,nw_ttl=9,recirc_id=4")


def test_trace_of_what_is_dropped(switch):
    text = switch.command.text("trace", "in_port=1,arp")
    assert "drop" in text, text


def test_trace_changes_nothing(switch):
    before = switch.flows()
    switch.command.text("trace", "in_port=2,arp")
    assert switch.flows().keys() == before.keys()
    assert "no_such" in switch.command.refused("trace", "in_port=1,no_such=3")
