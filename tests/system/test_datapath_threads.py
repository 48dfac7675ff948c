# SPDX-License-Identifier: Apache-2.0
"""Counters of several PMDs and of the ports between them: under load each lies between two sums of the
others, while queues change hands, and at quiescence they are equal."""

import os
import time

import pytest

from lib.flow_switch import FlowSwitch
from lib.keys import write_pcap
from lib.lab import identities
from lib.wait import wait_for
from test_datapath_caches import udp

CORES = {0, 1}
pytestmark = pytest.mark.skipif(not CORES <= os.sched_getaffinity(0), reason=f"needs cores {CORES} for two PMDs")
# Packets go round between two rings, from one PMD to the other, until a rule ends that.
ROUND = ("in_port=1,actions=output:2", "in_port=3,actions=output:2",
         "in_port=2,udp,tp_dst=60,actions=output:3",
         "in_port=2,udp,tp_dst=61,actions=recirc(table=3)", "table=3,actions=output:3",
         "in_port=2,udp,tp_dst=62,actions=mod_nw_tos:4,resubmit(,3)")
# The same with copies and drops on the way.
COPIES = (*ROUND, "in_port=2,udp,tp_dst=63,actions=output:99,output:3")
N_PACKETS = 400


class Rings:
    """Ports: 2 and 3 give back what is sent to them; feed() adds one whose packets start the round."""

    def __init__(self, processes, rundir, folder, mask):
        self.folder = folder
        # One transmit queue each, which PMDs share: behind a second one is another ring.
        self.switch = FlowSwitch(rundir, folder, f"set pmd-cpu-mask={mask}",
                                 "add-port p2 net_ring2 ofport=2 n_txq=1", "add-port p3 net_ring3 ofport=3 n_txq=1")
        processes.append(self.switch)
        self.do = self.switch.do

    def feed(self):
        source = os.path.join(self.folder, "in.pcap")
        write_pcap(source, [udp(i, dport=60 + i % 4) for i in range(N_PACKETS)])
        self.do("add-port", "p1", f"net_pcap1,rx_pcap={source}", "ofport=1")

    def pmds(self):
        return wait_for(lambda: (lambda pmds: pmds if all(pmd["readable"] for pmd in pmds) else None)(
            self.do("pmd-stats-show")["pmds"]), what="counters of all PMDs")

    def later_pmds(self):
        """Counters that every PMD has published after this call."""
        before = {pmd["tid"]: pmd["iterations"] for pmd in self.pmds()}
        return wait_for(lambda: (lambda pmds: pmds if all(
            pmd["iterations"] != before.get(pmd["tid"]) for pmd in pmds) else None)(self.pmds()),
            what="all PMDs to publish")

    def owners(self):
        """{port: core of the PMD that polls it}"""
        return {rxq["port"]: pmd["core"] for pmd in self.do("pmd-rxq-show")["pmds"] for rxq in pmd["rxqs"]}

    def ports(self):
        return self.do("dump-ports")["ports"]

    def stop(self):
        """No packet goes on."""
        self.do("replace-flows", "actions=drop")
        wait_for(lambda: of_ports(self.ports())["rx"] == of_ports(self.ports())["tx"] + N_PACKETS and
                 sum(pmd["in_flight"] for pmd in self.pmds()) == 0,
                 what=lambda: f"the rings to be empty: {self.ports()}")


def of_pmds(pmds):
    """Sums over all of them; each of them is right in itself."""
    for pmd in pmds:
        identities(pmd)
    drops = {reason: sum(pmd["drops"][reason] for pmd in pmds) for reason in pmds[0]["drops"]}
    return {"rx": sum(pmd["packets_received"] for pmd in pmds), "tx": sum(pmd["packets_sent"] for pmd in pmds),
            **drops}


def of_ports(ports):
    drops = {reason: sum(port["drops"][reason] for port in ports) for reason in ports[0]["drops"]}
    return {"rx": sum(port["rx_packets"] for port in ports), "tx": sum(port["tx_packets"] for port in ports), **drops}


def check_between(rings):
    """What ports have counted lies between what PMDs had published before and have published since."""
    before = of_pmds(rings.pmds())
    ports = of_ports(rings.ports())
    after = of_pmds(rings.later_pmds())
    assert before.keys() == ports.keys()
    for key, n in ports.items():
        assert before[key] <= n <= after[key], (key, before, ports, after)


def test_sums_over_pmds_are_those_of_the_ports(processes, rundir, folder):
    rings = Rings(processes, rundir, folder, "0x2")
    rings.do("replace-flows", *COPIES)
    rings.feed()
    first = rings.owners()
    assert set(first.values()) == {1} and len(first) == 3
    check_between(rings)
    # A queue goes to another PMD, and the one that had it lives on: nobody's counters are lost.
    rings.do("set", "pmd-cpu-mask=0x3")
    assert set(rings.owners().values()) == CORES
    end = time.monotonic() + 1
    n = 0
    while time.monotonic() < end or n < 5:
        check_between(rings)
        n += 1
    pmds = rings.pmds()
    assert len(pmds) == 2 and all(pmd["packets_received"] > 0 and pmd["packets_sent"] > 0 for pmd in pmds)
    rings.stop()
    pmds, ports = rings.later_pmds(), rings.ports()
    assert of_pmds(pmds) == of_ports(ports)
    sums = of_pmds(pmds)
    assert sums["port_down"] > 0 and sums["action"] + sums["queue_full"] == N_PACKETS, sums
    assert sum(pmd["recirculations"] for pmd in pmds) > 0


def test_ports_lose_no_packet_while_queues_change_hands(processes, rundir, folder):
    """PMDs end and begin, their counters with them; those of the ports stay, and add up."""
    rings = Rings(processes, rundir, folder, "0x3")
    rings.do("replace-flows", *ROUND, "in_port=2,udp,tp_dst=63,actions=dec_ttl,output:3")
    rings.feed()
    owners = set()
    for mask, cores in [("0x1", {0}), ("0x3", CORES), ("0x2", {1}), ("0x3", CORES)] * 2:
        before = of_ports(rings.ports())
        rings.do("set", f"pmd-cpu-mask={mask}")
        wait_for(lambda was=before: of_ports(rings.ports())["rx"] > was["rx"],
                 what=lambda: f"packets to go on: {rings.ports()}")
        assert set(rings.owners().values()) == cores
        owners.add(tuple(sorted(rings.owners().items())))
        of_pmds(rings.later_pmds())
    assert len(owners) >= 3, owners
    rings.stop()
    ports = of_ports(rings.ports())
    of_pmds(rings.later_pmds())
    drops = {key: n for key, n in ports.items() if key not in ("rx", "tx") and n}
    assert ports["rx"] == ports["tx"] + sum(drops.values()) and sum(drops.values()) == N_PACKETS, ports
