# SPDX-License-Identifier: Apache-2.0
"""A switch whose ports are captures: what goes in is a list of frames, what comes out is read back."""

import os

from .flow_switch import FlowSwitch
from .keys import read_pcap, write_pcap
from .wait import wait_for

N_PORTS = 4


class Lab:
    """Ports 1 to 4. A port first receives nothing; feed() gives it frames. Rules stand before that."""

    def __init__(self, processes, rundir, folder, *lines, ports=N_PORTS, hooks=False):
        self.folder, self.ports = folder, range(1, ports + 1)
        self.n_fed, self.sinks = 0, {port: [] for port in self.ports}
        self.switch = FlowSwitch(rundir, folder, *lines, *[f"add-port {' '.join(self._args(port, []))}"
                                                          for port in self.ports], hooks=hooks)
        processes.append(self.switch)
        self.do, self.command = self.switch.do, self.switch.command

    def _args(self, port, frames, options=""):
        self.n_fed += 1
        source = os.path.join(self.folder, f"in-{port}-{self.n_fed}.pcap")
        sink = os.path.join(self.folder, f"out-{port}-{self.n_fed}.pcap")
        write_pcap(source, frames)
        self.sinks[port].append(sink)
        return f"p{port}", f"net_pcap{port}_{self.n_fed},rx_pcap={source},tx_pcap={sink}{options}", f"ofport={port}"

    def flows(self, *rules):
        """Replace the rules."""
        self.do("replace-flows", *rules)

    def feed(self, port, frames, *options):
        """The port, with these options of add-port, receives these frames; returns when they are through."""
        self.do("del-port", f"p{port}")
        before = self.received()
        self.do("add-port", *self._args(port, [bytes(frame) for frame in frames]), *options)
        wait_for(lambda: self.received() - before == len(frames) and self.in_flight() == 0,
                 what=lambda: f"{len(frames)} frames of p{port} to go through: {self.do('pmd-stats-show')}")

    def feed_endless(self, port, frames):
        """The port receives these frames over and over, at full rate."""
        self.do("del-port", f"p{port}")
        self.feed_first(port, frames)

    def feed_first(self, port, frames):
        """The same with a port that was deleted."""
        self.n_fed += 1
        source = os.path.join(self.folder, f"in-{port}-{self.n_fed}.pcap")
        write_pcap(source, [bytes(frame) for frame in frames])
        self.do("add-port", f"p{port}", f"net_pcap{port}_{self.n_fed},rx_pcap={source},infinite_rx=1",
                f"ofport={port}", timeout=60)

    def add(self, port):
        """A port that was deleted comes back, without input."""
        self.do("add-port", *self._args(port, []))

    def received(self):
        return sum(pmd.get("packets_received", 0) for pmd in self.do("pmd-stats-show")["pmds"])

    def in_flight(self):
        return sum(pmd.get("in_flight", 0) for pmd in self.do("pmd-stats-show")["pmds"])

    def stats(self):
        return self.switch.stats()

    def sent(self):
        """Packets sent by each port since it was last fed."""
        return {port: self.switch.port(f"p{port}")["tx_packets"] for port in self.ports}

    def drops(self, port):
        return {reason: n for reason, n in self.switch.port(f"p{port}")["drops"].items() if n}

    def out(self):
        """Stop the switch; what each port has sent in all: {port: [frame, ...]}."""
        assert self.switch.stop() == 0, self.switch.err()
        return {port: [frame for sink in sinks for frame in read_pcap(sink)] for port, sinks in self.sinks.items()}


def identities(pmd):
    """What must hold in every snapshot of a PMD (docs/abi.md)."""
    hits = sum(pmd[key] for key in ("phwol_hits", "emc_hits", "smc_hits", "megaflow_hits", "misses"))
    passes = pmd["packets_received"] - pmd["drops"]["malformed"] + pmd["recirculations"]
    assert hits == passes, pmd
    assert pmd["packets_received"] + pmd["copies"] == \
        pmd["packets_sent"] + sum(pmd["drops"].values()) + pmd["in_flight"], pmd
    assert pmd["run_hits"] <= hits, pmd
