# SPDX-License-Identifier: Apache-2.0
"""What bash offers after a word of the command is begun."""

import os
import re
import socket
import subprocess
import time

import pytest

from lib.process import built
from lib.switch import Command

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCRIPT = os.path.join(TOP, "contrib", "completion", "pmdpulse.bash")
OFFER = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_pmdpulse
((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
exit 0
"""


def offered(line, rundir=None):
    """The words that bash would offer at the end of this line; as bash does, it is cut at each =."""
    words = []
    for word in line.split(" "):
        words += [part for part in re.split("(=)", word) if part] or [""]
    if words[-1] == "=":
        words.append("")
    env = dict(os.environ, HOME="/nonexistent")
    env.pop("PMDPULSE_RUNDIR", None)
    if rundir:
        env["PMDPULSE_RUNDIR"] = str(rundir)
    done = subprocess.run(["bash", "-c", OFFER, "bash", SCRIPT, built("pmdpulse"), *words], env=env,
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def usage():
    return subprocess.run([built("pmdpulse"), "--help"], capture_output=True, text=True, check=True).stdout


def test_commands_and_options(rundir):
    commands = re.findall(r"^  ([a-z][a-z-]*)", usage().split("commands:")[1], re.M)
    assert len(commands) > 15
    assert offered("", rundir) == commands
    assert offered("pmd-s", rundir) == [c for c in commands if c.startswith("pmd-s")]
    assert set(offered("-", rundir)) == {"-i", "--instance", "-j", "--json", "-T", "--timeout", "--rundir",
                                         "--publisher-user",
                                         "-h", "--help", "-V", "--version"}
    assert offered("-j -T 3 --instance=x stat", rundir) == ["status"]
    assert offered("events --fo", rundir) == ["--follow"]
    assert offered("events --since ", rundir) == ["90s", "10m", "1h", "1d"]


def test_options_of_commands(rundir):
    """Those of the usage line, nothing else; -j is welcome everywhere."""
    lines = dict(re.findall(r"^  ([a-z][a-z-]*) ?(.*)$", usage().split("commands:")[1], re.M))
    for command, arguments in lines.items():
        options = set(re.findall(r"(?<![\w-])--?[a-z]+", arguments))
        before = [word.split("|")[0] for word in arguments.split() if re.match(r"[a-zA-Z]", word)
                  and "]" not in word]
        assert set(offered(" ".join([command, *before, "-"]), rundir)) == options | {"-j"}, command
    assert offered("dump-flows -m i", rundir) == ["in_port="]


def test_instances(rundir):
    for name in ("red.ring", "red.incidents", "blue.incidents", "green.ctl", "red.agent.ctl", "other"):
        open(os.path.join(rundir, name), "w", encoding="utf-8").close()
    assert offered("-i ", rundir) == ["blue", "green", "red"]
    assert offered(f"--rundir {rundir} --instance=r") == ["red"]
    assert offered("-i ", rundir + "/absent") == []


def test_port_keys_are_those_of_the_switch():
    with open(os.path.join(TOP, "switch", "sw_port.c"), encoding="utf-8") as file:
        keys = re.findall(r'CONF_KEY\("([^"]+)"', file.read())
    assert "ofport" in keys
    assert sorted(offered("add-port p1 net_null0 ")) == sorted(key + "=" for key in keys)
    assert "net_tap" in offered("add-port p1 ")


def test_asks_the_running_switch(start_switch, rundir):
    start_switch()
    command = Command(rundir)
    keys = [setting["key"] for setting in command.json("get")["settings"]]
    assert offered("get ", rundir) == keys
    assert offered("set keepalive-", rundir) == ["keepalive-interval="]
    assert offered("set keepalive-interval=", rundir) == ["50"]
    assert offered("set enable-keepalive=", rundir) == ["true", "false"]
    assert offered("set enable-keepalive=f", rundir) == ["false"]
    assert offered("del-port ", rundir) == ["p1", "p2"]
    assert offered("dump-flows in_port=", rundir) == ["p1", "p2"]
    assert offered("trace in_port=", rundir) == ["p1", "p2"]
    assert offered("fdb-flush ", rundir) == ["p1", "p2"]
    assert offered("dpif-impl-set ", rundir) == [
        i["name"] for i in command.json("dpif-impl-get")["implementations"] if i["usable"]]
    assert offered("pmd-perf-log-set o", rundir) == ["on", "off"]
    assert offered("-i default del-port p2 ", rundir) == []


@pytest.mark.parametrize("line", ["get ", "set ", "del-port "])
def test_a_switch_that_does_not_answer_costs_two_seconds(line, rundir):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(rundir, "default.ctl"))
        listener.listen()
        started = time.monotonic()
        assert offered(line, rundir) == []
        assert time.monotonic() - started < 5
