# SPDX-License-Identifier: Apache-2.0
"""Ports, queues and PMDs that come and go while an untouched port must lose nothing."""

import json
import os
import shutil
import signal
import struct
import subprocess
import time

import pytest

from lib.control import request
from lib.hosts import two_hosts
from lib.process import NOBODY, Process, built, ordinary_user
from lib.switch import NULL_PORTS
from lib.wait import wait_for

RATE_PER_S = 10000
# A second of traffic, so that a busy machine drops nothing before the switch sees it.
RING = "framecnt=16384"
CYCLES = 100


@pytest.fixture
def hosts(need_root):
    if os.cpu_count() < 2:
        pytest.skip("needs two cores")
    for tool in ("ip", "ethtool"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            pytest.skip(f"{tool} is not installed")
    with two_hosts() as pair:
        yield pair


@pytest.fixture
def ask(rundir):
    """ask(command, arg, ...): data of a reply that must be ok."""
    def asked(*words):
        reply = request(os.path.join(rundir, "default.ctl"), *words, timeout=20)
        assert reply["ok"], f"{words}: {reply['error']}"
        return reply["data"]
    return asked


@pytest.fixture
def refused(rundir):
    """refused(command, arg, ...): the error of a reply that must not be ok, and how long it took."""
    def asked(*words):
        begin = time.monotonic()
        reply = request(os.path.join(rundir, "default.ctl"), *words, timeout=20)
        assert not reply["ok"], words
        return reply["error"], time.monotonic() - begin
    return asked


class Sequence:
    """Numbered frames from host to host, sent in the background; compare() at the end."""

    def __init__(self, run, hosts, seconds):
        sender, receiver = hosts
        tool = built("tests/tools/sequence")
        self.receiver = run(receiver.command(tool, "receive", "eth0"), name="receive")
        wait_for(lambda: "ready" in self.receiver.out(), what="the receiver to listen")
        self.sender = run(sender.command(tool, "send", "eth0", RATE_PER_S, seconds), name="send")

    def is_sending(self):
        return self.sender.is_alive()

    def compare(self, ask):
        assert self.sender.wait(60) == 0, self.sender.err()
        sent = json.loads(self.sender.out())["sent"]
        # The kernel hands frames over in its own time; what came is counted by the ports, too.
        wait_for(lambda: port(ask, "p2")["tx_packets"] >= sent, 10,
                 lambda: f"{sent} frames at both ports: {port(ask, 'p1')} {port(ask, 'p2')}", every=0.1)
        assert port(ask, "p1")["rx_packets"] == sent
        time.sleep(0.3)  # for a frame too many: nothing announces that none comes
        self.receiver.signal(signal.SIGTERM)
        self.receiver.wait()
        counts = json.loads(self.receiver.out().splitlines()[-1])
        assert counts == {"received": sent, "out_of_order": 0, "highest": sent}
        assert sent > RATE_PER_S


def port(ask, name):
    return next(p for p in ask("dump-ports")["ports"] if p["name"] == name)


def packet_ports(hosts):
    return [f"add-port p{n} net_af_packet{n},iface={host.port_device},{RING} ofport={n}"
            for n, host in enumerate(hosts, 1)]


FLOWS = ("add-flow in_port=1,actions=output:2", "add-flow in_port=2,actions=output:1")


def test_hundred_ports_come_and_go_beside_traffic(hosts, start_switch, start_agent, ask, run):
    start_switch(lines=("set pmd-cpu-mask=0x2", *packet_ports(hosts), *FLOWS))
    agent = start_agent()
    agent.wait_alive(1)
    sequence = Sequence(run, hosts, 8)
    wait_for(lambda: port(ask, "p1")["rx_packets"] > 0, what="traffic")
    for n in range(CYCLES):
        ask("add-port", "p3", f"net_null{n % 7}", "ofport=3")
        ask("add-flow", "in_port=3,actions=drop")
        ask("del-flows", "in_port=3")
        ask("del-port", "p3")
    assert sequence.is_sending(), "the cycles took longer than the traffic"
    sequence.compare(ask)
    assert [p["name"] for p in ask("dump-ports")["ports"]] == ["p1", "p2"]
    raised = [e for e in agent.events.all(phase="raise") if e["kind"] in ("pmd-stall", "thread-gone")]
    assert all(e["cause"] == "preempted" for e in raised), agent.events.describe()


def test_queues_that_change_hands_keep_their_order(hosts, start_switch, ask, run):
    start_switch(lines=("set pmd-cpu-mask=0x2", *packet_ports(hosts), *FLOWS))
    sequence = Sequence(run, hosts, 6)
    wait_for(lambda: port(ask, "p1")["rx_packets"] > 0, what="traffic")
    for _ in range(10):
        for mask in ("0x1", "0x3", "0x2"):
            ask("set", f"pmd-cpu-mask={mask}")
    assert sequence.is_sending(), "the moves took longer than the traffic"
    sequence.compare(ask)
    pmds = ask("pmd-rxq-show")["pmds"]
    assert [(p["core"], len(p["rxqs"])) for p in pmds] == [(1, 2)]


def test_queues_of_a_device_are_shared_out(start_switch, ask):
    """Round robin over the PMDs, and each polls its own."""
    start_switch(lines=("set pmd-cpu-mask=0x3", "add-port p1 net_null1 ofport=1 n_rxq=4",
                        "add-flow in_port=1,actions=drop"))
    pmds = ask("pmd-rxq-show")["pmds"]
    shares = [[q["queue"] for q in pmd["rxqs"]] for pmd in pmds]
    assert sorted(sum(shares, [])) == [0, 1, 2, 3] and [len(share) for share in shares] == [2, 2], pmds
    wait_for(lambda: all(pmd["packets_received"] > 0 for pmd in ask("pmd-stats-show")["pmds"]),
             what=lambda: f"packets on both: {ask('pmd-stats-show')}")


def test_stalled_pmd_holds_up_no_other_command(start_switch, ask, refused):
    switch = start_switch(lines=("set pmd-cpu-mask=0x2 reconfigure-timeout=300", *NULL_PORTS))
    name = switch.pmd()["name"]
    switch.hook("spin", 3000)
    error, took_s = refused("del-port", "p2")
    assert name in error
    assert 0.2 < took_s < 2
    begin = time.monotonic()
    assert port(ask, "p2")["state"] == "removing"
    error, _ = refused("add-port", "p2", "net_null5")
    assert "p2" in error and "removed" in error
    assert time.monotonic() - begin < 1
    # What was asked for is done when the PMD is back.
    wait_for(lambda: [p["name"] for p in ask("dump-ports")["ports"]] == ["p1"], what="p2 to go")
    ask("add-port", "p2", "net_null2", "ofport=2")
    wait_for(lambda: port(ask, "p2")["rx_packets"] > 0, what="p2 to be polled")


def test_clean_stop_beside_a_thread_that_never_answers(start_switch, rundir):
    switch = start_switch(lines=("set pmd-cpu-mask=0x2 reconfigure-timeout=300", *NULL_PORTS))
    switch.hook("spin")
    wait_for(lambda: switch.pmd()["state"] == "DEAD", what="the PMD to hang")
    assert switch.stop(timeout=5) == 0
    assert "ending without it" in switch.err()
    assert os.listdir(rundir) == []


def test_thread_that_has_ended_is_named(start_switch, refused):
    switch = start_switch(lines=("set pmd-cpu-mask=0x2 reconfigure-timeout=300", *NULL_PORTS))
    name = switch.pmd()["name"]
    switch.hook("exit")
    wait_for(lambda: switch.pmd()["state"] in ("DEAD", "GONE"), what="the PMD to end")
    error, _ = refused("add-port", "p3", "net_null3")
    assert f"{name} has ended" in error


@pytest.mark.parametrize("words, named", [
    (("p1", "net_null7"), "one of this name"),
    (("p9", "net_null1"), "in use by port p1"),
    (("p9", "net_null7", "ofport=2"), "taken by port p2"),
    (("p9", "net_nosuch0"), "net_nosuch0"),
    (("p9", "net_null7", "n_rxq=65"), "1 to 64"),
    (("p9", "net_null7", "colour=red"), "ofport, n_rxq"),
    (("p9", "net_pcap7,rx_pcap=/nonexistent"), "/nonexistent"),
    (("p9", "class=eth"), "class=eth"),
    (("p9", "bus=vdev,name=net_null7"), "bus=vdev"),
    (("p9", "net_null7,size=70000,copy=1"), "buffer of 2048 bytes"),
    (("p9", "net_null7,size=9000", "mtu=8900"), "buffer of 8922 bytes"),
])
def test_refused_ports_name_the_reason(start_switch, ask, refused, words, named):
    start_switch(lines=NULL_PORTS)
    error, _ = refused("add-port", *words)
    assert named in error
    assert [p["name"] for p in ask("dump-ports")["ports"]] == ["p1", "p2"]
    ask("add-port", "p9", "net_null7", "ofport=9")


def test_capture_larger_than_the_shared_pool(start_switch, ask, folder):
    n_frames = 40000
    path = os.path.join(folder, "large.pcap")
    frame = bytes.fromhex("020000000002020000000001") + b"\x88\xb5" + bytes(46)
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        file.write((struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame) * n_frames)
    start_switch(lines=("set pmd-cpu-mask=0x2",
                        f"add-port p1 net_pcap1,rx_pcap={path},infinite_rx=1 ofport=1",
                        "add-port p2 net_null2 ofport=2", "add-flow in_port=1,actions=output:2"))
    wait_for(lambda: port(ask, "p2")["tx_packets"] > n_frames, what="the capture to go round")
    assert port(ask, "p1")["rx_nombuf"] <= 1  # its reader tells the end of the file so


@pytest.mark.parametrize("records", [b"", struct.pack("<IIII", 0, 0, 60, 60) + bytes(59)], ids=["none", "cut"])
def test_capture_without_a_frame_is_not_replayed(start_switch, ask, refused, folder, records):
    path = os.path.join(folder, "empty.pcap")
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + records)
    start_switch(lines=NULL_PORTS)
    error, _ = refused("add-port", "p3", f"net_pcap3,rx_pcap={path},infinite_rx=1")
    assert "p3" in error and "holds no whole frame" in error
    ask("add-port", "p3", f"net_pcap3,rx_pcap={path}")  # once is nothing, and harms nobody
    before = port(ask, "p2")["tx_packets"]
    wait_for(lambda: port(ask, "p2")["tx_packets"] > before + 100000, what="other ports to forward on")


def test_ordinary_user_without_hugepages(need_root, rundir, folder, processes):
    """Gets a switch, and is told what the kernel did not allow."""
    prefix = ordinary_user()
    os.chown(rundir, NOBODY, NOBODY)
    config = os.path.join(rundir, "start.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("\n".join(("set pmd-cpu-mask=0x2", *NULL_PORTS)) + "\n")
    switch = Process([*prefix, built("pmdpulse-switch"), "--no-huge", "--", "-c", config, "--rundir", rundir],
                     folder, "switch", env={"HOME": "/", "XDG_RUNTIME_DIR": ""})
    processes.append(switch)
    path = os.path.join(rundir, "default.ctl")
    wait_for(lambda: os.path.exists(path) or not switch.is_alive(), what="the switch to listen")
    assert switch.is_alive(), switch.err()
    wait_for(lambda: sum(p["packets_received"]
                         for p in request(path, "pmd-stats-show")["data"]["pmds"]) > 1000,
             what="packets")
    assert switch.stop() == 0
    assert sorted(os.listdir(rundir)) == ["start.conf"]
    if "address" not in os.environ.get("SANITIZE", ""):  # which makes mlockall do nothing and succeed
        assert "memory is not locked" in switch.err()
    assert "nice" in switch.err()


def test_second_switch_of_a_name_is_refused(start_switch, rundir, folder):
    start_switch(lines=NULL_PORTS)
    done = subprocess.run([built("pmdpulse-switch"), "--", "--rundir", rundir], capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "runs already" in done.stderr
    assert sorted(os.listdir(rundir)) == ["default.ctl", "default.ring"]
