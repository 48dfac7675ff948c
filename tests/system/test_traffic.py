# SPDX-License-Identifier: Apache-2.0
"""Real traffic: two hosts joined by the switch, while its PMD is taken away for a moment."""

import json
import os
import shutil
import subprocess
import time

import pytest

from lib.diag import hogs
from lib.hosts import two_hosts
from lib.wait import wait_for

SECONDS = int(os.environ.get("TRAFFIC_SECONDS", "20"))
# Below what the ports' rings hold (512 frames), so that the pause loses nothing.
WINDOW = "128K"

MISSING = next((f"{tool} is not installed" for tool in ("ip", "iperf3", "ping", "ethtool")
                if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")), "")


@pytest.fixture
def hosts(need_root):
    if MISSING:
        pytest.skip(MISSING)
    if os.cpu_count() < 2:
        pytest.skip("needs two cores")
    with two_hosts() as pair:
        yield pair


@pytest.fixture
def switch(hosts, start_switch):
    lines = [f"add-port {name} net_af_packet{n},iface={host.port_device} ofport={n}"
             for n, (name, host) in enumerate(zip("ab", hosts), 1)]
    return start_switch(lines=(*lines, "add-flow in_port=1,actions=output:2",
                               "add-flow in_port=2,actions=output:1"))


def compare(switch, hosts):
    """Both sides' counters, and whether they are the same."""
    pairs = []
    for name, host in zip("ab", hosts):
        port, kernel = switch.command.port(name), host.counted()
        for ours, theirs in (("rx_packets", "tx_packets"), ("rx_bytes", "tx_bytes"),
                             ("tx_packets", "rx_packets"), ("tx_bytes", "rx_bytes")):
            pairs.append((name, ours, port[ours], kernel[theirs]))
    return pairs


def test_tcp_survives_a_stall_and_counters_match(hosts, switch, start_agent):
    a, b = hosts
    agent = start_agent()
    agent.wait_alive(1)
    ping = a.run("ping", "-c", "5", "-i", "0.2", "-W", "2", b.address).stdout
    assert " 0% packet loss" in ping, ping

    with subprocess.Popen(b.command("iperf3", "-s", "-1"), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        wait_for(lambda: ":5201" in b.run("ss", "-ltn").stdout, what="the iperf3 server to listen")
        with subprocess.Popen(a.command("iperf3", "-c", b.address, "-t", SECONDS, "-i", "1", "-w", WINDOW,
                                        "--connect-timeout", "5000", "-J"),
                              stdout=subprocess.PIPE, text=True) as client:
            try:
                before = switch.command.port("a")["rx_packets"]
                wait_for(lambda: switch.command.port("a")["rx_packets"] > before + 10000, what="traffic")
                hog = hogs("--class", "fifo", core=switch.pmd()["core"], ms=300)[0]
                result = json.loads(client.communicate(timeout=SECONDS + 30)[0])
                server.wait(10)
            finally:
                client.kill()
                server.kill()
    assert "error" not in result, result["error"]
    assert result["end"]["sum_received"]["bytes"] > 1e6
    assert all(i["sum"]["bytes"] > 0 for i in result["intervals"][2:]), "it stood still after the stall"

    end = wait_for(lambda: [e for e in agent.events.all(kind="pmd-stall", phase="clear")
                            if (e["culprit"] or {}).get("pid") == hog["pid"]], 20, agent.events.describe)[0]
    assert end["cause"] == "preempted"
    assert end["duration_s"] == pytest.approx(hog["spun_ns"] / 1e9, rel=0.1)

    # Counters are published a few times a second; the hosts are silent now.
    wait_for(lambda: all(x == y for _, _, x, y in compare(switch, hosts)), 10,
             lambda: f"the same counts: {compare(switch, hosts)}", every=0.2)
    for name in "ab":
        port = switch.command.port(name)
        assert port["rx_packets"] == switch.command.port("b" if name == "a" else "a")["tx_packets"]
        assert sum(port["drops"].values()) == 0, port["drops"]
    print(f"\n{result['end']['sum_received']['bits_per_second'] / 1e6:.0f} Mbit/s, "
          f"{result['end']['sum_sent']['retransmits']} retransmissions, {time.strftime('%H:%M:%S')}")
