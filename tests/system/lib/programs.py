# SPDX-License-Identifier: Apache-2.0
"""The product's programs as the tests run them, in a run directory of their own."""

import os
import subprocess

from .control import request
from .events import Events
from .process import Process, built
from .wait import TIMEOUT_S, wait_for


class Agent(Process):
    """pmdpulse-agent, ready (it watches) when the constructor returns. Events: .events"""

    def __init__(self, rundir, folder, *options, instance="default", json=None, name="agent", env=None,
                 stdout=None, is_awaited=True):
        self.rundir, self.instance = str(rundir), instance
        json = json or os.path.join(folder, "events.json")
        self.events = Events(json)
        self.ctl_path = os.path.join(self.rundir, instance + ".agent.ctl")
        argv = [built("pmdpulse-agent"), f"--instance={instance}", f"--rundir={rundir}",
                "--journal=off", f"--json={json}", *options]
        super().__init__(argv, folder, name, stdout=stdout, env=env)
        if is_awaited:
            wait_for(self.answers, what=lambda: f"the agent to answer; it said:\n{self.err()}")

    def answers(self):
        assert self.is_alive(), f"the agent ended:\n{self.err()}"
        try:
            return self.status()["pid"] == self.pid
        except OSError:
            return False

    def status(self):
        return request(self.ctl_path, "status")["data"]

    def wait_switch(self, state, timeout=TIMEOUT_S):
        wait_for(lambda: self.status()["switch"]["state"] == state, timeout,
                 lambda: f"switch {state}, is {self.status()['switch']}")

    def wait_alive(self, count, timeout=TIMEOUT_S):
        """Until that many threads are ALIVE."""
        wait_for(lambda: self.status()["threads"]["alive"] == count, timeout,
                 lambda: f"{count} threads alive, are {self.status()['threads']}")


class Publisher(Process):
    """tests/tools/publisher, driven by do("stall p1 300")."""

    def __init__(self, rundir, folder, *options, instance="default", interval=50, name="publisher"):
        argv = [built("tests/tools/publisher"), f"--instance={instance}", f"--rundir={rundir}",
                f"--interval={interval}", *options]
        super().__init__(argv, folder, name, stdin=subprocess.PIPE)
        self.answers_seen = 0
        self._await_answer("open")

    def _await_answer(self, command):
        answers = wait_for(lambda: self._answers()[self.answers_seen:],
                           what=lambda: f"an answer to {command!r}; stderr:\n{self.err()}")
        self.answers_seen += 1
        assert answers[0].startswith("ok "), answers[0]

    def _answers(self):
        return [line for line in self.out().splitlines() if line.startswith(("ok ", "error "))]

    def do(self, command):
        self.popen.stdin.write(command.encode() + b"\n")
        self.popen.stdin.flush()
        self._await_answer(command)

    def done(self, lane, count=1, timeout=TIMEOUT_S):
        """(begin_ns, end_ns, cpu_ns) of the count-th stall of this lane that is over."""
        def over():
            lines = [line.split() for line in self.out().splitlines()]
            return [line for line in lines if line[:2] == ["done", lane]][count - 1:count]
        line = wait_for(over, timeout, f"{lane} to come back")[0]
        return tuple(int(value) for value in line[2:5])

    def quit(self):
        """Clean stop; the exit code."""
        self.do("quit")
        return self.wait()
