# SPDX-License-Identifier: Apache-2.0
"""make run and make demo as somebody who has just built it calls them.

The programs are reached through a build folder of the test's own, so that a run of the developer's goes
on beside it: files, lock and run directory are none of his.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from lib import collectd
from lib.process import NOBODY, built, ordinary_user
from lib.wait import wait_for

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PROGRAMS = ("pmdpulse", "pmdpulse-agent", "pmdpulse-switch", "pmdpulse.so", "config.mk", "tests/tools/hog")
# Under nohup the signal is ignored, and run.py leaves it so.
HANGS_UP = ("env", "--default-signal=HUP")

pytestmark = [
    pytest.mark.skipif(not os.path.exists(built("pmdpulse-switch")), reason="no switch is built"),
    pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing() or "-"),
    pytest.mark.skipif(os.cpu_count() < 2, reason="needs two cores"),
]


class Place:
    """A build folder of links, a run directory, and the environment that leads there."""

    def __init__(self, base):
        self.base, self.build, self.rundir = base, os.path.join(base, "build"), os.path.join(base, "run")
        os.makedirs(os.path.join(self.build, "tests/tools"))
        os.mkdir(self.rundir, 0o755)
        for name in PROGRAMS:
            os.symlink(built(name), os.path.join(self.build, name))
        # collectd takes no plugin through a link.
        os.unlink(os.path.join(self.build, "pmdpulse.so"))
        shutil.copy(built("pmdpulse.so"), self.build)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        # RUNTIME_DIRECTORY, XDG_RUNTIME_DIR: where DPDK keeps its files.
        self.env = {**kept, **(collectd.sanitizer_environment() or {}), "BUILD": self.build, "PYTHON": sys.executable, "HOME": base,
                    "PMDPULSE_RUNDIR": self.rundir, "RUNTIME_DIRECTORY": base, "XDG_RUNTIME_DIR": base}

    def give_to(self, uid):
        for folder, _, _ in os.walk(self.base):
            os.chown(folder, uid, uid)

    def make(self, goal, *variables, prefix=()):
        """The recipe itself; what it hangs on is built and configured (-o)."""
        return subprocess.run(
            [*prefix, "make", "-C", SOURCE, "--no-print-directory", goal, f"BUILD={self.build}", "DEPS=no",
             *(word for old in ("all", "tools", f"{self.build}/config.mk", f"{self.build}/configure")
               for word in ("-o", old)), *variables],
            env=self.env, capture_output=True, text=True, timeout=100, check=False)

    def left(self):
        """Command lines of processes that still name this place."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    text = file.read().replace("\0", " ")
            except OSError:
                continue
            if self.base in text:
                found.append(f"{pid} {text}")
        return found


@pytest.fixture
def place():
    base = tempfile.mkdtemp(prefix="pmdpulse-run-", dir="/dev/shm")
    os.chmod(base, 0o755)
    place = Place(base)
    yield place
    left = place.left()
    for line in left:
        os.kill(int(line.split()[0]), signal.SIGKILL)
    shutil.rmtree(base, ignore_errors=True)
    assert not left


def check_ran(place, done):
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    forwarded = re.search(r"forwarded (\d+) packets", done.stdout)
    assert forwarded and int(forwarded[1]) > 0, text
    assert "1 ALIVE" in done.stdout, text
    assert not place.left()


def test_run(need_root, place):
    check_ran(place, place.make("run", "DURATION=3"))


def test_run_as_an_ordinary_user(need_root, place):
    user = ordinary_user("--inh-caps=-all", "--bounding-set=-all")
    place.give_to(NOBODY)
    check_ran(place, place.make("run", "DURATION=3", prefix=user))


def test_demo(need_root, place):
    done = place.make("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "raised and cleared everywhere" in done.stdout
    assert not place.left()


def test_terminal_that_closes_stops_all(place, run):
    job = run([*HANGS_UP, f"{SOURCE}/contrib/dev/run.sh"], env=place.env, name="run")
    wait_for(lambda: "look around with" in job.out(), 60, lambda: f"the start:\n{job.out()}{job.err()}")
    assert job.stop(signal.SIGHUP, 30) == 0, job.out()
    assert not place.left()


def test_hog_that_fails_is_told_and_all_is_stopped(need_root, place, run):
    hog = os.path.join(place.build, "tests/tools/hog")
    os.unlink(hog)
    with open(hog, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho no such core >&2\nexit 3\n")
    os.chmod(hog, 0o755)
    job = run([f"{SOURCE}/contrib/dev/run.sh", "demo"], env=place.env, name="run")
    assert job.wait(90) == 1
    assert "exit 3: no such core" in job.out(), job.out()
    assert "Traceback" not in job.err()
    assert not place.left()


def test_hangup_in_the_start_stops_all(place, run):
    """With stand-ins that start and never answer: the script is caught in the middle of its waiting."""
    for name in ("pmdpulse-agent", "pmdpulse-switch", "collectd"):
        path = os.path.join(place.build, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n: > {place.base}/{name}.up\ntrap 'exit 0' TERM\n"
                       "while :; do sleep 0.1; done\n")
        os.chmod(path, 0o755)
    env = {**place.env, "PATH": f"{place.build}:{os.environ['PATH']}"}
    job = run([*HANGS_UP, f"{SOURCE}/contrib/dev/run.sh"], env=env, name="run")
    for name in ("pmdpulse-agent", "pmdpulse-switch", "collectd"):
        wait_for(lambda name=name: os.path.exists(f"{place.base}/{name}.up"), what=f"the start of {name}")
    assert len(place.left()) >= 3
    assert job.stop(signal.SIGHUP, 30) == 0, job.out() + job.err()
    assert "stopping" in job.out()
    assert not place.left()


def test_signal_within_a_start_leaves_no_process_behind(place):
    """The signal comes when the process is there and the script does not know it yet."""
    script = f"""
import os, signal, subprocess, sys
sys.path.insert(0, {SOURCE + "/contrib/dev"!r})
import stack, stopping
popen = subprocess.Popen
def interrupted(*args, **kwargs):
    process = popen(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGTERM)
    return process
subprocess.Popen = interrupted
it = stack.Stack({place.build!r})
stopping.watch()
try:
    it.spawn("sleeper", [sys.executable, "-c", "import time; time.sleep(60)", {place.base!r}])
except stopping.Stopped:
    print("stopped with", *it.processes)
it.stop()
"""
    done = subprocess.run([sys.executable, "-c", script], env=place.env, capture_output=True, text=True,
                          timeout=30, check=False)
    assert "stopped with sleeper\n" in done.stdout, done.stdout + done.stderr
    assert not place.left()
