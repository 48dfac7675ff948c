# SPDX-License-Identifier: Apache-2.0
"""The operator's command on a terminal and in scripts: colours, times, limits, repetition."""

import json
import os
import pty
import re
import socket
import subprocess
import time

import pytest

from lib.process import built
from lib.ves import Incidents

ESCAPE = re.compile(rb"\x1b\[[0-9;]*[a-zA-Z]")


def argv_of(rundir, *args):
    return [built("pmdpulse"), "--rundir", rundir, "-i", "default", *args]


def command(rundir, *args):
    return subprocess.run(argv_of(rundir, *args), capture_output=True, text=True, timeout=30, check=False)


def on_terminal(rundir, *args, **env):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with subprocess.Popen(argv_of(rundir, *args), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                          env={**kept, "TERM": "xterm", **env}) as process:
        os.close(theirs)
        out = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # EIO: the last one has closed it
                break
            if not chunk:
                break
            out += chunk
        assert process.wait(30) == 0, out
    os.close(ours)
    return out


@pytest.fixture
def history(processes, rundir, folder):
    processes.append(Incidents(rundir, folder))
    return processes[-1]


def test_events_as_text(rundir, history):
    history.do("raise p1 pmd-stall")
    history.do("clear p1")
    events = [json.loads(line) for line in command(rundir, "-j", "events").stdout.splitlines()]
    lines = command(rundir, "events").stdout.splitlines()
    assert len(events) == len(lines) == 2
    for event, line in zip(events, lines):
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", line), line
        assert f" {event['severity']} {event['phase']} {event['id']} pmd-stall: {event['message']}" in line


def test_since_takes_times_and_spans(rundir, history):
    history.do("raise p1 pmd-stall")
    time.sleep(0.05)
    between = time.time()
    time.sleep(0.05)
    history.do("clear p1")

    def phases(since):
        done = command(rundir, "-j", "events", "--since", since)
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["phase"] for line in done.stdout.splitlines()]
    for since in ("1m", "1h", "1d", "0", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+02:00"):
        assert phases(since) == ["raise", "clear"], since
    parts = time.gmtime(between), f"{between % 1:.6f}"[1:]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", parts[0]) + parts[1]
    for since in (f"{between:.6f}", stamp + "Z", stamp + "+00:00"):
        assert phases(since) == ["clear"], since
    assert phases("2200-01-01T00:00:00Z") == []
    for wrong in ("yesterday", "-1s", "1x", "2020-13-01T00:00:00Z", ""):
        done = command(rundir, "events", "--since", wrong)
        assert done.returncode == 2 and done.stderr, wrong


def test_colours_on_a_terminal_alone(rundir, start_publisher):
    start_publisher(lanes=["p1"])
    assert ESCAPE.search(on_terminal(rundir, "pmd-health-show"))
    assert not ESCAPE.search(on_terminal(rundir, "pmd-health-show", NO_COLOR="1"))
    piped = command(rundir, "pmd-health-show")
    assert piped.returncode == 0 and "p1" in piped.stdout
    assert not ESCAPE.search(piped.stdout.encode())


def test_top_as_often_as_asked(rundir, start_publisher):
    start_publisher(lanes=["p1"])
    done = command(rundir, "top", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("instance default") == 2
    assert "p1" in done.stdout
    assert command(rundir, "top", "-n", "none").returncode == 2


def test_a_switch_that_does_not_answer_in_time(rundir, start_publisher):
    """Its socket takes the connection and never says a word."""
    start_publisher(lanes=["p1"])
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(os.path.join(rundir, "default.ctl"))
        silent.listen()
        begin = time.monotonic()
        done = command(rundir, "-T", "1", "show")
        assert 0.9 < time.monotonic() - begin < 4
    assert done.returncode == 1
    assert "did not answer within 1 s" in done.stderr
    for wrong in ("0", "x", "-1"):
        assert command(rundir, "-T", wrong, "show").returncode == 2
