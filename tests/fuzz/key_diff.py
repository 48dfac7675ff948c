#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares key extraction with OVS (ovs-ofctl parse-pcap) on mutated frames.

key_diff.py [--seconds S] [--seed N] [--batch N]

Exit 1 at a difference that nobody explained; the frames are kept in BUILD/key_diff.pcap. 77: no ovs-ofctl.

Where the two differ on purpose (explained() below):
- version: OVS takes the ethertype's word for it. Here an IPv4 packet whose version is not 4 (IPv6: 6) is
  malformed, and no field is read from it: a host would not take it for what the rule matched either.
- IGMP: OVS shows the type of IGMP messages in tp_src. The switch has no fields of IGMP.
- ICMP of the other family: OVS reads type and code of ICMPv6 within IPv4 and of ICMP within IPv6, which are
  no such messages to any host.
- reserved bits of the fragment header: OVS takes an IPv6 packet for a fragment when any bit of the word with
  the offset is set; a receiver has to ignore the two reserved ones, and so does the switch.
- What OVS reads of MPLS and NSH is not compared: the switch has no such fields.
"""
import argparse
import glob
import os
import random
import struct
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(TOP, "tests/system"))

# pylint: disable=wrong-import-position
from lib import keys  # noqa: E402

MACS = bytes.fromhex("020000000002020000000001")
IP6 = bytes.fromhex("fd000000000000000000000000000001fd000000000000000000000000000002")
TYPES = (0x0800, 0x86dd, 0x0806, 0x8035, 0x8100, 0x88a8, 0x8847, 0x894f, 0x05ff, 0x0600, 46)
PROTOCOLS = (0, 1, 2, 6, 17, 43, 44, 50, 51, 58, 59, 60, 132, 135, 139, 140, 253)
LENGTHS = (0, 1, 4, 5, 7, 8, 12, 15, 16, 19, 20, 28, 40, 60, 255, 256, 1480, 65535)


def ip4(proto, payload, words=0, fragment=0):
    return b"\x08\x00" + struct.pack("!BBHHHBBHII", 0x45 + words, 0x2b, 20 + 4 * words + len(payload), 7, fragment,
                                     64, proto, 0, 0x0a000001, 0x0a000002) + bytes(4 * words) + payload


def ip6(proto, payload):
    return b"\x86\xdd" + struct.pack("!IHBB", 0x6b312345, len(payload), proto, 63) + IP6 + payload


def seeds():
    tcp = struct.pack("!HHIIHHHH", 1000, 2000, 1, 1, 0x5012, 1024, 0, 0)
    udp = struct.pack("!HHHH", 1000, 2000, 8, 0)
    sctp = struct.pack("!HHII", 1000, 2000, 1, 0)
    target = IP6[16:]
    solicit = b"\x87\0\0\0\0\0\0\0" + target + b"\x01\x01\x02\0\0\0\0\x09" + b"\x02\x01\x02\0\0\0\0\x08"
    advert = b"\x88\0\0\0\x60\0\0\0" + target + b"\x0e\x01" + bytes(6) + b"\x02\x01\x02\0\0\0\0\x08"
    arp = bytes.fromhex("000108000604000102000000000c0a0000010200000000010a000002")
    hop = b"\x3c\0" + bytes(6)
    frag = lambda proto, offset: bytes([proto, 0]) + struct.pack("!HI", offset, 9)  # noqa: E731
    l3 = [ip4(17, udp), ip4(6, tcp), ip4(132, sctp), ip4(1, b"\x08\0" + bytes(6)), ip4(2, b"\x16\0" + bytes(6)),
          ip4(6, tcp, words=3), ip4(17, udp, fragment=0x2000), ip4(17, udp, fragment=0x2005),
          ip4(17, udp, fragment=0x4000), ip4(50, bytes(20)),
          ip6(17, udp), ip6(6, tcp), ip6(132, sctp), ip6(58, solicit), ip6(58, advert), ip6(58, b"\x80\0" + bytes(6)),
          ip6(0, hop + b"\x11\0" + bytes(6) + udp), ip6(44, frag(17, 1) + udp), ip6(44, frag(17, 0x1001) + udp),
          ip6(44, frag(6, 0) + tcp), ip6(44, frag(2, 4) + b"\x16\x03" + bytes(6)),
          ip6(43, b"\x06\x01" + bytes(14) + tcp), ip6(51, b"\x11\x01" + bytes(10) + udp), ip6(59, b""),
          b"\x08\x06" + arp, b"\x80\x35" + arp, b"\x88\x47\0\0\x11\x40" + ip4(17, udp)[2:],
          b"\0\x10\xaa\xaa\x03\0\0\0" + ip4(17, udp), b"\0\x10\x42\x42\x03" + bytes(13), b"\x88\xb5" + bytes(46)]
    tags = [b"", b"\x81\x00\x20\x05", b"\x88\xa8\x00\x64\x81\x00\xe0\xc8", b"\x81\x00\x00\x01" * 3, b"\x88\xa8\x10\x00"]
    frames = [MACS + tag + body for tag in tags for body in l3]
    for path in sorted(glob.glob(os.path.join(TOP, "tests/frames/*.pcap"))):
        frames += keys.read_pcap(path)
    return frames


def mutate(frame, rng, pool):
    frame = bytearray(frame)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        kind = rng.randrange(10)
        at = rng.randrange(max(len(frame), 1))
        if kind == 0 and frame:
            frame[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and frame:
            frame[at] = rng.choice((0, 1, 4, 5, 6, 8, 17, 0x40, 0x45, 0x46, 0x60, 0x7f, 0x80, 0xff))
        elif kind == 2:
            del frame[at:]
        elif kind == 3:
            frame += bytes(rng.choice((1, 2, 4, 18, 46)))
        elif kind == 4 and len(frame) >= 14:
            at = rng.choice((12, 16, 20))
            frame[at:at + 2] = struct.pack("!H", rng.choice(TYPES))
        elif kind == 5 and len(frame) >= 24:
            frame[rng.choice((20, 23, 27, 31, 54))% len(frame)] = rng.choice(PROTOCOLS)
        elif kind == 6 and len(frame) >= 20:
            at = rng.choice((16, 18, 20, 22, 38, 55))
            frame[at:at + 2] = struct.pack("!H", rng.choice(LENGTHS))
        elif kind == 7:
            del frame[at:at + rng.choice((1, 2, 4, 8))]
        elif kind == 8:
            frame[at:at] = frame[at:at + rng.choice((1, 2, 4, 8, 20))]
        elif kind == 9:
            other = rng.choice(pool)
            frame[at:] = other[min(at, len(other)):]
    return bytes(frame[:2000]) or b"\0"  # ovs-ofctl ends at an empty frame


def l3_offset(frame):
    """Where the network header begins, tags and SNAP skipped."""
    at = 12
    for _ in range(2):
        if frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8") and len(frame) >= at + 6:
            at += 4
    return at + 10 if frame[at + 2:at + 8] == b"\xaa\xaa\x03\0\0\0" and frame[at] < 6 else at + 2


def explained(frame, ours, bad, ovs):
    """Why the two may differ, or None. A frame may be odd in several ways; each reason takes its fields
    away, and none may be left. See the head of this file."""
    left = {name for name in {*ours, *ovs} if ours.get(name) != ovs.get(name)}
    l3, dl_type, proto = l3_offset(frame), ours.get("dl_type"), ovs.get("nw_proto")
    version = frame[l3] >> 4 if l3 < len(frame) else None
    if (bad == "ip4" and version != 4) or (bad == "ip6" and version != 6):
        return "version"
    reasons = []
    if "nw_frag" in left and dl_type == 0x86dd and ovs["nw_frag"] == 1 and not ours.get("nw_frag"):
        reasons.append("reserved bits of the fragment header")
        left -= {"nw_frag"}
    ports = left & {"tp_src", "tp_dst"}
    if ports and proto == 2:
        reasons.append("IGMP")
        left -= ports
    elif ports and ((dl_type == 0x0800 and proto == 58) or (dl_type == 0x86dd and proto == 1)):
        reasons.append("ICMP of the other family")
        left -= ports
    return None if left else " and ".join(reasons)


def compare(frames, path):
    """[(frame, ours, why malformed, OVS)] that nobody explained, and how many were explained."""
    keys.write_pcap(path, frames)
    ours, ovs = keys.ours(path), keys.ovs(path)
    assert len(ours) == len(frames), f"{len(ours)} keys of {len(frames)} frames"
    assert len(ovs) == len(frames), f"OVS read {len(ovs)} of {len(frames)} frames"
    wrong, reasons = [], {}
    for frame, (key, bad), theirs in zip(frames, ours, ovs):
        if key == theirs:
            continue
        reason = explained(frame, key, bad, theirs)
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            wrong.append((frame, key, bad, theirs))
    return wrong, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--batch", type=int, default=20000)
    args = parser.parse_args()
    if not keys.OVS:
        print("skipped: no ovs-ofctl (Debian package openvswitch-common)")
        return 77
    print(f"key_diff: seed {args.seed}", flush=True)
    rng = random.Random(args.seed)
    pool = seeds()
    deadline = time.monotonic() + args.seconds
    n, reasons = 0, {}
    with tempfile.TemporaryDirectory(prefix="pmdpulse-fuzz-") as folder:
        frames = pool
        while True:
            wrong, explained_now = compare(frames, os.path.join(folder, "frames.pcap"))
            n += len(frames)
            for reason, count in explained_now.items():
                reasons[reason] = reasons.get(reason, 0) + count
            if wrong:
                kept = os.path.join(keys.built("."), "key_diff.pcap")
                keys.write_pcap(kept, [frame for frame, *_ in wrong])
                for frame, key, bad, theirs in wrong[:20]:
                    names = sorted(name for name in {*key, *theirs} if key.get(name) != theirs.get(name))
                    print(f"{frame.hex()}\n  malformed: {bad}")
                    for name in names:
                        print(f"  {name}: ours {key.get(name, 0):#x}, OVS {theirs.get(name, 0):#x}")
                print(f"key_diff: {len(wrong)} of {len(frames)} frames differ; they are in {kept}")
                return 1
            if time.monotonic() >= deadline:
                break
            frames = [mutate(rng.choice(pool), rng, pool) for _ in range(args.batch)]
    print(f"key_diff: {n} frames, no unexplained difference; explained: {reasons}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
