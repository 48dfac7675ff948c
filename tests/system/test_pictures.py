# SPDX-License-Identifier: Apache-2.0
"""What the pictures in docs/images/ are drawn from: three hosts, a minute and a half of real faults.

Only on request, since it takes its time:

    PMDPULSE_PICTURES=build/answers make check-system PYTEST_ARGS='-k pictures'
    make pictures
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import pytest

from lib import collectd, panels, prometheus
from lib.collectd import Collectd
from lib.diag import hogs

FOLDER = os.environ.get("PMDPULSE_PICTURES", "")
pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="is asked for: PMDPULSE_PICTURES=FOLDER"),
    pytest.mark.skipif(bool(collectd.missing() or prometheus.missing()),
                       reason=collectd.missing() or prometheus.missing() or "-"),
]
LENGTH_S = 95
# What a reader would choose: {board: (variables, begin, end)}
CHOSEN = {
    "pmdpulse-fleet": ({}, 0, LENGTH_S),
    "pmdpulse-switch": ({"instance": "compute-1"}, 0, LENGTH_S),
    "pmdpulse-pmd": ({"instance": "compute-1|compute-2"}, 0, LENGTH_S),
    "pmdpulse-incident": ({"instance": "compute-1"}, 19, 52),
}


def spans(series):
    """[[begin, end]] of the unbroken runs of values."""
    found = []
    for _, values in series:
        for time_s, _ in values:
            if found and 0 < time_s - found[-1][1] <= 1:
                found[-1][1] = time_s
            else:
                found.append([time_s, time_s])
    return found


def unaligned(start, end):
    """A little shorter, so that no label of a time axis (each 5, 10 or 15 s) is cut by an edge."""
    while -start % 15 < 5:
        start += 1
    while end % 10 < 5 or end % 15 < 5:
        end -= 1
    return start, end


def save(server, begin):
    os.makedirs(FOLDER, exist_ok=True)
    for uid, (chosen, first, last) in CHOSEN.items():
        start, end = unaligned(begin + first, begin + last)
        name = uid + ".json"
        with open(os.path.join(panels.BOARDS, name), encoding="utf-8") as file:
            board = json.load(file)
        answers = {}
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                question = panels.Question(board["uid"], panel["title"], target["refId"], target["expr"],
                                           target["instant"], "")
                answers.setdefault(panel["id"], {})[target["refId"]] = [
                    {"labels": {k: v for k, v in labels.items() if k != "__name__"}, "values": values}
                    for labels, values in panels.ask(server, question, start, end, chosen=chosen)]
        notes = [{"color": note["iconColor"], "spans": spans(
            server.query_range(panels.substitute(note["expr"], 0, "4s", chosen), start, end))}
                 for note in board["annotations"]["list"][1:]]
        text = json.dumps({"board": board, "notes": notes, "chosen": chosen, "from": start, "to": end,
                           "answers": answers})
        with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
            file.write(text.replace("NaN", "null").replace("Infinity", "null"))


def traffic(folder):
    """5000 mixed flows at full rate; most go through, TCP into the second port is dropped by a rule."""
    capture = os.path.join(folder, "flows.pcap")
    subprocess.run([sys.executable, os.path.join(prometheus.TOP, "contrib/dev/mkflows.py"), "5000", capture],
                   check=True)
    lines = [f"add-port p{port} net_pcap{port},rx_pcap={capture},infinite_rx=1 ofport={port}"
             for port in (1, 2)]
    for port, other in ((1, 2), (2, 1)):
        lines.append(f"add-flow in_port={port},ip,nw_dst=198.19.0.0/24,udp,tp_dst=63,actions=output:{other}")
        lines.append(f"add-flow in_port={port},ipv6,udp6,tp_dst=63,actions=output:{other}")
    return [*lines, "add-flow in_port=1,ip,tcp,tp_dst=63,actions=output:2",
            "add-flow in_port=2,ip,tcp,tp_dst=63,actions=drop"]


def test_pictures(need_root, start_switch, start_agent, start_publisher, processes, folder):
    receiver = prometheus.Receiver()
    switch = start_switch(lines=traffic(folder))
    hosts, daemons, lanes = ["compute-1", "compute-2", "compute-3"], [], ["pmd-c02", "pmd-c03", "pmd-c04"]
    rundirs = [switch.command.argv[2]] + [tempfile.mkdtemp(prefix="pmdpulse-test-", dir="/dev/shm")
                                          for _ in hosts[1:]]
    others = []
    for host, rundir in zip(hosts[1:], rundirs[1:]):
        others.append(start_publisher(f"--rundir={rundir}", lanes=lanes, name=host + ".publisher"))
        for port in ("eth0", "eth1"):
            others[-1].do(f"port {port} up")
    for host, rundir in zip(hosts, rundirs):
        start_agent(rundir=rundir, name=host + ".agent", json=os.path.join(folder, host + ".json"))
        port = prometheus.free_port()
        daemons.append(Collectd(rundir, folder, extra=prometheus.write_prometheus(port), is_received=False,
                                interval=1, name=host + ".collectd", hostname=host))
        daemons[-1].web_port = port
        processes.append(daemons[-1])
    processes.append(prometheus.Alertmanager(folder, receiver))
    server = prometheus.Prometheus(folder, [d.web_port for d in daemons], processes[-1], 15)
    processes.append(server)
    server.wait_value("count(collectd_pmdpulse_switch_up == 1)", lambda v: v == 3)
    core, start = switch.pmd()["core"], time.time() + 5
    narrow = [f"add-flow in_port=1,priority=40000,ip,nw_src=198.18.{16 + 8 * n}.0/{21 + n},actions=drop"
              for n in range(8)]

    def hog(name, ms):
        hogs("--class", "fifo", "--name", name, core=core, ms=ms)

    story = [
        (12, lambda: hog("backup", 300)), (20, lambda: others[0].do("stall pmd-c02 1500")),
        (27, lambda: hog("logrotate", 800)), (34, lambda: switch.hook("spin", 1600)),
        (40, lambda: others[0].do("starve pmd-c03 50 4000")), (48, lambda: switch.hook("block", 300)),
        (52, lambda: others[0].do("port eth1 down")),
        (55, lambda: [switch.command.text(*line.split()) for line in narrow]),
        (60, lambda: others[0].do("port eth1 up")),
        (62, lambda: hog("backup", 200)),
        (67, lambda: [switch.command.text("del-flows", "--strict", line.split()[1].partition(",actions")[0])
                      for line in narrow]), (70, others[1].kill), (76, lambda: hog("backup", 900)),
    ]
    for at, act in story:
        time.sleep(max(0, start + at - time.time()))
        act()
    time.sleep(max(0, start + LENGTH_S - time.time()))
    save(server, start)
    receiver.close()
