# SPDX-License-Identifier: Apache-2.0
"""An alarm's whole way on one clean machine: our packages and Debian's, set up as the documents say, as units.

Differs from what is shipped only in intervals (a second instead of ten, windows of seconds instead of
minutes), in the receiver's address, and in how soon systemd starts collectd again.
"""

import itertools
import re
import time

import pytest

from lib import units
from lib.prometheus import Posts, Queries
from lib.units import AGENT, COLLECTD, SWITCH, false_alarms, last_seq, told
from machine import MONITORING, README

PROMETHEUS, ALERTMANAGER = "prometheus", "prometheus-alertmanager"
ALL = (*units.UNITS, PROMETHEUS, ALERTMANAGER)
HOST = "switch1.example"  # as collectd calls it, and so Prometheus
RECEIVER, RECEIVER_PORT, POSTED = "receiver", 8080, "/run/posted"
SETTLED_S = 60
SOON_S = 4  # in which a value is read, scraped, judged and posted
PLUGIN, RULES = "/etc/collectd/collectd.conf.d/pmdpulse.conf", "/etc/prometheus/pmdpulse.rules.yml"
# Each replaces something, or the shipped file has changed.
EDITS = {
    PLUGIN: [("Interval 10", "Interval 1")],
    "/etc/prometheus/prometheus.yml": [("interval: 10s", "interval: 1s"), ("localhost:9103", f"{HOST}:9103")],
    RULES: [("[2m]", "[8s]"), ("[5m]", "[12s]")],
    "/etc/prometheus/alertmanager.yml": [
        ("group_wait: 10s", "group_wait: 0s"), ("group_wait: 1s", "group_wait: 0s"),
        ("group_interval: 1m", "group_interval: 1s"), ("group_interval: 10s", "group_interval: 1s"),
        ("#webhook_configs: [{url: 'http://localhost:8080/page'}]",
         f"webhook_configs: [{{url: 'http://localhost:{RECEIVER_PORT}/page'}}]"),
        ("#email_configs: [{to: 'operators@localhost'}]",
         f"webhook_configs: [{{url: 'http://localhost:{RECEIVER_PORT}/mail'}}]")],
}
# What the agent tells and the alerts that this makes true: the machine's other work may do it to us.
TRUE_ALERTS = {"agent-late": {"PmdpulseAgentLate"}, "pmd-starved": {"PmdpulseStarved"},
               "pmd-stall": {"PmdpulseStall", "PmdpulseStallCause"}}
RESTARTED = {"PmdpulseSwitchRestarts"}  # true here: these tests start it again and again


class Server(Queries):
    """The machine's Prometheus, asked from inside."""

    def __init__(self, machine):
        self.machine = machine

    def fetch(self, path):
        return self.machine.output("curl", "-sSf", f"http://localhost:9090/{path}")

    def fired(self, since):
        """The names of the alerts that fired since this time; every evaluation is looked at."""
        found = self.query_range('ALERTS{alertstate="firing"}', since, time.time())
        return {labels["alertname"] for labels, _ in found}


class Received(Posts):
    """What the test's receiver got, after those of before."""

    def __init__(self, machine):
        self.machine, self.n_before = machine, len(machine.posts(POSTED))

    @property
    def alerts(self):
        posts = self.machine.posts(POSTED)[self.n_before:]
        return [alert for post in posts for alert in self.alerts_of(post["path"], post["body"])]


def edit(machine, path):
    """As an operator would."""
    text = machine.read(path)
    for old, new in EDITS[path]:
        assert old in text, f"{path} has no {old} any more"
        text = text.replace(old, new)
    machine.run("rm", path)  # it may be a link to the package's file
    machine.write(path, text)


def follow(machine, block):
    """Type the lines of a document."""
    for line in block:
        words = line.split()
        if words[0] == "editor":
            edit(machine, words[1])
        elif words[0] == "curl":
            machine.wait(lambda text=line: re.search(r"\} 1 \d+$", machine.script(text).stdout, re.M),
                         SETTLED_S, line)
        else:
            machine.do(line, timeout=300)


@pytest.fixture(scope="module", name="machine")
def machine_fixture(booted):
    follow(booted, README[0])
    follow(booted, README[1])
    follow(booted, MONITORING[0])
    edit(booted, PLUGIN)
    # Debian's unit waits ten seconds before it starts it again.
    booted.write("/etc/systemd/system/collectd.service.d/soon.conf",
                 "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=1\n")
    booted.do("apt-get install python3")
    booted.take_posts(RECEIVER, RECEIVER_PORT, POSTED)
    booted.systemctl("daemon-reload")
    booted.restart(COLLECTD)
    *lines, start = MONITORING[1]
    follow(booted, lines)
    edit(booted, RULES)
    follow(booted, [start])
    settle(booted)
    return booted


def troubles(machine, server):
    """What is not well, in words; nothing on a machine where all is."""
    for unit in (*ALL, RECEIVER):
        if not machine.is_active(unit):
            return machine.describe(unit)
    now = units.status(machine)
    if not now or (now["switch"]["state"], now["agent"]["state"]) != ("up", "up") or \
            now["threads"]["alive"] < 1 or now["open_incidents"] or not (now["collectd"] or {}).get("relaying"):
        return f"status: {now}"
    for path in ("9090/-/ready", "9093/-/ready"):
        if machine.run("curl", "-sf", f"http://localhost:{path}", check=False).returncode != 0:
            return f"no answer: {path}"
    for metric in ("up{job='pmdpulse'}", "collectd_pmdpulse_switch_up", "collectd_pmdpulse_agent_up",
                   "collectd_pmdpulse_relay_active"):
        if server.query(metric)[:1] == [] or server.query(metric)[0][1] != 1:
            return f"{metric}: {server.query(metric)}"
    firing = server.firing() - RESTARTED
    return f"firing: {firing}" if firing else ""


def settle(machine, for_s=0):
    """Until all is well, and has stayed so for that long by the times of what Prometheus scraped."""
    server, found, well_since = Server(machine), "", 0

    def is_well():
        nonlocal found, well_since
        found = troubles(machine, server)
        well_since = 0 if found else well_since or time.time()
        return not found and server.query("timestamp(up{job='pmdpulse'})")[0][1] >= well_since + for_s
    machine.wait(is_well, SETTLED_S, lambda: found, every=0.2)


class Since:
    """Who accused whom since now."""

    def __init__(self, machine):
        self.machine, self.server, self.received = machine, Server(machine), Received(machine)
        self.seq, self.time, self.pids = last_seq(machine), time.time(), machine.main_pids(*ALL)

    def assert_only(self, alerts=(), kinds=()):
        """No accusation but these, of the agent, of Prometheus, or at the receiver, till now or soon."""
        settle(self.machine, SOON_S)
        events = told(self.machine, self.seq)
        assert not false_alarms(self.machine, self.seq, kinds), events
        true = set(alerts) | RESTARTED
        for event in events:
            true |= TRUE_ALERTS.get(event["kind"], set())
        fired = self.server.fired(self.time)
        posted = {labels["alertname"] for _, status, labels, _ in self.received.alerts if status == "firing"}
        print(f"told {[(e['kind'], e['phase']) for e in events]}; fired {fired}; posted {posted}")
        assert fired | posted <= true, (fired, posted, events)

    def assert_same_but(self, *names):
        now = self.machine.main_pids(*ALL)
        for unit in ALL:
            assert (now[unit] != self.pids[unit]) == (unit in names), (unit, self.pids, now)


@pytest.fixture
def since(machine):
    """What the test does begins on a machine where all is well."""
    settle(machine)
    started = Since(machine)
    yield started
    print(f"posted:\n{started.received.describe()}")


def test_debian_runs_them_as_units(machine):
    """With Debian's programs, and nothing active from the package by itself."""
    for unit, user in ((PROMETHEUS, "prometheus"), (ALERTMANAGER, "prometheus")):
        assert machine.output("stat", "-c", "%U", f"/proc/{machine.main_pid(unit)}") == user
        assert machine.show(unit, "FragmentPath") == f"/lib/systemd/system/{unit}.service"
        assert machine.show(unit, "Restart") == "on-failure"
    labels = Server(machine).query("collectd_pmdpulse_switch_up")[0][0]
    assert labels["instance"] == HOST and labels["switch"] == "default" and labels["job"] == "pmdpulse"


@pytest.mark.parametrize("order", list(itertools.permutations(units.UNITS)), ids="-".join)
def test_start_order(machine, since, order):
    machine.stop(*units.UNITS)
    for unit in order:
        machine.systemctl("--job-mode=ignore-dependencies", "start", unit)
        assert machine.is_active(unit), machine.describe(unit)
    since.assert_only()
    since.assert_same_but(*units.UNITS)


@pytest.mark.parametrize("unit", ALL)
def test_killed(machine, since, unit):
    packets = units.received(machine)
    machine.kill(unit)
    machine.wait_back(unit, since.pids[unit], SETTLED_S)
    if unit == SWITCH:
        for status in ("firing", "resolved"):
            since.received.wait("PmdpulseSwitchGone", status, SETTLED_S, instance=HOST, switch="default")
        assert [e["phase"] for e in told(machine, since.seq, kind="switch-gone")] == ["raise", "clear"]
        since.assert_only(["PmdpulseSwitchGone"], ["switch-gone"])
    else:
        since.assert_only()
        assert units.received(machine) > packets
    since.assert_same_but(unit)


def test_stall_reaches_the_receiver(machine, since):
    threads = machine.pmdpulse("pmd-health-show")["threads"]
    thread = next(each["name"] for each in threads if each["name"].startswith("pmd-c01"))
    label = thread.replace("/", "_")  # collectd takes no slash in an identifier
    assert machine.script(README[2][0]).returncode == 124, "timeout ended the hog"
    wanted = {"job": "pmdpulse", "instance": HOST, "switch": "default", "thread": label}
    cause = {**wanted, "cause": "preempted", "culprit": "sh"}
    stall = since.received.wait("PmdpulseStall", "firing", severity="critical", **wanted)
    reason = since.received.wait("PmdpulseStallCause", "firing", severity="warning", **cause)
    # Each went where the routes send it, and leads to the part of the runbook on this machine.
    assert (stall[0], reason[0]) == ("page", "mail")
    for _, _, labels, annotations in (stall, reason):
        path, anchor = annotations["runbook_url"].removeprefix("file://").split("#")
        assert f"### {labels['alertname']}\n" in machine.read(path) and anchor == labels["alertname"].lower()
    assert label in stall[3]["summary"] and "preempted by sh" in reason[3]["summary"]
    since.received.wait("PmdpulseStall", "resolved", SETTLED_S, **wanted)
    since.received.wait("PmdpulseStallCause", "resolved", SETTLED_S, **cause)
    assert {"PmdpulseStall", "PmdpulseStallCause"} <= since.server.fired(since.time)
    clear = told(machine, since.seq, kind="pmd-stall", phase="clear", thread=thread)
    assert [e for e in clear if e["cause"] == "preempted" and e["culprit"]["comm"] == "sh"], clear
    since.assert_only()
    since.assert_same_but()


def test_watchdog_ends_a_stopped_agent(machine, since):
    """Meanwhile the switch forwards and Prometheus scrapes, both without a gap."""
    place = machine.journal_end()
    samples = units.sampled_until_back(machine)
    until = time.time()
    assert any("Watchdog timeout" in e["MESSAGE"] for e in machine.journal(unit=AGENT, after=place))
    window = f"[{until - since.time:.0f}s]"
    took_s = samples[-1][0] - samples[0][0]
    assert since.server.query(f"min_over_time(up{{job='pmdpulse'}}{window})", until)[0][1] == 1
    assert since.server.query(f"count_over_time(up{{job='pmdpulse'}}{window})", until)[0][1] > took_s - 2
    # Prometheus saw the packets grow from scrape to scrape.
    seen = since.server.query(f"changes(collectd_pmdpulse_thread_rx_packets_total{window})", until)
    assert max(value for _, value in seen) > took_s - 3, seen
    since.assert_only()
    since.assert_same_but(AGENT)
