# SPDX-License-Identifier: Apache-2.0
"""Odd frames from the field (tests/frames): what is read of them, and what becomes of them in the switch."""

import glob
import os
import random
import sys

import pytest

from lib import keys
from lib.flow_switch import PMD_CORE, FlowSwitch
from lib.wait import wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES = os.path.join(HERE, "../frames")
NAMES = sorted(os.path.basename(path)[:-5] for path in glob.glob(os.path.join(FRAMES, "*.pcap")))

ETH = {"dl_dst": 0x020000000002, "dl_src": 0x020000000001}
IP4 = {**ETH, "dl_type": 0x0800, "nw_src": 0x0a000001, "nw_dst": 0x0a000002, "nw_ttl": 64}
UDP = {**IP4, "nw_proto": 17, "tp_src": 1000, "tp_dst": 2000}
TCP_NO_PORTS = {**IP4, "nw_proto": 6}
VXLAN = {**UDP, "tp_src": 49152, "tp_dst": 4789}
IP6 = {**ETH, "dl_type": 0x86dd, "ipv6_src": 0xfd << 120 | 1, "ipv6_dst": 0xfd << 120 | 2}
NO_L3 = {**ETH, "dl_type": 0x0800}

# Of each frame of the capture: its key, and why it counts as malformed.
RIGHT = {
    "P00_good_udp": [(UDP, None)],
    "P01_l2pad_600": [(UDP, None)],
    "P02_ihl4": [(NO_L3, "ip4")],
    "P04_totlen16": [(NO_L3, "ip4")],
    "P06_tcp_doff4": [(TCP_NO_PORTS, "l4")],
    "P08_tcp_hdr_cut_at_8": [(TCP_NO_PORTS, "l4")],
    "P10_v6_hbh_len255": [(IP6, "ip6_chain")],
    "P13_frag_first_then_later": [({**UDP, "nw_frag": 1}, None),
                                  ({**IP4, "nw_proto": 17, "nw_frag": 3}, None)],
    "P15_df_set_not_frag": [(UDP, None), ({**UDP, "tp_src": 1001}, None)],
    "P20_vxlan_good": [(VXLAN, None)],
    "P22_vxlan_inner_13B": [(VXLAN, None)],
    "P28_vlan_cut": [({**ETH, "dl_type": 0x8100}, "vlan")],
    "P29_qinq_88a8": [({**UDP, "vlan_tci": 0x1000 | 100, "vlan_tci1": 0x1000 | 200}, None)],
    "P31_prio_tag_vid0": [({**UDP, "vlan_tci": 0x1000 | 5 << 13}, None)],
    "P33_runt13": [({}, "runt")],
    "P35_nd_opt_len0": [({**IP6, "nw_proto": 58, "nw_ttl": 255, "tp_src": 135,
                          "nd_target": 0xfd << 120 | 2}, "nd")],
    "P40_udp_len0": [(UDP, None)],
}


def capture(name):
    return os.path.join(FRAMES, name + ".pcap")


def test_every_capture_has_its_right_behaviour():
    assert NAMES == sorted(RIGHT)


@pytest.mark.parametrize("name", NAMES)
def test_key(name):
    assert keys.ours(capture(name)) == RIGHT[name]


@pytest.mark.parametrize("name", NAMES)
def test_ovs_reads_the_same(name):
    if not keys.OVS:
        pytest.skip("no ovs-ofctl to compare with (Debian package openvswitch-common)")
    assert keys.ovs(capture(name)) == [key for key, _ in RIGHT[name]]


def test_mutated_frames_read_as_ovs_reads_them(folder):
    """A short run of tests/fuzz/key_diff.py, always with the same frames."""
    if not keys.OVS:
        pytest.skip("no ovs-ofctl to compare with (Debian package openvswitch-common)")
    sys.path.insert(0, os.path.join(HERE, "../fuzz"))
    import key_diff  # pylint: disable=import-error,import-outside-toplevel
    rng = random.Random(7)
    pool = key_diff.seeds()
    frames = pool + [key_diff.mutate(rng.choice(pool), rng, pool) for _ in range(5000)]
    wrong, _ = key_diff.compare(frames, os.path.join(folder, "frames.pcap"))
    assert not wrong, [(frame.hex(), ours, bad, ovs) for frame, ours, bad, ovs in wrong[:5]]


@pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0), reason=f"needs core {PMD_CORE} for a PMD")
def test_switch_forwards_by_what_it_read(processes, rundir, folder):
    """Each frame leaves by the port that the rules say; a runt is dropped; malformed ones are counted."""
    frames = [frame for name in NAMES for frame in keys.read_pcap(capture(name))]
    right = [item for name in NAMES for item in RIGHT[name]]
    source, empty = os.path.join(folder, "in.pcap"), os.path.join(folder, "empty.pcap")
    keys.write_pcap(source, frames)
    keys.write_pcap(empty, [])
    sinks = {port: os.path.join(folder, f"out{port}.pcap") for port in (2, 3, 4)}
    # Two rules that a header with a wrong length must not get around, then those that it must not match.
    switch = FlowSwitch(
        rundir, folder,
        *[f"add-port p{port} net_pcap{port},rx_pcap={empty},tx_pcap={path} ofport={port}"
          for port, path in sinks.items()],
        "add-flow in_port=1,priority=300,udp,tp_dst=2000,actions=output:2",
        "add-flow in_port=1,priority=200,ip,nw_src=10.0.0.1,actions=output:3",
        "add-flow in_port=1,priority=100,actions=output:4",
        f"add-port p1 net_pcap1,rx_pcap={source},tx_pcap={folder}/back.pcap ofport=1")
    processes.append(switch)
    wanted = {2: [], 3: [], 4: []}
    for frame, (key, bad) in zip(frames, right):
        if bad != "runt":
            port = 2 if key.get("nw_proto") == 17 and key.get("tp_dst") == 2000 else 3 if "nw_src" in key else 4
            wanted[port].append(frame)
    wait_for(lambda: switch.port("p1")["rx_packets"] == len(frames) and
             all(switch.port(f"p{port}")["tx_packets"] == len(list_) for port, list_ in wanted.items()),
             what=lambda: f"all frames forwarded: {switch.do('dump-ports')}")
    assert switch.port("p1")["drops"]["malformed"] == 1
    n_bad = {}
    for _, bad in right:
        if bad:
            n_bad[bad] = n_bad.get(bad, 0) + 1
    counted = wait_for(lambda: (lambda n: n if sum(n.values()) == sum(n_bad.values()) else None)(
        switch.do("pmd-stats-show")["malformed_since_start"]), what=lambda: "malformed frames counted: " +
        str(switch.do("pmd-stats-show")["malformed_since_start"]))
    assert {reason: n for reason, n in counted.items() if n} == n_bad
    assert switch.stop() == 0
    for port, list_ in wanted.items():
        assert keys.read_pcap(sinks[port]) == list_
