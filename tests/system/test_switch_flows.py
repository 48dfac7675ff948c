# SPDX-License-Identifier: Apache-2.0
"""Rules, control socket and start-up file of the real switch, with traffic from captures."""

import json
import os
import re
import socket
import struct
import time

import pytest

from lib.flow_switch import PMD_CORE, FlowSwitch, Refused
from lib.keys import read_pcap, write_pcap
from lib.process import built
from lib.switch import NULL_PORTS
from lib.wait import holds_for, wait_for

MACS = bytes.fromhex("020000000002020000000001")
pytestmark = pytest.mark.skipif(PMD_CORE not in os.sched_getaffinity(0),
                                reason=f"needs core {PMD_CORE} for a PMD")


@pytest.fixture
def start(processes, rundir, folder):
    """start(line, ...): a release switch with these lines in its start-up file."""
    def start_it(*lines, **keywords):
        processes.append(FlowSwitch(rundir, folder, *lines, **keywords))
        return processes[-1]
    return start_it


def ip4(proto, dst, payload, version_ihl=0x45):
    return MACS + b"\x08\x00" + struct.pack(
        "!BBHHHBBH4s4s", version_ihl, 0, 20 + len(payload), 1, 0, 64, proto, 0,
        bytes([10, 0, 0, 1]), bytes(map(int, dst.split(".")))) + payload


def udp(dst, port):
    return ip4(17, dst, struct.pack("!HHHH", 1000, port, 8, 0))


def tcp(dst, port):
    return ip4(6, dst, struct.pack("!HHIIBBHHH", 1000, port, 1, 0, 0x50, 2, 1024, 0, 0))


ARP = MACS + b"\x08\x06" + bytes.fromhex("0001080006040001") + bytes(20)


def replay(start, folder, frames, rules):
    """A switch that has forwarded the frames from port 1 by the rules. (switch, frames sent by port 2)"""
    source, sink = os.path.join(folder, "in.pcap"), os.path.join(folder, "out.pcap")
    write_pcap(source, frames)
    # The rules stand before the ports that they name, so that no frame comes too early.
    switch = start(*[f"add-flow '{rule}'" for rule in rules],
                   f"add-port p2 net_pcap2,rx_pcap={empty(folder)},tx_pcap={sink} ofport=2",
                   f"add-port p1 net_pcap1,rx_pcap={source},tx_pcap={folder}/back.pcap ofport=1")
    wait_for(lambda: switch.port("p1")["rx_packets"] == len(frames),
             what=lambda: f"{len(frames)} frames received: {switch.port('p1')}")
    return switch, sink


def empty(folder):
    path = os.path.join(folder, "empty.pcap")
    write_pcap(path, [])
    return path


def test_frames_go_where_the_rules_say(start, folder):
    frames = ([udp("20.0.0.7", 63)] * 10 + [udp("20.0.1.7", 63)] * 3 + [udp("20.0.0.7", 64)] * 4 +
              [tcp("20.0.0.7", 63)] * 5 + [ARP] * 6 +
              [ip4(17, "20.0.0.7", bytes(8), version_ihl=0x44)] * 2)
    switch, sink = replay(start, folder, frames, [
        "in_port=1,ip,nw_dst=20.0.0.0/24,udp,tp_dst=63,actions=output:2",
        "in_port=1,tcp,actions=drop",
        "in_port=1,arp,actions=output:9",
        "in_port=2,actions=output:1"])
    assert switch.flows() == {
        "udp,in_port=1,nw_dst=20.0.0.0/24,tp_dst=63 actions=output:2": 10,
        "tcp,in_port=1 actions=drop": 5,
        "arp,in_port=1 actions=output:9": 6,
        "in_port=2 actions=output:1": 0}
    wait_for(lambda: switch.port("p2")["tx_packets"] == 10, what="frames sent")
    port = switch.port("p1")
    drops = {reason: n for reason, n in port["drops"].items() if n}
    assert drops == {"no_rule": 3 + 4 + 2, "action": 5, "port_down": 6}
    assert port["rx_packets"] == switch.port("p2")["tx_packets"] + sum(drops.values())
    assert port["rx_bytes"] == sum(map(len, frames))
    counts = wait_for(lambda: (lambda d: d if d["pmds"][0].get("packets_received") == len(frames) else None)
                      (switch.do("pmd-stats-show")), what="the PMD to publish its counters")
    pmd = counts["pmds"][0]
    assert pmd["megaflow_hits"] + pmd["misses"] == len(frames)
    assert pmd["malformed"] == 2
    assert counts["malformed_since_start"]["ip4"] == 2
    assert switch.stop() == 0
    assert read_pcap(sink) == frames[:10]


def test_runts_are_dropped_and_counted(start, folder):
    frames = [MACS + b"\x08", udp("20.0.0.7", 63), b"\x02", MACS + b"\x08\x00"]
    switch, sink = replay(start, folder, frames, ["in_port=1,actions=output:2"])
    wait_for(lambda: switch.port("p2")["tx_packets"] == 2, what="frames sent")
    assert switch.port("p1")["drops"]["malformed"] == 2
    assert switch.flows() == {"in_port=1 actions=output:2": 2}
    assert switch.stop() == 0
    assert read_pcap(sink) == [frames[1], frames[3]]


def test_a_frame_goes_back_only_by_in_port(start, folder):
    frames = [udp("20.0.0.7", 63), tcp("20.0.0.7", 63)]
    switch, _ = replay(start, folder, frames, [
        "in_port=1,udp,actions=output:1", "in_port=1,tcp,actions=in_port"])
    wait_for(lambda: switch.port("p1")["tx_packets"] == 1, what="a frame sent back")
    assert switch.port("p1")["drops"]["action"] == 1


def test_rules_change_under_full_rate(start):
    switch = start(*NULL_PORTS)
    for i in range(100):
        switch.do("add-flow", f"in_port=1,udp,tp_dst={i % 7},priority={i},actions=drop")
        switch.do("add-flows", f"in_port=3,actions=output:{1 + i % 5}", "# comment")
        if i % 3 == 0:
            switch.do("del-flows", "in_port=1,udp")
    switch.do("replace-flows", "in_port=1,actions=output:2", "in_port=2,actions=output:1")
    before = switch.flows()
    assert len(before) == 2
    wait_for(lambda: all(switch.flows()[rule] > n for rule, n in before.items()), what="traffic")
    for name in "p1", "p2":
        assert sum(switch.port(name)["drops"].values()) == 0, switch.port(name)
    switch.do("del-flows")
    wait_for(lambda: all(switch.port(name)["drops"]["no_rule"] for name in ("p1", "p2")),
             what="drops without a rule")
    # One snapshot of a PMD is consistent in itself, whatever the load.
    for _ in range(20):
        pmd = switch.stats()
        assert pmd["packets_received"] == (pmd["packets_sent"] + sum(pmd["drops"].values()) +
                                           pmd["in_flight"])
        assert pmd["packets_received"] == pmd["megaflow_hits"] + pmd["misses"]


def test_stalled_pmd_holds_no_rule_command_up(start):
    switch = start(*NULL_PORTS, hooks=True)
    switch.hook("spin", 3000)
    time.sleep(0.05)  # it takes the order at its next look, within a millisecond
    refused = None
    begin = time.monotonic()
    for i in range(400):
        try:
            switch.do("add-flow", f"in_port=1,udp,tp_dst={i},actions=drop")
        except Refused as error:
            refused = str(error)
            break
    assert time.monotonic() - begin < 2.5, "commands waited for the PMD"
    # What waits for the PMD is bounded, and the reason is said.
    assert refused and "PMD that does not answer" in refused
    assert len(switch.flows()) == i + len(NULL_PORTS) - 2
    wait_for(lambda: not raises(switch, "add-flow", "in_port=1,tcp,actions=drop"), what="the PMD to return")


def raises(switch, *command):
    try:
        switch.do(*command)
    except Refused:
        return True
    return False


def test_replace_is_all_or_nothing(start, folder):
    switch = start("add-flow in_port=1,actions=output:2")
    path = os.path.join(folder, "rules")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# rules\n\nin_port=3,actions=drop\nin_port=4,nw_dst=1.2.3.4,actions=drop\n")
    result = switch.command.run("replace-flows", path)
    assert result.returncode == 1
    assert "line 4: nw_dst" in result.stderr
    assert list(switch.flows()) == ["in_port=1 actions=output:2"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("in_port=3,actions=drop\nin_port=1,actions=output:2\n")
    assert switch.command.run("replace-flows", path).returncode == 0
    assert set(switch.flows()) == {"in_port=3 actions=drop", "in_port=1 actions=output:2"}


def test_dump_can_be_fed_back(start):
    rules = ["priority=7,udp,in_port=1,nw_dst=20.0.0.0/24,tp_dst=63 actions=output:2",
             "tcp6,in_port=2,ipv6_src=fd00::/64,tcp_flags=+syn-ack actions=drop",
             "cookie=0x12,dl_vlan=5,dl_vlan_pcp=0 actions=IN_PORT"]
    switch = start()
    switch.do("add-flows", *rules)
    text = switch.command.run("dump-flows").stdout
    assert re.search(r"^ cookie=0x12, duration=[\d.]+s, table=0, n_packets=0, n_bytes=0, "
                     r"dl_vlan=5,dl_vlan_pcp=0 actions=IN_PORT$", text, re.M)
    before = switch.flows()
    switch.do("replace-flows", *text.splitlines())
    assert switch.flows() == before and len(before) == 3
    assert json.loads(switch.command.run("-j", "dump-flows", "tcp6").stdout)["flows"][0]["match"].startswith("tcp6")
    assert switch.command.run("del-flows", "in_port=1").returncode == 0
    assert len(switch.flows()) == 2


@pytest.mark.parametrize("command, named", [
    (["add-flow", "in_port=1,nw_dst=1.2.3.4,actions=drop"], "nw_dst"),
    (["add-flow", "in_port=nowhere,actions=drop"], "nowhere"),
    (["set", "keepalive-intervall=5"], "keepalive-interval"),
    (["set", "keepalive-interval=0"], "keepalive-interval=0"),
    (["get", "nonsense"], "nonsense"),
    (["del-port", "p9"], "p9"),
    (["add-port", "p9", "net_null9", "colour=red"], "colour"),
])
def test_refusals_name_their_object(start, command, named):
    switch = start()
    result = switch.command.run(*command)
    assert result.returncode == 1 and not result.stdout
    assert named in result.stderr and result.stderr.count("\n") == 1


def test_set_is_all_or_nothing(start):
    switch = start()
    assert switch.command.run("set", "keepalive-interval=7", "mbufs=many").returncode == 1
    assert switch.command.run("get", "keepalive-interval").stdout == "50\n"
    assert switch.command.run("set", "keepalive-interval=7.5", "enable-keepalive=false").returncode == 0
    assert switch.command.run("get", "keepalive-interval").stdout == "7.5\n"
    settings = {s["key"]: s for s in json.loads(switch.command.run("-j", "get").stdout)["settings"]}
    assert settings["enable-keepalive"]["value"] == "false"
    assert settings["enable-keepalive"]["default"] == "true"


@pytest.mark.parametrize("config, where, what", [
    ("add-flow in_port=1,tp_dst=3,actions=drop", 2, "tp_dst"),
    ("# comment\nnonsense", 3, "nonsense"),
    ("set colour=red", 2, "colour"),
    ("add-port p1 no_such_device", 2, "p1"),
    ("add-flows /nonexistent", 2, "/nonexistent"),
    ("add-flow 'in_port=1", 2, "quote"),
])
def test_start_up_errors_stop_the_start(start, rundir, config, where, what):
    switch = start(config, is_awaited=False)
    assert switch.wait() == 1
    assert f"{switch.config_path}:{where}: " in switch.err() and what in switch.err()
    assert os.listdir(rundir) == []


def test_start_up_file_reads_rule_files(start, folder):
    path = os.path.join(folder, "rules")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# two\nin_port=1 actions=output:2\nin_port=2,actions=output:1 # back\n")
    switch = start(f"add-flows {path}")
    assert len(switch.flows()) == 2


def test_a_file_that_is_too_long_is_refused_with_the_reason(start, folder):
    path = os.path.join(folder, "rules")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"# {'x' * 1000}\n" * 17000)
    switch = start()
    assert "at most 16777216 bytes (give a long file in parts)" in switch.command.refused("add-flows", path)


def test_many_and_lazy_clients(start):
    switch = start()
    lazy = []
    for _ in range(40):  # more than there are places, each with requests whose replies nobody reads
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        sock.connect(switch.ctl_path)
        try:
            sock.send(b'{"id": 1, "cmd": "get"}\n' * 500)
        except BlockingIOError:
            pass
        lazy.append(sock)
        assert switch.do("version")["version"]
    holds_for(lambda: switch.do("version")["version"], 0.5)
    for sock in lazy:
        sock.close()
    assert switch.stop() == 0


def test_socket_of_a_killed_switch_is_taken_over(start, rundir):
    first = start()
    first.kill()
    assert os.path.exists(first.ctl_path)
    second = start(name="second")
    assert second.do("show")["pid"] == second.pid
    third = start(name="third", is_awaited=False)
    assert third.wait() == 1 and "instance default" in third.err()
    assert second.do("show")["pid"] == second.pid
    assert os.stat(second.ctl_path).st_mode & 0o777 == 0o660
    assert os.stat(second.ctl_path).st_gid == os.stat(rundir).st_gid
    assert second.stop() == 0
    assert os.listdir(rundir) == []


def test_version_names_the_build(start, run):
    switch = start()
    data = switch.do("version")
    assert data["dpdk"].startswith("DPDK 22.11")
    process = run([built("pmdpulse-switch"), "--version"])
    assert process.wait() == 0
    assert data["version"] in process.out()
