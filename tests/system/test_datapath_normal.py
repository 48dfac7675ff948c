# SPDX-License-Identifier: Apache-2.0
"""actions=NORMAL: forwarding by MAC address and VLAN, learned from the traffic."""

import os
import re

import pytest

from lib.flow_switch import PMD_CORE, FlowSwitch
from lib.hosts import sh, two_hosts
from lib.lab import Lab
from lib.wait import wait_for

pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")


def mac(n):
    return bytes([2, 0, 0, 0, 0, n])


def frame(src, dst, vid=None):
    tag = b"" if vid is None else b"\x81\x00" + vid.to_bytes(2, "big")
    return mac(dst) + mac(src) + tag + b"\x88\xb5" + bytes(46)


BROADCAST = b"\xff" * 6 + mac(1) + b"\x88\xb5" + bytes(46)


@pytest.fixture
def lab(processes, rundir, folder):
    return Lab(processes, rundir, folder, "add-flow actions=NORMAL")


def learned(lab):
    """{(MAC, VLAN): port} of fdb-show."""
    text = lab.command.text("fdb-show")
    rows = re.findall(r"(\S+)\s+(\d+)\s+(02:00:00:00:00:[0-9a-f]{2})", text)
    return {(int(address[-2:], 16), int(vlan)): port.lstrip("p") for port, vlan, address in rows}


def sent_by(lab, port, frames):
    """How many each port sent when this port received the frames."""
    before = lab.sent()
    before[port] = 0  # fed anew
    lab.feed(port, frames)
    return {p: n - before[p] for p, n in lab.sent().items()}


def await_learned(lab, *keys):
    wait_for(lambda: all(key in learned(lab) for key in keys), what=lambda: f"{keys} in {learned(lab)}")


def test_unknown_is_flooded_known_is_not(lab):
    assert sent_by(lab, 1, [frame(1, 2)]) == {1: 0, 2: 1, 3: 1, 4: 1}
    await_learned(lab, (1, 0))
    assert sent_by(lab, 2, [frame(2, 1)] * 3) == {1: 3, 2: 0, 3: 0, 4: 0}
    await_learned(lab, (2, 0))
    assert sent_by(lab, 3, [frame(3, 2)]) == {1: 0, 2: 1, 3: 0, 4: 0}
    assert sent_by(lab, 4, [BROADCAST.replace(mac(1), mac(4))]) == {1: 1, 2: 1, 3: 1, 4: 0}
    # What is behind the port that a frame comes from needs no forwarding.
    assert sent_by(lab, 3, [frame(3, 9), frame(5, 3)])[3] == 0


def test_addresses_are_learned_within_their_vlan(lab):
    lab.feed(1, [frame(1, 2, vid=10)])
    await_learned(lab, (1, 10))
    assert sent_by(lab, 2, [frame(2, 1, vid=10)]) == {1: 1, 2: 0, 3: 0, 4: 0}
    assert sent_by(lab, 3, [frame(3, 1, vid=11)]) == {1: 1, 2: 1, 3: 0, 4: 1}


def test_an_address_that_moves_is_found_at_its_new_port(lab):
    lab.feed(1, [frame(1, 9)])
    await_learned(lab, (1, 0))
    lab.feed(2, [frame(1, 9)])
    wait_for(lambda: learned(lab)[1, 0] == "2", what=lambda: f"the move in {learned(lab)}")
    assert sent_by(lab, 3, [frame(3, 1)]) == {1: 0, 2: 1, 3: 0, 4: 0}


def test_a_port_that_goes_takes_its_addresses_along(lab):
    lab.feed(1, [frame(1, 9)])
    await_learned(lab, (1, 0))
    lab.do("del-port", "p1")
    wait_for(lambda: (1, 0) not in learned(lab), what="the address of a port that is gone to go")
    lab.add(1)
    assert sent_by(lab, 3, [frame(3, 1)]) == {1: 1, 2: 1, 3: 0, 4: 1}


def test_frames_between_neighbours_are_not_forwarded(lab):
    """Bridges keep spanning tree, LACP, LLDP and pause to themselves; other groups are flooded."""
    def group(last):
        return b"\x01\x80\xc2\x00\x00" + bytes([last]) + mac(1) + b"\x88\xb5" + bytes(46)

    assert sent_by(lab, 1, [group(0x00), group(0x02), group(0x0e), group(0x0f)]) == {1: 0, 2: 0, 3: 0, 4: 0}
    assert lab.drops(1) == {"action": 4}
    assert (1, 0) not in learned(lab)
    assert sent_by(lab, 1, [group(0x10)]) == {1: 0, 2: 1, 3: 1, 4: 1}
    lab.flows("dl_dst=01:80:c2:00:00:0e,actions=output:2", "priority=1,actions=NORMAL")
    assert sent_by(lab, 1, [group(0x0e)]) == {1: 0, 2: 1, 3: 0, 4: 0}


def test_trace_says_where_normal_sends_a_packet(lab):
    lab.feed(1, [frame(1, 9), frame(1, 9, vid=7)])
    await_learned(lab, (1, 0), (1, 7))
    lab.flows("in_port=2,dl_dst=02:00:00:00:00:33,actions=mod_dl_dst:02:00:00:00:00:01,mod_vlan_vid:7,NORMAL",
              "priority=1,actions=NORMAL")

    def trace(port, address, more=""):
        text = lab.command.text("trace", f"in_port={port},dl_dst={address}{more}")
        return text.splitlines()[-1]

    assert trace(2, "02:00:00:00:00:01") == "Normal: 02:00:00:00:00:01 was seen in VLAN 0 at port 1: output:1"
    # By what the packet is when its turn comes.
    assert trace(2, "02:00:00:00:00:33") == "Normal: 02:00:00:00:00:01 was seen in VLAN 7 at port 1: output:1"
    assert "has not been seen in VLAN 8: flooded" in trace(2, "02:00:00:00:00:01", ",dl_vlan=8")
    assert "has not been seen in VLAN 0: flooded" in trace(2, "02:00:00:00:00:05")
    assert trace(1, "02:00:00:00:00:01").endswith("the packet comes from: dropped")
    assert trace(2, "ff:ff:ff:ff:ff:ff").endswith("is a group: flooded")
    assert trace(2, "01:80:c2:00:00:0e").endswith("dropped")


def test_addresses_are_flushed_by_port(lab):
    lab.feed(1, [frame(1, 9)])
    lab.feed(2, [frame(2, 9)])
    lab.feed(3, [frame(3, 9)])
    await_learned(lab, (1, 0), (2, 0), (3, 0))
    assert "no such port" in lab.command.refused("fdb-flush", "p9")
    assert "no such port" in lab.command.refused("fdb-flush", "9")
    lab.command.text("fdb-flush", "p2")
    assert set(learned(lab)) == {(1, 0), (3, 0)}
    lab.command.text("fdb-flush", "1")
    assert set(learned(lab)) == {(3, 0)}
    lab.command.text("fdb-flush")
    assert not learned(lab)
    assert sent_by(lab, 4, [frame(4, 1)]) == {1: 1, 2: 1, 3: 1, 4: 0}


def test_an_old_address_is_forgotten(lab):
    lab.command.text("set", "mac-aging-time=15")
    assert lab.command.text("get", "mac-aging-time").strip() == "15"
    assert lab.command.refused("set", "mac-aging-time=0")


def test_two_hosts_talk(processes, rundir, folder, need_root):
    """ARP, ping and their answers over real interfaces, with NORMAL alone."""
    with two_hosts() as (a, b):
        switch = FlowSwitch(rundir, folder, *[
            f"add-port {name} net_af_packet{n},iface={host.port_device} ofport={n}"
            for n, (name, host) in enumerate(zip("ab", (a, b)), 1)], "add-flow actions=NORMAL")
        processes.append(switch)
        done = sh(*a.command("ping", "-c", "5", "-i", "0.2", "-W", "2", b.address), check=False)
        assert " 0% packet loss" in done.stdout, done.stdout + done.stderr
        assert len(re.findall(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", switch.command.text("fdb-show"))) == 2
