# SPDX-License-Identifier: Apache-2.0
"""docs/abi.md is the truth, and enough: a reader that knows nothing else reads a live segment."""

import os
import re
import struct
import time

from lib.wait import wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIMPLE = {"u8": "B", "u32": "I", "i32": "i", "u64": "Q", "u64 atomic": "Q", "i64": "q", "f64": "d"}


def read_text(*parts):
    with open(os.path.join(TOP, *parts), encoding="utf-8") as file:
        return file.read()


def parse_page():
    """{struct: (size, [(offset, size, field, type)])} from the tables of the page."""
    structs, name = {}, None
    for line in read_text("docs", "abi.md").splitlines():
        heading = re.fullmatch(r"### (pmdp_\w+), (\d+) bytes", line)
        row = re.match(r"\| (\d+) \| (\d+) \| (\w+) \| ([^|]+) \|", line)
        if heading:
            name = heading.group(1)
            structs[name] = (int(heading.group(2)), [])
        elif line.startswith("#"):
            name = None
        elif row and name:
            structs[name][1].append((int(row.group(1)), int(row.group(2)), row.group(3),
                                     row.group(4).strip()))
    return structs


PAGE = parse_page()


def decode(kind, data, base=0):
    """One struct of the page as a dictionary."""
    result = {}
    for offset, size, field, type_name in PAGE[kind][1]:
        chunk = data[base + offset:base + offset + size]
        assert len(chunk) == size, f"{kind}.{field}: short read"
        element, _, count = type_name.rstrip("]").partition("[")
        if element == "char":
            result[field] = chunk.split(b"\0")[0].decode()
        elif element in PAGE:
            step = PAGE[element][0]
            items = [decode(element, chunk, i) for i in range(0, size, step)]
            result[field] = items if count else items[0]
        else:
            values = struct.unpack("<%d%s" % (size // struct.calcsize(SIMPLE[element]),
                                              SIMPLE[element]), chunk)
            result[field] = list(values) if count else values[0]
    return result


class Reader:
    """Reads with pread, checks what the page says, copies under sequence words."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        assert os.pread(self.fd, 8, 0) == b"PMDPULSE"
        self.header = decode("pmdp_header_shm", os.pread(self.fd, 1024, 0))
        assert self.header["abi_version"] == 1
        assert self.header["header_size_bytes"] == 1024
        assert self.header["segment_size_bytes"] == os.fstat(self.fd).st_size
        self.sections = {s["kind"]: s for s in self.header["sections"] if s["kind"]}

    def at(self, section, index):
        s = self.sections[section]
        assert index < s["n_items"]
        return s["offset_bytes"] + index * s["item_size_bytes"], s["item_size_bytes"]

    def plain(self, section, index, kind):
        offset, size = self.at(section, index)
        return decode(kind, os.pread(self.fd, size, offset))

    def under_seq(self, section, index, kind):
        offset, size = self.at(section, index)
        seq_at = offset + [row[0] for row in PAGE[kind][1] if row[2] == "seq"][0]
        for _ in range(1000):
            before = os.pread(self.fd, 8, seq_at)
            data = os.pread(self.fd, size, offset)
            if before == os.pread(self.fd, 8, seq_at) and before[0] % 2 == 0:
                return decode(kind, data)
        raise AssertionError(f"{kind} {index} is always being written")

    def hot(self, lane):
        return self.plain(1, lane, "pmdp_hot_shm")

    def lane(self, lane):
        return self.under_seq(2, lane, "pmdp_lane_shm")

    def record(self, lane, number):
        per_lane = self.header["records_per_lane"]
        return self.plain(3, lane * per_lane + number % per_lane, "pmdp_record_shm")


def test_page_and_table_agree():
    table = read_text("tests", "unit", "abi.txt").splitlines()
    assert table[0] == "version 1"
    expected = {}
    for line in table[1:]:
        words = line.split()
        if words[0] == "struct":
            expected[words[1]] = (int(words[2]), [])
        elif words[0] == "field":
            kind, field = words[1].split(".")
            expected[kind][1].append((int(words[2]), int(words[3]), field))
    assert {kind: (size, [row[:3] for row in rows]) for kind, (size, rows) in PAGE.items()} == expected


def test_page_and_names_agree():
    """Numbers beside words on the page are those of the header and the name tables."""
    page = read_text("docs", "abi.md")
    names = read_text("lib", "pmdp_names.c")
    numbers = dict(re.findall(r"#define (PMDP_\w+) (\d+)\b",
                              read_text("lib", "pmdp_abi.h") + read_text("lib", "pmdp_names.h")))
    checked = 0
    for macro, word in re.findall(r'\[(PMDP_[A-Z_0-9]+)\] = "([^"]+)"', names):
        if macro.startswith(("PMDP_LANE", "PMDP_LINK", "PMDP_PHASE", "PMDP_SEVERITY")):
            continue
        assert f"{numbers[macro]} {word}" in page, f"{macro}: {numbers[macro]} {word}"
        checked += 1
    assert checked > 80


def test_reads_a_live_segment(start_publisher, rundir):
    publisher = start_publisher(lanes=["p1 - pmd", "control"], interval=50)
    publisher.do("port eth1 up")
    reader = Reader(os.path.join(rundir, "default.ring"))
    header = reader.header
    assert header["instance"] == "default"
    assert header["segment_kind"] == 1
    assert header["writer_pid"] == publisher.pid
    assert header["keepalive_interval_ns"] == 50_000_000
    assert header["flags"] & 1
    assert header["pidns_inode"] == os.stat("/proc/self/ns/pid").st_ino
    boot_id = read_text("/proc/sys/kernel/random/boot_id").strip().replace("-", "")
    assert bytes(header["boot_id"]).hex() == boot_id
    stat = read_text(f"/proc/{publisher.pid}/stat")
    assert header["writer_start_ticks"] == int(stat.rpartition(")")[2].split()[19])

    lanes = {}
    for index in range(reader.sections[2]["n_items"]):
        lane = reader.lane(index)
        if lane["claimed"]:
            lanes[lane["body"]["name"]] = index
            assert lane["body"]["tid"] == lane["claimed"]
            assert os.path.isdir(f"/proc/{publisher.pid}/task/{lane['claimed']}")
    assert set(lanes) == {"p1", "control"}
    p1 = lanes["p1"]
    before = reader.hot(p1)
    assert before["announce"] & 0xff == 1
    wait_for(lambda: reader.hot(p1)["beats"] > before["beats"], what=lambda: "a beat")
    assert time.clock_gettime_ns(time.CLOCK_MONOTONIC) - reader.hot(p1)["beat_ticks"] < 10**10

    publisher.do("stall p1 300")
    wait_for(lambda: reader.hot(p1)["n_stalls"] > before["n_stalls"], what=lambda: "the stall")
    hot = reader.hot(p1)
    assert hot["longest_gap_ticks"] >= 300_000_000
    records = [reader.record(p1, n) for n in range(hot["n_records"])]
    for number, record in enumerate(records):
        assert record["seq"] == 2 * number + 2
    gaps = [r["body"] for r in records if r["body"]["kind"] == 1]
    assert max(gap["length_ticks"] for gap in gaps) == hot["longest_gap_ticks"]

    ports = [reader.under_seq(4, i, "pmdp_port_shm") for i in range(reader.sections[4]["n_items"])]
    assert [(p["body"]["name"], p["body"]["link_state"]) for p in ports if p["in_use"]] == [("eth1", 2)]
