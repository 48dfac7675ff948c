# SPDX-License-Identifier: Apache-2.0
"""Notifications of the plugin in the real collectd: relay, own detection and the way back."""

import json
import os
import signal
import subprocess
import time
from collections import Counter

import jsonschema
import pytest

from lib import collectd
from lib.collectd import Collectd
from lib.process import built
from lib.ves import parse
from lib.wait import holds_for, wait_for

pytestmark = pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing())

SCHEMA = os.path.join(os.path.dirname(__file__), "../data/CommonEventFormat_30.2.1_ONAP.json")
FAILURE, WARNING, OKAY = 1, 2, 4
INTERVAL_MS = 100  # a stall is 200 ms: more than a busy machine takes from a thread
RELAYING = ("default", "relay_active")


@pytest.fixture
def start_collectd(processes, rundir, folder):
    def start(*options, **keywords):
        process = Collectd(rundir, folder, options, **keywords)
        processes.append(process)
        return process
    return start


@pytest.fixture
def relay(start_agent, start_publisher, start_collectd):
    """(publisher with p1 and p2, agent, collectd that relays)"""
    publisher = start_publisher(lanes=["p1", "p2"], interval=INTERVAL_MS)
    agent = start_agent()
    agent.wait_alive(2)
    daemon = start_collectd()
    daemon.wait_value(RELAYING, lambda v: v == 1)
    return publisher, agent, daemon


def check_once(daemon):
    """No id is raised or cleared twice, and none is cleared before it is raised."""
    order = [(n["meta"]["id"], n["meta"]["phase"]) for n in daemon.notifications()]
    doubled = [key for key, count in Counter(order).items() if key[1] != "update" and count > 1]
    assert not doubled, daemon.describe()
    for id_, phase in order:
        if phase != "raise" and (id_, "raise") in order:
            assert order.index((id_, "raise")) <= order.index((id_, phase)), daemon.describe()


def check_like_the_agent(daemon, agent, since=0):
    """What collectd got is what the agent told, event for event, but for attaches of before it followed."""
    def told():
        known = {n["meta"]["id"] for n in daemon.notifications()}
        return [(e["id"], e["phase"], e["seq"]) for e in agent.events.all()[since:]
                if e["kind"] != "switch-back" or e["id"] in known]

    def got():
        return [(n["meta"]["id"], n["meta"]["phase"], n["meta"]["seq"])
                for n in daemon.notifications() if not n["meta"]["id"].endswith("-c")]

    # The agent may tell more meanwhile (that it is no longer late, say): look at both each time.
    wait_for(lambda: got() == told(), what=lambda: f"as the agent:\n{told()}\n{got()}\n{daemon.describe()}")


def test_relayed_incident_has_all_fields(relay):
    publisher, agent, daemon = relay
    publisher.do("stall p1 600")
    raised = daemon.wait_notification(kind="pmd-stall", phase="raise")
    cleared = daemon.wait_notification(kind="pmd-stall", phase="clear")
    event = agent.events.wait(kind="pmd-stall", phase="clear")
    assert raised["meta"]["id"] == cleared["meta"]["id"] == event["id"]
    assert raised["severity"] == FAILURE and cleared["severity"] == OKAY
    for notification in (raised, cleared):
        assert notification["host"] == "testhost"
        assert notification["object"] == "default:p1"
        assert notification["type"] == "incidents" and notification["detail"] == "pmd-stall"
        assert 0 < len(notification["message"].encode()) < 256
        assert "\n" not in notification["message"]
        assert notification["meta"]["thread"] == "p1"
        assert notification["meta"]["tid"] == event["thread"]["tid"]
    assert cleared["meta"]["seq"] == event["seq"]
    assert cleared["meta"]["cause"] == event["cause"]
    assert cleared["meta"]["duration_s"] == pytest.approx(event["duration_s"])
    assert cleared["meta"]["started_at"] == event["started_at"]
    assert time.time() - 60 < cleared["time"] <= time.time()
    check_like_the_agent(daemon, agent)


def check_ves(daemon):
    """Every notification carries a valid event; ids of events stay the same from raise to clear."""
    with open(SCHEMA, encoding="utf-8") as file:
        validator = jsonschema.Draft4Validator(json.load(file))
    ids = {}
    for notification in daemon.notifications():
        text = notification["meta"]["ves"]
        assert len(text.encode()) <= 3072
        event = parse(text)
        errors = [error.message for error in validator.iter_errors(event)]
        assert "event" in event and not errors, errors
        header = event["event"]["commonEventHeader"]
        assert header["sourceName"] == "testhost"
        assert header["sequence"] == notification["meta"]["seq"]
        start = ids.setdefault(notification["meta"]["id"],
                               (header["eventId"], header["startEpochMicrosec"]))
        assert start == (header["eventId"], header["startEpochMicrosec"])
        is_normal = event["event"]["faultFields"]["eventSeverity"] == "NORMAL"
        assert is_normal == (notification["severity"] == OKAY)
    return ids


def test_ves_is_valid_and_whole(relay):
    publisher, _, daemon = relay
    publisher.do("port eth0 up")
    publisher.do("stall p1 500")
    daemon.wait_notification(kind="pmd-stall", phase="clear")
    publisher.do("port eth0 down")
    daemon.wait_notification(kind="link", phase="raise")
    publisher.kill()
    daemon.wait_notification(kind="switch-gone", phase="raise")
    assert len(check_ves(daemon)) >= 3


def test_metrics_of_incidents(relay):
    publisher, _, daemon = relay
    publisher.do("stall p1 800")
    daemon.wait_value(("default", "incidents_open"), lambda v: v == 1, detail="pmd-stall")
    daemon.wait_value(("default", "incidents"), lambda v: v == 1, detail="pmd-stall")
    daemon.wait_value(("default", "incidents_open"), lambda v: v == 0, detail="pmd-stall")
    values = daemon.latest()
    cleared = {key[2]: value["value"] for key, value in values.items()
               if key[1] == "incidents_cause"}
    assert sum(cleared.values()) == 1
    time_s = sum(value["seconds"] for key, value in values.items() if key[1] == "incidents_time")
    assert time_s == pytest.approx(0.8, abs=0.05)
    thread = daemon.wait_value(("default:p1", "thread_incidents"), lambda v: v == 1,
                               detail=next(name for name, n in cleared.items() if n))
    assert thread == 1
    assert not any(value["value"] for key, value in daemon.latest().items()
                   if key[:2] == ("default:p2", "thread_incidents"))
    assert values["default", "agent_up", ""]["value"] == 1
    assert values["default", "agent_events", ""]["value"] >= 2
    assert values["default", "notifications_lost", ""]["value"] == 0
    daemon.wait_value(("default", "notifications_sent"),
                      lambda v: v == len(daemon.notifications()))


def fall_back(daemon):
    gone = daemon.wait_notification(kind="agent-gone", phase="raise")
    daemon.wait_value(RELAYING, lambda v: v == 0)
    assert gone["severity"] == WARNING and gone["meta"]["id"].endswith("-c")
    return gone


def own_stall(publisher, daemon, ms=3000):
    """Raise one incident of the plugin's own, which is still open on return."""
    before = len(own_raises(daemon))
    publisher.do(f"stall p1 {ms}")
    wait_for(lambda: len(own_raises(daemon)) > before, what=daemon.describe)
    return own_raises(daemon)[-1]["meta"]["id"]


def own_raises(daemon):
    return [n for n in daemon.notifications(kind="pmd-stall", phase="raise")
            if n["meta"]["id"].endswith("-c")]


def test_agent_killed_and_back(relay, start_agent):
    publisher, agent, daemon = relay
    publisher.do("stall p2 500")
    daemon.wait_notification(kind="pmd-stall", phase="clear")
    agent.kill()
    gone = fall_back(daemon)
    own = own_stall(publisher, daemon)
    back = start_agent(name="agent2")
    cleared = daemon.wait_notification(id=own, phase="clear")
    daemon.wait_notification(id=gone["meta"]["id"], phase="clear")
    assert cleared["severity"] == OKAY
    publisher.done("p1")
    # The agent's own incident for the same stall, or a later one: relayed after the clear.
    publisher.do("stall p1 500")
    wait_for(lambda: back.events.all(kind="pmd-stall", phase="clear", thread="p1"), what="agent2")
    relayed = [n for n in daemon.notifications() if not n["meta"]["id"].endswith("-c")]
    last = back.events.wait(kind="pmd-stall", phase="clear", thread="p1")
    daemon.wait_notification(id=last["id"], phase="clear")
    times = {n["meta"]["id"]: n["received_ns"] for n in relayed}
    assert all(t < gone["received_ns"] or t > cleared["received_ns"] for t in times.values())
    check_once(daemon)
    check_ves(daemon)
    assert daemon.latest()["default", "relay_events_lost", ""]["value"] == 0


def test_agent_suspended(relay):
    publisher, agent, daemon = relay
    agent.pause()
    gone = fall_back(daemon)
    own = own_stall(publisher, daemon, 500)
    daemon.wait_notification(id=own, phase="clear")
    agent.resume()
    daemon.wait_notification(id=gone["meta"]["id"], phase="clear")
    daemon.wait_value(RELAYING, lambda v: v == 1)
    publisher.do("stall p2 500")
    daemon.wait_notification(kind="pmd-stall", phase="clear", thread="p2")
    check_once(daemon)
    check_like_the_agent(daemon, agent)


def test_stall_between_the_agents_death_and_its_being_noticed(relay):
    publisher, agent, daemon = relay
    agent.kill()
    publisher.do("stall p1 500")
    own = wait_for(lambda: own_raises(daemon), what=daemon.describe)[0]
    assert own["meta"]["thread"] == "p1"
    cleared = daemon.wait_notification(id=own["meta"]["id"], phase="clear")
    assert cleared["meta"]["duration_s"] == pytest.approx(0.5, abs=0.1)
    check_once(daemon)


def test_five_agents_one_after_the_other(relay, start_agent):
    publisher, agent, daemon = relay
    for turn in range(5):
        publisher.do("stall p1 500")
        daemon.wait_notification(kind="pmd-stall", phase="clear", count=turn + 1)
        agent.stop()
        agent = start_agent(name=f"agent{turn}")
        agent.wait_alive(2)
    check_once(daemon)
    assert not own_raises(daemon)


def test_agent_restarted_while_an_incident_is_open(relay, start_agent):
    publisher, agent, daemon = relay
    publisher.do("stall p1 4000")
    raised = daemon.wait_notification(kind="pmd-stall", phase="raise")
    agent.kill()
    start_agent(name="agent2")
    daemon.wait_notification(id=raised["meta"]["id"], phase="clear")
    check_once(daemon)


def test_no_agent_at_all(start_publisher, start_collectd):
    publisher = start_publisher(lanes=["p1"], interval=INTERVAL_MS)
    daemon = start_collectd()
    gone = fall_back(daemon)
    own = own_stall(publisher, daemon, 600)
    cleared = daemon.wait_notification(id=own, phase="clear")
    assert cleared["meta"]["duration_s"] == pytest.approx(0.6, abs=0.1)
    publisher.kill()
    switch = daemon.wait_notification(kind="switch-gone", phase="raise")
    assert switch["severity"] == FAILURE
    assert not daemon.notifications(id=gone["meta"]["id"], phase="clear")
    check_once(daemon)
    assert len(check_ves(daemon)) >= 3


def test_no_agent_and_no_switch_is_silent(start_collectd):
    daemon = start_collectd()
    daemon.wait_value(("default", "switch_up"), lambda v: v == 0)
    holds_for(lambda: not daemon.notifications(), 2, daemon.describe)


def test_open_incident_is_raised_at_the_start_and_history_is_not(
        start_publisher, start_agent, start_collectd):
    publisher = start_publisher(lanes=["p1", "p2"], interval=INTERVAL_MS)
    agent = start_agent()
    agent.wait_alive(2)
    publisher.do("stall p2 500")
    history = agent.events.wait(kind="pmd-stall", phase="clear")
    publisher.do("stall p1 5000")
    raised = agent.events.wait(kind="pmd-stall", phase="raise", thread="p1")
    daemon = start_collectd()
    daemon.wait_notification(id=raised["id"], phase="raise")
    daemon.wait_notification(id=raised["id"], phase="clear")
    assert not daemon.notifications(id=history["id"])
    check_once(daemon)


def test_two_instances(start_publisher, start_agent, start_collectd):
    publishers, agents = {}, {}
    for name in ("one", "two"):
        publishers[name] = start_publisher(lanes=["p1"], interval=INTERVAL_MS, instance=name,
                                           name="publisher-" + name)
        agents[name] = start_agent(instance=name, name="agent-" + name)
    daemon = start_collectd()
    for name, agent in agents.items():
        agent.wait_alive(1)
        daemon.wait_value((name, "relay_active"), lambda v: v == 1)
    publishers["two"].do("stall p1 500")
    cleared = daemon.wait_notification(kind="pmd-stall", phase="clear")
    assert cleared["object"] == "two:p1" and cleared["meta"]["instance"] == "two"
    daemon.wait_value(("two", "incidents"), lambda v: v == 1, detail="pmd-stall")
    agents["two"].kill()
    gone = daemon.wait_notification(kind="agent-gone", phase="raise")
    assert gone["object"] == "two"
    daemon.wait_value(("two", "relay_active"), lambda v: v == 0)
    assert daemon.latest()["one", "relay_active", ""]["value"] == 1
    assert not daemon.notifications(instance="one")


def test_order_of_starts_with_collectd_first(start_collectd, start_agent, start_publisher):
    daemon = start_collectd()
    daemon.wait_value(("default", "switch_up"), lambda v: v == 0)
    agent = start_agent()
    daemon.wait_value(RELAYING, lambda v: v == 1)
    publisher = start_publisher(lanes=["p1"], interval=INTERVAL_MS)
    agent.wait_alive(1)
    publisher.do("stall p1 500")
    daemon.wait_notification(kind="pmd-stall", phase="clear")
    check_like_the_agent(daemon, agent)
    assert not daemon.notifications(kind="agent-gone")


def test_notifications_can_be_switched_off(start_publisher, start_agent, start_collectd):
    publisher = start_publisher(lanes=["p1"], interval=INTERVAL_MS)
    agent = start_agent()
    agent.wait_alive(1)
    daemon = start_collectd("SendNotification false")
    daemon.wait_value(("default", "agent_up"), lambda v: v == 1)
    publisher.do("stall p1 500")
    daemon.wait_value(("default", "incidents"), lambda v: v == 1, detail="pmd-stall")
    assert not daemon.notifications()


def test_unselected_threads_are_not_told(start_publisher, start_agent, start_collectd):
    publisher = start_publisher(lanes=["p1", "p2"], interval=INTERVAL_MS)
    agent = start_agent()
    agent.wait_alive(2)
    daemon = start_collectd('Thread "p2"')
    daemon.wait_value(RELAYING, lambda v: v == 1)
    publisher.do("stall p1 500")
    publisher.do("stall p2 500")
    daemon.wait_notification(kind="pmd-stall", phase="clear", thread="p2")
    assert not daemon.notifications(thread="p1")


def test_slow_receiver_holds_up_neither_reads_nor_looks(relay):
    publisher, agent, daemon = relay
    daemon.be_slow(5)
    publisher.do("stall p1 500")
    daemon.wait_notification(kind="pmd-stall", phase="raise")
    first = len(daemon.reads())
    begin = time.monotonic()
    publisher.do("stall p2 500")
    agent.events.wait(kind="pmd-stall", phase="raise", thread="p2")
    daemon.wait_value(("default", "notifications_queued"), lambda v: v >= 1)
    wait_for(lambda: len(daemon.reads()) >= first + 10, what="ten reads meanwhile")
    assert time.monotonic() - begin < 4.5
    assert len(daemon.notifications()) == 1
    daemon.be_fast()
    daemon.wait_notification(kind="pmd-stall", phase="clear", thread="p2")
    check_like_the_agent(daemon, agent)


def test_shutdown_while_a_receiver_blocks(relay):
    publisher, _, daemon = relay
    daemon.be_slow(5)
    publisher.do("stall p1 500")
    daemon.wait_notification(kind="pmd-stall", phase="raise")
    begin = time.monotonic()
    assert daemon.stop(signal.SIGTERM) == 0
    took = time.monotonic() - begin
    # Its thread stands in the receiver for these 5 s and is joined right after.
    assert took < 6, took
    assert "waiting for a notification receiver" in daemon.log()


def test_shutdown_is_quick_while_incidents_are_open(relay):
    publisher, _, daemon = relay
    publisher.do("stall p1 3000")
    daemon.wait_notification(kind="pmd-stall", phase="raise")
    begin = time.monotonic()
    assert daemon.stop(signal.SIGTERM) == 0
    assert time.monotonic() - begin < 1.2


def test_status_file(relay, rundir):
    _, agent, daemon = relay
    path = os.path.join(rundir, "default.relay")

    def relaying():
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    wait_for(lambda: relaying() == {"pid": daemon.pid, "relaying": True}, what=relaying)
    status = subprocess.run([built("pmdpulse"), "-i", "default", "-j", "status"], check=True,
                            capture_output=True, env={**os.environ, "PMDPULSE_RUNDIR": rundir})
    assert json.loads(status.stdout)["collectd"]["relaying"] is True
    agent.pause()
    wait_for(lambda: relaying() == {"pid": daemon.pid, "relaying": False}, what=relaying)
    agent.resume()
    wait_for(lambda: relaying()["relaying"], what=relaying)
    assert daemon.stop() == 0
    assert relaying() is None


def wakes_of(daemon, thread):
    """How often the threads of that name have waited so far."""
    total = 0
    for task in os.listdir(f"/proc/{daemon.pid}/task"):
        with open(f"/proc/{daemon.pid}/task/{task}/status", encoding="ascii", errors="replace") as file:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        if fields["Name"] == thread:
            total += int(fields["voluntary_ctxt_switches"])
    return total


def test_folder_that_comes_after_collectd_is_not_polled(start_collectd, start_agent, start_publisher, rundir):
    os.rmdir(rundir)
    daemon = start_collectd()
    daemon.wait_log("Initialization complete")
    os.mkdir(rundir, 0o755)
    publisher = start_publisher(lanes=["p1"], interval=INTERVAL_MS)
    agent = start_agent()
    agent.wait_alive(1)
    daemon.wait_value(RELAYING, lambda v: v == 1)
    publisher.do("stall p1 200")
    daemon.wait_notification(kind="pmd-stall", phase="clear")
    before = wakes_of(daemon, "pmdpulse look")
    assert before > 0
    time.sleep(1)  # the measured time
    assert wakes_of(daemon, "pmdpulse look") - before < 100
