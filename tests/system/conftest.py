# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests. Helpers stand in lib/."""

import os
import shutil
import tempfile

import pytest

from lib.process import Process
from lib.programs import Agent, Publisher
from lib.switch import Command, Switch


@pytest.fixture
def rundir():
    """A run directory of this test's own, on a tmpfs as segments need it."""
    path = tempfile.mkdtemp(prefix="pmdpulse-test-", dir="/dev/shm")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def folder(tmp_path):
    """Where outputs of the processes go; kept by pytest when a test fails."""
    return str(tmp_path)


@pytest.fixture
def processes(rundir, folder):  # pylint: disable=unused-argument
    """All processes of the test: ended at its end, whatever happened, with what they logged shown.

    Uses the folders, so that these outlive the processes.
    """
    started = []
    yield started
    for process in reversed(started):
        process.cleanup()
    for process in started:
        text = process.err()
        if text:
            print(f"--- {process.name} {process.pid} logged:\n{text}", end="")


@pytest.fixture
def run(processes, folder):
    """run(argv, name=...): start any program."""
    def start(argv, **options):
        processes.append(Process(argv, folder, **options))
        return processes[-1]
    return start


@pytest.fixture
def start_agent(processes, rundir, folder):
    """start_agent("--notify=missing", instance="x"): an agent that watches already."""
    def start(*options, **keywords):
        agent = Agent(keywords.pop("rundir", rundir), folder, *options, **keywords)
        processes.append(agent)
        return agent
    return start


@pytest.fixture
def start_publisher(processes, rundir, folder):
    """start_publisher(lanes=["p1"], interval=50): a publisher whose threads beat."""
    def start(*options, lanes=(), **keywords):
        publisher = Publisher(rundir, folder, *options, **keywords)
        processes.append(publisher)
        for lane in lanes:
            publisher.do(f"lane {lane}")
        return publisher
    return start


@pytest.fixture
def start_switch(processes, rundir, folder):
    """start_switch(lines=[...]): a switch with test hooks that polls already."""
    def start(**keywords):
        switch = Switch(keywords.pop("rundir", rundir), folder, **keywords)
        processes.append(switch)
        return switch
    return start


@pytest.fixture
def command(rundir):
    """The operator's command on this test's run directory."""
    return Command(rundir)


@pytest.fixture
def need_root():
    if os.geteuid() != 0:
        pytest.skip("needs root")
