# SPDX-License-Identifier: Apache-2.0
"""The switch with test hooks, and the operator's command."""

import json
import os
import subprocess

from .process import Process, built
from .wait import TIMEOUT_S, wait_for

# Two null ports that receive as fast as they are polled.
NULL_PORTS = ("add-port p1 net_null1 ofport=1", "add-port p2 net_null2 ofport=2",
              "add-flow in_port=1,actions=output:2", "add-flow in_port=2,actions=output:1")
HOOKED = "tests/pmdpulse-switch-hooks"


class Command:
    """build/pmdpulse for one instance."""

    def __init__(self, rundir, instance="default"):
        self.argv = [built("pmdpulse"), "--rundir", str(rundir), "-i", instance]

    def run(self, *args):
        return subprocess.run([*self.argv, *map(str, args)], capture_output=True, text=True, timeout=30,
                              check=False)

    def text(self, *args):
        """Output of a command that must succeed."""
        done = self.run(*args)
        assert done.returncode == 0, f"{args}: exit {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout

    def json(self, *args):
        return json.loads(self.text("-j", *args))

    def refused(self, *args):
        """stderr of a command that must be refused with exit 1."""
        done = self.run(*args)
        assert done.returncode == 1, f"{args}: exit {done.returncode}: {done.stdout}"
        return done.stderr

    def events(self):
        return [json.loads(line) for line in self.text("-j", "events").splitlines()]

    def threads(self):
        return self.json("pmd-health-show")["threads"]

    def port(self, name):
        return next(p for p in self.json("dump-ports")["ports"] if p["name"] == name)


class Switch(Process):
    """A switch that answers and whose PMDs poll or sleep when the constructor returns."""

    def __init__(self, rundir, folder, lines=NULL_PORTS, instance="default", eal=(), name="switch",
                 program=HOOKED, is_awaited=True, prefix=(), env=None):
        self.command = Command(rundir, instance)
        config = os.path.join(folder, f"{name}.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        super().__init__([*prefix, built(program), *eal, "--", "-c", config, "--instance", instance,
                          "--rundir", str(rundir)], folder, name, env=env)
        if is_awaited:
            wait_for(self.is_up, 60, lambda: f"the switch to answer; it said:\n{self.err()}{self.out()}")

    def is_up(self):
        assert self.is_alive(), f"the switch ended:\n{self.err()}{self.out()}"
        status = self.command.json("status")
        return status["switch"]["state"] == "up" and status["switch"]["pid"] == self.pid and \
            sum(status["threads"].values()) == status["threads"]["alive"] + status["threads"]["sleep"] > 0 \
            and self.command.run("list-commands").returncode == 0

    def pmd(self):
        """The first PMD that polls."""
        return next(t for t in self.command.threads() if t["state"] != "SLEEP")

    def hook(self, action, ms=0):
        """Make the first PMD misbehave."""
        args = [str(ms)] if ms else []
        self.command.text("test-hook", self.pmd()["name"], action, *args)

    def wait_alive(self, timeout=TIMEOUT_S):
        wait_for(lambda: self.pmd()["state"] == "ALIVE", timeout, lambda: f"{self.pmd()} to be alive")
