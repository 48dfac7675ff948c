#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a pcap of N mixed flows, one frame each, in shuffled order.

usage: mkflows.py FLOWS OUT.pcap [--seed N]

Eight in ten are UDP over IPv4, the rest TCP, IPv6 and tagged frames; all are 60 bytes and more
without FCS, checksums are valid, addresses are from the ranges for benchmarks (198.18.0.0/15,
2001:2::/48).
"""
import argparse
import random
import struct

MAC = bytes.fromhex("020000000002020000000001")


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def transport(protocol, source, destination, sport, dport):
    """A UDP datagram or TCP segment with its checksum, 18 bytes of payload at most."""
    if protocol == 17:
        body = struct.pack("!HHHH", sport, dport, 26, 0) + bytes(18)
        at = 6
    else:
        body = struct.pack("!HHIIBBHHH", sport, dport, 1, 1, 0x50, 0x10, 8192, 0, 0) + bytes(6)
        at = 16
    pseudo = source + destination + struct.pack("!HH", protocol, len(body))
    value = checksum(pseudo + body) or 0xFFFF
    return body[:at] + struct.pack("!H", value) + body[at + 2:]


def ipv4(i, protocol):
    source = bytes([198, 18, i >> 8 & 255, i & 255])
    destination = bytes([198, 19, 0, 1])
    body = transport(protocol, source, destination, 1024 + i % 50000, 63)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), i & 0xFFFF, 0, 64, protocol, 0)
    head += source + destination
    return b"\x08\x00", head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def ipv6(i):
    source = bytes.fromhex("20010002000000000000000000") + i.to_bytes(3, "big")
    destination = bytes.fromhex("20010002000000000000000000000001")
    body = transport(17, source, destination, 1024 + i % 50000, 63)
    return b"\x86\xdd", struct.pack("!IHBB", 6 << 28, len(body), 17, 64) + source + destination + body


def frame(i):
    kind = i % 10
    ethertype, packet = ipv6(i) if kind == 9 else ipv4(i, 6 if kind == 8 else 17)
    tag = b"\x81\x00" + struct.pack("!H", 100 + i % 50) if kind == 7 else b""
    return (MAC + tag + ethertype + packet).ljust(60, b"\0")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("flows", type=int)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    order = list(range(args.flows))
    random.Random(args.seed).shuffle(order)
    with open(args.out, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for n, i in enumerate(order):
            data = frame(i)
            out.write(struct.pack("<IIII", n // 1000000, n % 1000000, len(data), len(data)) + data)


if __name__ == "__main__":
    main()
