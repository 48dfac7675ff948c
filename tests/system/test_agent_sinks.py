# SPDX-License-Identifier: Apache-2.0
"""Where the agent's events go: receivers that are slow, broken, late or absent."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading

import pytest

from lib.wait import wait_for

SOURCE = os.path.join(os.path.dirname(__file__), "../..")


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
        wait_for(lambda: agent.status()["events"] >= 1 + 2 * count, what="two events a stall, after the attach")
    status = agent.status()
    assert status["sinks"][0]["written"] == 0 and status["sinks"][0]["waiting"] == status["events"]
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
