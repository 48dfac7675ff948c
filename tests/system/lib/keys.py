# SPDX-License-Identifier: Apache-2.0
"""Keys of frames as the switch and as OVS read them (ovs-ofctl parse-pcap), in one form to compare.

A key is a dict of the fields that the switch knows; absent fields are 0.
"""
import ipaddress
import re
import shutil
import struct
import subprocess

from .process import built

OVS = shutil.which("ovs-ofctl")
MACS = ("dl_dst", "dl_src", "arp_sha", "arp_tha", "nd_sll", "nd_tll")
ADDRESSES = ("nw_src", "nw_dst", "arp_spa", "arp_tpa", "ipv6_src", "ipv6_dst", "nd_target")
NUMBERS = ("dl_type", "vlan_tci", "vlan_tci1", "nw_proto", "nw_frag", "nw_tos", "nw_ttl", "tp_src", "tp_dst",
           "tcp_flags", "ipv6_label", "arp_op")
# How ovs-ofctl abbreviates a type and protocol.
WORDS = {"ip": (0x0800, None), "ipv6": (0x86dd, None), "arp": (0x0806, None), "rarp": (0x8035, None),
         "icmp": (0x0800, 1), "tcp": (0x0800, 6), "udp": (0x0800, 17), "sctp": (0x0800, 132),
         "icmp6": (0x86dd, 58), "tcp6": (0x86dd, 6), "udp6": (0x86dd, 17), "sctp6": (0x86dd, 132),
         "mpls": (0x8847, None), "mplsm": (0x8848, None)}
FRAGMENTS = {"no": 0, "yes": 1, "first": 1, "later": 3}
TCP_FLAGS = {name: 1 << bit for bit, name in enumerate("fin syn rst psh ack urg ece cwr ns".split())}


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def read_pcap(path):
    with open(path, "rb") as file:
        data = file.read()[24:]
    frames = []
    while len(data) >= 16:
        length = struct.unpack("<IIII", data[:16])[2]
        frames.append(data[16:16 + length])
        data = data[16 + length:]
    return frames


def _value(name, text):
    if name in MACS:
        return int(text.replace(":", ""), 16)
    if name in ADDRESSES:
        return int(ipaddress.ip_address(text))
    return int(text, 0)


def parse_ours(line):
    key, malformed = {}, None
    for pair in line.split(","):
        name, _, text = pair.partition("=")
        if name == "malformed":
            malformed = text
        else:
            key[name] = _value(name, text)
    return {name: value for name, value in key.items() if value}, malformed


def _tcp_flags(text):
    if re.fullmatch(r"0x[0-9a-f]+|\d+", text):
        return int(text, 0)
    value = 0
    for word in re.findall(r"[a-z]+|\[[0-9a-f]+\]", text.lower()):
        value |= int(word[1:-1], 16) if word.startswith("[") else TCP_FLAGS[word]
    return value


def parse_ovs(line):
    key = {}
    vlans = [{}, {}]
    for pair in line.split(","):
        name, _, text = pair.partition("=")
        found = re.fullmatch(r"dl_vlan(_pcp)?(1?)", name)
        if found:
            vlans[bool(found.group(2))]["pcp" if found.group(1) else "vid"] = int(text)
        elif name in WORDS and not text:
            key["dl_type"], proto = WORDS[name]
            if proto is not None:
                key["nw_proto"] = proto
        elif name == "nw_frag":
            key[name] = FRAGMENTS[text]
        elif name == "tcp_flags":
            key[name] = _tcp_flags(text)
        elif name == "nw_ecn":
            key["nw_tos"] = key.get("nw_tos", 0) | int(text)
        elif name == "nw_tos":
            key["nw_tos"] = key.get("nw_tos", 0) | int(text)
        elif name in ("icmp_type", "icmp_code"):
            key["tp_src" if name == "icmp_type" else "tp_dst"] = int(text, 0)
        elif name in MACS + ADDRESSES + NUMBERS:
            key[name] = _value(name, text)
    for vlan, name in zip(vlans, ("vlan_tci", "vlan_tci1")):
        if vlan:
            key[name] = 0x1000 | vlan.get("pcp", 0) << 13 | vlan.get("vid", 0)
    return {name: value for name, value in key.items() if value}


def ours(path):
    """[(key, why malformed or None)] of the frames of a capture."""
    text = subprocess.run([built("tests/tools/sw_key_dump"), path], capture_output=True, text=True, timeout=120,
                          check=True).stdout
    return [parse_ours(line) for line in text.splitlines()]


def ovs(path):
    """[key] as OVS reads them."""
    text = subprocess.run([OVS, "parse-pcap", path], capture_output=True, text=True, timeout=120, check=True).stdout
    return [parse_ovs(line) for line in text.splitlines() if line]
