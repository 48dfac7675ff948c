# SPDX-License-Identifier: Apache-2.0
"""What PMDs themselves publish in a switch's segment: whole snapshots, with the clock of each."""

import os
import struct

from lib import reader

# docs/abi.md: in a lane, its seq and its body; in that, the clock of the snapshot, then the counters.
SEQ, BODY, SNAPSHOT, N_COUNTERS = 8, 64, 56, 48
PMD = 1
BUSY, IDLE, SLEEP = 5, 6, 7
PACKETS = 1


class Lanes:
    """The lanes of a living switch."""

    def __init__(self, rundir, instance="default"):
        self.reader = reader.load()
        self.segment = self.reader.Segment(os.path.join(str(rundir), instance + ".ring"), 1, "pmdpulse")

    def snapshot(self):
        """{tid: (ticks, counters)} of the PMDs whose copy is whole."""
        found = {}
        for lane in range(self.segment.n[self.reader.LANES]):
            at = self.segment.at(self.reader.LANES, lane)
            claimed, = struct.unpack("<I", self.segment.read(at, 4))
            body = self.segment.whole(at + SEQ, at + BODY, SNAPSHOT + 8 + 8 * N_COUNTERS)
            if not claimed or body is None:
                continue
            kind, tid = struct.unpack_from("<II", body, 32)
            ticks, *counters = struct.unpack_from(f"<{1 + N_COUNTERS}Q", body, SNAPSHOT)
            if kind == PMD and tid == claimed:
                found[tid] = (ticks, counters)
        return found
