# SPDX-License-Identifier: Apache-2.0
"""The real agent against a small publisher whose threads stall, doze, end or die on command."""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from lib.control import request, request_raw
from lib.process import built
from lib.wait import holds_for, wait_for

SOURCE = os.path.join(os.path.dirname(__file__), "../..")

# Kinds that accuse a thread or the switch. A machine that is busy with other work may make the agent
# late; that is no accusation.
ACCUSING = ("pmd-stall", "pmd-starved", "pmd-no-progress", "thread-gone", "switch-gone", "control-stuck")


def accusations(agent, besides=()):
    return [e for e in agent.events.all() if e["kind"] in ACCUSING and e["kind"] not in besides]


def by_id(agent, incident_id):
    return [e["phase"] for e in agent.events.all(id=incident_id)]


def test_stall_is_raised_and_cleared_once(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"])
    agent = start_agent()
    agent.wait_alive(2)
    publisher.do("stall p1 600")
    begin_ns, end_ns, _ = publisher.done("p1")
    raised = agent.events.wait(kind="pmd-stall", phase="raise")
    cleared = agent.events.wait(kind="pmd-stall", phase="clear")
    assert raised["id"] == cleared["id"]
    assert raised["thread"]["name"] == "p1"
    assert raised["severity"] == "FAILURE" and cleared["severity"] == "OKAY"
    assert raised["state"] == "DEAD"
    true_s = (end_ns - begin_ns) / 1e9
    assert abs(cleared["duration_s"] - true_s) < 0.02, (cleared["duration_s"], true_s)
    assert raised["duration_s"] < true_s  # told while it lasted
    assert cleared["cause"] == "blocked", cleared
    phases = by_id(agent, raised["id"])
    assert phases[0] == "raise" and phases[-1] == "clear"
    assert set(phases[1:-1]) <= {"update"}
    assert {e["id"] for e in accusations(agent)} == {raised["id"]}
    assert agent.status()["open_incidents"] == 0


def test_sequence_numbers_have_no_holes(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent("--hold-time=50")
    agent.wait_alive(1)
    for count in range(1, 4):
        publisher.do("stall p1 250")
        publisher.done("p1", count)
        agent.events.wait(kind="pmd-stall", phase="clear", count=count)
    seqs = [e["seq"] for e in agent.events.all()]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert len({e["id"] for e in agent.events.all(kind="pmd-stall", phase="raise")}) == 3


def test_stalls_within_the_hold_time_are_one_incident(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent("--hold-time=2000")
    agent.wait_alive(1)
    for count in range(1, 4):
        publisher.do("stall p1 250")
        publisher.done("p1", count)
    agent.events.wait(kind="pmd-stall", phase="clear")
    assert len(agent.events.all(kind="pmd-stall", phase="raise")) == 1
    assert len(agent.events.all(kind="pmd-stall", phase="clear")) == 1


def test_short_stall_between_two_looks_is_told(start_agent, start_publisher):
    """300 ms with an interval of 100: over before many looks, still raised with its length."""
    publisher = start_publisher(lanes=["p1"], interval=100)
    agent = start_agent()
    agent.wait_alive(1)
    publisher.do("stall p1 300")
    begin_ns, end_ns, _ = publisher.done("p1")
    cleared = agent.events.wait(kind="pmd-stall", phase="clear")
    assert abs(cleared["duration_s"] - (end_ns - begin_ns) / 1e9) < 0.02


def test_spinning_thread_is_own_code(start_agent, start_publisher):
    """On a machine that others keep busy it may take some tries until the thread had its CPU."""
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent("--hold-time=1")
    agent.wait_alive(1)
    for count in range(1, 11):
        publisher.do("spin p1 500")
        begin_ns, end_ns, cpu_ns = publisher.done("p1", count)
        cleared = agent.events.wait(kind="pmd-stall", phase="clear", count=count)
        if cpu_ns > 0.9 * (end_ns - begin_ns):
            assert cleared["cause"] == "own-code", cleared
            assert cleared["culprit"] is None
            return
    pytest.skip("the machine is too busy: the thread never had its CPU for itself")


def test_announced_pauses_raise_nothing(start_agent, start_publisher):
    publisher = start_publisher(lanes=["dozer", "sleeper", "leaver", "p1"])
    agent = start_agent()
    agent.wait_alive(4)
    publisher.do("doze dozer 600 5000")
    publisher.do("sleep sleeper")
    publisher.do("exit leaver")
    wait_for(lambda: agent.status()["threads"]["sleep"] == 1, what="a thread to sleep")
    publisher.done("dozer")
    publisher.do("wake sleeper")
    agent.wait_alive(3)
    holds_for(lambda: not accusations(agent), 0.5, lambda: agent.events.describe())


def test_broken_doze_deadline_is_a_stall(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent()
    agent.wait_alive(1)
    publisher.do("doze p1 900 200")
    raised = agent.events.wait(kind="pmd-stall", phase="raise")
    assert raised["thread"]["name"] == "p1"
    agent.events.wait(kind="pmd-stall", phase="clear", id=raised["id"])


def test_thread_that_dies_is_gone(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"])
    agent = start_agent()
    agent.wait_alive(2)
    publisher.do("die p2")
    raised = agent.events.wait(kind="thread-gone", phase="raise")
    assert raised["thread"]["name"] == "p2"
    assert raised["cause"] == "exited"
    assert raised["state"] == "GONE"


def test_stopped_process_is_named_so(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"])
    agent = start_agent()
    agent.wait_alive(2)
    publisher.pause()
    for name in ("p1", "p2"):
        agent.events.wait(kind="pmd-stall", phase="raise", thread=name)
        wait_for(lambda: [e for e in agent.events.all(kind="pmd-stall", thread=name)
                          if e["cause"] == "stopped"], what="cause stopped")
    publisher.resume()
    for name in ("p1", "p2"):
        cleared = agent.events.wait(kind="pmd-stall", phase="clear", thread=name)
        assert cleared["cause"] == "stopped"
    assert len(agent.events.all(kind="pmd-stall", phase="raise")) == 2


def test_agent_stopped_blames_nobody(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"], interval=20)
    agent = start_agent()
    agent.wait_alive(1)
    late_before = agent.status()["late_events"]
    agent.pause()
    time.sleep(3)  # the length of the stop is the test's input, not a wait for something
    agent.resume()
    late = [e for e in [agent.events.wait(kind="agent-late")] if e["duration_s"] > 2.5] or [
        wait_for(lambda: [e for e in agent.events.all(kind="agent-late") if e["duration_s"] > 2.5],
                 what="agent-late of 3 s")[0]]
    assert 2.5 < late[0]["duration_s"] < 4
    agent.wait_alive(1)
    holds_for(lambda: not accusations(agent), 0.3, lambda: agent.events.describe())
    assert agent.status()["late_events"] == late_before + 1
    publisher.do("stall p1 300")  # and it judges again afterwards
    agent.events.wait(kind="pmd-stall", phase="clear")


def test_open_incident_is_adopted_by_the_next_agent(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    first = start_agent()
    first.wait_alive(1)
    publisher.do("stall p1 2500")
    raised = first.events.wait(kind="pmd-stall", phase="raise")
    first.kill()
    second = start_agent(name="second")
    publisher.done("p1")
    cleared = second.events.wait(kind="pmd-stall", phase="clear")
    assert cleared["id"] == raised["id"]
    assert cleared["seq"] > raised["seq"]
    assert abs(cleared["duration_s"] - 2.5) < 0.2, cleared
    assert len(second.events.all(kind="pmd-stall", phase="raise")) == 1


def test_incident_that_ended_without_agent_is_cleared(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    first = start_agent()
    first.wait_alive(1)
    publisher.do("stall p1 800")
    raised = first.events.wait(kind="pmd-stall", phase="raise")
    first.kill()
    publisher.done("p1")
    second = start_agent(name="second")
    cleared = second.events.wait(kind="pmd-stall", phase="clear")
    assert cleared["id"] == raised["id"]


def test_switch_killed_and_restarted(start_agent, start_publisher):
    first = start_publisher(lanes=["p1", "p2"])
    agent = start_agent()
    agent.wait_alive(2)
    first.kill()
    gone = agent.events.wait(kind="switch-gone", phase="raise")
    assert gone["cause"] == "process-died" and gone["severity"] == "FAILURE"
    agent.wait_switch("gone")
    start_publisher(lanes=["p1"], name="again")
    back = agent.events.wait(kind="switch-back")
    assert back["severity"] == "OKAY"
    cleared = agent.events.wait(kind="switch-gone", phase="clear")
    assert cleared["id"] == gone["id"]
    agent.wait_alive(1)
    assert not accusations(agent, besides=("switch-gone",)), agent.events.describe()
    assert len(agent.events.all(kind="switch-gone", phase="raise")) == 1


def test_switch_killed_is_seen_at_once(start_agent, start_publisher):
    """By its pidfd: with an interval of a minute no beat would be missed for two."""
    publisher = start_publisher(lanes=["p1"], interval=60000)
    agent = start_agent()
    agent.wait_alive(1)
    publisher.kill()
    agent.events.wait(kind="switch-gone", phase="raise", timeout=2)


def test_clean_stop_is_no_alarm(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent()
    agent.wait_alive(1)
    assert publisher.quit() == 0
    stopped = agent.events.wait(kind="switch-stopped")
    assert stopped["severity"] == "OKAY"
    agent.wait_switch("stopped")
    holds_for(lambda: not accusations(agent), 0.3, lambda: agent.events.describe())
    assert agent.status()["open_incidents"] == 0


def test_agent_waits_for_the_switch(start_agent, start_publisher):
    agent = start_agent()
    assert agent.status()["switch"]["state"] == "absent"
    start_publisher(lanes=["p1"])
    agent.wait_alive(1, timeout=2)
    assert agent.status()["switch"]["state"] == "up"
    assert not accusations(agent)


def test_control_thread_stuck(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent()
    agent.wait_alive(1)
    publisher.do("hold")
    raised = agent.events.wait(kind="control-stuck", phase="raise")
    publisher.do("resume")
    assert agent.events.wait(kind="control-stuck", phase="clear")["id"] == raised["id"]
    assert not agent.events.all(kind="pmd-stall")


def test_link_down_and_up(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    publisher.do("port eth-a up")
    agent = start_agent()
    agent.wait_alive(1)
    publisher.do("port eth-a down")
    raised = agent.events.wait(kind="link", phase="raise")
    assert "eth-a" in raised["message"]
    publisher.do("port eth-a up")
    assert agent.events.wait(kind="link", phase="clear")["id"] == raised["id"]


def test_interval_and_keepalive_are_followed(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"], interval=50)
    agent = start_agent()
    agent.wait_alive(1)
    publisher.do("keepalive off")
    wait_for(lambda: agent.status()["threads"]["unused"] == 1, what="a thread that isn't judged")
    publisher.do("stall p1 300")
    publisher.done("p1")
    publisher.do("interval 2000")
    publisher.do("keepalive on")
    agent.wait_alive(1)
    publisher.do("stall p1 300")
    publisher.done("p1", 2)
    holds_for(lambda: not accusations(agent), 0.3, lambda: agent.events.describe())


def test_own_interval_overrides_the_switch(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"], interval=5000)
    agent = start_agent("--keepalive-interval=50")
    agent.wait_alive(1)
    publisher.do("stall p1 400")
    agent.events.wait(kind="pmd-stall", phase="clear")


def test_notify_missing_is_a_warning(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"], interval=200)
    agent = start_agent("--notify=missing")
    agent.wait_alive(1)
    publisher.do("stall p1 300")
    raised = agent.events.wait(kind="pmd-stall", phase="raise")
    assert raised["severity"] == "WARNING" and raised["state"] == "MISSING"


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 1024, os.urandom(200000)],
                         ids=["empty", "short", "zeros", "garbage"])
def test_refused_segment_is_said(start_agent, start_publisher, rundir, content):
    agent = start_agent()
    with open(os.path.join(rundir, "default.ring"), "wb") as file:
        file.write(content)
    agent.wait_switch("refused")
    assert agent.status()["switch"]["reason"]
    agent.wait_err("segment refused")
    os.unlink(os.path.join(rundir, "default.ring"))
    start_publisher(lanes=["p1"])
    agent.wait_alive(1)
    assert not accusations(agent)


def test_follows_all_instances_that_appear(start_agent, start_publisher, rundir, run, folder):
    agent = run([built("pmdpulse-agent"), f"--rundir={rundir}", "--journal=off",
                 f"--json={folder}/all.json"], name="all")
    wait_for(lambda: os.path.exists(f"{rundir}/default.agent.ctl"), what="the socket of default")
    start_publisher(lanes=["p1"], instance="blue", name="blue")
    wait_for(lambda: os.path.exists(f"{rundir}/blue.agent.ctl"), what="the socket of blue")
    wait_for(lambda: request(f"{rundir}/blue.agent.ctl", "status")["data"]["threads"]["alive"] == 1,
             what="blue's thread")
    assert request(f"{rundir}/blue.agent.ctl", "status")["data"]["instances"] == ["default", "blue"]
    assert agent.stop() == 0
    assert not os.path.exists(f"{rundir}/blue.agent.ctl")


def test_second_agent_of_an_instance_is_refused(start_agent, rundir, run):
    first = start_agent()
    second = run([built("pmdpulse-agent"), "--instance=default", f"--rundir={rundir}"], name="second")
    assert second.wait() == 1
    assert "another agent" in second.err()
    assert first.answers()


def test_rundir_on_a_disk_is_refused(run, tmp_path):
    filesystem = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True,
                                check=True).stdout.strip()
    if filesystem == "tmpfs":
        pytest.skip(f"{tmp_path} is a tmpfs itself")
    agent = run([built("pmdpulse-agent"), "--instance=default", f"--rundir={tmp_path}"])
    assert agent.wait() == 1
    assert "tmpfs" in agent.err()


def test_rundir_removed_ends_the_agent(start_agent, rundir):
    agent = start_agent()
    subprocess.run(["rm", "-r", rundir], check=True)
    assert agent.wait() == 1
    assert "removed" in agent.err()


# --- settings --------------------------------------------------------------------------------------

def test_settings_file_and_command_line(start_agent, tmp_path):
    conf = tmp_path / "agent.conf"
    conf.write_text("[agent]\nhold-time = 77\nnotify = missing\n")
    agent = start_agent("-c", conf, "--hold-time", "88")
    settings = request(agent.ctl_path, "get")["data"]
    assert settings["hold-time"] == "88"
    assert settings["notify"] == "missing"
    assert settings["keepalive-interval"] == "follow"


def test_wrong_setting_stops_the_start(run, tmp_path):
    conf = tmp_path / "agent.conf"
    conf.write_text("# comment\nnotify = sometimes\n")
    agent = run([built("pmdpulse-agent"), "-c", conf])
    assert agent.wait() == 2
    for part in (f"{conf}:2:", "notify", "sometimes", "dead or missing"):
        assert part in agent.err()


def test_missing_settings_file_stops_the_start(run):
    agent = run([built("pmdpulse-agent"), "-c", "/no/such/file"])
    assert agent.wait() == 2
    assert "/no/such/file" in agent.err()


@pytest.mark.parametrize("option", ["--nonsense=1", "-x", "stray", "--notify"])
def test_wrong_option_stops_the_start(run, option):
    agent = run([built("pmdpulse-agent"), option])
    assert agent.wait() == 2
    assert option.lstrip("-").split("=", maxsplit=1)[0] in agent.err()


def test_help_and_version(run):
    shown = run([built("pmdpulse-agent"), "--help"], name="help")
    assert shown.wait() == 0
    for key in ("-c FILE", "--instance", "--publisher-user", "--keepalive-interval", "--hook"):
        assert key in shown.out()
    version = run([built("pmdpulse-agent"), "--version"], name="version")
    assert version.wait() == 0
    assert "flags:" in version.out()


# --- control socket --------------------------------------------------------------------------------

def test_control_socket(start_agent, rundir):
    agent = start_agent()
    mode = os.stat(agent.ctl_path)
    assert stat.S_IMODE(mode.st_mode) == 0o660
    assert mode.st_gid == os.stat(rundir).st_gid
    status = agent.status()
    assert status["pid"] == agent.pid
    assert status["late_events"] >= 0
    assert isinstance(status["rights"], list) and status["rights"]
    assert request(agent.ctl_path, "version")["data"]["abi"] == 1
    assert "no such command" in request(agent.ctl_path, "add-port")["error"]
    assert "no such setting" in request(agent.ctl_path, "get", "colour")["error"]
    assert request(agent.ctl_path, "get", "notify")["data"] == {"notify": "dead"}


@pytest.mark.parametrize("line", ["", "{", "[]", "null", "{}", '{"cmd": 7}', "\x01\x02", '{"id": {}}'])
def test_control_socket_takes_nonsense(start_agent, line):
    agent = start_agent()
    reply = request_raw(agent.ctl_path, line)
    assert reply["ok"] is False and reply["error"]
    assert agent.answers()


def test_control_socket_several_requests_and_ids(start_agent):
    agent = start_agent()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(agent.ctl_path)
        sock.sendall(b'{"id": 5, "cmd": "version"}\n{"id": "x", "cmd"')
        sock.sendall(b': "status"}\n{"cmd": "get"}\n')
        sock.shutdown(socket.SHUT_WR)
        replies = [json.loads(line) for line in sock.makefile("rb")]
    assert [reply["id"] for reply in replies] == [5, "x", None]
    assert all(reply["ok"] for reply in replies)


def test_control_client_that_never_reads(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent()
    agent.wait_alive(1)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(agent.ctl_path)
        sock.setblocking(False)
        with pytest.raises(OSError):  # its end is closed, or takes no more
            for _ in range(100000):
                sock.send(b'{"cmd": "status"}\n')
        publisher.do("stall p1 300")
        agent.events.wait(kind="pmd-stall", phase="raise")
    long_line = "x" * 10000
    assert "too long" in request_raw(agent.ctl_path, long_line)["error"]


# --- sinks -----------------------------------------------------------------------------------------

def test_blocked_fifo_does_not_block(start_agent, start_publisher, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # open, and never read
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent(f"--json={fifo}", "--hold-time=1", f"--json={tmp_path}/events.json")
    agent.wait_alive(1)
    for count in range(1, 3):
        publisher.do("stall p1 200")
        publisher.done("p1", count)
        agent.events.wait(kind="pmd-stall", phase="clear", count=count)
    assert len(agent.status()["sinks"]) == 2
    os.close(reader)


def test_stdout_that_nobody_reads(start_agent, start_publisher, rundir, folder, processes):
    """Four threads that stall again and again fill the pipe; the file still gets all."""
    publisher = start_publisher(lanes=["p1", "p2", "p3", "p4"], interval=5)
    agent = start_agent("--json=-", "--hold-time=1", f"--json={folder}/events.json",
                        stdout=subprocess.PIPE)
    agent.wait_alive(4)

    def pipe():
        return [s for s in agent.status()["sinks"] if s["name"] == "json:-"][0]

    def filled():
        for lane in ("p1", "p2", "p3", "p4"):
            publisher.do(f"stall {lane} 15")
        return pipe()["waiting"] > 0
    wait_for(filled, 60, lambda: f"the pipe to fill: {pipe()}", every=0.02)
    n_events = len(agent.events.all())
    publisher.do("stall p1 300")
    wait_for(lambda: len(agent.events.all()) > n_events, what="events after the pipe was full")
    out = []
    thread = threading.Thread(target=lambda: out.extend(agent.popen.stdout))
    thread.start()  # now somebody reads: all that was not lost comes, in order
    wait_for(lambda: pipe()["waiting"] == 0, what="the pipe to drain")
    lost = pipe()["lost"]
    assert agent.stop() == 0
    thread.join()
    seqs = [json.loads(line)["seq"] for line in out]
    assert seqs == sorted(seqs)
    assert len(seqs) + lost == len(agent.events.all())


def test_full_disk_is_said_once(start_agent, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent("--json=/dev/full", "--hold-time=1", json="/dev/full")
    agent.wait_alive(1)
    for count in range(1, 4):
        publisher.do("stall p1 200")
        publisher.done("p1", count)
        wait_for(lambda: agent.status()["events"] >= 2 * count, what="two events a stall")
    sink = agent.status()["sinks"][0]
    assert sink["written"] == 0 and sink["waiting"] == agent.status()["events"]
    assert agent.err().count("No space left") == 1


def test_hook_gets_raise_and_clear(start_agent, start_publisher, tmp_path):
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ncat >> {tmp_path}/hook.out\n")
    hook.chmod(0o755)
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent(f"--hook={hook}")
    agent.wait_alive(1)
    publisher.do("stall p1 300")

    def phases():
        try:
            lines = (tmp_path / "hook.out").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line)["phase"] for line in lines]
    wait_for(lambda: "raise" in phases() and "clear" in phases(), what="the hook's output")


def test_hook_that_hangs_does_not_block(start_agent, start_publisher, tmp_path):
    hook = tmp_path / "hook"
    hook.write_text("#!/bin/sh\nexec sleep 100\n")
    hook.chmod(0o755)
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent(f"--hook={hook}", "--hook-timeout=300")
    agent.wait_alive(1)
    publisher.do("stall p1 300")
    agent.events.wait(kind="pmd-stall", phase="clear")
    wait_for(lambda: agent.status()["sinks"][0]["lost"] > 0, what="a hook that ran too long")
    agent.wait_err("hook-timeout")


def test_sighup_reopens_the_file(start_agent, start_publisher, tmp_path):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent("--hold-time=1")
    agent.wait_alive(1)
    publisher.do("stall p1 200")
    agent.events.wait(kind="pmd-stall", phase="clear")
    os.rename(agent.events.path, agent.events.path + ".1")
    agent.signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(agent.events.path), what="a new file")
    publisher.do("stall p1 200")
    agent.events.wait(kind="pmd-stall", phase="clear")


# --- systemd ---------------------------------------------------------------------------------------

class NotifySocket:
    """What a service says to its manager."""

    def __init__(self, path):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.sock.setblocking(False)
        self.lines = []

    def has(self, text):
        try:
            while True:
                self.lines += self.sock.recv(4096).decode().splitlines()
        except BlockingIOError:
            pass
        return any(text in line for line in self.lines)


def test_notifies_systemd(start_agent, start_publisher, rundir):
    notify = NotifySocket(os.path.join(rundir, "notify"))
    agent = start_agent(env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "1000000"})
    wait_for(lambda: notify.has("READY=1"), what="READY without a switch")
    wait_for(lambda: notify.has("STATUS=default: absent"), what="a status")
    publisher = start_publisher(lanes=["p1", "p2"])
    wait_for(lambda: notify.has("default: up, 2 PMDs alive, 0 open incidents"), what="2 PMDs alive")
    wait_for(lambda: notify.has("WATCHDOG=1"), what="a ping")
    publisher.do("stall p1 2500")
    wait_for(lambda: notify.has("1 PMDs alive, 1 open incidents"), what="the incident in the status")
    assert agent.stop() == 0
    assert notify.has("STOPPING=1")


def test_priorities_in_the_log_for_the_journal_only(run, folder, tmp_path):
    err_path = os.path.join(folder, "marked.err")
    with open(err_path, "wb"):
        pass
    st = os.stat(err_path)
    argv = [built("pmdpulse-agent"), "-c", "/no/such/file"]
    marked = run(argv, name="marked", env={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
    assert marked.wait() == 2
    assert marked.err().startswith("<3>/no/such/file")
    plain = run(argv, name="plain", env={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
    assert plain.wait() == 2
    assert plain.err().startswith("pmdpulse-agent: error: ")


# --- journal catalog ---------------------------------------------------------------------------

def test_catalog_explains_every_message_id(tmp_path):
    """The ids of agent/ag_journal.c and of the catalog are the same, and systemd can read it."""
    with open(f"{SOURCE}/agent/ag_journal.c", encoding="ascii") as file:
        ids = re.findall(r'"([0-9a-f]{32})"', file.read())
    with open(f"{SOURCE}/contrib/systemd/pmdpulse.catalog", encoding="ascii") as file:
        catalog = file.read()
    assert len(ids) == len(set(ids)) >= 13
    assert sorted(re.findall(r"^-- ([0-9a-f]{32})$", catalog, re.M)) == sorted(ids)
    if not shutil.which("journalctl"):
        pytest.skip("no journalctl to read the catalog with")
    folder = tmp_path / "usr/lib/systemd/catalog"
    folder.mkdir(parents=True)
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    (folder / "pmdpulse.catalog").write_text(catalog)
    subprocess.run(["journalctl", "--update-catalog", f"--root={tmp_path}"], check=True)
    listed = subprocess.run(["journalctl", "--list-catalog", f"--root={tmp_path}"], check=True,
                            capture_output=True, text=True).stdout
    assert all(f"{message_id} pmdpulse: " in listed for message_id in ids)
