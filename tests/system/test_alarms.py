# SPDX-License-Identifier: Apache-2.0
"""Faults of every kind done to the real switch, watched by the real agent.

The machine may really take the PMD's time meanwhile (a host that steals it, another task): such an
incident is true, so only accusations of the kind under test count where nothing may be raised.
"""

import os
import shutil
import subprocess
import time

import pytest

from lib import collectd
from lib.diag import hogs
from lib.process import built
from lib.switch import NULL_PORTS
from lib.wait import holds_for, wait_for

pytestmark = [
    pytest.mark.skipif(not os.path.exists(built("tests/pmdpulse-switch-hooks")), reason="no switch is built"),
    pytest.mark.skipif(os.cpu_count() < 2, reason="needs two cores"),
]

# What the machine may do to a PMD by itself.
OF_THE_MACHINE = ("steal", "preempted", "irq")


@pytest.fixture
def switch(start_switch):
    return start_switch()


@pytest.fixture
def agent(start_agent, switch):
    agent = start_agent()
    agent.wait_alive(1)
    return agent


def accusations(agent, since=0):
    """Incidents that accuse the switch or a thread of it of something that the machine did not do."""
    return [e for e in agent.events.all(phase="raise")[since:]
            if e["severity"] != "OKAY" and e["kind"] != "agent-late" and e["cause"] not in OF_THE_MACHINE]


def cleared(agent, cause, timeout=20, kind="pmd-stall"):
    """The clear of the first incident of that cause."""
    return agent.events.wait(timeout, kind=kind, phase="clear", cause=cause)


def test_hog_on_the_core_is_named(need_root, switch, agent):
    hog = hogs("--class", "fifo", core=switch.pmd()["core"], ms=300)[0]
    end = wait_for(lambda: [e for e in agent.events.all(kind="pmd-stall", phase="clear")
                            if (e["culprit"] or {}).get("pid") == hog["pid"]], 20, agent.events.describe)[0]
    begin = agent.events.all(id=end["id"])[0]
    assert begin["phase"] == "raise"
    assert (begin["cause"], end["cause"]) == ("preempted", "preempted")
    assert end["culprit"]["comm"] == hog["comm"]
    assert end["culprit"]["class"] == "SCHED_FIFO"
    spun_s = hog["spun_ns"] / 1e9
    assert end["duration_s"] == pytest.approx(spun_s, rel=0.1)
    assert end["culprit"]["took_s"] == pytest.approx(spun_s, rel=0.1)


def test_hog_on_the_other_core_raises_nothing(need_root, switch, agent):
    before = len(agent.events.all(phase="raise"))
    hog = hogs("--class", "other", core=0, ms=500)[0]
    holds_for(lambda: not [e for e in agent.events.all(phase="raise")[before:]
                           if (e["culprit"] or {}).get("pid") == hog["pid"]], 1, agent.events.describe)
    assert not accusations(agent, before), agent.events.describe()


def test_stopped_switch(switch, agent):
    switch.pause()
    begin = time.monotonic()
    agent.events.wait(kind="pmd-stall", phase="raise", cause="stopped")
    time.sleep(max(0, 2 - (time.monotonic() - begin)))
    switch.resume()
    stopped_s = time.monotonic() - begin
    end = cleared(agent, "stopped")
    assert end["duration_s"] == pytest.approx(stopped_s, rel=0.1)
    assert not agent.events.all(kind="switch-gone")
    assert not agent.events.all(kind="thread-gone")


def test_killed_switch_and_restart(start_switch, switch, agent):
    switch.kill()
    gone = agent.events.wait(kind="switch-gone", phase="raise")
    assert gone["severity"] == "FAILURE" and gone["cause"] == "process-died"
    assert switch.command.json("status")["switch"]["state"] == "gone"
    assert {t["state"] for t in switch.command.threads()} == {"GONE"}
    second = start_switch(name="switch2")
    back = agent.events.wait(kind="switch-back", phase="raise")
    assert back["severity"] == "OKAY"
    agent.events.wait(kind="switch-gone", phase="clear", id=gone["id"])
    agent.wait_alive(1)
    assert len(agent.events.all(kind="switch-gone", phase="raise")) == 1
    assert not agent.events.all(kind="thread-gone")
    assert second.stop() == 0


def test_clean_stop_leaves_nothing(switch, agent, rundir):
    before = len(agent.events.all(phase="raise"))
    assert switch.stop() == 0
    stopped = agent.events.wait(kind="switch-stopped")
    assert stopped["severity"] == "OKAY"
    holds_for(lambda: not accusations(agent, before), 1, agent.events.describe)
    left = [name for name in os.listdir(rundir) if ".agent." not in name and not name.endswith(".incidents")]
    assert not left
    base = os.environ.get("RUNTIME_DIRECTORY") or ("/run" if os.geteuid() == 0 else
                                                   os.environ.get("XDG_RUNTIME_DIR", "/tmp"))
    assert not [name for name in os.listdir(os.path.join(base, "dpdk")) if "default" in name] \
        if os.path.isdir(os.path.join(base, "dpdk")) else True
    assert switch.command.json("status")["switch"]["state"] == "stopped"


def test_endless_loop_is_own_code_with_its_function(switch, agent):
    switch.hook("spin", 700)
    end = cleared(agent, "own-code")
    assert end["duration_s"] == pytest.approx(0.7, rel=0.1)
    if os.geteuid() == 0:
        assert end["evidence"].get("function", "").startswith("sw_test_spin"), end


def test_blocked_pmd_says_where(switch, agent):
    switch.hook("block", 400)
    end = cleared(agent, "blocked")
    assert end["duration_s"] == pytest.approx(0.4, rel=0.1)
    if os.geteuid() == 0:
        assert end["evidence"].get("wchan"), end


def test_thread_that_exits_unannounced_is_gone(switch, agent):
    tid = switch.pmd()["tid"]
    switch.hook("exit")
    gone = agent.events.wait(kind="thread-gone", phase="raise")
    assert gone["thread"]["tid"] == tid and gone["cause"] == "exited"
    assert not agent.events.all(kind="switch-gone")


def test_debugger_is_named(need_root, switch, agent):
    if not shutil.which("gdb"):
        pytest.skip("gdb is not installed")
    with subprocess.Popen(["gdb", "-q", "-batch", "-nx", "-p", str(switch.pid), "-ex", "shell sleep 2"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL) as gdb:
        assert gdb.wait(60) == 0
    end = cleared(agent, "stopped")
    assert end["culprit"]["comm"] == "gdb" and end["culprit"]["pid"] == gdb.pid
    assert end["duration_s"] >= 1.9


def test_suspended_agent_blames_nobody(switch, agent):
    before = len(agent.events.all(phase="raise"))
    agent.pause()
    time.sleep(10)
    agent.resume()
    late = agent.events.wait(kind="agent-late", phase="raise")
    assert late["duration_s"] == pytest.approx(10, rel=0.1)
    agent.events.wait(kind="agent-late", phase="clear", id=late["id"])
    assert not accusations(agent, before), agent.events.describe()
    assert len([e for e in agent.events.all(kind="agent-late", phase="raise") if e["duration_s"] > 1]) == 1


def test_pmd_without_a_queue_sleeps(start_switch, start_agent):
    switch = start_switch(lines=("set pmd-cpu-mask=0x3", *NULL_PORTS[:1]))
    states = sorted(t["state"] for t in switch.command.threads())
    assert states == ["ALIVE", "SLEEP"]
    agent = start_agent()
    agent.wait_alive(1)
    holds_for(lambda: not accusations(agent), 2, agent.events.describe)
    assert switch.command.json("status")["threads"]["sleep"] == 1


def test_agent_restarted_while_an_incident_is_open(switch, agent, start_agent):
    switch.hook("spin", 4000)
    raised = agent.events.wait(kind="pmd-stall", phase="raise")
    agent.kill()
    second = start_agent(name="agent2")
    end = cleared(second, "own-code")
    assert end["id"] == raised["id"]
    assert len(second.events.all(kind="pmd-stall", phase="raise", id=raised["id"])) == 1
    assert end["duration_s"] == pytest.approx(4, rel=0.1)


def test_pause_for_reconfiguration_is_no_alarm(switch, agent):
    before = len(agent.events.all(phase="raise"))
    for n in range(20):
        switch.command.text("add-port", "x", f"net_null{10 + n}", "ofport=9")
        switch.command.text("del-port", "x")
    holds_for(lambda: not accusations(agent, before), 1, agent.events.describe)


def test_keepalive_off_judges_nobody(switch, agent):
    switch.command.text("set", "enable-keepalive=false")
    wait_for(lambda: switch.pmd()["state"] == "UNUSED", what="UNUSED")
    before = len(agent.events.all(phase="raise"))
    switch.hook("spin", 400)
    holds_for(lambda: not accusations(agent, before), 1, agent.events.describe)
    switch.command.text("set", "enable-keepalive=true")
    switch.wait_alive()
    holds_for(lambda: not accusations(agent, before), 0.5, agent.events.describe)


def test_interval_is_followed_while_running(switch, agent):
    switch.command.text("set", "keepalive-interval=200")
    switch.hook("block", 300)  # below two intervals now
    holds_for(lambda: not agent.events.all(kind="pmd-stall", cause="blocked"), 0.8, agent.events.describe)
    switch.command.text("set", "keepalive-interval=5")
    switch.hook("block", 30)
    assert cleared(agent, "blocked")["duration_s"] == pytest.approx(0.03, rel=0.3)


@pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing() or "-")
def test_collectd_before_the_switch_and_five_restarts(start_switch, start_agent, processes, rundir, folder):
    interval = 1
    start_agent()
    daemon = collectd.Collectd(rundir, folder, interval=interval)
    processes.append(daemon)
    daemon.wait_log("Initialization complete")
    for turn in range(5):
        switch = start_switch(name=f"switch{turn}")
        up = time.time()

        def good(up=up):
            return [v["time"] for v in daemon.values() if v["time"] > up and
                    v["type"] == "thread_state" and v["values"]["value"] == 1]
        wait_for(good, what="a good value")
        assert min(good()) - up < 2 * interval, f"turn {turn}"
        if turn % 2:
            switch.kill()
        else:
            assert switch.stop() == 0
        daemon.wait_value(("default", "switch_up"), lambda v: v == 0)
