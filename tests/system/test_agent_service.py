# SPDX-License-Identifier: Apache-2.0
"""The agent as a service: settings, control socket, systemd."""

import json
import os
import socket
import stat

import pytest

from lib.control import request, request_raw
from lib.notify import NotifySocket
from lib.process import built
from lib.wait import wait_for


def test_settings_file_and_command_line(start_agent, tmp_path):
    conf = tmp_path / "agent.conf"
    conf.write_text("[agent]\nhold-time = 77\nnotify = missing\n")
    agent = start_agent("-c", conf, "--hold-time", "88")
    listed = request(agent.ctl_path, "get")["data"]["settings"]
    settings = {setting["key"]: setting["value"] for setting in listed}
    defaults = {setting["key"]: setting["default"] for setting in listed}
    assert settings["hold-time"] == "88"
    assert settings["notify"] == "missing"
    assert settings["keepalive-interval"] == "follow"
    assert defaults["hold-time"] == "1000"


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
    notify = request(agent.ctl_path, "get", "notify")["data"]["settings"]
    assert [(setting["key"], setting["value"]) for setting in notify] == [("notify", "dead")]


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
