# SPDX-License-Identifier: Apache-2.0
"""Captures of many flows for net_pcap's infinite_rx: one frame a flow, shuffled, checksums valid.

Addresses are from the ranges for benchmarks (198.18.0.0/15, 2001:2::/48). Source address and port
differ from flow to flow; all go to port 63 of one destination.
"""
import random
import socket
import struct

SOURCE_MAC = bytes.fromhex("020000000001")
MAC = bytes.fromhex("020000000002")
IP4_DST = socket.inet_aton("198.19.0.1")
IP6_DST = socket.inet_pton(socket.AF_INET6, "2001:2::1")
TAGS = {None: b"", "vlan": b"\x81\x00\x00\x64", "qinq": b"\x88\xa8\x00\x64\x81\x00\x00\xc8"}


def _total(data):
    return sum(struct.unpack(f"!{len(data) // 2}H", data))


def _checksum(total):
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp4(i, size, tag=None, mac=MAC):
    """An Ethernet frame of size bytes (without FCS) of flow i, UDP over IPv4."""
    head = mac + SOURCE_MAC + TAGS[tag] + b"\x08\x00"
    length = max(size - len(head), 28)
    source = struct.pack("!I", 0xC6120000 | i & 0x1FFFF)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, length, i & 0xFFFF, 0, 64, 17, 0) + source + IP4_DST
    ip = ip[:10] + struct.pack("!H", _checksum(_total(ip))) + ip[12:]
    udp = struct.pack("!HHH", 1024 + i % 50000, 63, length - 20)
    value = _checksum(_total(ip[12:]) + 17 + length - 20 + _total(udp)) or 0xFFFF
    return head + ip + udp + struct.pack("!H", value) + bytes(length - 28)


def udp6(i, size):
    head = MAC + SOURCE_MAC + b"\x86\xdd"
    length = max(size - len(head) - 40, 8)
    source = bytes.fromhex("20010002000000000000000000") + i.to_bytes(3, "big")
    ip = struct.pack("!IHBB", 6 << 28, length, 17, 64) + source + IP6_DST
    udp = struct.pack("!HHH", 1024 + i % 50000, 63, length)
    value = _checksum(_total(ip[8:]) + 17 + length + _total(udp)) or 0xFFFF
    return head + ip + udp + struct.pack("!H", value) + bytes(length - 8)


def group_mac(group):
    """The destination MAC address of a group of flows, for points that need several masks."""
    return MAC[:5] + bytes([16 + group])


def grouped(i, size, groups):
    return udp4(i, size, mac=group_mac(i % groups))


def write(path, frame, flows, seed=1):
    """frame(i) for i below flows, in an order that the seed gives."""
    order = list(range(flows))
    random.Random(seed).shuffle(order)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for i in order:
            data = frame(i)
            out.write(struct.pack("<IIII", 0, 0, len(data), len(data)) + data)
