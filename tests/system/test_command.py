# SPDX-License-Identifier: Apache-2.0
"""What the operator's command makes of run directories: which instance, what it says of health, events."""

import json
import os
import subprocess

import pytest

from lib.process import built
from lib.ves import Incidents
from lib.wait import wait_for


def command(rundir, *args):
    """The command without -i: it has to choose."""
    return subprocess.run([built("pmdpulse"), "--rundir", rundir, *args], capture_output=True, text=True,
                          timeout=30, check=False)


@pytest.fixture
def incidents(processes, rundir, folder):
    """incidents(instance="x"): a history as the agent writes it."""
    def start(*options, **keywords):
        processes.append(Incidents(rundir, folder, *options, **keywords))
        return processes[-1]
    return start


def test_the_one_switch_beside_the_history_of_default(rundir, incidents, start_publisher):
    """An agent that follows what comes keeps a history of "default", whatever the switch is called."""
    incidents(instance="default")
    start_publisher(lanes=["p1"], instance="red")
    done = command(rundir, "-j", "status")
    assert done.returncode == 0, done.stderr
    assert '"instance":"red"' in done.stdout.replace(" ", "")


def test_a_history_alone_is_enough(rundir, incidents):
    incidents(instance="blue").do("raise p1 pmd-stall")
    done = command(rundir, "events")
    assert done.returncode == 0 and "blue-" in done.stdout, done


def test_several_switches_are_listed(rundir, start_publisher):
    for name in ("red", "blue"):
        start_publisher(lanes=["p1"], instance=name, name=name)
    done = command(rundir, "status")
    assert done.returncode == 2
    assert "choose one with -i" in done.stderr
    assert done.stderr.split("\n")[1:3] == ["  blue", "  red"]
    assert command(rundir, "-i", "red", "status").returncode == 0


def test_a_thread_that_left_is_gone_not_dead(rundir, start_publisher):
    publisher = start_publisher(lanes=["p1", "p2"], interval=20)
    publisher.do("die p1")
    judged = wait_for(lambda: (s := states(rundir)) and s["p1"] not in ("ALIVE", "MISSING") and s, what="p1 judged")
    assert judged == {"p1": "GONE", "p2": "ALIVE"}
    assert json.loads(command(rundir, "-j", "status").stdout)["threads"]["gone"] == 1


def states(rundir):
    done = command(rundir, "-j", "pmd-health-show")
    return {thread["name"]: thread["state"] for thread in json.loads(done.stdout)["threads"]}


def test_a_stopped_switch_whose_file_was_kept(rundir, start_publisher):
    """stopped_ns decides, not whether the process is still there."""
    publisher = start_publisher(lanes=["p1"])
    ring, kept = (os.path.join(rundir, name) for name in ("default.ring", ".kept"))
    os.link(ring, kept)
    publisher.quit()
    os.rename(kept, ring)
    health = json.loads(command(rundir, "-j", "pmd-health-show").stdout)
    assert health["switch"]["state"] == "stopped" and health["switch"]["uptime_s"] is None
    assert {thread["state"] for thread in health["threads"]} <= {"UNUSED"}
    assert "switch    stopped" in command(rundir, "status").stdout


def test_no_switch_is_one_exit_code(rundir):
    text, document = command(rundir, "pmd-health-show"), command(rundir, "-j", "pmd-health-show")
    assert text.returncode == document.returncode == 1
    assert "no switch has published" in text.stderr and "no switch has published" in document.stderr
    assert json.loads(document.stdout)["threads"] == []


def test_follow_goes_on_when_the_log_begins_anew(rundir, incidents, run):
    follower = run([built("pmdpulse"), "--rundir", rundir, "-i", "default", "-j", "events", "--follow"],
                   name="follower")

    def seqs():
        return [json.loads(line)["seq"] for line in follower.out().split("\n")[:-1]]

    first = incidents()
    for _ in range(3):
        first.do("burst 1")
    wait_for(lambda: seqs() == [1, 2, 3, 4, 5, 6], what=lambda: f"six events, are {seqs()}")
    first.kill()
    incidents().do("burst 1")  # carried over: goes on
    wait_for(lambda: seqs()[6:] == [7, 8], what=lambda: f"two more, are {seqs()}")
    assert "anew" not in follower.err()
    os.unlink(os.path.join(rundir, "default.incidents"))
    incidents(name="third").do("burst 1")
    wait_for(lambda: seqs()[8:] == [1, 2], what=lambda: f"the new log's two, are {seqs()}")
    assert "began anew" in follower.err()


def test_segments_of_another_user(rundir, start_publisher, incidents, need_root):
    start_publisher(lanes=["p1"])
    incidents().do("raise p1 pmd-stall")
    for suffix in ("ring", "incidents"):
        os.chown(os.path.join(rundir, f"default.{suffix}"), 65534, -1)
    done = command(rundir, "pmd-health-show")
    assert done.returncode == 1 and "owned by uid 65534" in done.stderr
    for user in ("nobody", "65534"):
        done = command(rundir, "--publisher-user", user, "pmd-health-show")
        assert done.returncode == 0 and "p1" in done.stdout, done.stderr
        assert "pmd-stall" in command(rundir, f"--publisher-user={user}", "events").stdout
    done = command(rundir, "--publisher-user", "no such user", "status")
    assert done.returncode == 2 and "no such user" in done.stderr
