# SPDX-License-Identifier: Apache-2.0
"""pmdpulse-ves against a real HTTP server: whatever that does, nothing is lost uncounted, and all is
in order and valid against the schema."""

import os
import re
import signal
import socket
import subprocess
import time

import pytest

from lib.process import built
from lib.ves import Collector, Incidents, Poster, certificate
from lib.wait import holds_for, wait_for

TOP = os.path.join(os.path.dirname(__file__), "../..")
RING = 512  # events that the segment keeps


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.cleanup()
    assert not server.errors, server.errors[:3]


@pytest.fixture
def agent(processes, rundir, folder):
    def start(*options, **keywords):
        processes.append(Incidents(rundir, folder, *options, **keywords))
        return processes[-1]
    return start


@pytest.fixture
def start_ves(processes, rundir, folder, collector):
    def start(*options, **keywords):
        url = keywords.pop("url", collector.url)
        processes.append(Poster(rundir, folder, url, *options, **keywords))
        return processes[-1]
    return start


def follows(poster, incidents, collector):
    """Proof that the poster is at work: an incident of the test arrives."""
    poster.wait_err("is followed from event")
    before = len(collector.faults())
    incidents.do("raise first")
    incidents.do("clear first")
    collector.wait_faults(before + 2, what=poster.err)


def in_order(faults):
    sequences = [fault[0] for fault in faults]
    assert sequences == sorted(set(sequences)), sequences
    return sequences


def test_an_incident_goes_out_and_is_cleared(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves()
    follows(poster, incidents, collector)
    raised, cleared = (event for event in collector.of("fault"))
    for event in (raised, cleared):
        assert event["commonEventHeader"]["sourceName"] == "host1"
        assert event["commonEventHeader"]["reportingEntityName"] == "pmdpulse-ves"
        assert event["faultFields"]["alarmCondition"] == "pmd-stall"
    assert raised["faultFields"]["eventSeverity"] == "CRITICAL"
    assert raised["faultFields"]["alarmAdditionalInformation"]["culprit"] == "hog"
    assert cleared["faultFields"]["eventSeverity"] == "NORMAL"
    assert raised["commonEventHeader"]["eventId"] == cleared["commonEventHeader"]["eventId"]
    assert poster.stop() == 0


def test_with_the_real_agent(start_agent, start_publisher, start_ves, collector):
    """A stall, a link and the end of the switch, from the thread to the collector."""
    publisher = start_publisher(lanes=["p1"])
    publisher.do("port eth0 up")
    start_agent().wait_alive(1)
    poster = start_ves()
    poster.wait_err("is followed from event")
    publisher.do("stall p1 300")
    begin, end = publisher.done("p1")[:2]
    publisher.do("port eth0 down")
    wait_for(lambda: [e for e in collector.of("fault") if e["commonEventHeader"]["eventName"] ==
                      "Fault_pmdpulse_pmd-stall" and e["faultFields"]["eventSeverity"] == "NORMAL"],
             what=poster.err)
    wait_for(lambda: collector.of("stateChange"), what=poster.err)
    stalls = [e for e in collector.of("fault") if e["faultFields"]["alarmCondition"] == "pmd-stall"]
    assert len({e["commonEventHeader"]["eventId"] for e in stalls}) == 1
    assert stalls[0]["faultFields"]["alarmAdditionalInformation"]["phase"] == "raise"
    took = float(stalls[-1]["faultFields"]["alarmAdditionalInformation"]["duration_s"])
    assert took == pytest.approx((end - begin) / 1e9, abs=0.01)
    publisher.quit()
    wait_for(lambda: collector.of("stateChange")[-1]["stateChangeFields"]["newState"] == "maintenance",
             what=poster.err)
    sequences = in_order(collector.faults())
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))


def test_state_changes_and_heartbeats(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--heartbeat-interval=1")
    follows(poster, incidents, collector)
    incidents.do("raise p\"1 link")
    incidents.do("clear p\"1")
    incidents.do("raise x switch-gone")
    wait_for(lambda: len(collector.of("stateChange")) == 3, what=poster.err)
    fields = [event["stateChangeFields"] for event in collector.of("stateChange")]
    assert [(f["stateInterface"], f["oldState"], f["newState"]) for f in fields[:2]] == [
        ('p"1', "inService", "outOfService"), ('p"1', "outOfService", "inService")]
    assert fields[2]["newState"] == "outOfService"
    wait_for(lambda: len(collector.of("heartbeat")) >= 3, what="three heartbeats")
    beats = collector.of("heartbeat")
    assert [beat["commonEventHeader"]["sequence"] for beat in beats[:3]] == [1, 2, 3]
    assert len({beat["commonEventHeader"]["eventId"] for beat in beats}) == len(beats)
    told = beats[-1]["heartbeatFields"]["additionalFields"]
    assert told["agent.default"] == "up" and told["open.default"] == "1", told
    assert told["lost"] == "0" and int(told["sent"]) == 8, told
    first, second = (beat["commonEventHeader"]["startEpochMicrosec"] for beat in beats[:2])
    assert 0.9e6 < second - first < 3e6


def test_a_domain_can_be_left_out(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--domain=fault", "--heartbeat-interval=1")
    follows(poster, incidents, collector)
    incidents.do("raise p1 link")
    incidents.do("clear p1")
    collector.wait_faults(4)
    assert not collector.of("stateChange") and not collector.of("heartbeat")


@pytest.mark.parametrize("trouble", [500, 503, 401, 404, 302, "drop", "hang"])
def test_a_collector_in_trouble(agent, start_ves, collector, trouble):
    incidents = agent()
    # Long enough for a loaded machine to answer, where it answers at all.
    poster = start_ves("--timeout=1500" if trouble == "hang" else "--timeout=10000")
    follows(poster, incidents, collector)
    collector.behave(trouble)
    n_tries = len(collector.tries)
    last = incidents.do("burst 10")
    collector.wait_tries(n_tries + (2 if trouble == "hang" else 4))
    assert len(collector.faults()) == 2
    collector.behave(202)
    faults = collector.wait_faults(22, what=poster.err)
    assert in_order(faults) == list(range(1, last + 1))
    assert collector.told_lost() == 0
    # Told once, not each time; what hung is cut by the test at last, which is another trouble.
    assert poster.err().count("next try in") == (2 if trouble == "hang" else 1), poster.err()
    assert "takes events again" in poster.err()


def test_a_collector_that_dies_and_comes_back(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves()
    follows(poster, incidents, collector)
    for turn in range(3):
        collector.die()
        last = incidents.do("burst 5")
        wait_for(lambda t=turn: poster.err().count("next try") > t, what=poster.err)
        collector.live()
        collector.wait_faults(2 + 10 * (turn + 1), what=poster.err)
    assert in_order(collector.faults()) == list(range(1, last + 1))
    assert collector.told_lost() == 0


def test_death_at_random_moments(agent, start_ves, collector):
    """Cut in the middle of posts; a repeated event has the same id and sequence."""
    incidents = agent()
    poster = start_ves()
    follows(poster, incidents, collector)
    for _ in range(5):
        n_tries = len(collector.tries)
        incidents.do("burst 20")
        collector.wait_tries(n_tries + 4)
        collector.die()
        collector.live()
    faults = wait_for(lambda: len(set(collector.faults())) == 202 and collector.faults(),
                      what=lambda: f"{len(set(collector.faults()))} of 202; {poster.err()}")
    # Twice is allowed where it was cut, and the second may be the one that was under way before.
    first_seen = list(dict.fromkeys(fault[0] for fault in faults))
    assert first_seen == sorted(first_seen)
    assert len(faults) - len(first_seen) <= 5
    assert collector.told_lost() == 0


def test_losses_of_a_full_queue_are_told(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--queue=200", "--heartbeat-interval=1")
    follows(poster, incidents, collector)
    collector.behave(503)
    incidents.do("raise stays")
    for _ in range(10):
        incidents.do("burst 40")
    last = incidents.do("clear stays")
    collector.behave(202)
    wait_for(lambda: collector.faults()[-1][0] == last, what=poster.err)
    faults = collector.faults()
    in_order(faults)
    assert len(faults) + collector.told_lost() == last
    assert collector.told_lost() > 500
    # What spans the outage is raised and cleared.
    assert [phase for _, phase, name in faults if name == "stays"] == ["raise", "clear"]
    n_beats = len(collector.of("heartbeat"))
    wait_for(lambda: len(collector.of("heartbeat")) > n_beats + 1, what="a later heartbeat")
    told = collector.of("heartbeat")[-1]["heartbeatFields"]["additionalFields"]
    assert int(told["lost"]) == collector.told_lost()
    assert int(told["sent"]) == len(faults)


def test_losses_of_the_ring_are_told(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves()
    follows(poster, incidents, collector)
    poster.pause()
    last = incidents.do(f"burst {RING}")
    poster.resume()
    wait_for(lambda: collector.faults()[-1][0] == last, what=poster.err)
    in_order(collector.faults())
    assert len(collector.faults()) + collector.told_lost() == last
    assert collector.told_lost() >= RING - 1
    assert "overwritten" in poster.err()


def test_a_slow_collector(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--heartbeat-interval=1")
    follows(poster, incidents, collector)

    def rule(_):
        time.sleep(0.1)
        return 202
    collector.behave(rule)
    last = incidents.do("burst 15")
    faults = collector.wait_faults(32, what=poster.err)
    assert in_order(faults) == list(range(1, last + 1)) and collector.told_lost() == 0
    beats = [beat["commonEventHeader"]["startEpochMicrosec"] for beat in collector.of("heartbeat")]
    assert len(beats) > 2  # they do not wait for the queue to be empty


def test_losses_are_told_after_a_restart(agent, start_ves, collector, folder):
    state = os.path.join(folder, "state")
    os.mkdir(state)
    incidents = agent()
    poster = start_ves("--queue=200", f"--state-dir={state}")
    follows(poster, incidents, collector)
    collector.behave(503)
    for _ in range(10):
        last = incidents.do("burst 40")
    wait_for(lambda: "200 events wait" in poster.err() or "HTTP 503" in poster.err(), what=poster.err)
    assert poster.stop() == 0
    collector.behave(202)
    poster = start_ves("--queue=200", f"--state-dir={state}", name="ves2")
    wait_for(lambda: collector.faults()[-1][0] == last, what=poster.err)
    in_order(collector.faults())
    # What the queue dropped may have come after all, where the ring still had it.
    assert len(collector.faults()) + collector.told_lost() == last


def test_refused_events_are_counted_and_do_not_block(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves()
    follows(poster, incidents, collector)

    def rule(events):
        return 400 if events[0]["faultFields"]["alarmInterfaceA"] == "burst-1" else 202
    collector.behave(rule)
    last = incidents.do("burst 4")
    wait_for(lambda: collector.faults()[-1][0] == last, what=poster.err)
    assert len(collector.faults()) == last - 2
    assert collector.told_lost() == 2
    assert poster.err().count("it is not sent again") == 2
    assert "requestError" in poster.err()  # with the collector's own words


def test_batches(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--batch=10")
    follows(poster, incidents, collector)
    collector.behave(503)
    incidents.do("burst 30")
    incidents.do("raise p1 link")
    incidents.do("clear p1")

    def rule(events):
        bad = any(e.get("faultFields", {}).get("alarmInterfaceA") == "burst-7" for e in events)
        return 400 if bad else 202
    n_tries = len(collector.tries)
    collector.wait_tries(n_tries + 1)
    collector.behave(rule)
    wait_for(lambda: len(collector.of("stateChange")) == 2, what=poster.err)
    faults = collector.faults()
    in_order(faults)
    assert len(faults) == 2 + 60 - 2 + 2 and collector.told_lost() == 2
    sizes = [len(events) for path, _, events, status in collector.tries if status == 202]
    assert 10 in sizes and max(sizes) == 10, sizes
    for path, _, events, _ in collector.tries:
        assert path.endswith("/eventBatch") == (len(events) > 1)
        assert len({event["commonEventHeader"]["domain"] for event in events}) == 1


def test_retry_after_is_obeyed(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--retry-max=3000")
    follows(poster, incidents, collector)
    collector.behave(503, Retry_After="1")
    n_tries = len(collector.tries)
    incidents.do("burst 1")
    collector.wait_tries(n_tries + 1)
    holds_for(lambda: len(collector.tries) == n_tries + 1, 0.7, "no try before the second is over")
    collector.behave(202)
    collector.wait_faults(4)


def test_over_agents_restarts_and_kills(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves()
    follows(poster, incidents, collector)
    for turn in range(4):
        incidents.do("raise a")
        if turn % 2:
            incidents.kill()
        else:
            incidents.quit()
        incidents = agent()
        last = incidents.do("clear a")
        collector.wait_faults(2 + 2 * (turn + 1), what=poster.err)
    assert in_order(collector.faults()) == list(range(1, last + 1))
    assert collector.told_lost() == 0


def test_over_own_restarts_and_kills(agent, start_ves, collector, folder):
    state = os.path.join(folder, "state")
    os.mkdir(state)
    incidents = agent()
    poster = start_ves(f"--state-dir={state}")
    follows(poster, incidents, collector)
    poster.stop()
    incidents.do("burst 3")  # while it is away
    poster = start_ves(f"--state-dir={state}", name="ves2")
    collector.wait_faults(8, what=poster.err)
    collector.die()
    last = incidents.do("burst 3")  # which wait when it ends
    wait_for(lambda: "next try" in poster.err(), what=poster.err)
    assert poster.stop() == 0
    assert "wait for the next start" in poster.err()
    collector.live()
    poster = start_ves(f"--state-dir={state}", name="ves3")
    collector.wait_faults(14, what=poster.err)
    assert in_order(collector.faults()) == list(range(1, last + 1))
    # Killed, it may repeat what it sent within its last second, but it leaves nothing out.
    last = incidents.do("burst 3")
    poster.kill()
    poster = start_ves(f"--state-dir={state}", name="ves4")
    wait_for(lambda: {f[0] for f in collector.faults()} == set(range(1, last + 1)), what=poster.err)
    assert collector.told_lost() == 0


def test_a_silent_agent_is_told(agent, start_ves, collector):
    incidents = agent()
    poster = start_ves("--agent-timeout=700")
    follows(poster, incidents, collector)
    incidents.do("hold")
    collector.wait_faults(3, what=poster.err)
    assert collector.of("fault")[-1]["faultFields"]["alarmCondition"] == "agent-gone"
    incidents.do("resume")
    collector.wait_faults(4, what=poster.err)
    gone, back = collector.of("fault")[-2:]
    assert back["faultFields"]["eventSeverity"] == "NORMAL"
    assert back["commonEventHeader"]["eventId"] == gone["commonEventHeader"]["eventId"]


def test_several_instances(agent, start_ves, collector):
    one, two = agent(instance="one", name="one"), agent(instance="two", name="two")
    start_ves()
    wait_for(lambda: (one.do("raise x"), one.do("clear x"),
                      {f[2] for f in collector.faults()} >= {"x"})[-1], what="x of one", every=0.1)
    two.do("raise y")
    three = agent(instance="three", name="three")
    wait_for(lambda: (three.do("raise z"), three.do("clear z"),
                      {f[2] for f in collector.faults()} >= {"x", "y", "z"})[-1],
             what=lambda: f"x, y and z, got {collector.faults()}", every=0.1)


def test_tls_and_credentials(agent, start_ves, collector, folder):
    good, context = certificate(folder, "good")
    _, other = certificate(folder, "other")
    secret = os.path.join(folder, "secret")
    with open(secret, "w", encoding="ascii") as file:
        file.write("user:pass\n")
    os.chmod(secret, 0o600)
    collector.die()
    collector.live(other)  # not the one that is believed
    incidents = agent()
    incidents.do("raise a")
    poster = start_ves(f"--ca-file={good}", f"--credentials={secret}")
    wait_for(lambda: "SSL certificate problem" in poster.err(), what=poster.err)
    incidents.do("clear a")
    assert not collector.tries
    collector.die()
    collector.live(context)
    collector.wait_faults(2, what=poster.err)
    assert collector.tries[-1][1]["Authorization"] == "Basic dXNlcjpwYXNz"
    with open(secret, "w", encoding="ascii") as file:
        file.write("user:new\n")
    incidents.do("raise b")
    collector.wait_faults(3, what=poster.err)
    assert collector.tries[-1][1]["Authorization"] == "Basic dXNlcjpuZXc="  # without a restart


def test_it_tells_systemd(agent, start_ves, collector, folder):
    incidents = agent()
    path = os.path.join(folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)
        sock.settimeout(20)
        poster = start_ves(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "300000"})
        told = []

        def hears(text):
            while not any(text in message for message in told):
                told.append(sock.recv(4096).decode())
        hears("READY=1")
        follows(poster, incidents, collector)
        hears("STATUS=2 sent, 0 waiting, 0 lost (0 refused); default: agent up")
        told.clear()
        hears("WATCHDOG=1")
        collector.behave("hang")  # which must not keep it from its watchdog
        incidents.do("raise a")
        collector.wait_tries(3)
        told.clear()
        hears("WATCHDOG=1")
        hears("waiting")
        poster.signal(signal.SIGTERM)
        hears("STOPPING=1")
    assert poster.wait() == 0


SLOW_NAMES = """
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    (void)node, (void)service, (void)hints, (void)res;
    sleep(60);
    return EAI_AGAIN;
}
"""


def test_a_name_server_that_hangs(agent, start_ves, folder):
    """Neither the watchdog nor the end wait for it."""
    if os.environ.get("SANITIZE"):
        pytest.skip("a preloaded library comes before the sanitizer's")
    library, path = os.path.join(folder, "slow.so"), os.path.join(folder, "notify")
    subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-x", "c", "-", "-o", library],
                   input=SLOW_NAMES, text=True, check=True, timeout=60)
    agent().do("raise a")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)
        sock.settimeout(5)
        poster = start_ves("--timeout=500", url="http://collector.example/eventListener/v7", env={
            "LD_PRELOAD": library, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "300000"})
        wait_for(lambda: "next try in" in poster.err() or
                 (poster.is_alive() and sock.recv(4096) and False), 20, poster.err)
        for _ in range(10):
            assert "WATCHDOG=1" in sock.recv(4096).decode()
    begin = time.monotonic()
    assert poster.stop() == 0
    assert time.monotonic() - begin < 4


@pytest.mark.parametrize("options, words", [
    (["--url=http://127.0.0.1/other"], "ends in /eventListener/v7"),
    (["--retry-min=0"], "whole milliseconds"),
    (["--colour=red"], "no such setting"),
    (["-c", "/no/such/file"], "give another file"),
    (["nothing"], "not an option"),
])
def test_wrong_settings_stop_the_start(start_ves, options, words):
    poster = start_ves(*options)
    assert poster.wait() == 2
    assert words in poster.err()


def test_the_shipped_example(start_ves, agent, collector):
    """It holds every setting, and starts but for the name in url."""
    path = os.path.join(TOP, "contrib/conf/ves.conf.example")
    with open(path, encoding="ascii") as file:
        keys = set(re.findall(r"^#?([a-z-]+) = ", file.read(), re.M))
    text = subprocess.run([built("pmdpulse-ves"), "--help"], capture_output=True, text=True, check=True,
                          timeout=20).stdout
    assert keys == set(re.findall(r"^  --([a-z-]+)=", text, re.M))
    incidents = agent()
    follows(start_ves("-c", path), incidents, collector)


def test_the_settings_file(agent, start_ves, collector, folder):
    path = os.path.join(folder, "ves.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write("[ves]\nsource-name = from-the-file\nbatch = no\n")
    poster = start_ves("-c", path, name="wrong")
    assert poster.wait() == 2
    assert f"{path}:3: batch: " in poster.err() and "1 to 100" in poster.err()
    with open(path, "w", encoding="ascii") as file:
        file.write(f"url = {collector.url}\ninstance = default\n")
    incidents = agent()
    follows(start_ves("-c", path), incidents, collector)
