# SPDX-License-Identifier: Apache-2.0
"""The programs that peers.py compares, each as a context that forwards between two net_pcap ports.

All have: sent() -> (time, packets sent by both ports so far), as the program's ports count them, and
facts() -> what the program says about itself since the last sent(). One thread forwards, on core 1.
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import bed  # noqa: F401  pylint: disable=unused-import  (makes lib importable)
from lib.control import request
from lib.switch import Switch
from lib.wait import wait_for

CORE = 1
VSWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
PMDS = "/usr/lib/*/dpdk/pmds-*"
TESTPMD = "dpdk-testpmd"
OVS_PACKAGES = "openvswitch-switch-dpdk dpdk"


def missing():
    """Why the peers can't run here, or None."""
    tools = [tool for tool in ("ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-server", "ovsdb-tool", TESTPMD)
             if not shutil.which(tool)]
    if tools or not os.path.exists(VSWITCHD):
        return f"{' '.join(tools) or VSWITCHD} is not here (Debian packages {OVS_PACKAGES})"
    if os.geteuid() != 0:
        return "needs root, for hugepages"
    if CORE not in os.sched_getaffinity(0):
        return f"needs core {CORE}"
    with open("/proc/sys/vm/nr_hugepages", encoding="ascii") as file:
        if int(file.read()) < 1024:
            return "needs 1024 hugepages of 2 MiB (sysctl vm.nr_hugepages=1024)"
    return None


def devargs(port, capture):
    return f"net_pcap{port},rx_pcap={capture},infinite_rx=1"


def midway(ask):
    """(time, result) of a question: the time is the middle of the call."""
    begin = time.monotonic()
    result = ask()
    return (begin + time.monotonic()) / 2, result


class Ours:
    """The release build of the switch, keepalive on."""

    def __init__(self, captures, rules, settings=(), impl=None):
        self.rundir = tempfile.mkdtemp(prefix="pmdpulse-peers-", dir="/dev/shm")
        self.folder = tempfile.mkdtemp(prefix="pmdpulse-peers-")
        self.impl = impl
        lines = [f"set pmd-cpu-mask={1 << CORE:#x}", *[f"set {setting}" for setting in settings],
                 *[f"add-port p{port} {devargs(port, capture)} ofport={port}"
                   for port, capture in enumerate(captures, 1)],
                 *[f"add-flow {rule}" for rule in rules]]
        self.switch = Switch(self.rundir, self.folder, lines=lines, program="pmdpulse-switch", is_awaited=False)
        self.ctl = os.path.join(self.rundir, "default.ctl")

    def do(self, command, *args):
        reply = request(self.ctl, command, *args)
        if not reply["ok"]:
            raise RuntimeError(f"{command} {' '.join(args)}: {reply['error']}")
        return reply["data"]

    def __enter__(self):
        try:
            wait_for(self.switch.is_up, 60, self.switch.err)
            if self.impl:
                self.do("dpif-impl-set", self.impl)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.switch.is_alive():
            self.switch.signal(signal.SIGTERM)
            with contextlib.suppress(AssertionError):
                self.switch.wait(20)
        self.switch.cleanup()
        shutil.rmtree(self.rundir, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear(self):
        self.do("pmd-stats-clear")

    def sent(self):
        def ask():
            return sum(port["tx_packets"] for port in self.do("dump-ports")["ports"])
        return midway(ask)

    def facts(self):
        pmd = next(p for p in self.do("pmd-stats-show")["pmds"] if p["n_rxq"])
        passes = max(pmd["packets_received"] + pmd["recirculations"], 1)
        shares = {name: round(100 * pmd.get(key, 0) / passes, 2) for name, key in (
            ("emc", "emc_hits"), ("smc", "smc_hits"), ("megaflow", "megaflow_hits"), ("miss", "misses"),
            ("run", "run_hits"))}
        return {"own_cycles": round((pmd["cycles_busy"] + pmd["cycles_idle"]) / max(pmd["packets_received"], 1), 2),
                "hits_pct": shares, "drops": {k: n for k, n in pmd["drops"].items() if n},
                "lookups_per_hit": pmd.get("subtable_lookups_per_hit"), "tsc_hz": pmd["tsc_hz"]}


class Ovs:
    """OVS-DPDK as Debian ships it: a database, one vswitchd, one bridge on the userspace datapath."""

    def __init__(self, captures, rules, settings=()):
        self.folder = tempfile.mkdtemp(prefix="pmdpulse-ovs-")
        self.captures, self.rules, self.settings = captures, rules, settings
        self.env = dict(os.environ, OVS_RUNDIR=self.folder, OVS_LOGDIR=self.folder, OVS_DBDIR=self.folder)
        self.children = []

    def run(self, *argv):
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def vsctl(self, *argv):
        return self.run("ovs-vsctl", f"--db=unix:{self.folder}/db.sock", "--timeout=30", *argv)

    def appctl(self, *argv):
        return self.run("ovs-appctl", "-t", f"{self.folder}/vs.ctl", *argv)

    def start(self, name, *argv):
        with open(os.path.join(self.folder, name + ".out"), "wb") as out:
            self.children.append(subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                                  stderr=out))
        return self.children[-1]

    def said(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        folder, settings = self.folder, [f"other_config:{setting}" for setting in self.settings]
        self.run("ovsdb-tool", "create", f"{folder}/conf.db", SCHEMA)
        self.start("db", "ovsdb-server", f"{folder}/conf.db", f"--remote=punix:{folder}/db.sock",
                   f"--unixctl={folder}/db.ctl", "--log-file=/dev/null")
        wait_for(lambda: os.path.exists(f"{folder}/db.sock"), what="ovsdb-server")
        self.vsctl("--no-wait", "init", "--", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                   "other_config:dpdk-lcore-mask=1", f"other_config:pmd-cpu-mask={1 << CORE:x}",
                   "other_config:dpdk-socket-mem=512", "other_config:vlan-limit=2",
                   "other_config:dpdk-extra=--no-pci --in-memory --file-prefix pmdpulse-peer -d "
                   + glob.glob(PMDS)[0], *settings)
        self.start("vs", VSWITCHD, f"unix:{folder}/db.sock", f"--unixctl={folder}/vs.ctl",
                   f"--log-file={folder}/vs.log", f"--pidfile={folder}/vs.pid")
        wait_for(lambda: self.vsctl("get", "Open_vSwitch", ".", "dpdk_initialized").strip() == "true", 30,
                 lambda: "OVS to start DPDK; it said:\n" + self.said("vs.out"))
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail_mode=secure")
        # The rules first, so that no packet meets the bridge without them.
        rules = os.path.join(folder, "rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("\n".join(self.rules) + "\n")
        self.run("ovs-ofctl", "add-flows", "br0", rules)
        for port, capture in enumerate(self.captures, 1):
            self.vsctl("add-port", "br0", f"p{port}", "--", "set", "Interface", f"p{port}", "type=dpdk",
                       f"ofport_request={port}", f"options:dpdk-devargs={devargs(port, capture)}")
            error = self.vsctl("get", "Interface", f"p{port}", "error").strip()
            if error != "[]":
                raise RuntimeError(f"OVS refuses port p{port}: {error}")

    def __exit__(self, *_):
        # The bridge leaves a tap behind when the process is killed.
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self.vsctl("del-br", "br0")
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for device in ("br0", "ovs-netdev"):
            subprocess.run(["ip", "link", "del", device], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear(self):
        self.appctl("dpif-netdev/pmd-stats-clear")

    def sent(self):
        def ask():
            text = self.run("ovs-ofctl", "dump-ports", "br0")
            return sum(int(n) for n in re.findall(r"port +\d+: rx .*?tx pkts=(\d+)", text, re.S))
        return midway(ask)

    def facts(self):
        text = self.appctl("dpif-netdev/pmd-perf-show", "-nh")
        cycles = re.search(r"([0-9]+) cycles/pkt", text)
        lookups = re.search(r"([0-9.]+) subtbl lookups/hit", text)
        shares = {name: float(found.group(1)) for name, found in (
            (name, re.search(rf"{label} hits:.*\(\s*([0-9.]+) %", text))
            for name, label in (("emc", "EMC"), ("smc", "SMC"), ("megaflow", "Megaflow"),
                                ("simple", "Simple Match"))) if found}
        impl = re.search(r"(\S+) \(pmds: [0-9 ]+\)", self.appctl("dpif-netdev/dpif-impl-get"))
        return {"impl": impl.group(1) if impl else None, "own_cycles": int(cycles.group(1)) if cycles else None, "hits_pct": shares,
                "lookups_per_hit": float(lookups.group(1)) if lookups else None}


class Testpmd:
    """DPDK's testpmd in io mode: the limit, since it looks at no packet."""

    def __init__(self, captures):
        self.folder = tempfile.mkdtemp(prefix="pmdpulse-testpmd-")
        self.path = os.path.join(self.folder, "out")
        vdevs = [word for port, capture in enumerate(captures, 1) for word in ("--vdev", devargs(port, capture))]
        # Its output goes to a file: line by line.
        self.argv = ["stdbuf", "-oL", TESTPMD, "--lcores", f"0@0,1@{CORE}", "--no-pci", "--in-memory", *vdevs,
                     "--", "-i", "--nb-cores=1", "--forward-mode=io", "--total-num-mbufs=250000", "--auto-start"]
        self.child = None

    def out(self):
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def __enter__(self):
        with open(self.path, "wb") as out:
            self.child = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=out, stderr=out)
        try:
            wait_for(lambda: self.child.poll() is not None or "testpmd>" in self.out(), 60, self.out)
            if self.child.poll() is not None:
                raise RuntimeError("testpmd ended: " + self.out()[-500:])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.child.stdin.write(b"stop\nquit\n")
            self.child.stdin.close()
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear(self):
        pass

    def sent(self):
        def ask():
            before = len(re.findall(r"TX-packets: (\d+)", self.out()))
            self.child.stdin.write(b"show port stats all\n")
            self.child.stdin.flush()
            found = wait_for(lambda: (lambda all_: all_ if len(all_) >= before + 2 else None)(
                re.findall(r"TX-packets: (\d+)", self.out())), what="testpmd's counters", every=0.002)
            return sum(map(int, found[before:before + 2]))
        return midway(ask)

    def facts(self):
        return {}
