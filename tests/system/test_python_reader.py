# SPDX-License-Identifier: Apache-2.0
"""contrib/python/pmdpulse_read.py, which knows docs/abi.md alone, beside the command: the same health
of living, dead and hostile segments."""

import datetime
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time

import pytest

from lib.reader import SCRIPT, load
from lib.switch import Command
from lib.ves import Incidents
from lib.wait import wait_for

LIMIT_LINES = 200
READER = load()


def by_command(rundir):
    done = Command(rundir).run("-j", "pmd-health-show")
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    return json.loads(done.stdout), done.returncode == 1


def differences(one, two, path=""):
    """Where they differ by more than the time between the two looks."""
    if isinstance(one, dict) and isinstance(two, dict):
        if list(one) != list(two):
            return [f"{path}: keys {list(one)} and {list(two)}"]
        return [d for key in one for d in differences(one[key], two[key], f"{path}.{key}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [d for i, pair in enumerate(zip(one, two)) for d in differences(*pair, f"{path}[{i}]")]
    if path.endswith(".rights"):  # from the agent's socket, not from shared memory
        return []
    if path.endswith(("uptime_s", "beat_age_s")) and one is not None and two is not None:
        near = math.isclose(one, two, rel_tol=1e-6, abs_tol=10)
    elif path.endswith("started_at") and one and two:
        at = [datetime.datetime.fromisoformat(text).timestamp() for text in (one, two)]
        near = abs(at[0] - at[1]) < 0.01
    elif isinstance(one, float) and isinstance(two, (int, float)):
        near = math.isclose(one, two, rel_tol=1e-9)
    else:
        near = one == two
    return [] if near else [f"{path}: {one!r} and {two!r}"]


def assert_same(rundir, what=""):
    mine, reason = READER.read_health(rundir, "default")
    theirs, is_refused = by_command(rundir)
    assert not differences(mine, theirs), (what, differences(mine, theirs), reason)
    assert bool(reason) == is_refused, (what, reason)
    return mine


def test_it_is_short():
    with open(SCRIPT, encoding="utf-8") as file:
        lines = file.readlines()
    assert len(lines) < LIMIT_LINES and max(map(len, lines)) <= 112


def test_nothing_is_there(rundir):
    health = assert_same(rundir)
    assert health["switch"]["state"] == "absent" and not health["threads"]


def test_as_a_program(rundir, start_publisher):
    start_publisher(lanes=["p1"])
    done = subprocess.run([sys.executable, SCRIPT, rundir], capture_output=True, text=True, timeout=20,
                          check=True)
    assert json.loads(done.stdout)["threads"][0]["name"] == "p1"
    with open(os.path.join(rundir, "bad.ring"), "wb") as file:
        file.write(b"x" * 2000)
    done = subprocess.run([sys.executable, SCRIPT, rundir, "bad"], capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode == 1 and "magic" in done.stderr


def test_every_state(rundir, start_publisher, start_agent):
    """Steady states; those that pass with time are compared while the process stands still."""
    publisher = start_publisher(lanes=["alive", "sleeping", "dozing", "late", "ended", "silent", "c - control"],
                                interval=500)
    agent = start_agent()
    agent.wait_alive(7)
    publisher.do("sleep sleeping")
    publisher.do("doze dozing 30000 60000")
    publisher.do("exit ended")
    publisher.do("die silent")
    wait_for(lambda: {t["name"]: t["state"] for t in READER.read_health(rundir, "default")[0]["threads"]} ==
             {"alive": "ALIVE", "sleeping": "SLEEP", "dozing": "DOZING", "late": "ALIVE", "silent": "GONE",
              "c": "ALIVE"}, what=lambda: READER.read_health(rundir, "default"))
    publisher.do("stall late 1200")
    publisher.done("late")
    agent.events.wait(kind="pmd-stall", phase="clear", thread="late")
    publisher.pause()
    # The agent's last word on each, too: between the two looks nothing may change.
    wait_for(lambda: {t["name"]: (t["last_stall"] or {}).get("cause") for t in
                      READER.read_health(rundir, "default")[0]["threads"] if t["state"] == "DEAD"} ==
             {"alive": "stopped", "late": "stopped", "c": "stopped"},
             what=lambda: READER.read_health(rundir, "default"))
    health = assert_same(rundir)
    assert health["agent"]["state"] == "up" and health["switch"]["state"] == "up"
    late = next(t for t in health["threads"] if t["name"] == "late")
    assert late["stalls"] == 1 and late["last_stall"]["duration_s"] > 0.9  # of the pause, by now
    assert late["last_stall"]["id"].startswith("default-")
    agent.stop()
    assert assert_same(rundir)["agent"]["state"] == "absent"
    publisher.kill()
    health = assert_same(rundir)
    assert health["switch"]["state"] == "gone"
    assert {t["state"] for t in health["threads"]} == {"GONE"}


def test_stalls_without_an_agent(rundir, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"])
    for ms in (300, 150):
        publisher.do(f"stall p1 {ms}")
        publisher.done("p1", count=1 if ms == 300 else 2)
    publisher.pause()
    time.sleep(0.12)  # two intervals: nobody is between two states
    health = assert_same(rundir)
    assert 0.15 <= health["threads"][0]["last_stall"]["duration_s"] < 0.3
    assert health["threads"][1]["last_stall"] is None


def test_keepalive_off(rundir, start_publisher):
    publisher = start_publisher(lanes=["p1"])
    publisher.do("keepalive off")
    publisher.pause()
    assert assert_same(rundir)["threads"][0]["state"] == "UNUSED"


def test_a_clean_stop(rundir, start_publisher, start_agent):
    publisher = start_publisher(lanes=["p1"])
    agent = start_agent()
    agent.wait_alive(1)
    publisher.quit()
    agent.events.wait(kind="switch-stopped")
    assert assert_same(rundir)["switch"]["state"] == "stopped"


def test_another_pid_namespace(rundir, start_publisher, need_root):
    """There /proc tells nothing: the lock on byte 0 does."""
    publisher = start_publisher(lanes=["p1"])
    inside = ["unshare", "--pid", "--fork", sys.executable, SCRIPT, rundir]
    for state in ("up", "gone"):
        done = subprocess.run(inside, capture_output=True, text=True, timeout=20, check=False)
        if done.returncode and "unshare" in done.stderr:
            pytest.skip(f"no pid namespace to be had: {done.stderr}")
        assert json.loads(done.stdout)["switch"]["state"] == state, done
        publisher.kill()


@pytest.fixture
def frozen(rundir, start_publisher, processes, folder):
    """A rundir with copies that nobody writes: many threads, some stalls, some incidents."""
    publisher = start_publisher(lanes=["p1", "ü", "c - control"], interval=50)
    processes.append(Incidents(rundir, folder, "--events=16"))
    publisher.do("stall p1 200")
    publisher.do("sleep ü")
    publisher.done("p1")
    processes[-1].do("burst 6")
    processes[-1].do("raise p1 agent-late")
    processes[-1].kill()
    publisher.pause()  # alive, so that states are judged
    time.sleep(0.12)
    whole = os.path.join(folder, "whole")
    shutil.copytree(rundir, whole)
    return whole


def mutants(rng, data):
    """Bytes changed where it hurts: header, sections, hot table; then anywhere."""
    for turn in range(250):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.choice((120, 200, 376, 640, 1024 + 512, len(data)))
            at = rng.randrange(min(place, len(data)))
            changed[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        if turn % 10 == 0:
            changed = changed[:rng.randrange(len(changed))]
        yield bytes(changed)


@pytest.mark.parametrize("suffix", ["ring", "incidents"])
def test_hostile_segments(rundir, frozen, suffix):
    seed = int(os.environ.get("PMDP_TEST_SEED", random.randrange(2**32)))
    print(f"PMDP_TEST_SEED={seed}")
    path = os.path.join(rundir, f"default.{suffix}")
    with open(os.path.join(frozen, f"default.{suffix}"), "rb") as file:
        data = file.read()
    n_refused = n_taken = 0
    for number, mutant in enumerate(mutants(random.Random(seed), data)):
        with open(path + ".new", "wb") as file:
            file.write(mutant)
        os.rename(path + ".new", path)
        health = assert_same(rundir, f"seed {seed}, mutant {number}")
        is_taken = health["switch" if suffix == "ring" else "agent"]["state"] not in ("absent", "stopped")
        n_taken += is_taken
        n_refused += not is_taken
    assert n_taken > 10 and n_refused > 10


def test_files_that_are_no_segments(rundir, folder):
    path = os.path.join(rundir, "default.ring")
    for content in (b"", b"PMDPULSE", b"PMDPULSE" + bytes(1016), os.urandom(5000)):
        with open(path, "wb") as file:
            file.write(content)
        assert_same(rundir, content[:16])
    os.unlink(path)
    os.mkfifo(path)
    assert_same(rundir, "fifo")
    os.unlink(path)
    target = os.path.join(folder, "elsewhere")
    with open(target, "wb") as file:
        file.write(bytes(2000))
    os.symlink(target, path)
    assert_same(rundir, "symlink")


def test_another_users_file(rundir, start_publisher, need_root):
    start_publisher(lanes=["p1"]).kill()
    os.chown(os.path.join(rundir, "default.ring"), 12345, -1)
    mine, reason = READER.read_health(rundir, "default")
    assert reason and not mine["threads"]
    assert_same(rundir)
