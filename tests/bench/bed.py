# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of the whole product share: a switch on null ports or on the capture of make run."""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../system"))

# pylint: disable=wrong-import-position
from lib.switch import NULL_PORTS, Switch  # noqa: E402

TOP = os.path.join(HERE, "../..")
MATCHES = ("ip,nw_dst=198.19.0.0/24,udp,tp_dst=63", "ip,tcp,tp_dst=63", "ipv6,udp6,tp_dst=63")


def flow_ports(folder, flows=1000):
    """Two ports that replay a capture of mixed flows, as make run has them."""
    capture = os.path.join(folder, f"flows-{flows}.pcap")
    subprocess.run([sys.executable, os.path.join(TOP, "contrib/dev/mkflows.py"), str(flows), capture],
                   check=True)
    lines = []
    for port, other in ((1, 2), (2, 1)):
        lines.append(f"add-port p{port} net_pcap{port},rx_pcap={capture},infinite_rx=1 ofport={port}")
        lines += [f"add-flow in_port={port},{match},actions=output:{other}" for match in MATCHES]
    return lines


@contextlib.contextmanager
def folders():
    rundir = tempfile.mkdtemp(prefix="pmdpulse-bench-", dir="/dev/shm")
    folder = tempfile.mkdtemp(prefix="pmdpulse-bench-")
    try:
        yield rundir, folder
    finally:
        shutil.rmtree(rundir, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def switch_on(ports, rundir, folder, *settings):
    """The release build of the switch on "null" or "flows" ports."""
    lines = NULL_PORTS if ports == "null" else flow_ports(folder)
    settings = [f"set {setting}" for setting in settings]
    switch = Switch(rundir, folder, lines=(*settings, *lines), program="pmdpulse-switch")
    try:
        yield switch
    finally:
        switch.cleanup()


def steal_s(cpu):
    """Seconds that the host took from one CPU so far (10 ms ticks)."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = next(line for line in file if line.startswith(f"cpu{cpu} ")).split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")
