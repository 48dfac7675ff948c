#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a switch's health from shared memory, as docs/abi.md describes it, and prints the same JSON as
`pmdpulse pmd-health-show -j`: an example for other languages. Usage: pmdpulse_read.py [RUNDIR [INSTANCE]]"""

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import pwd
import re
import struct
import sys
import time

NS = 10**9
HOT, LANES, RECORDS, EVENTS = 1, 2, 3, 5
BOUNDS = {1: (128, 4096), 2: (1024, 4096), 3: (64, 2**28), 4: (576, 1024), 5: (2240, 65536), 6: (2240, 65536)}
STATES = ("UNUSED", "ALIVE", "DEAD", "GONE", "MISSING", "DOZING", "SLEEP")
CAUSES = ("unknown preempted cpu-quota rt-throttled stopped frozen blocked page-fault irq steal own-code"
          " exited process-died").split()


def demand(condition, reason):
    if not condition:
        raise ValueError(reason)


def text(data):  # up to the first NUL, if there is one; each byte that is no UTF-8 becomes U+FFFD
    return re.sub("[\udc80-\udcff]", "\ufffd", data.split(b"\0")[0].decode(errors="surrogateescape"))


def stall(ident, realtime_us, duration_s, cause, culprit):
    at = datetime.datetime.fromtimestamp(min(max(0, realtime_us / 10**6), 253402300799), datetime.timezone.utc)
    return {"id": ident, "started_at": at.astimezone().isoformat(timespec="microseconds"),
            "duration_s": duration_s, "cause": CAUSES[cause if cause < len(CAUSES) else 0], "culprit": culprit}


class Segment:
    """One attached file: steps 1 to 6 of the page."""

    def __init__(self, path, kind, service):
        self.file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", 0)
        st = os.fstat(self.file.fileno())
        trusted = {0, os.geteuid()} | {user.pw_uid for user in pwd.getpwall() if user.pw_name == service}
        demand(st.st_mode >> 12 == 0o10 and st.st_uid in trusted, "no regular file of a trusted user")
        demand(st.st_size >= 1024 and self.read(0, 8) == b"PMDPULSE", "too short, or wrong magic")
        head = self.read(0, 1024)
        version, self.kind, size, head_size, self.clock, self.generation, self.pid, self.per_lane, \
            self.start_ticks, self.pidns, self.boot = struct.unpack_from("<IIQIIQIIQQ16s", head, 8)
        demand(version == 1, f"ABI version {version}, not 1")
        demand(head_size == 1024 and size == st.st_size <= 2**30 and kind == self.kind and
               self.clock in (0, 1) and self.per_lane <= 65536 and self.per_lane.bit_count() <= 1 and
               re.match(rb"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}\0", head[120:184]), "size, kind or instance")
        self.sections, self.n = {}, dict.fromkeys(BOUNDS, 0)
        for what, n, item, _, begin in (s for s in struct.iter_unpack("<IIIIQ", head[184:376]) if s[0]):
            end, (least, most) = begin + n * item, BOUNDS.get(what, (1, n))
            demand(least <= item <= size and item % 64 == 0 and n <= most and begin % 64 == 0 and
                   1024 <= begin and end <= size and what not in self.sections and
                   all(begin >= e or end <= b for b, e, _ in self.sections.values()),
                   f"section of kind {what}: items, place, or an overlap")
            self.sections[what], self.n[what] = (begin, end, item), n
        demand(self.n[EVENTS] if kind == 2 else self.n[LANES] == self.n[HOT] > 0 and
               self.n[RECORDS] == self.n[HOT] * self.per_lane, "sections do not match")
        # What changes is taken from the same copy: with this one look, step 6 has nothing to compare.
        self.alive_ns, self.flags, self.interval_ns, _, self.stopped_ns, self.n_events = \
            struct.unpack_from("<6Q", head, 512)
        self.interval_ns = min(max(self.interval_ns or 50 * 10**6, 10**6), 3600 * NS)
        pair = struct.unpack("<4Q", self.whole(576, 576, 32) or head[576:608])
        self.uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME) - self.start_ticks / os.sysconf("SC_CLK_TCK")
        self.ticks, self.mono, self.hz = pair[1:] if self.clock else (0, 0, NS)
        demand(10**6 <= self.hz <= 10**11, "a beat clock of unbelievable frequency")

    def read(self, offset, size):
        data = os.pread(self.file.fileno(), size, offset)
        demand(len(data) == size, "the file was truncated")
        return data

    def at(self, section, index):
        return self.sections[section][0] + index * self.sections[section][2]

    def whole(self, seq_at, offset, size):  # S2; None: its writer stands, or died, in the middle
        looks = ((self.read(seq_at, 8), self.read(offset, size), self.read(seq_at, 8)) for _ in range(10))
        return next((data for before, data, after in looks if before == after and before[0] % 2 == 0), None)

    def ring(self, section, first, n_items, published, size):  # R2, R4: those still there, oldest first
        for n in range(max(0, published - n_items), published if published < 2**63 else 0):
            at, mark = self.at(section, first + n % n_items), struct.pack("<Q", 2 * n + 2)
            before, data = self.read(at, 8), self.read(at, size)
            if before == self.read(at, 8) == mark:
                yield data

    def hot(self, lane):  # H4: the first copy whose announcement and incarnation are those of the one before
        copies = [struct.unpack("<13Q", self.read(self.at(HOT, lane), 104)) for _ in range(5)]
        return next((b for a, b in zip(copies, copies[1:]) if (a[3], a[5]) == (b[3], b[5])), copies[-1])

    def length_s(self, ticks):
        return min(ticks * NS // self.hz, 2**64 - 1) / NS

    def mono_ns(self, ticks):
        distance = (ticks - self.ticks + 2**63) % 2**64 - 2**63
        return min(max(0, self.mono + distance * NS // self.hz), 2**64 - 1) if self.clock else ticks

    def is_writer_alive(self):
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        if bytes.fromhex(boot.strip().replace("-", "")) != self.boot:
            return False
        if os.stat("/proc/self/ns/pid").st_ino == self.pidns:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = pathlib.Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
                is_zombie = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
                return int(fields[19]) == self.start_ticks and not is_zombie
            return False
        ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        return struct.unpack_from("h", fcntl.fcntl(self.file, 36, ask))[0] != fcntl.F_UNLCK  # F_OFD_GETLK

    def state(self, slot, now_ns):
        late = (now_ns - self.mono_ns(slot[1])) // self.interval_ns if slot[0] or slot[1] else 1  # never beat
        polling = 1 if late < 1 else 4 if late < 2 else 2
        dozing = polling if not slot[4] else 5 if now_ns < slot[4] else 2
        return {1: polling, 2: dozing, 3: 6}.get(slot[3] & 0xff, 0) if self.flags & 1 else 0

    def is_thread_gone(self, tid, start_ticks):
        if not tid or os.stat("/proc/self/ns/pid").st_ino != self.pidns:
            return False
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = pathlib.Path(f"/proc/{self.pid}/task/{tid}/stat").read_bytes().rpartition(b")")[2].split()
            return fields[0] in (b"Z", b"X") or start_ticks not in (0, int(fields[19]))
        return os.path.exists(f"/proc/{self.pid}")  # else /proc hides it, and tells nothing

    def thread(self, lane, slot, is_dead):
        (claimed, _), last_stall = struct.unpack("<II", self.read(self.at(LANES, lane), 8)), None
        body = self.whole(self.at(LANES, lane) + 8, self.at(LANES, lane) + 64, 832)
        name, kind, tid, core, numa, start_ticks = struct.unpack_from("<31sxIIiiQ", body or bytes(832))
        if not body or not claimed or tid != claimed:  # torn, or still the last thread's
            name, kind, tid, core, numa = f"lane {lane}".encode(), 0, 0, -1, -1
        # The newest record of a stall tells when and how long, but not why.
        for data in self.ring(RECORDS, lane * self.per_lane, self.per_lane, slot[12] if slot[8] else 0, 64):
            what, _, begin, ticks = struct.unpack_from("<IIQQ", data, 8)
            started_us = (time.time_ns() - time.monotonic_ns() + self.mono_ns(begin)) // 1000
            if what == 1 and self.length_s(ticks) >= 2 * self.interval_ns / NS:
                last_stall = stall(None, started_us, self.length_s(ticks), 0, None)
        now_ns = time.monotonic_ns()
        state = 0 if self.stopped_ns else 3 if is_dead else self.state(slot, now_ns)
        state = 3 if state in (2, 4) and self.is_thread_gone(tid, start_ticks) else state
        age_ns = max(0, now_ns - self.mono_ns(slot[1]))
        return {"name": text(name), "tid": tid, "core": core if core >= 0 else None,
                "numa": numa if numa >= 0 else None, "kind": {1: "pmd", 2: "control"}.get(kind, "unknown"),
                "state": STATES[state], "state_code": state, "beat_age_s": age_ns / NS if slot[0] else None,
                "beats": slot[0], "stalls": slot[8], "stalled_s": self.length_s(slot[9]), "gaps": slot[6],
                "gaps_s": self.length_s(slot[7]), "longest_gap_s": self.length_s(slot[11]),
                "last_stall": last_stall}


def take_event(data, health):  # what it changes in the picture; they come oldest first
    kind, phase, _, cause, _, _, started_us, _, _, ns = struct.unpack_from("<6I4Q", data, 168)
    tid, _, comm, sched, pid, culprit_tid, took_ns = struct.unpack_from("<Ii15sx15sxIIQ", data, 320)
    culprit = {"comm": text(comm), "pid": pid, "tid": culprit_tid,
               "class": text(sched) or None, "took_s": took_ns / NS}
    health["agent"]["late_events"] += kind == 11 and phase == 1
    if kind in (6, 7) and health["switch"]["pid"] is None:
        health["switch"]["state"] = "stopped" if kind == 6 else "absent"
    for found in health["threads"]:
        if (kind, tid, text(data[288:319])) == (1, found["tid"], found["name"]):
            found["last_stall"] = stall(text(data[64:159]) or None, started_us, ns / NS, cause,
                                        culprit if pid or culprit["comm"] else None)


def read_health(rundir, instance):  # (health, why the ring was refused or None)
    path, reason = os.path.join(rundir, instance), None
    absent = {"state": "absent", "pid": None, "uptime_s": None}
    switch, agent = {**absent, "generation": None}, {**absent, "late_events": 0, "rights": []}
    health = {"instance": instance, "switch": switch, "agent": agent, "threads": []}
    try:
        ring = Segment(path + ".ring", 1, "pmdpulse")
        is_dead = not ring.is_writer_alive()
        switch["state"] = "stopped" if ring.stopped_ns else "gone" if is_dead else "up"
        switch.update(pid=ring.pid, generation=ring.generation,
                      uptime_s=ring.uptime_s if switch["state"] == "up" else None)
        slots = [(lane, ring.hot(lane)) for lane in range(ring.n[HOT])]
        health["threads"] = [ring.thread(*slot, is_dead) for slot in slots if slot[1][3] & 0xff not in (0, 4)]
    except (ValueError, OSError) as error:
        reason = "no switch has published" if isinstance(error, FileNotFoundError) else str(error)
    with contextlib.suppress(ValueError, OSError):
        log = Segment(path + ".incidents", 2, "pmdpulse-agent")
        is_fresh = not log.stopped_ns and time.monotonic_ns() < log.alive_ns + NS and log.is_writer_alive()
        agent["state"] = "up" if is_fresh else "absent" if log.stopped_ns else "stale"
        agent.update({"pid": log.pid, "uptime_s": log.uptime_s} if is_fresh else {})
        for data in log.ring(EVENTS, 0, log.n[EVENTS], log.n_events, 2240):
            take_event(data, health)
    return health, reason


if __name__ == "__main__":
    found_health, why = read_health(*(sys.argv[1:] + ["/run/pmdpulse", "default"][len(sys.argv) - 1:]))
    print(json.dumps(found_health, ensure_ascii=False))
    sys.exit(f"pmdpulse_read: {why}" if why else 0)
