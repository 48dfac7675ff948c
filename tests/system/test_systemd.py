# SPDX-License-Identifier: Apache-2.0
"""The installed units under a real systemd: order, deaths, watchdog, sandbox.

The machine may really take the PMD's time meanwhile: such an incident is true, so only other
accusations count as false alarms.
"""

import itertools
import json
import os
import re

import pytest

from lib import collectd, systemd, ves
from lib.process import built
from lib.units import AGENT, COLLECTD, SWITCH, UNITS, false_alarms, last_seq, received, status, told
from lib.units import sampled_until_back
from lib.wait import holds_for, wait_for

PMD_CORE = 1
SETTLED_S = 30

COLLECTD_LOG = "/var/log/collectd.log"
HOG = "/usr/local/bin/hog"
HOOKED = "/usr/local/sbin/pmdpulse-switch-hooks"
VES, VES_LISTENER, VES_PORT = "pmdpulse-ves", "ves-listener", 8080
VES_TAKEN = "/run/ves-taken"
VES_SECRET = "/etc/pmdpulse/ves.secret"
SWITCH_CONF = f"""set pmd-cpu-mask={1 << PMD_CORE:#x}
add-port p1 net_null1 ofport=1
add-port p2 net_null2 ofport=2
add-flow in_port=1,actions=output:2
add-flow in_port=2,actions=output:1
"""
COLLECTD_CONF = f"""Hostname "testhost"
FQDNLookup false
Interval 1
TypesDB "/usr/share/collectd/types.db"
LoadPlugin logfile
<Plugin logfile>
    LogLevel info
    File "{COLLECTD_LOG}"
</Plugin>
LoadPlugin csv
LoadPlugin pmdpulse
"""

pytestmark = [
    pytest.mark.skipif(bool(systemd.missing()), reason=systemd.missing() or "-"),
    pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing() or "-"),
    pytest.mark.skipif(os.cpu_count() < 2, reason="needs two cores"),
]


@pytest.fixture(scope="module", name="booted")
def booted_fixture(tmp_path_factory):
    debs = systemd.given_packages()
    trees = [] if debs else [systemd.staged(tmp_path_factory.mktemp("tree"))]
    with systemd.Container(trees=trees, debs=debs) as machine:
        machine.write("/etc/pmdpulse/switch.conf", SWITCH_CONF)
        machine.write("/etc/collectd/collectd.conf", COLLECTD_CONF)
        # Debian's unit waits ten seconds before it starts it again.
        machine.write("/etc/systemd/system/collectd.service.d/soon.conf",
                      "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=1\n")
        machine.systemctl("daemon-reload")
        machine.copy(built("tests/tools/hog"), HOG, 0o755)
        yield machine


@pytest.fixture
def machine(booted):
    """The machine with the three units running; their journal is shown when the test fails."""
    before = booted.journal_end()
    booted.start(*UNITS)
    settle(booted)
    yield booted
    for entry in booted.journal(after=before):
        print(entry.get("SYSLOG_IDENTIFIER"), entry.get("MESSAGE"))


def is_relaying(machine):
    """By collectd's log: its status file takes two seconds."""
    log = machine.read(COLLECTD_LOG)
    log = log[max(0, log.rfind('plugin "pmdpulse" successfully loaded')):]
    return log.rfind("relaying the agent's incidents") > log.rfind("judges by itself")


def is_settled(machine):
    now = status(machine)
    return now and now["switch"]["state"] == "up" and now["agent"]["state"] == "up" and \
        now["threads"]["alive"] == 1 and is_relaying(machine) and \
        "default: up, 1 PMDs alive, 0 open" in machine.show(AGENT, "StatusText")  # as the agent sees it


def settle(machine, timeout=SETTLED_S):
    """Until all three run, see each other, and nothing is open."""
    machine.wait_active(*UNITS, timeout=timeout)
    machine.wait(lambda: is_settled(machine), timeout,
                 lambda: f"all to be well; is {status(machine)}\n{machine.describe(*UNITS)}\n"
                         f"{machine.read(COLLECTD_LOG)}")


@pytest.mark.parametrize("order", list(itertools.permutations(UNITS)), ids="-".join)
def test_start_order(booted, order):
    before = last_seq(booted)
    booted.stop(*UNITS)
    assert booted.output("stat", "-c", "%a %U %G", "/run/pmdpulse") == "3770 root pmdpulse"
    for unit in order:
        booted.systemctl("--job-mode=ignore-dependencies", "start", unit)
        assert booted.is_active(unit), booted.describe(unit)
    settle(booted)
    assert not false_alarms(booted, before), told(booted, before)


def test_users_and_rights(machine):
    pids = machine.main_pids(*UNITS)
    for unit, user in ((SWITCH, "pmdpulse"), (AGENT, "pmdpulse-agent")):
        assert machine.output("stat", "-c", "%U", f"/proc/{pids[unit]}") == user
    for name, owner in (("default.ring", "pmdpulse"), ("default.incidents", "pmdpulse-agent")):
        assert machine.output("stat", "-c", "%a %U %G", f"/run/pmdpulse/{name}") == f"640 {owner} pmdpulse"
    for name in ("default.ctl", "default.agent.ctl"):
        assert machine.output("stat", "-c", "%a %G", f"/run/pmdpulse/{name}") == "660 pmdpulse"
    rights = status(machine)["agent"]["rights"]
    wanted = ["perf", "sample", "ptrace", "schedstat", "mlock"]
    if re.search(r"Max nice priority +40", machine.read(f"/proc/{pids[AGENT]}/limits")):
        wanted += ["nice"]
    else:
        print("not tried: LimitNICE=, which this machine refuses to systemd (no CAP_SYS_RESOURCE)")
    assert set(wanted) <= set(rights), rights
    assert machine.output("ps", "-o", "nice=", "-p", pids[AGENT]) == "-20"
    pmd = machine.pmdpulse("pmd-health-show")["threads"][0]
    assert machine.output("cut", "-d", " ", "-f", "19", f"/proc/{pids[SWITCH]}/task/{pmd['tid']}/stat") == "-20"
    for line in ("CapEff:\t0000000000807000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in machine.read(f"/proc/{pids[SWITCH]}/status")
    for line in ("CapEff:\t0000004000084000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in machine.read(f"/proc/{pids[AGENT]}/status")


def test_operators_of_the_group_see_and_others_do_not(machine):
    environment = {"PMDPULSE_RUNDIR": "/run/pmdpulse"}
    argv = ["pmdpulse", "-j", "-i", "default", "status"]
    seen = machine.run("setpriv", "--reuid=nobody", "--regid=pmdpulse", "--clear-groups", *argv, env=environment)
    assert json.loads(seen.stdout)["switch"]["state"] == "up"
    refused = machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *argv,
                          env=environment, check=False)
    assert '"up"' not in refused.stdout


def test_stall_is_raised_with_cause_and_culprit(machine):
    before, place = last_seq(machine), machine.journal_end()
    told_before = machine.read(COLLECTD_LOG)
    hog = json.loads(machine.output(HOG, "--core", PMD_CORE, "--ms", 300, "--class", "fifo"))

    def of_the_hog(phase):
        return [e for e in told(machine, before, kind="pmd-stall", phase=phase)
                if (e["culprit"] or {}).get("pid") == hog["pid"]]
    end = wait_for(lambda: of_the_hog("clear"), what=lambda: f"a clear; told were {told(machine, before)}")[0]
    assert end["cause"] == "preempted"
    assert end["culprit"]["comm"] == hog["comm"] and end["culprit"]["class"] == "SCHED_FIFO"
    assert end["duration_s"] == pytest.approx(hog["spun_ns"] / 1e9, rel=0.1)
    assert told(machine, before, id=end["id"], phase="raise")
    # In the journal, with its explanation; and as collectd's notifications.
    entries = wait_for(lambda: machine.journal(after=place, PMDP_ID=end["id"], PMDP_PHASE="clear"),
                       what="the clear in the journal")
    assert [(e["PMDP_CULPRIT"], e["PMDP_CAUSE"]) for e in entries] == [(hog["comm"], "preempted")]
    catalog = machine.output("journalctl", "-x", f"PMDP_ID={end['id']}")
    assert "gave no sign of life" in catalog
    wait_for(lambda: all(text in machine.read(COLLECTD_LOG)[len(told_before):]
                         for text in ("severity = FAILURE", "severity = OKAY", hog["comm"])),
             what=lambda: f"notifications; the log:\n{machine.read(COLLECTD_LOG)[len(told_before):]}")


@pytest.fixture
def hooked(machine):
    """The switch's unit with a program that misbehaves on demand; hooked(action, ms) makes its PMD do so."""
    program = built("tests/pmdpulse-switch-hooks")
    if not os.path.exists(program):
        pytest.skip("no switch with test hooks is built")
    machine.copy(program, HOOKED, 0o755)
    machine.write(f"/etc/systemd/system/{SWITCH}.service.d/hooks.conf",
                  f"[Service]\nExecStart=\nExecStart={HOOKED} -- -c /etc/pmdpulse/switch.conf\n")
    machine.systemctl("daemon-reload")
    machine.restart(SWITCH)
    settle(machine)

    def misbehave(action, ms):
        machine.output("pmdpulse", "test-hook", machine.pmdpulse("pmd-health-show")["threads"][0]["name"],
                       action, ms)
    yield misbehave
    machine.run("rm", "-r", f"/etc/systemd/system/{SWITCH}.service.d")
    machine.systemctl("daemon-reload")
    machine.restart(SWITCH)


def test_place_is_named_in_another_users_process(machine, hooked):
    """Symbols and wait channel need CAP_SYS_PTRACE and the switch's files; each stall tells its own."""
    for action, ms, cause, key, text in (("spin", 500, "own-code", "function", "sw_test_spin"),
                                         ("block", 300, "blocked", "wchan", "")):
        before = last_seq(machine)
        hooked(action, ms)
        end = wait_for(lambda: told(machine, before, kind="pmd-stall", phase="clear", cause=cause),
                       what=lambda: f"a clear of {cause}; told were {told(machine, before)}")[0]
        assert end["duration_s"] == pytest.approx(ms / 1e3, rel=0.1)
        assert end["evidence"].get(key, "").startswith(text) and end["evidence"].get(key), end


@pytest.fixture
def ves_collector(machine):
    """The poster's unit, and what it posts to; ves_collector() are the events that arrived."""
    machine.write("/etc/pmdpulse/ves.conf",
                  f"[ves]\nurl = http://127.0.0.1:{VES_PORT}{ves.LISTENER}\nsource-name = host1\n"
                  f"credentials = {VES_SECRET}\n")
    # As docs/ves.md has it: the poster's user, and no other, must be able to read it.
    machine.run("install", "-o", "pmdpulse-ves", "-m", "600", "/dev/null", VES_SECRET)
    machine.run("sh", "-c", f"echo USER:PASSWORD > {VES_SECRET}")
    machine.take_posts(VES_LISTENER, VES_PORT, VES_TAKEN)
    machine.start(VES)
    validator = ves.schema_validator()

    def taken():
        posts = machine.posts(VES_TAKEN)
        for post in posts:
            assert post["path"] == ves.LISTENER
            validator.validate(post["body"])
        return [post["body"]["event"] for post in posts]
    yield taken
    print("taken by the collector:\n" + machine.read(VES_TAKEN))
    machine.stop(VES, VES_LISTENER)
    machine.run("rm", "-f", "/etc/pmdpulse/ves.conf", VES_SECRET, VES_TAKEN)


def test_poster_tells_a_collector(machine, ves_collector):
    """A stall, and the switch's end, arrive by HTTP; from a process without a right."""
    assert machine.is_active(VES), machine.describe(VES)
    pid = machine.main_pid(VES)
    assert machine.output("stat", "-c", "%U", f"/proc/{pid}") == VES
    for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in machine.read(f"/proc/{pid}/status")
    hog = json.loads(machine.output(HOG, "--core", PMD_CORE, "--ms", 300, "--class", "fifo"))

    def faults(condition, severity):
        return [event for event in ves_collector() if event["commonEventHeader"]["domain"] == "fault"
                and event["faultFields"]["alarmCondition"] == condition
                and event["faultFields"]["eventSeverity"] == severity]

    def of_the_hog(severity):
        return [event for event in faults("pmd-stall", severity) if event["faultFields"]
                ["alarmAdditionalInformation"].get("culprit_pid") == str(hog["pid"])]
    end = machine.wait(lambda: of_the_hog("NORMAL"), what=lambda: f"the clear; taken were {ves_collector()}")[0]
    header = end["commonEventHeader"]
    assert header["sourceName"] == "host1"
    told = end["faultFields"]["alarmAdditionalInformation"]
    assert told["cause"] == "preempted" and told["culprit"] == hog["comm"]
    assert float(told["duration_s"]) == pytest.approx(hog["spun_ns"] / 1e9, rel=0.1)
    assert header["eventId"] in [e["commonEventHeader"]["eventId"] for e in faults("pmd-stall", "CRITICAL")]
    # Gone without a word: an alarm until it is back.
    old = machine.main_pid(SWITCH)
    machine.kill(SWITCH)
    machine.wait(lambda: faults("switch-gone", "CRITICAL"), what=lambda: f"the alarm; taken were {ves_collector()}")
    machine.wait_back(SWITCH, old)
    machine.wait(lambda: faults("switch-gone", "NORMAL"), what=lambda: f"its end; taken were {ves_collector()}")
    machine.stop(SWITCH)
    states = machine.wait(lambda: [s for e in ves_collector() if e["commonEventHeader"]["domain"] == "stateChange"
                                   for s in [e["stateChangeFields"]["newState"]] if s == "maintenance"],
                          what=lambda: f"maintenance; taken were {ves_collector()}")
    assert states == ["maintenance"]
    assert machine.main_pid(VES) == pid


def test_switch_killed(machine):
    before, pids = last_seq(machine), machine.main_pids(*UNITS)
    machine.kill(SWITCH)
    machine.wait_back(SWITCH, pids[SWITCH])
    settle(machine)
    kinds = [(e["kind"], e["phase"]) for e in told(machine, before)]
    for wanted in (("switch-gone", "raise"), ("switch-gone", "clear"), ("switch-back", "raise")):
        assert kinds.count(wanted) == 1, kinds
    assert not false_alarms(machine, before, ("switch-gone",)), kinds
    now = machine.main_pids(*UNITS)
    assert (now[AGENT], now[COLLECTD]) == (pids[AGENT], pids[COLLECTD])


def test_agent_killed(machine):
    before, pids, packets = last_seq(machine), machine.main_pids(*UNITS), received(machine)
    machine.kill(AGENT)
    machine.wait_back(AGENT, pids[AGENT])
    settle(machine)
    assert not false_alarms(machine, before), told(machine, before)
    now = machine.main_pids(*UNITS)
    assert (now[SWITCH], now[COLLECTD]) == (pids[SWITCH], pids[COLLECTD])
    assert received(machine) > packets


def test_collectd_killed(machine):
    before, pids, packets = last_seq(machine), machine.main_pids(*UNITS), received(machine)
    machine.kill(COLLECTD)
    machine.wait_back(COLLECTD, pids[COLLECTD], SETTLED_S)
    settle(machine)
    assert not false_alarms(machine, before), told(machine, before)
    now = machine.main_pids(*UNITS)
    assert (now[SWITCH], now[AGENT]) == (pids[SWITCH], pids[AGENT])
    assert received(machine) > packets


def test_watchdog_ends_a_stopped_agent(machine):
    """Meanwhile the switch forwards without a gap."""
    before, place, pids = last_seq(machine), machine.journal_end(), machine.main_pids(*UNITS)
    sampled_until_back(machine)
    assert any("Watchdog timeout" in e["MESSAGE"] for e in machine.journal(unit=AGENT, after=place))
    settle(machine)
    assert not false_alarms(machine, before), told(machine, before)
    now = machine.main_pids(*UNITS)
    assert (now[SWITCH], now[COLLECTD]) == (pids[SWITCH], pids[COLLECTD])


def test_restarts_leave_the_switch_alone(machine):
    pid = machine.main_pid(SWITCH)
    packets = received(machine)
    machine.restart(AGENT, COLLECTD)
    settle(machine)
    assert machine.main_pid(SWITCH) == pid and received(machine) > packets
    machine.stop(AGENT, COLLECTD)
    holds_for(lambda: machine.main_pid(SWITCH) == pid, 0.5, "the switch to run on")
    # And the other way: without a switch they come up, and do not fetch one that is not enabled.
    machine.stop(SWITCH)
    machine.start(AGENT, COLLECTD)
    assert machine.is_active(AGENT) and machine.is_active(COLLECTD)
    assert not machine.is_active(SWITCH)


def test_agent_wants_an_enabled_switch(machine):
    machine.systemctl("enable", SWITCH, AGENT)
    try:
        assert f"{SWITCH}.service" in machine.show(AGENT, "Wants").split()
        for prop in ("Requires", "Requisite", "BindsTo", "PartOf"):
            assert SWITCH not in machine.show(AGENT, prop)
        machine.stop(SWITCH, AGENT, COLLECTD)
        machine.start(AGENT)  # as at boot
        machine.wait_active(SWITCH, AGENT)
    finally:
        machine.systemctl("disable", SWITCH, AGENT)


def test_second_instance_and_housekeeping_cpus(machine):
    machine.write("/etc/pmdpulse/switch-b.2.conf", "set pmd-cpu-mask=0x1\n")  # no port: its PMD sleeps
    machine.write("/etc/systemd/system/pmdpulse-agent.service.d/cpus.conf", "[Service]\nCPUAffinity=0\n")
    machine.systemctl("daemon-reload")
    pid = machine.main_pid(SWITCH)
    try:
        machine.restart(AGENT)
        machine.start("pmdpulse-switch@b.2")
        machine.wait(lambda: "b.2: up" in machine.show(AGENT, "StatusText"), what=lambda: machine.describe(AGENT))
        assert "default: up" in machine.show(AGENT, "StatusText")
        cpus = machine.output("grep", "^Cpus_allowed_list", f"/proc/{machine.main_pid(AGENT)}/status").split()[1]
        assert cpus == "0"
        machine.stop("pmdpulse-switch@b.2")
        machine.wait(lambda: status(machine).get("threads", {}).get("alive") == 1, what="default to be well")
        assert machine.main_pid(SWITCH) == pid
    finally:
        machine.run("rm", "-r", "/etc/systemd/system/pmdpulse-agent.service.d")
        machine.systemctl("daemon-reload")
        machine.restart(AGENT)


def test_wrong_setting_is_not_tried_again(machine):
    """Exit code 2: starting again would not help; the reason is in the journal."""
    machine.write("/etc/default/pmdpulse-agent", 'AGENT_OPTIONS="--notify=sometimes"\n')
    place = machine.journal_end()
    try:
        machine.systemctl("restart", AGENT, check=False)
        machine.wait(lambda: machine.show(AGENT, "ActiveState") == "failed", what=lambda: machine.describe(AGENT))
        assert any("dead or missing" in e["MESSAGE"] for e in machine.journal(unit=AGENT, after=place))
    finally:
        machine.write("/etc/default/pmdpulse-agent", "")
        machine.systemctl("reset-failed", AGENT)
