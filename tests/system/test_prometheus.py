# SPDX-License-Identifier: Apache-2.0
"""The way of an alarm: switch, agent, collectd, Prometheus with our rules, Alertmanager, a webhook receiver.

All are the real programs. What the dashboards ask is asked too, during load and after a stall, and compared
with what was really done.
"""

import math
import os
import re
import subprocess
import time

import pytest

from lib import collectd, panels, prometheus
from lib.collectd import Collectd
from lib.diag import hogs
from lib.panels import Check
from lib.process import built
from lib.switch import NULL_PORTS
from lib.ves import Incidents
from lib.wait import holds_for, wait_for

pytestmark = pytest.mark.skipif(bool(collectd.missing() or prometheus.missing()),
                                reason=collectd.missing() or prometheus.missing() or "-")

NEED_SWITCH = pytest.mark.skipif(not os.path.exists(built("tests/pmdpulse-switch-hooks")),
                                 reason="no switch is built")
DIVIDE = 15  # a window of two minutes becomes one of 8 s
ODD_NAMES = ["a.b", "a-b", 'a"b', "a\\b", "ü", "a/b", "x" * 63]
BIG = math.inf
ADDRESS_SPACE_MOST = 1e14 if "address" in os.environ.get("SANITIZE", "") else 1e13  # its shadow takes 22 TB
ABI_VERSION_AT = 8  # docs/abi.md
QUEUE_ROOM, EVENT_ROOM = 512, 4096  # of the plugin's notifications; of the ring of the test's agent


@pytest.fixture
def receiver():
    receiver = prometheus.Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def start_collectd(processes, rundir, folder):
    """A collectd with write_prometheus; its port is .web_port."""
    def start(program=Collectd, port=None, is_received=False, **keywords):
        port = port or prometheus.free_port()
        daemon = program(rundir, folder, extra=prometheus.write_prometheus(port), is_received=is_received,
                         **keywords)
        processes.append(daemon)
        daemon.web_port = port
        wait_for(lambda: prometheus.is_ready(f"http://127.0.0.1:{port}/metrics"), 20,
                 lambda: f"write_prometheus to answer:\n{daemon.log()}")
        return daemon
    return start


@pytest.fixture
def start_servers(processes, folder, receiver):
    """Prometheus and Alertmanager for these collectds."""
    def start(*daemons, divide=DIVIDE, interval="1s"):
        manager = prometheus.Alertmanager(folder, receiver)
        processes.append(manager)
        server = prometheus.Prometheus(folder, [d.web_port for d in daemons], manager, divide, interval)
        processes.append(server)
        return server
    return start


# One stall, from the core to the webhook

def values_after_the_stall(t):
    """{board/panel/ref: Check}. t: what was done, by the clocks of who did it and by the command."""
    one, none, some = Check(1, 1, "last"), Check(0, 0, "last"), Check(0, BIG)
    n, lost, share = t["n_stalls"], t["stalled_s"], t["stalled_s"] / 4  # a rate is over 4 s here
    stalls = Check(0.7 * n, 1.6 * n, "last")
    stall_bars = Check(0.7, 1.6 * n + 1)
    lost_time = Check(0.7 * lost, 1.6 * lost, "last")
    shares = Check(0.5 * min(1, t["hog_s"] / 4), min(1, 2.1 * share))
    last = Check(0.9 * t["last_s"], 1.1 * t["last_s"] + 0.005, "last")
    longest = Check(0.95 * t["longest_s"], 1.05 * t["longest_s"])
    hog = {"cause": "preempted", "culprit": t["comm"], "thread": t["thread"]}
    hog_n, hog_time = Check(0.7, 1.6, "last", hog), Check(0.7 * t["hog_s"], 1.6 * t["hog_s"], "last", hog)
    by_cause, cause_time = Check(0.7, 3, labels={"cause": "preempted"}), \
        Check(0.7 * t["hog_s"], 3 * t["stalled_s"], labels={"cause": "preempted"})
    rate, a_rate = Check(0.6 * t["pps"], 1.5 * t["pps"], "last"), Check(0.5 * t["pps"], 2.5 * t["pps"])
    port_rate = Check(0.25 * t["pps"], 1.5 * t["pps"])
    no_bytes = Check(0, 0)  # a null device counts none
    available = Check(1 - 1.6 * lost / t["range_s"], 1 - 0.6 * t["hog_s"] / t["range_s"], "min")
    alive, dead_or_alive = Check(t["alive"], t["alive"], "last"), Check(1, 4)
    ports = Check(2, 2, "count")
    age, no_drops = Check(0, 3), Check(0, 0)
    silence = Check(0, 8)
    fleet = {
        "Hosts/A": one, "Switches up/A": one, "Switches gone/A": none, "Threads alive/A": alive,
        "Threads in trouble/A": none, "Open incidents/A": none, "Stalls/A": stalls, "Longest silence/A": silence,
        "Switches, worst first/A": none, "Switches, worst first/B": one, "Switches, worst first/C": alive,
        "Switches, worst first/D": none, "Switches, worst first/E": none,
        "Switches, worst first/F": stalls, "Switches, worst first/G": lost_time,
        "Switches, worst first/H": rate, "Switches, worst first/I": one, "Switches, worst first/J": silence,
        "State of the switches/A": one, "Time stalled/A": shares, "Oldest beat/A": age,
        "Incidents raised/A": Check(0.7, 3, labels={"kind": "pmd-stall"}), "Received/A": a_rate,
        "Dropped/A": no_drops, "Link changes/A": Check(0, 0), "Agents/A": age,
    }
    # The panel has the name of the tile above it, and another reference would be another query.
    switch = {
        "State/A": one, "Uptime/A": Check(t["range_s"], 600, "last"), "Starts again/A": none,
        "Received/A": rate, "Busy/A": Check(0.5, 1, "last"), "Dropped/A": none, "Links down/A": none,
        "Keepalive/A": one, "Received by port/A": port_rate, "Sent by port/A": port_rate,
        "Bandwidth by port/A": no_bytes, "Bandwidth by port/B": no_bytes,
        "Received and sent by thread/A": a_rate, "Received and sent by thread/B": a_rate,
        "Received and sent by thread/C": Check(0, 0),
        "Busy share/A": Check(0.5, 1), "Packets per batch/A": Check(1, 64),
        "Packets per batch/B": Check(1, 64), "Where passes hit/A": Check(0.9, 1.001),
        "Where passes hit/B": Check(0, 0.1), "Passes again and upcalls/A": Check(0, 0),
        "Passes again and upcalls/B": some, "Passes again and upcalls/C": Check(0, 0),
        # Rules that look at the port alone: a megaflow for each, no caches, a burst is looked up at once.
        "Run hits/A": Check(0, 0), "Cache entries/A": Check(0, 0), "Megaflows/A": Check(2, 2),
        "Megaflows/B": Check(0, 0), "Subtables/A": Check(1, 2), "Subtables/B": Check(0.01, 1.001),
        "Time in upcalls/A": Check(0, 0.1), "Upcalls without a megaflow/A": Check(0, 0),
        "Drops by reason/A": no_drops, "Drops by port/A": no_drops, "Port errors/A": no_drops,
        "Malformed frames and transmit retries/A": some, "Malformed frames and transmit retries/B": no_drops,
        "Links/A": one if t["ports"] == 1 else Check(2, 2, "last"),
        "Ports/A": Check(3, 3, "last"), "Ports/B": Check(2, 2, "last"), "Ports/C": Check(2, 2, "last"),
        "Ports/D": Check(1000, 20000), "Ports/E": Check(1, 8), "Ports/F": Check(1, 8), "Ports/G": none,
        "CPU of the process/A": Check(0.3, 2.5), "Memory of the process/A": Check(1e6, 1e11),
        "Memory of the process/B": Check(1e7, ADDRESS_SPACE_MOST), "Signs of life/A": age, "Signs of life/B": age,
        "Agent and relay/A": one, "Agent and relay/B": one,
        "Events and notifications/A": Check(0.1, 10), "Events and notifications/B": Check(0.1, 10),
        "Events and notifications/C": Check(0, 0), "Events and notifications/D": Check(0, 0),
        "Events and notifications/E": Check(0, 0), "Cost of reading/A": Check(0, 0.2),
        "Cost of reading/B": Check(0, 0.5),
    }
    pmd = {
        "Alive/A": alive, "Dead/A": none, "Gone/A": none, "Stalls/A": stalls, "Availability/A": available,
        "Oldest beat/A": age, "Interval/A": Check(t["interval_s"], t["interval_s"], "last"),
        "State of the threads/A": dead_or_alive, "Beat age/A": age, "Beats/A": Check(1000, BIG),
        "Gaps between turns/A": Check(0.5, BIG, labels={"le": "+Inf"}), "Stalls by thread/A": stall_bars,
        "Incidents by cause/A": by_cause, "Time taken by cause/A": cause_time,
        "Who stopped whom/A": hog_n, "Who stopped whom/B": hog_time,
        "Threads/A": Check(t["alive"], t["alive"], "last"), "Threads/B": Check(t["core"], t["core"]),
        "Threads/C": Check(2, 2), "Threads/D": Check(t["alive"], t["alive"], "last"), "Threads/E": last,
        "Threads/F": longest, "Threads/G": available,
        "Gaps from 250 us up/A": Check(0.5 * min(1, t["hog_s"] / 4), 1), "Gaps a second/A": Check(0.2, BIG),
        "Longest gap/A": longest, "One turn in a hundred thousand/A": Check(1e-6, 10),
        "Time by use/A": Check(0.5, 2), "Turns of the loop/A": Check(1000, BIG), "In flight/A": some,
    }
    incident = {
        "Stalls/A": stalls, "Last stall/A": last, "Longest gap/A": longest,
        "Open incidents/A": none, "Drops/A": none, "Missed by devices/A": none, "Agent late/A": some,
        "Alerts/A": Check(1, 1, labels={"alertname": "PmdpulseStall"}), "Thread/A": dead_or_alive,
        "Switch/A": one, "Who stopped whom/A": hog_n, "Who stopped whom/B": hog_time,
        "Incidents by kind/A": Check(0.7, 3, "last", {"kind": "pmd-stall"}), "Incidents by kind/B": none,
        "Open incidents by cause/A": Check(1, 2, labels={"cause": "preempted"}),
        "Cleared by cause/A": by_cause, "Time taken by cause/A": cause_time, "Beat age/A": age,
        "Gaps between turns/A": Check(0.5, BIG, labels={"le": "+Inf"}), "Received/A": a_rate,
        "In flight/A": some, "Drops by reason/A": no_drops, "Use of the time/A": Check(0.5, 2),
        "CPU of the process/A": Check(0.3, 2.5), "Watchers/A": age, "Watchers/B": age,
        "annotation/Alerts": Check(1, 1), "annotation/Stalls": Check(1, 2 + n),
    }
    # A title that stands twice on a board: each panel's check in the order of the panels.
    twice = {
        ("pmdpulse-fleet", "Stalls/A"): [stalls, stall_bars],
        ("pmdpulse-pmd", "Time stalled/A"): [lost_time, shares],
        ("pmdpulse-pmd", "Availability/A"): [available, Check(0, 1, "min")],
        ("pmdpulse-incident", "Time stalled/A"): [lost_time, shares],
        ("pmdpulse-switch", "Ports/B"): [ports],
    }
    for board in (switch, pmd):
        board["annotation/Alerts"] = incident["annotation/Alerts"]
    return {"pmdpulse-fleet": fleet, "pmdpulse-switch": switch, "pmdpulse-pmd": pmd,
            "pmdpulse-incident": incident}, twice


# Healthy, these have nothing to say, and their panels tell so.
SILENT_WHEN_HEALTHY = {"Who stopped whom", "Alerts", "annotation"}


def check_of(checks, twice, seen, question):
    key = f"{question.panel}/{question.ref}"
    several = twice.get((question.board, key))
    if several and len(several) > 1:
        seen[question.name] = seen.get(question.name, 0) + 1
        return several[seen[question.name] - 1]
    assert key in checks[question.board], f"no expected value for {question.name}: {question.expr}"
    return checks[question.board][key]


def the_truth(switch, hog, pps, range_s):
    thread = switch.pmd()
    return {
        "n_stalls": thread["stalls"], "stalled_s": thread["stalled_s"], "longest_s": thread["longest_gap_s"],
        "last_s": thread["last_stall"]["duration_s"], "hog_s": hog["spun_ns"] / 1e9, "comm": hog["comm"],
        "thread": thread["name"].replace("/", "_"), "core": thread["core"], "pps": pps,
        "alive": sum(t["state"] == "ALIVE" for t in switch.command.threads()), "ports": 2,
        "interval_s": 0.05, "range_s": range_s,
    }


def told_sizes(pattern):
    with open(os.path.join(prometheus.TOP, "docs/operations.md"), encoding="utf-8") as file:
        return [float(number) for number in re.search(pattern, file.read()).groups()]


def check_size(what, found, told, slack):
    print(f"{what}: {found:.4g}, told {told:.4g}")
    assert (1 - slack) * told <= found <= (1 + slack) * told, (what, found, told)


def check_sizes_on_the_host(rundir, agent):
    """What docs/operations.md tells one to reckon with."""
    ring, incidents = told_sizes(r"\((\d\.\d) MB ring, (\d\.\d) MB incidents\)")
    for name, told in (("ring", ring), ("incidents", incidents)):
        check_size(f"MB of {name}", os.path.getsize(os.path.join(rundir, f"default.{name}")) / 1e6, told, 0.05)
    if not os.environ.get("SANITIZE"):
        with open(f"/proc/{agent.pid}/status", encoding="ascii") as file:
            rss = int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024 / 1e6
        check_size("MB of the agent", rss, told_sizes(r"\| agent \| (\d+) MB, locked")[0], 0.3)


def received(switch):
    return sum(pmd["packets_received"] for pmd in switch.command.json("pmd-stats-show")["pmds"])


@NEED_SWITCH
def test_a_stall_reaches_the_receiver_and_every_panel(need_root, rundir, start_switch, start_agent, start_collectd,
                                                      start_servers, receiver):
    switch = start_switch()
    agent = start_agent()
    agent.wait_alive(1)
    daemon = start_collectd(interval=1)
    server = start_servers(daemon)
    server.wait_value("collectd_pmdpulse_switch_up", lambda v: v == 1)
    start, packets = time.time(), received(switch)
    # Long enough for the longest rate of a panel, and for an average.
    server.wait_value("count_over_time(collectd_pmdpulse_switch_up[1m])", lambda v: v >= 10, 30)
    pps = (received(switch) - packets) / (time.time() - start)
    healthy_at = time.time() - 1
    healthy = [panels.ask(server, q, healthy_at - 6, healthy_at) for q in panels.questions()]

    hog = hogs("--class", "fifo", core=switch.pmd()["core"], ms=800)[0]
    stall = receiver.wait("PmdpulseStall", "firing", 30)
    cause = receiver.wait("PmdpulseStallCause", "firing", 30, culprit=hog["comm"])
    thread = switch.pmd()["name"].replace("/", "_")
    assert stall[0] == "on-call" and stall[2]["thread"] == thread and stall[2]["instance"] == "testhost"
    assert stall[3]["summary"] == f"{thread} of default on testhost stalls"
    assert re.search(r"Its last stall took \d+(\.\d+)?ms", stall[3]["description"]), stall[3]
    assert cause[0] == "operators" and cause[2]["cause"] == "preempted"
    assert cause[3]["summary"].endswith(f"was stopped: preempted by {hog['comm']}")
    server.wait_value('sum(collectd_pmdpulse_incidents_open{kind="pmd-stall"})', lambda v: v == 0)
    # Until the rates of the last seconds are those of plain load again.
    after = time.time()
    server.wait_value("timestamp(collectd_pmdpulse_switch_up)", lambda v: v > after + 5)

    end = time.time() - 1
    truth = the_truth(switch, hog, pps, end - start)
    checks, twice = values_after_the_stall(truth)
    rows, wrong, seen = [("board", "panel", "series: load", "stall", "expected", "found", "")], [], {}
    for question, before in zip(panels.questions(), healthy):
        answer = panels.ask(server, question, start, end)
        check = check_of(checks, twice, seen, question)
        number = check.number(answer)
        is_right = check.is_right(number) and bool(answer)
        if not before and question.panel not in SILENT_WHEN_HEALTHY:
            is_right = False
        rows.append((question.board.removeprefix("pmdpulse-"), f"{question.panel} {question.ref}",
                     str(len(before)) if before else f"0: {question.empty_means}", str(len(answer)),
                     str(check), f"{number:.6g}", "" if is_right else "WRONG"))
        if not is_right:
            wrong.append(f"{question.name}: {check}, found {number}: {question.expr}")
    for recording in prometheus.alerts.RECORDINGS:
        answer = server.query_range(recording.record, start, end)
        check = Check(0, BIG)
        number = check.number(answer)
        rows.append(("rules", recording.record, "", str(len(answer)), str(check), f"{number:.6g}", ""))
        if not check.is_right(number):
            wrong.append(f"{recording.record}: {number}")
    panels.print_table(rows)
    print(f"{len(rows) - 1} queries of {len(checks)} dashboards, {len(wrong)} wrong; truth: {truth}")
    receiver.wait("PmdpulseStall", "resolved", 30)
    check_sizes_on_the_host(rundir, agent)
    assert not wrong, "\n".join(wrong)


# The other rules: each fires for its reason and resolves

class Alarms:
    """Which alerts fired, at the receiver or, where a worse one hides them, in Prometheus."""

    def __init__(self, receiver, server):
        self.receiver, self.server = receiver, server
        self.begin, self.fired = time.monotonic(), []  # [name, labels, who was told, after, resolved after]

    def _note(self, name, labels, who):
        labels = ", ".join(f"{key}={value}" for key, value in labels.items())
        self.fired.append([name, labels, who, self._after(), ""])

    def _after(self):
        return f"{time.monotonic() - self.begin:.1f} s"

    def fires(self, name, **labels):
        self._note(name, labels, self.receiver.wait(name, "firing", 40, **labels)[0])

    def fires_hidden(self, name):
        self.server.wait_value(f'max_over_time(ALERTS{{alertname="{name}",alertstate="firing"}}[1m])',
                               lambda v: v == 1, 40)
        self._note(name, {}, "nobody: hidden")

    def hides(self, source, *names):
        """Alertmanager holds these back because of source, while Prometheus fires them."""
        wait_for(lambda: set(names) <= self.server.manager.hidden_by(source) & self.server.firing(), 20,
                 lambda: f"{names} to be hidden by {source}: {self.server.manager.get('alerts')}")

    def ends(self, *names):
        """Fires no more; for those that nobody was told of."""
        wait_for(lambda: not set(names) & self.server.firing(), 40, f"the end of {names}")
        for row in self.fired:
            if row[0] in names:
                row[4] = row[4] or self._after()

    def resolves(self, *names):
        for name in names:
            self.receiver.wait(name, "resolved", 40)
            for row in self.fired:
                if row[0] == name:
                    row[4] = row[4] or self._after()

    def show(self):
        panels.print_table([("alert", "labels", "told", "fired", "seen to resolve"), *self.fired])
        print(f"{len(self.fired)} alerts fired")

    def wait_value(self, name, value, what="{}"):
        self.server.wait_value(f"collectd_pmdpulse_{name}{what}", lambda v: v == value)

    def next_reading(self):
        now = time.time()
        self.server.wait_value("timestamp(collectd_pmdpulse_switch_up)", lambda v: v > now)


@pytest.fixture
def watched(start_publisher, start_agent, start_collectd, start_servers, receiver):
    """A publisher, whose threads and ports do what they are told, watched by all the rest.

    Two minutes of a rule become two seconds here.
    """
    agent = start_agent()
    publisher = start_publisher(lanes=["p1", "p2", "p3"], interval=50)
    publisher.do("port eth0 up")
    # Called as its target is, else nothing says that they are one host.
    daemon = start_collectd(interval=0.25, hostname="127.0.0.1")
    server = start_servers(daemon, divide=60, interval="250ms")
    server.wait_value("count(collectd_pmdpulse_thread_state == 1)", lambda v: v == 3)
    return publisher, agent, daemon, Alarms(receiver, server)


def test_alerts_of_threads_and_ports(need_root, watched, receiver):
    publisher, agent, _, alarms = watched
    publisher.do("stall p1 400")
    alarms.fires("PmdpulseStall", thread="p1")
    alarms.fires("PmdpulseStallCause", thread="p1", cause="blocked")
    alarms.fires("PmdpulseStalledShare", thread="p1")
    publisher.do("hold")
    for state in ("down", "up") * 3 + ("down",):
        publisher.do(f"port eth0 {state}")
        alarms.wait_value("port_link", int(state == "up"))
    alarms.fires("PmdpulseLinkDown", port="eth0")
    alarms.fires("PmdpulseLinkFlapping", port="eth0")
    publisher.do("port eth0 up")
    for _ in range(8):
        publisher.do("miss eth0 500")
        alarms.next_reading()
    alarms.fires("PmdpulsePortErrors", port="eth0", error="rx_missed")
    alarms.fires("PmdpulseControlStuck", kind="control-stuck")
    publisher.do("resume")
    publisher.do("lane p4 1 busy")
    alarms.wait_value("thread_state", 1, '{thread="p4"}')
    for _ in range(5):
        hogs("--class", "fifo", "--burst-us", 40000, "--pause-us", 20000, core=1, ms=1000)
        if agent.events.all(kind="pmd-starved"):
            break
    alarms.fires_hidden("PmdpulseStarved")
    publisher.do("exit p4")
    publisher.do("die p3")
    alarms.fires("PmdpulseThreadGone", thread="p3")
    agent.pause()
    alarms.fires("PmdpulseAgentGone")
    agent.resume()
    alarms.fires_hidden("PmdpulseAgentLate")
    publisher.do("keepalive off")
    # It is held for so long that pending must do.
    alarms.server.wait_value('ALERTS{alertname="PmdpulseKeepaliveOff"}', lambda v: v == 1)
    alarms.resolves("PmdpulseStall", "PmdpulseStallCause", "PmdpulseStalledShare", "PmdpulseLinkDown",
                    "PmdpulseLinkFlapping", "PmdpulsePortErrors", "PmdpulseControlStuck",
                    "PmdpulseAgentGone")
    alarms.ends("PmdpulseStarved", "PmdpulseAgentLate")
    assert receiver.got("PmdpulseThreadGone", "firing", thread="p3")
    publisher.quit()
    alarms.resolves("PmdpulseThreadGone")
    alarms.show()


def of_another_version(ring):
    """The same segment as another version of the library would have left it."""
    return ring[:ABI_VERSION_AT] + b"\x63" + ring[ABI_VERSION_AT + 1:]


def test_alerts_of_the_switch_and_its_host(watched, start_publisher, receiver, rundir):
    publisher, _, daemon, alarms = watched
    publisher.do("stall p1 400")
    alarms.fires("PmdpulseStall", thread="p1")
    alarms.fires("PmdpulseStallCause", thread="p1", cause="blocked")
    publisher.kill()
    alarms.fires("PmdpulseSwitchGone")
    # What its threads raised before still fires, and would be told again with the new alert of the same group.
    alarms.hides("PmdpulseSwitchGone", "PmdpulseStallCause")
    assert len(receiver.got("PmdpulseStall", "firing")) == 1, receiver.describe()
    for number in range(1, 4):
        last = start_publisher(lanes=["p1"], interval=50, name=f"publisher{number}")
        alarms.wait_value("switch_restarts_total", number)
        if number < 3:
            last.kill()
    alarms.fires("PmdpulseSwitchRestarts")
    alarms.resolves("PmdpulseSwitchGone")
    daemon.pause()
    alarms.fires("PmdpulseScrapeFailed")
    alarms.fires_hidden("PmdpulseSeriesLost")
    alarms.hides("PmdpulseScrapeFailed", "PmdpulseSeriesLost")
    assert not receiver.got("PmdpulseSeriesLost", "firing"), receiver.describe()
    daemon.resume()
    alarms.resolves("PmdpulseScrapeFailed")
    alarms.ends("PmdpulseSeriesLost")
    path = os.path.join(rundir, "default.ring")
    with open(path, "rb") as file:
        ring = file.read()
    last.quit()
    alarms.fires("PmdpulseSwitchDown")
    with open(path, "wb") as file:
        file.write(of_another_version(ring))
    alarms.fires("PmdpulseSwitchRefused")
    alarms.fires("PmdpulseVersionMismatch")
    alarms.resolves("PmdpulseSwitchDown")
    os.unlink(path)
    alarms.resolves("PmdpulseSwitchRefused", "PmdpulseVersionMismatch")
    # The process was gone, so its threads were not worth a word.
    assert not receiver.got("PmdpulseThreadGone", "firing"), receiver.describe()
    assert len(receiver.got("PmdpulseStall", "firing")) == 1, receiver.describe()
    alarms.show()


def test_lost_values_of_all_hosts_are_one_message(processes, folder, receiver):
    manager = prometheus.Alertmanager(folder, receiver)
    processes.append(manager)
    hosts = {"alpha", "beta", "gamma"}
    manager.take(*({"alertname": "PmdpulseSeriesLost", "severity": "critical", "job": "pmdpulse", "instance": host,
                    "switch": "default"} for host in hosts))
    for host in hosts:
        assert receiver.wait("PmdpulseSeriesLost", "firing", instance=host)[0] == "on-call"
    groups = [{a["labels"]["instance"] for a in group["alerts"]} for group in manager.get("alerts/groups")]
    assert groups == [hosts], groups


class WithoutPlugin(Collectd):
    """A collectd that somebody took our plugin out of."""

    def configuration(self, options, interval, extra, is_received):
        text = super().configuration(options, interval, extra, is_received)
        return re.sub(r'PluginDir "[^"]*"\nLoadPlugin pmdpulse\n<Plugin pmdpulse>.*?</Plugin>', "LoadPlugin uptime",
                      text, flags=re.DOTALL)


def test_alerts_of_events_and_values_that_do_not_come(processes, rundir, folder, start_publisher, start_collectd,
                                                      start_servers, receiver):
    """The test is the agent here: it tells of what no agent of this version finds, and faster than one would."""
    incidents = Incidents(rundir, folder, f"--events={EVENT_ROOM}")
    processes.append(incidents)
    start_publisher(lanes=["p1"], interval=50)
    daemon = start_collectd(interval=0.25, is_received=True)
    alarms = Alarms(receiver, start_servers(daemon, divide=60, interval="250ms"))
    alarms.wait_value("relay_active", 1)
    incidents.do("raise p1 pmd-no-progress")
    alarms.fires("PmdpulseNoProgress", kind="pmd-no-progress", severity="critical")
    incidents.do("clear p1")
    # A receiver of notifications that takes half a second for each: the queue runs over.
    daemon.be_slow(0.5)
    incidents.do(f"burst {QUEUE_ROOM}")  # each is raised and cleared
    alarms.fires("PmdpulseEventsLost", switch="default")
    alarms.server.wait_value("collectd_pmdpulse_notifications_lost_total", lambda v: v > 0)
    alarms.wait_value("relay_events_lost_total", 0)
    daemon.be_fast()
    alarms.resolves("PmdpulseNoProgress", "PmdpulseEventsLost")
    # A collectd that stands while the agent goes once around the ring of events.
    # Posts of the group repeated what fired then.
    n_before = len(receiver.got("PmdpulseEventsLost", "firing"))
    daemon.pause()
    incidents.do(f"burst {EVENT_ROOM}")
    daemon.resume()
    alarms.server.wait_value("collectd_pmdpulse_relay_events_lost_total", lambda v: v > 0)
    wait_for(lambda: len(receiver.got("PmdpulseEventsLost", "firing")) > n_before, 40, receiver.describe)
    # None of the time before the first value counts.
    wait_for(lambda: "PmdpulseSeriesAbsent" not in alarms.server.firing(), what="values")
    receiver.alerts.clear()
    daemon.stop()
    alarms.fires("PmdpulseScrapeFailed")
    wait_for(lambda: "PmdpulseSeriesAbsent" in alarms.server.firing(), what="PmdpulseSeriesAbsent")
    # The other one hides it, for as long as several posts of the group would take.
    holds_for(lambda: not receiver.got("PmdpulseSeriesAbsent", "firing"), 1.5, receiver.describe)
    bare = start_collectd(program=WithoutPlugin, port=daemon.web_port, name="bare")
    alarms.fires("PmdpulseSeriesAbsent", job="pmdpulse", severity="critical")
    bare.stop()
    start_collectd(port=daemon.web_port, interval=0.25, name="again")
    alarms.resolves("PmdpulseScrapeFailed", "PmdpulseSeriesAbsent")
    assert not {"PmdpulseScrapeFailed", "PmdpulseSeriesAbsent"} & alarms.server.firing()
    alarms.show()


# Names

def check_series(server):
    sizes = told_sizes(r"about (\d+) series a thread, (\d+) a port and (\d+) a switch")
    own = '__name__=~"collectd_pmdpulse_.+"'
    for what, expr, size in zip(("thread", "port", "switch"), (
            f'max(count by (thread) ({{{own},thread!=""}}))', f'max(count by (port) ({{{own},port!=""}}))',
            f'count({{{own},thread="",port=""}})'), sizes):
        check_size(f"series a {what}", server.query(expr)[0][1], size, 0.1)


@NEED_SWITCH
def test_odd_port_names_from_switch_to_prometheus(start_switch, start_collectd, start_servers, receiver):
    switch = start_switch(lines=(NULL_PORTS[0], "add-flow in_port=1,actions=output:99"))
    for number, name in enumerate(ODD_NAMES):
        switch.command.text("add-port", name, f"net_null{10 + number}", f"ofport={10 + number}")
    assert {p["name"] for p in switch.command.json("dump-ports")["ports"]} == {"p1", *ODD_NAMES}
    daemon = start_collectd(interval=0.5)
    server = start_servers(daemon, divide=60, interval="500ms")
    server.wait_value("count(collectd_pmdpulse_port_ofport)", lambda v: v == 1 + len(ODD_NAMES))
    found = {labels["port"]: value for labels, value in server.query("collectd_pmdpulse_port_ofport")}
    # collectd takes no slash in an identifier: docs/metrics.md says what becomes of it.
    assert found == {"p1": 1, **{name.replace("/", "_"): 10 + n for n, name in enumerate(ODD_NAMES)}}
    for labels, _ in server.query('{__name__=~"collectd_pmdpulse_.+"}'):
        assert "pmdpulse" not in labels and "type" not in labels, labels
        assert labels["instance"] == "testhost" and labels["job"] == "pmdpulse"
        assert labels["switch"] == "default", labels
    text = prometheus.fetch(f"http://127.0.0.1:{daemon.web_port}/metrics")
    ours = "".join(line for line in text.splitlines(True) if "collectd_pmdpulse_" in line)
    done = subprocess.run(["promtool", "check", "metrics"], input=ours, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    # A rule that sends to a port that is not there.
    receiver.wait("PmdpulseDrops", "firing", reason="port_down")
    check_series(server)
    switch.command.text("del-flows")
    receiver.wait("PmdpulseDrops", "resolved", reason="port_down")
