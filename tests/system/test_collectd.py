# SPDX-License-Identifier: Apache-2.0
"""The plugin in the real collectd: configuration and metrics in every state of the switch."""

import os
import re
import signal
import socket
import time
import urllib.request

import pytest
import yaml

from lib import collectd
from lib.collectd import Collectd
from lib.wait import wait_for

pytestmark = pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing())

TOP = os.path.join(os.path.dirname(__file__), "../..")
READ_LIMIT_S = 0.05
ABSENT, UP, STOPPED, GONE, REFUSED = range(5)
STATES = {"UNUSED": 0, "ALIVE": 1, "DEAD": 2, "GONE": 3, "MISSING": 4, "DOZING": 5, "SLEEP": 6}
INTERVAL_S = 0.2
SWITCH_UP = ("default", "switch_up")
STATUS = ("default", "switch_status")


def types_of(prefix):
    """Names in the shipped types file that begin so."""
    path = os.path.join(TOP, "contrib/collectd/pmdpulse_types.db")
    with open(path, encoding="ascii") as file:
        return {line.split()[0] for line in file if line.startswith(prefix)}


@pytest.fixture
def start_collectd(processes, rundir, folder):
    def start(*options, **keywords):
        process = Collectd(rundir, folder, options, **keywords)
        processes.append(process)
        return process
    return start


def check_reads_are_quick(daemon):
    took = [read[key]["seconds"] for read in daemon.reads()
            for key in read if key[1] == "read_duration"]
    assert took and max(took) < READ_LIMIT_S, took


def state_is(daemon, lane, name):
    daemon.wait_value((f"default:{lane}", "thread_state"), lambda v: v == STATES[name])


# Configuration

def test_trial_run_without_a_switch(start_collectd):
    begin = time.monotonic()
    daemon = start_collectd(arguments=("-T",))
    assert daemon.wait() == 0, daemon.log()
    assert time.monotonic() - begin < 3
    assert "pmdpulse" not in daemon.err(), daemon.err()


def test_trial_run_beside_a_switch(start_collectd, start_publisher):
    start_publisher(lanes=["p1"])
    daemon = start_collectd(arguments=("-T",))
    assert daemon.wait() == 0, daemon.log()
    assert "ERROR" not in daemon.log().upper(), daemon.log()


@pytest.mark.parametrize("option, value", [
    ("Instance", '"a/b"'), ("Instance", '""'), ("Instance", '".x"'), ("Instance", '"a" "b"'),
    ("RunDir", '"relative/path"'),
    ("KeepaliveInterval", "0"), ("KeepaliveInterval", "-1"), ("KeepaliveInterval", '"50ms"'),
    ("KeepaliveInterval", "1e9"), ("KeepaliveInterval", '"nan"'),
    ("SendNotification", '"maybe"'), ("DispatchValues", "2"), ("IgnoreSelected", '"x"'),
    ("Thread", '"/(/"'), ("Thread", '""'),
    ("PublisherUser", '"no-such-user-here"'), ("PublisherUser", '"-1"'),
])
def test_bad_value_stops_the_start_and_is_named(start_collectd, option, value):
    daemon = start_collectd(f"{option} {value}", arguments=("-T",))
    assert daemon.wait() != 0, daemon.log()
    assert f"option `{option}'" in daemon.log(), daemon.log()
    if value.count('"') == 2:
        assert f"`{value.strip(chr(34))}'" in daemon.log(), daemon.log()


def test_unknown_option_is_told_and_passed_over(start_collectd):
    daemon = start_collectd('Colour "blue"', arguments=("-T",))
    assert daemon.wait() == 0, daemon.log()
    assert "pmdpulse plugin: Unknown option `Colour'." in daemon.log()


def test_all_options_are_taken(start_collectd, start_publisher):
    start_publisher(lanes=["p1", "p2"], instance="one")
    start_publisher(lanes=["q1"], instance="two", name="publisher2")
    daemon = start_collectd('Instance "one"', "KeepaliveInterval 0.25", "SendNotification false",
                            "DispatchValues true", 'Thread "/^p[0-9]$/"', 'Thread "x"',
                            "IgnoreSelected false", 'PublisherUser "root"')
    daemon.wait_value(("one:p2", "thread_state"), lambda v: v == STATES["ALIVE"])
    assert daemon.latest()["one", "switch_interval", ""]["seconds"] == 0.25
    assert not any(key[0].startswith("two") for key in daemon.latest())


def test_the_shipped_example(start_collectd, rundir):
    """As it is, and with every option in it switched on."""
    with open(os.path.join(TOP, "contrib/collectd/pmdpulse.conf"), encoding="ascii") as file:
        text = file.read()
    options = re.sub(r"^\t#(?=[A-Z]\w+ )", "\t", text, flags=re.M)
    assert options != text
    options = options.replace("/run/pmdpulse", rundir).replace('PublisherUser "pmdpulse"',
                                                               'PublisherUser "root"')
    for name, conf in (("plain", text), ("full", options)):
        daemon = start_collectd(extra=conf, arguments=("-T",), name=name)
        assert daemon.wait() == 0, daemon.log()
        assert "pmdpulse plugin:" not in daemon.log(), daemon.log()


def test_threads_can_be_left_out(start_collectd, start_publisher):
    start_publisher(lanes=["p1", "p2", "main"])
    daemon = start_collectd('Thread "/^p/"', "IgnoreSelected true")
    state_is(daemon, "main", "ALIVE")
    assert not any(key[0] in ("default:p1", "default:p2") for key in daemon.latest())


def test_without_values(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    daemon = start_collectd("DispatchValues false")
    daemon.wait_log("Initialization complete")
    publisher.do("stall p1 400")
    daemon.wait_notification(kind="pmd-stall", phase="clear")
    assert daemon.values() == []


# Metrics

def test_no_switch_is_a_value(start_collectd):
    daemon = start_collectd()
    daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    daemon.wait_value(STATUS, lambda v: v == ABSENT)
    daemon.wait_value(("default", "agent_up"), lambda v: v == 0)
    names = {key[1] for key in daemon.latest()}
    for prefix in ("switch_", "agent_", "incidents", "relay_", "notifications_"):
        assert types_of(prefix) <= names
    check_reads_are_quick(daemon)


def test_a_configured_instance_is_reported_before_it_exists(start_collectd):
    daemon = start_collectd('Instance "later"')
    daemon.wait_value(("later", "switch_up"), lambda v: v == 0)


def test_the_placeholder_ends_with_the_first_instance(start_collectd, start_publisher):
    daemon = start_collectd()
    daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    start_publisher(lanes=["p1"], instance="other")
    daemon.wait_value(("other", "switch_up"), lambda v: v == 1)
    wait_for(lambda: not any(key[0] == "default" for key in daemon.latest()), what="no default")


def test_every_value_of_a_running_switch(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"])
    publisher.do("port eth0 up")
    publisher.do("port eth1 down")
    daemon = start_collectd()
    daemon.wait_value(SWITCH_UP, lambda v: v == 1)
    state_is(daemon, "p2", "ALIVE")
    values = daemon.latest()
    for label in ("default:p1", "default:p2"):
        assert types_of("thread_") == {key[1] for key in values if key[0] == label}
        assert len([key for key in values if key[:2] == (label, "thread_drops")]) == 11
        assert 0 <= values[label, "thread_beat_age", ""]["seconds"] < 1
    assert types_of("port_") == {key[1] for key in values if key[0] == "default:eth0"}
    assert values["default:eth0", "port_link", ""]["value"] == 1
    assert values["default:eth1", "port_link", ""]["value"] == 0
    assert values["default", "switch_threads", "alive"]["value"] == 2
    assert values["default", "switch_interval", ""]["seconds"] == 0.05
    assert values["default", "switch_rss", ""]["bytes"] > 1e5
    assert 0 <= values["default", "switch_uptime", ""]["seconds"] < 60
    publisher.do("port eth1 unknown")
    daemon.wait_value(("default:eth1", "port_link"), lambda v: v == -1)
    check_reads_are_quick(daemon)


def test_beats_and_buckets_grow(start_collectd, start_publisher):
    start_publisher(lanes=["p1"])
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    first = len(daemon.reads())
    wait_for(lambda: len(daemon.reads()) > first + 5, what="six reads")
    reads = daemon.reads()[first:]
    beats = [read["default:p1", "thread_beats", ""]["value"] for read in reads]
    assert beats == sorted(beats) and beats[-1] > beats[0] + 100, beats
    for read in reads:
        counts = [(float(key[2]), value["value"]) for key, value in read.items()
                  if key[:2] == ("default:p1", "thread_gap_bucket")]
        counts.sort()
        assert [c for _, c in counts] == sorted(c for _, c in counts)


def test_a_stall_is_seen_while_it_lasts_and_after(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"])
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    before = daemon.latest()
    publisher.do("stall p1 1500")
    state_is(daemon, "p1", "DEAD")
    label = "default:p1"
    values = daemon.latest()
    assert values[label, "thread_stalls", ""]["value"] == \
        before[label, "thread_stalls", ""]["value"] + 1
    assert values[label, "thread_stalled", ""]["seconds"] >= 0.1
    assert values["default:p2", "thread_state", ""]["value"] == STATES["ALIVE"]
    begin, end = publisher.done("p1")[:2]
    state_is(daemon, "p1", "ALIVE")
    values = daemon.latest()
    assert values[label, "thread_stalls", ""]["value"] == \
        before[label, "thread_stalls", ""]["value"] + 1
    took = (end - begin) / 1e9
    grown = values[label, "thread_stalled", ""]["seconds"] - \
        before[label, "thread_stalled", ""]["seconds"]
    assert grown == pytest.approx(took, abs=0.02)
    assert values[label, "thread_last_stall", ""]["seconds"] == pytest.approx(took, abs=0.02)
    check_reads_are_quick(daemon)


def test_announced_states(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2", "p3"])
    daemon = start_collectd()
    publisher.do("sleep p1")
    state_is(daemon, "p1", "SLEEP")
    assert daemon.latest()["default:p1", "thread_beat_age", ""]["seconds"] is None
    publisher.do("wake p1")
    state_is(daemon, "p1", "ALIVE")
    publisher.do("doze p2 800 5000")
    state_is(daemon, "p2", "DOZING")
    state_is(daemon, "p2", "ALIVE")
    publisher.do("die p3")
    state_is(daemon, "p3", "GONE")
    publisher.do("keepalive off")
    state_is(daemon, "p1", "UNUSED")
    daemon.wait_value(("default", "switch_keepalive"), lambda v: v == 0)


def test_clean_stop(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    publisher.quit()
    daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    daemon.wait_value(STATUS, lambda v: v == STOPPED)
    state_is(daemon, "p1", "UNUSED")
    check_reads_are_quick(daemon)


def test_killed_switch(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    publisher.do("port eth0 up")
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    publisher.kill()
    daemon.wait_value(STATUS, lambda v: v == GONE)
    state_is(daemon, "p1", "GONE")
    values = daemon.latest()
    assert values["default", "switch_up", ""]["value"] == 0
    assert values["default:eth0", "port_link", ""]["value"] == -1
    assert values["default:p1", "thread_beats", ""]["value"] > 0
    check_reads_are_quick(daemon)


def test_stopped_process(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    publisher.pause()
    state_is(daemon, "p1", "DEAD")
    daemon.wait_value(("default:p1", "thread_beat_age"), lambda v: v > 1, unit="seconds")
    check_reads_are_quick(daemon)
    publisher.resume()
    state_is(daemon, "p1", "ALIVE")


def test_five_restarts(start_collectd, start_publisher, rundir):
    daemon = start_collectd(interval=INTERVAL_S)
    daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    for turn in range(5):
        publisher = start_publisher(lanes=["p1"], name=f"publisher{turn}")
        up = time.time()
        wait_for(lambda: any(v["type"] == "thread_state" and v["values"]["value"] == 1
                             for v in daemon.values() if v["time"] > up), what="a good value")
        good = min(v["time"] for v in daemon.values() if v["time"] > up and
                   v["type"] == "thread_state" and v["values"]["value"] == 1)
        assert good - up < 2 * INTERVAL_S, f"turn {turn}"
        if turn % 2:
            publisher.kill()
        else:
            publisher.quit()
        daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    daemon.wait_value(("default", "switch_restarts"), lambda v: v == 4)
    check_reads_are_quick(daemon)


@pytest.mark.parametrize("content", [b"", b"x" * 100, os.urandom(200000), b"\0" * 4096],
                         ids=["empty", "short", "garbage", "zeros"])
def test_a_segment_that_is_none(start_collectd, start_publisher, rundir, content):
    with open(os.path.join(rundir, "default.ring"), "wb") as file:
        file.write(content)
    daemon = start_collectd()
    daemon.wait_value(STATUS, lambda v: v == REFUSED)
    daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    assert daemon.log().count("its segment can't be read") == 1
    check_reads_are_quick(daemon)
    os.unlink(os.path.join(rundir, "default.ring"))
    daemon.wait_value(STATUS, lambda v: v == ABSENT)
    start_publisher(lanes=["p1"])
    daemon.wait_value(SWITCH_UP, lambda v: v == 1)


def test_a_segment_truncated_while_it_is_read(start_collectd, start_publisher, rundir):
    publisher = start_publisher(lanes=["p1"])
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    publisher.pause()  # which would fault on its own mapping
    os.truncate(os.path.join(rundir, "default.ring"), 600)
    daemon.wait_value(SWITCH_UP, lambda v: v == 0)
    publisher.kill()
    assert daemon.is_alive()
    check_reads_are_quick(daemon)


def test_odd_port_names_reach_prometheus(start_collectd, start_publisher):
    publisher = start_publisher(lanes=["pmd-c01/id:2"])
    names = ["a.b", "a-b", 'a"b', "a\\b", "ü", "a/b", "x" * 63]
    for name in names:
        publisher.do(f"port {name} up")
    labels = {"default:" + name.replace("/", "_") for name in names}
    daemon = start_collectd()
    daemon.wait_value((f"default:{names[-1]}", "port_link"), lambda v: v == 1)
    found = {key[0] for key in daemon.latest() if key[1] == "port_link"}
    assert found == labels
    state_is(daemon, "pmd-c01_id:2", "ALIVE")


def test_shutdown_is_quick(start_collectd, start_publisher):
    start_publisher(lanes=["p1"])
    daemon = start_collectd()
    state_is(daemon, "p1", "ALIVE")
    begin = time.monotonic()
    assert daemon.stop(signal.SIGTERM) == 0
    # collectd itself waits for its read threads, which sleep up to one interval.
    assert time.monotonic() - begin < 1 + INTERVAL_S


# Prometheus

def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def scrape(port):
    """{(name, pmdpulse label, type label or None): value}, and {name: kind} of our metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        text = reply.read().decode("utf-8")
    samples, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE collectd_pmdpulse_"):
            kinds[line.split()[2]] = line.split()[3]
        found = re.match(r'(collectd_pmdpulse_\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)', line)
        if not found:
            assert not line.startswith("collectd_pmdpulse_"), line
            continue
        labels = {name: re.sub(r"\\(.)", r"\1", value) for name, value in
                  re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2])}
        assert labels.pop("instance") == "testhost", line
        samples[found[1], labels.pop("pmdpulse"), labels.pop("type", None)] = float(found[3])
        assert not labels, line
    return samples, kinds


def test_names_and_labels_in_prometheus(start_collectd, start_publisher):
    if not os.path.exists("/usr/lib/collectd/write_prometheus.so"):
        pytest.skip("collectd has no write_prometheus")
    publisher = start_publisher(lanes=["pmd-c01/id:2"])
    names = ["a.b", "a-b", 'a"b', "a\\b", "ü", "a/b", "x" * 63]
    for name in names:
        publisher.do(f"port {name} up")
    port = free_port()
    daemon = start_collectd(extra=f"""
PluginDir "/usr/lib/collectd"
LoadPlugin write_prometheus
<Plugin write_prometheus>
    Host "127.0.0.1"
    Port "{port}"
</Plugin>""")
    state_is(daemon, "pmd-c01_id:2", "ALIVE")
    samples, kinds = wait_for(lambda: [s for s in [scrape(port)] if s[0]], what="samples")[0]
    prefix = "collectd_pmdpulse_"
    thread = "default:pmd-c01_id:2"
    assert samples[prefix + "switch_up", "default", None] == 1
    assert samples[prefix + "thread_state", thread, None] == STATES["ALIVE"]
    assert samples[prefix + "thread_beats_total", thread, None] > 0
    assert (prefix + "thread_drops_packets_total", thread, "no_rule") in samples
    assert (prefix + "thread_gap_bucket_total", thread, "+Inf") in samples
    assert (prefix + "thread_stalled_seconds", thread, None) in samples
    for name in names:
        label = "default:" + name.replace("/", "_")
        assert samples[prefix + "port_link", label, None] == 1
        assert (prefix + "port_rx_bytes_total", label, None) in samples
    with open(os.path.join(TOP, "docs/metrics.md"), encoding="utf-8") as file:
        documented = dict(re.findall(r"^\| `(collectd_\w+)` \| (\w+) \|", file.read(), re.M))
    assert kinds == {name: "counter" if kind == "count" else "gauge"
                     for name, kind in documented.items()}


def test_relabelling_of_the_scrape_configuration():
    """The rules of prometheus.yml, applied as Prometheus does, give the labels of docs/metrics.md."""
    with open(os.path.join(TOP, "contrib/prometheus/prometheus.yml"), encoding="utf-8") as file:
        rules = yaml.safe_load(file)["scrape_configs"][0]["metric_relabel_configs"]

    def relabel(**labels):
        for rule in rules:
            found = re.fullmatch(rule["regex"], ";".join(labels.get(name, "")
                                                         for name in rule["source_labels"]))
            if found:
                labels[rule["target_label"]] = found[1] if "replacement" not in rule else ""
        return {key: value for key, value in labels.items() if value and key != "__name__"}

    assert relabel(__name__="collectd_pmdpulse_switch_up", pmdpulse="a.b") == {"switch": "a.b"}
    assert relabel(__name__="collectd_pmdpulse_thread_drops_packets_total",
                   pmdpulse="a:pmd-c01_id:2", type="mtu") == {
        "switch": "a", "thread": "pmd-c01_id:2", "reason": "mtu"}
    assert relabel(__name__="collectd_pmdpulse_port_link", pmdpulse="a:x:y") == {
        "switch": "a", "port": "x:y"}
    assert relabel(__name__="collectd_pmdpulse_thread_gap_bucket_total", pmdpulse="a:p",
                   type="+Inf") == {"switch": "a", "thread": "p", "le": "+Inf"}
