# SPDX-License-Identifier: Apache-2.0
"""Rules as text against ovs-ofctl: it takes what we dump, and understands it as what was written."""

import random
import re
import shutil
import subprocess

import pytest

from lib.process import built

pytestmark = pytest.mark.skipif(not shutil.which("ovs-ofctl"), reason="needs ovs-ofctl (openvswitch-common)")

MACS = ["02:00:00:00:00:01", "01:00:00:00:00:00/01:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"]
IP4 = ["10.0.0.1", "10.1.0.0/16", "10.0.0.5/255.0.0.255", "0.0.0.0/1"]
IP6 = ["fd00::1", "fd00::/64", "::1/::ff", "fe80::/10"]
PORTS = ["0", "80", "65535", "0x10/0xfff0"]
L2 = {"dl_src": MACS, "dl_dst": MACS, "vlan": ["dl_vlan=5", "dl_vlan=5,dl_vlan_pcp=3", "dl_vlan_pcp=7", "dl_vlan=0",
                                               "vlan_tci=0x1000/0x1000", "vlan_tci=0x1005/0x1fff", "vlan_vid=0x1007"]}
IP = {"nw_tos": ["0", "32", "252"], "nw_ecn": ["0", "3"], "nw_ttl": ["1", "64"],
      "nw_frag": ["no", "yes", "first", "later", "not_later"]}
BY_PROTOCOL = {
    "": {},
    "ip": {"nw_src": IP4, "nw_dst": IP4, "nw_proto": ["47"], **IP},
    "tcp": {"nw_src": IP4, "nw_dst": IP4, "tp_src": PORTS, "tcp_dst": PORTS,
            "tcp_flags": ["+syn-ack", "+fin+ns", "-rst", "0x2", "0xfff"], **IP},
    "udp": {"nw_dst": IP4, "udp_src": PORTS, "tp_dst": PORTS, **IP},
    "sctp": {"tp_dst": PORTS, **IP},
    "icmp": {"icmp_type": ["8"], "icmp_code": ["0"], **IP},
    "ipv6": {"ipv6_src": IP6, "ipv6_dst": IP6, "ipv6_label": ["0x12345", "0"], **IP},
    "tcp6": {"ipv6_dst": IP6, "tp_dst": PORTS, **IP},
    "udp6": {"ipv6_src": IP6, "tp_src": PORTS, **IP},
    "icmp6": {"icmp_type": ["128"], **IP},
    "icmp6,icmp_type=135": {"icmp_code": ["0"], "nd_target": IP6, "nd_sll": MACS, **IP},
    "icmp6,icmp_type=136": {"icmp_code": ["0"], "nd_target": IP6, "nd_tll": MACS, **IP},
    "arp": {"arp_spa": IP4, "arp_tpa": IP4, "arp_op": ["1", "2"], "arp_sha": MACS, "arp_tha": MACS},
}
ACTIONS = ["output:1", "2", "in_port", "normal", "flood", "all", "output(port=3,max_len=64)",
           "output(port=in_port,max_len=1500)", "mod_dl_src:02:00:00:00:00:01", "mod_dl_dst:02:00:00:00:00:02",
           "mod_nw_src:10.0.0.1", "mod_nw_dst:10.0.0.2", "mod_nw_tos:32", "mod_nw_ecn:1", "mod_nw_ttl:9",
           "mod_tp_src:80", "mod_tp_dst:81", "mod_vlan_vid:5", "mod_vlan_pcp:3", "strip_vlan",
           "resubmit(,2)", "resubmit(3,4)", "resubmit:5", "dec_ttl", "note:00.11.22.33.44.55",
           "set_field:02:00:00:00:00:03/ff:00:00:00:00:ff->eth_src"]
SETS = {
    "ip": ["set_field:10.0.0.1->ip_src", "set_field:10.0.0.0/8->nw_dst", "set_field:2->nw_ecn", "set_field:7->nw_ttl"],
    "tcp": ["set_field:80->tcp_src", "set_field:0x50/0xff->tcp_dst", "set_field:8->ip_dscp"],
    "udp": ["set_field:53->udp_dst"],
    "ipv6": ["set_field:fd00::5->ipv6_src", "set_field:fd00::/16->ipv6_dst", "set_field:0x123->ipv6_label"],
    "arp": ["set_field:2->arp_op", "set_field:10.0.0.3->arp_spa", "set_field:02:00:00:00:00:04->arp_tha"],
    "icmp": ["set_field:3->icmp_type"],
    "icmp6,icmp_type=135": ["set_field:fd00::5->nd_target", "set_field:02:00:00:00:00:05->nd_sll"],
    "icmp6,icmp_type=136": ["set_field:fd00::/16->nd_target", "set_field:02:00:00:00:00:06->nd_tll"],
}


def is_too_much_for_ovs(action, protocol, fields):
    """A packet without the field would stay as it is; ovs-ofctl takes that in OpenFlow 1.0 alone."""
    if re.match(r"mod_nw_(src|dst)", action):
        return protocol not in ("ip", "tcp", "udp", "sctp", "icmp")
    if re.match(r"mod_nw|dec_ttl", action):
        return protocol in ("", "arp")
    if re.match(r"mod_tp|.*->(tcp|udp)_", action):
        return protocol[:3] not in ("tcp", "udp", "sct") or "nw_frag=later" in fields
    return False


def random_rule(dice):
    protocol = dice.choice(list(BY_PROTOCOL))
    fields = [protocol] if protocol else []
    if dice.random() < 0.5:
        fields.append(f"in_port={dice.randint(1, 60000)}")
    for name, values in list(L2.items()) + list(BY_PROTOCOL[protocol].items()):
        if dice.random() < 0.25:
            value = dice.choice(values)
            fields.append(value if name == "vlan" else f"{name}={value}")
    actions = dice.choices(ACTIONS + SETS.get(protocol, []), k=dice.randint(0, 5))
    actions = [a for a in actions if not is_too_much_for_ovs(a, protocol, fields)]
    table = dice.randint(1, 9)  # ovs-ofctl tells "0" and "not said" apart
    if dice.random() < 0.1:
        actions.append(f"goto_table:{table + 1}")
    return (f"table={table},priority={dice.randint(0, 65535)},cookie={dice.randint(0, 99)},"
            f"{','.join(fields)}{',' if fields else ''}actions={','.join(actions) or 'drop'}")


def understood_by_ovs(lines, folder, name):
    path = f"{folder}/{name}"
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    done = subprocess.run(["ovs-ofctl", "-F", "NXM+table_id", "parse-flows", path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return re.findall(r"FLOW_MOD \(xid=\w+\): (.*)", done.stdout)


def dumped_by_us(lines):
    done = subprocess.run([built("tests/tools/sw_rule_text")], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_dumps_mean_to_ovs_what_was_written(folder):
    dice = random.Random(20260105)
    lines = [random_rule(dice) for _ in range(2000)]
    dumps = dumped_by_us(lines)
    wrong = [f"{line}: {dump}" for line, dump in zip(lines, dumps) if dump.startswith("error")]
    assert not wrong, wrong[0]
    before = understood_by_ovs(lines, folder, "written")
    after = understood_by_ovs(dumps, folder, "dumped")
    assert len(before) == len(after) == len(lines)
    for line, dump, a, b in zip(lines, dumps, before, after):
        assert a == b, f"{line}\ndumped: {dump}"


def test_other_names_of_an_action_mean_the_same():
    names = {"set_vlan_vid:5": "mod_vlan_vid:5", "set_vlan_pcp:3": "mod_vlan_pcp:3", "pop_vlan": "strip_vlan"}
    for name, dumped in names.items():
        done = subprocess.run(["ovs-ofctl", "parse-flow", f"actions={name}"], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1].endswith(f"actions={dumped}"), done.stdout
    for dump, dumped in zip(dumped_by_us([f"actions={name}" for name in names]), names.values()):
        assert dump.endswith(f"actions={dumped}"), dump


def test_ports_and_tables_are_decimal(folder):
    lines = ["table=010,in_port=010,actions=output:011,resubmit(012,013),resubmit:014,goto_table:015"]
    dumps = dumped_by_us(lines)
    assert understood_by_ovs(lines, folder, "written") == understood_by_ovs(dumps, folder, "dumped")


REFUSED = [
    "ip,nw_dst=1.2.3.4/33,actions=drop", "dl_type=0x800/0xff,actions=drop", "tcp,tp_dst=70000,actions=drop",
    "priority=65536,actions=drop", "actions=set_field:1.2.3.4->nw_src", "tcp,actions=set_field:2->tcp_flags",
    "actions=output(port=1,max_len=13)", "actions=push_vlan:0x9100", "actions=1,drop",
    "table=3,actions=goto_table:2", "actions=goto_table:1,2", "actions=resubmit", "actions=frob",
    "table=0x1,actions=drop", "in_port=0x1,actions=drop", "actions=output:0x1", "actions=goto_table:0x1",
    "dl_src=1:2:3,actions=drop", "in_port=1", "tcp,tcp_flags=+foo,actions=drop", "udp,actions=set_field:5->tcp_dst"]


def test_what_ovs_refuses_is_refused():
    for rule in REFUSED:
        done = subprocess.run(["ovs-ofctl", "parse-flow", rule], capture_output=True, text=True, check=False)
        assert done.returncode != 0, rule
    for rule, dump in zip(REFUSED, dumped_by_us(REFUSED)):
        assert dump.startswith("error: "), rule
