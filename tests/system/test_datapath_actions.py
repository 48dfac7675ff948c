# SPDX-License-Identifier: Apache-2.0
"""Actions on real packets: what goes in by port 1, and what comes out, checksums included.

What is right is said by scapy, which builds the expected frame anew with its own checksums.
"""

import logging
import os

import pytest

from lib.flow_switch import PMD_CORE, Refused
from lib.lab import Lab

logging.getLogger("scapy").setLevel(logging.ERROR)
scapy = pytest.importorskip("scapy.all", reason="needs scapy (Debian package python3-scapy)")
from scapy.all import ARP, ICMP, IP, SCTP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, Raw  # noqa: E402 pylint: disable=C0413,E0611

pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")
A, B, C = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"


def udp(size=20, src="10.0.0.1", dst="10.0.0.2", sport=1000, dport=2000, ttl=64, tos=0, l2=None):
    return (l2 or Ether(src=A, dst=B)) / IP(src=src, dst=dst, ttl=ttl, tos=tos) / UDP(sport=sport, dport=dport) / \
        Raw(bytes(range(size)))


def tcp(dport=80, **more):
    return Ether(src=A, dst=B) / IP(src="10.0.0.1", dst="10.0.0.2", **more) / TCP(sport=1000, dport=dport) / b"data"


def udp6(dst="fd00::2", dport=2000, hlim=64, tc=0):
    return Ether(src=A, dst=B) / IPv6(src="fd00::1", dst=dst, hlim=hlim, tc=tc) / UDP(sport=1000, dport=dport) / b"six"


def tagged(vid, prio=0, **more):
    return udp(l2=Ether(src=A, dst=B) / Dot1Q(vlan=vid, prio=prio), **more)


@pytest.fixture
def lab(processes, rundir, folder):
    return Lab(processes, rundir, folder)


UNTAGGED, QINQ = udp(), udp(l2=Ether(src=A, dst=B) / Dot1AD(vlan=100) / Dot1Q(vlan=200))

# actions or match and actions, frame in, frames out of port 2 (None: none)
ONE_TO_ONE = {
    "output": ("output:2", UNTAGGED, UNTAGGED),
    "drop": ("drop", UNTAGGED, None),
    "mod_dl_src": (f"mod_dl_src:{C},output:2", UNTAGGED, udp(l2=Ether(src=C, dst=B))),
    "mod_dl_dst": (f"mod_dl_dst:{C},output:2", UNTAGGED, udp(l2=Ether(src=A, dst=C))),
    "mod_nw_src": ("mod_nw_src:192.0.2.1,output:2", UNTAGGED, udp(src="192.0.2.1")),
    "mod_nw_dst": ("mod_nw_dst:192.0.2.1,output:2", UNTAGGED, udp(dst="192.0.2.1")),
    "mod_nw_dst of TCP": ("mod_nw_dst:192.0.2.1,output:2", tcp(),
                          Ether(src=A, dst=B) / IP(src="10.0.0.1", dst="192.0.2.1") / TCP(sport=1000) / b"data"),
    "mod_nw_tos": ("mod_nw_tos:184,output:2", udp(tos=3), udp(tos=187)),
    "mod_tp_src": ("mod_tp_src:7,output:2", UNTAGGED, udp(sport=7)),
    "mod_tp_dst": ("mod_tp_dst:7,output:2", UNTAGGED, udp(dport=7)),
    "mod_tp_dst of TCP": ("mod_tp_dst:7,output:2", tcp(), tcp(dport=7)),
    "set_field port of SCTP": (
        "sctp,actions=set_field:7->sctp_dst,output:2", Ether(src=A, dst=B) / IP(src="10.0.0.1", dst="10.0.0.2") / SCTP(sport=1, dport=2),
        Ether(src=A, dst=B) / IP(src="10.0.0.1", dst="10.0.0.2") / SCTP(sport=1, dport=7)),
    "set_field of IPv6": ("ipv6,actions=set_field:fd00::9->ipv6_dst,output:2", udp6(), udp6(dst="fd00::9")),
    "set_field with a mask": ("ip,actions=set_field:192.0.2.0/255.255.255.0->ip_dst,output:2", UNTAGGED, udp(dst="192.0.2.2")),
    "set_field of ARP": (
        "arp,actions=set_field:10.0.0.9->arp_tpa,output:2", Ether(src=A, dst=B) / ARP(op=1, psrc="10.0.0.1", pdst="10.0.0.2", hwsrc=A),
        Ether(src=A, dst=B) / ARP(op=1, psrc="10.0.0.1", pdst="10.0.0.9", hwsrc=A)),
    "mod_nw_dst of IPv6": ("mod_nw_dst:192.0.2.1,mod_tp_dst:7,output:2", udp6(), udp6(dport=7)),
    "dec_ttl": ("dec_ttl,output:2", UNTAGGED, udp(ttl=63)),
    "dec_ttl twice": ("dec_ttl,dec_ttl,output:2", UNTAGGED, udp(ttl=62)),
    "dec_ttl of IPv6": ("dec_ttl,output:2", udp6(), udp6(hlim=63)),
    "dec_ttl at its end": ("dec_ttl,output:2", udp(ttl=1), None),
    "push_vlan": ("push_vlan:0x8100,set_field:4101->vlan_vid,output:2", UNTAGGED, tagged(5)),
    "push_vlan onto a tag": ("push_vlan:0x88a8,set_field:4196->vlan_vid,output:2", tagged(200),
                             udp(l2=Ether(src=A, dst=B) / Dot1AD(vlan=100) / Dot1Q(vlan=200))),
    "mod_vlan_vid adds a tag": ("mod_vlan_vid:5,output:2", UNTAGGED, tagged(5)),
    "mod_vlan_vid changes a tag": ("mod_vlan_vid:5,output:2", tagged(6, prio=3), tagged(5, prio=3)),
    "mod_vlan_pcp": ("mod_vlan_pcp:6,output:2", tagged(6, prio=3), tagged(6, prio=6)),
    "strip_vlan": ("strip_vlan,output:2", tagged(5), UNTAGGED),
    "strip_vlan of two tags": ("strip_vlan,output:2", QINQ, tagged(200)),
    "strip_vlan without a tag": ("strip_vlan,output:2", UNTAGGED, UNTAGGED),
    "strip_vlan twice": ("strip_vlan,strip_vlan,output:2", QINQ, UNTAGGED),
    "truncated": ("output(port=2,max_len=50)", udp(size=100), bytes(udp(size=100))[:50]),
    "truncated above its length": ("output(port=2,max_len=500)", UNTAGGED, UNTAGGED),
    "note": ("note:00.01,output:2", UNTAGGED, UNTAGGED),
    "many at once": (f"mod_dl_dst:{C},mod_nw_dst:192.0.2.1,mod_tp_dst:7,dec_ttl,push_vlan:0x8100,"
                     "set_field:4101->vlan_vid,output:2", UNTAGGED,
                     udp(l2=Ether(src=A, dst=C) / Dot1Q(vlan=5), dst="192.0.2.1", dport=7, ttl=63)),
}


def test_one_action_list_each(lab):
    """All of the table in one switch: the rules change, the frames follow."""
    got = {}
    for name, (actions, frame, _) in ONE_TO_ONE.items():
        lab.flows("in_port=1," + (actions if "actions=" in actions else "actions=" + actions))
        before = lab.switch.port("p2")["tx_packets"]
        lab.feed(1, [frame])
        got[name] = lab.switch.port("p2")["tx_packets"] - before
    assert got == {name: int(out is not None) for name, (_, _, out) in ONE_TO_ONE.items()}
    wrong = [f"{name}: {ONE_TO_ONE[name][0]}\n in  {bytes(ONE_TO_ONE[name][1]).hex()}\n out {sent.hex()}\n not {right.hex()}"
             for (name, right), sent in zip(((name, bytes(out)) for name, (_, _, out) in ONE_TO_ONE.items()
                                             if out is not None), lab.out()[2]) if sent != right]
    assert not wrong, "\n".join(wrong)


def test_actions_apply_in_order_and_copies_are_apart(lab):
    lab.flows(f"in_port=1,actions=output:3,mod_nw_dst:192.0.2.1,output:2,mod_dl_dst:{C},dec_ttl,output:4")
    frames = [udp(sport=1000 + i) for i in range(40)]
    lab.feed(1, frames)
    stats = lab.stats()
    assert stats["copies"] == 80 and stats["packets_sent"] == 120
    out = lab.out()
    assert out[3] == [bytes(frame) for frame in frames]
    assert out[2] == [bytes(udp(sport=1000 + i, dst="192.0.2.1")) for i in range(40)]
    assert out[4] == [bytes(udp(sport=1000 + i, dst="192.0.2.1", ttl=63, l2=Ether(src=A, dst=C))) for i in range(40)]
    assert out[1] == []


def test_udp_without_checksum_stays_without(lab):
    frame = udp()
    frame[UDP].chksum = 0
    lab.flows("in_port=1,actions=mod_nw_dst:192.0.2.1,mod_tp_dst:7,output:2")
    lab.feed(1, [frame])
    got = Ether(lab.out()[2][0])
    assert got[UDP].chksum == 0 and got[UDP].dport == 7 and got[IP].dst == "192.0.2.1"
    del got[IP].chksum
    assert bytes(got) == bytes(Ether(bytes(got))), "the IP header's own checksum"


def test_flood_and_in_port(lab):
    lab.flows("in_port=1,udp,actions=flood", "in_port=1,tcp,actions=in_port", "in_port=1,arp,actions=output:1")
    lab.feed(1, [udp(), tcp(), Ether(src=A, dst=B) / ARP()])
    assert lab.drops(1) == {"action": 1}
    out = lab.out()
    assert [len(out[port]) for port in lab.ports] == [1, 1, 1, 1]
    assert out[1] == [bytes(tcp())] and out[2] == out[3] == out[4] == [bytes(udp())]


def test_tables_and_resubmit(lab):
    """Later tables match on what earlier actions made of the packet, and resubmit comes back."""
    lab.flows("table=0,in_port=1,actions=mod_nw_dst:192.0.2.1,resubmit(,1),output:4",
              "table=1,ip,nw_dst=192.0.2.1,udp,tp_dst=2000,actions=mod_tp_dst:7,goto_table:2",
              "table=1,priority=1,actions=output:3",
              "table=2,udp,tp_dst=7,actions=output:2",
              "table=2,priority=0,actions=drop")
    lab.feed(1, [udp(), tcp()])
    tcp_changed = Ether(src=A, dst=B) / IP(src="10.0.0.1", dst="192.0.2.1") / TCP(sport=1000) / b"data"
    udp_changed = udp(dst="192.0.2.1", dport=7)
    out = lab.out()
    assert out[2] == [bytes(udp_changed)]
    assert out[3] == [bytes(tcp_changed)]
    assert out[4] == [bytes(udp_changed), bytes(tcp_changed)]


def test_resubmit_without_end_is_a_drop_with_its_reason(lab):
    lab.flows("in_port=1,actions=resubmit(,0)")
    lab.feed(1, [udp()] * 3)
    assert lab.drops(1) == {"recirculation_limit": 3}


def test_recirculation_sees_the_changed_packet(lab):
    lab.flows("table=0,in_port=1,vlan_tci=0,actions=mod_nw_dst:192.0.2.1,recirc(table=5)",
              "table=0,in_port=1,dl_vlan=9,actions=strip_vlan,recirc(table=6)",
              "table=5,ip,nw_dst=192.0.2.1,actions=dec_ttl,output:2",
              "table=5,priority=1,actions=output:3",
              "table=6,udp,tp_dst=2000,actions=output:3")
    lab.feed(1, [udp(sport=1000 + i) for i in range(50)] + [tagged(9)])
    stats = lab.stats()
    assert stats["recirculations"] == 51
    out = lab.out()
    assert out[2] == [bytes(udp(sport=1000 + i, dst="192.0.2.1", ttl=63)) for i in range(50)]
    assert out[3] == [bytes(udp())]


def test_recirculation_has_a_limit(lab):
    lab.flows("table=0,actions=recirc(table=0)")
    lab.feed(1, [udp()] * 5)
    stats = lab.stats()
    assert lab.drops(1) == {"recirculation_limit": 5}
    assert stats["recirculations"] == 5 * 6


def test_output_to_a_port_that_is_not_there(lab):
    lab.flows("in_port=1,actions=output:2,output:77")
    lab.feed(1, [udp()] * 2)
    assert sum(lab.drops(port).get("port_down", 0) for port in lab.ports) == 2
    assert lab.out()[2] == [bytes(udp())] * 2


@pytest.mark.parametrize("rule, named", [
    ("in_port=1,actions=goto_table:0", "goto_table"),
    ("table=255,actions=drop", "table"),
    ("in_port=1,actions=mod_nw_dst:nowhere", "nw_dst=nowhere"),
    ("in_port=1,actions=set_field:1->no_such_field", "no_such_field"),
    ("in_port=1,actions=fly:2", "fly"),
    ("in_port=1,actions=output(port=2,max_len=3)", "max_len"),
])
def test_wrong_actions_are_refused_by_name(lab, rule, named):
    with pytest.raises(Refused, match=named):
        lab.do("add-flow", rule)
