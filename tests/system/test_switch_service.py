# SPDX-License-Identifier: Apache-2.0
"""The switch as a service: what it tells systemd, how its PMDs are scheduled, and what it does where
the kernel or the machine has less to give."""

import mmap
import os
import time

import pytest

from lib.control import request
from lib.notify import NotifySocket
from lib.process import NOBODY, built, ordinary_user
from lib.switch import HOOKED, NULL_PORTS, Switch
from lib.wait import holds_for, wait_for

NICE = -20
WATCHDOG_S = 0.8
INTERVAL_MS = 20
SPIN_MS = 2500
PRIORITY = 7
MAP_HUGETLB = 0x40000
WITHOUT_NICE = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")

pytestmark = [
    pytest.mark.skipif(not os.path.exists(built(HOOKED)), reason="no switch with test hooks is built"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores"),
]


@pytest.fixture
def notify(rundir):
    return NotifySocket(os.path.join(rundir, "notify"))


def under(notify, **more):
    """The environment of a service whose manager listens at notify."""
    return {"NOTIFY_SOCKET": notify.path, **more}


WATCHED = {"WATCHDOG_USEC": str(round(WATCHDOG_S * 1e6))}


def test_ready_status_stopping(start_switch, notify):
    switch = start_switch(env=under(notify))
    wait_for(lambda: notify.has("READY=1"), what=lambda: f"READY; said were {notify.lines()}")
    lines = notify.lines()
    assert lines[lines.index("READY=1") + 1] == "STATUS=2 ports, 1 PMD thread"
    switch.command.text("del-port", "p2")
    wait_for(lambda: notify.has("STATUS=1 port, "), what="the status of one port")
    assert not notify.has("STOPPING=1")
    assert switch.stop() == 0
    assert notify.lines()[-2:] == ["STOPPING=1", "STATUS=stopping"]
    assert notify.count("READY=1") == 1
    assert not notify.has("WATCHDOG")  # nobody asked for it


def test_start_that_fails_is_never_ready(start_switch, notify):
    switch = start_switch(lines=("add-port p1 net_null1 ofport=1", "add-port p1 net_null2"), env=under(notify),
                          is_awaited=False)
    assert switch.wait(60) == 1
    assert ".conf:2: " in switch.err()
    assert not notify.has("READY") and notify.has("STOPPING=1")


def test_watchdog_is_fed_in_time(start_switch, notify):
    switch = start_switch(env=under(notify, **WATCHED))
    wait_for(lambda: notify.count("WATCHDOG=1") >= 5, what=lambda: f"pings; said were {notify.lines()}")
    at = [when for when, line in notify.said if line in ("READY=1", "WATCHDOG=1")]
    assert max(b - a for a, b in zip(at, at[1:])) < WATCHDOG_S, at
    # By the control loop and nothing else: a process that stands feeds nothing.
    switch.pause()
    before = notify.count("WATCHDOG=1")
    holds_for(lambda: notify.count("WATCHDOG=1") == before, 1.5 * WATCHDOG_S, notify.lines)
    switch.resume()
    wait_for(lambda: notify.count("WATCHDOG=1") > before, what="a ping after it went on")


def test_watchdog_of_another_process_is_none_of_ours(start_switch, notify):
    start_switch(env=under(notify, **WATCHED, WATCHDOG_PID=str(os.getpid())))
    wait_for(lambda: sum("STATUS=" in line for line in notify.lines()) >= 3, what="two more states")
    assert not notify.has("WATCHDOG=1")


def pings_while_dead(switch, notify):
    """How often the watchdog was fed while the PMD was dead, and for how long that was looked at."""
    switch.hook("spin", SPIN_MS)
    wait_for(lambda: switch.pmd()["state"] == "DEAD", what=lambda: f"{switch.pmd()} to be dead")
    # The switch itself looks at its own times: let it see, too.
    begin = time.monotonic() + 0.2
    wait_for(lambda: time.monotonic() >= begin, what="the switch's next look")
    before = notify.count("WATCHDOG=1")
    n_pings, end = 0, begin
    while True:
        # Counted first: what comes after the state was asked for may be for the living.
        n, now = notify.count("WATCHDOG=1") - before, time.monotonic()
        if switch.pmd()["state"] != "DEAD":
            break
        n_pings, end = n, now
    switch.wait_alive()
    return n_pings, end - begin


def test_dead_pmd_stops_the_watchdog_only_on_demand(start_switch, notify):
    lines = (f"set keepalive-interval={INTERVAL_MS}", *NULL_PORTS)
    switch = start_switch(lines=lines, env=under(notify, **WATCHED))
    n_pings, seconds = pings_while_dead(switch, notify)
    assert seconds > 1.5 * WATCHDOG_S and n_pings >= 2, (n_pings, seconds)
    switch.command.text("set", "watchdog-needs-pmds=true")
    n_pings, seconds = pings_while_dead(switch, notify)
    assert seconds > 1.5 * WATCHDOG_S and n_pings == 0, (n_pings, seconds)
    # It lives again, so it is fed again; and without keepalive nobody is judged.
    before = notify.count("WATCHDOG=1")
    wait_for(lambda: notify.count("WATCHDOG=1") > before, what="a ping for the living")
    switch.command.text("set", "enable-keepalive=false")
    before = notify.count("WATCHDOG=1")
    wait_for(lambda: notify.count("WATCHDOG=1") >= before + 2, what="pings without keepalive")


def test_sleeping_pmd_feeds_the_watchdog(start_switch, notify):
    """A PMD without queues has nothing to beat for."""
    switch = start_switch(lines=(f"set keepalive-interval={INTERVAL_MS}", "set watchdog-needs-pmds=true"),
                          env=under(notify, **WATCHED))
    assert [t["state"] for t in switch.command.threads()] == ["SLEEP"]
    wait_for(lambda: notify.count("WATCHDOG=1") >= 3, what="pings")


def scheduling(pid, tid):
    """(policy, real-time priority, nice) as the kernel has them."""
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii", errors="replace") as file:
        nice = int(file.read().rpartition(")")[2].split()[16])
    return os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority, nice


def tids(switch):
    return [thread["tid"] for thread in switch.command.threads()]


def may_be_fifo():
    """Why no thread here may be SCHED_FIFO, or an empty string. Asked of a child that does nothing."""
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return os.strerror(code) if code else ""


def test_pmds_at_nice_20_and_nothing_else(need_root, start_switch):
    switch = start_switch()
    of_pmds = tids(switch)
    for tid in map(int, os.listdir(f"/proc/{switch.pid}/task")):
        wanted = NICE if tid in of_pmds else os.getpriority(os.PRIO_PROCESS, 0)
        assert scheduling(switch.pid, tid) == (os.SCHED_OTHER, 0, wanted), tid
    assert "nice" not in switch.err()


def test_pmds_at_fifo_and_back(need_root, start_switch):
    """With PMDs that sleep, so that none holds a core at that priority."""
    refusal = may_be_fifo()
    if refusal:
        pytest.skip(f"the kernel refuses SCHED_FIFO to everybody here: {refusal}")
    switch = start_switch(lines=(f"set pmd-sched=fifo:{PRIORITY}",))
    tid, = tids(switch)
    assert scheduling(switch.pid, tid)[:2] == (os.SCHED_FIFO, PRIORITY)
    assert "no SCHED_FIFO" not in switch.err()
    with open("/proc/sys/kernel/sched_rt_runtime_us", encoding="ascii") as file:
        is_throttled = int(file.read()) >= 0
    assert ("set kernel.sched_rt_runtime_us=-1" in switch.err()) == is_throttled
    switch.command.text("set", f"pmd-sched=nice:{NICE}")
    assert scheduling(switch.pid, tid) == (os.SCHED_OTHER, 0, NICE)
    switch.command.text("set", f"pmd-sched=fifo:{PRIORITY + 1}")
    assert scheduling(switch.pid, tid)[:2] == (os.SCHED_FIFO, PRIORITY + 1)


@pytest.mark.parametrize("lines", [(), (f"set pmd-sched=fifo:{PRIORITY}",)], ids=["nice", "fifo"])
def test_a_pmd_beside_control_is_not_raised(need_root, start_switch, lines):
    """Every core has a PMD: on the one that control runs on, commands must go on being served."""
    mask = sum(1 << cpu for cpu in os.sched_getaffinity(0))
    switch = start_switch(lines=(f"set pmd-cpu-mask={mask:#x}", *lines))
    first = min(os.sched_getaffinity(0))
    assert os.sched_getaffinity(switch.pid) == {first}
    shared = next(thread for thread in switch.command.threads() if thread["core"] == first)
    assert scheduling(switch.pid, shared["tid"]) == (os.SCHED_OTHER, 0, 0)
    assert f"{shared['name']} shares core {first} with the control threads" in switch.err()


def test_control_keeps_off_the_cores_of_pmds(need_root, start_switch):
    switch = start_switch()
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("skipped: needs two cores")
    core, of_pmds = switch.pmd()["core"], tids(switch)
    others = [tid for tid in map(int, os.listdir(f"/proc/{switch.pid}/task")) if tid not in of_pmds]
    assert others and all(os.sched_getaffinity(tid) == {core} for tid in of_pmds)
    for tid in others:
        assert core not in os.sched_getaffinity(tid), tid


def test_memory_is_locked(need_root, start_switch):
    if "address" in os.environ.get("SANITIZE", ""):
        pytest.skip("skipped: mlockall() does nothing under the address sanitizer")
    switch = start_switch()
    with open(f"/proc/{switch.pid}/status", encoding="ascii", errors="replace") as file:
        fields = dict(line.split(":", 1) for line in file)
    locked, resident = (int(fields[key].split()[0]) for key in ("VmLck", "VmRSS"))
    assert locked >= resident > 0


def test_refused_priorities_are_told_and_it_forwards(need_root, start_switch):
    switch = start_switch(lines=(f"set pmd-sched=fifo:{PRIORITY}", *NULL_PORTS), prefix=WITHOUT_NICE)
    inherited = os.getpriority(os.PRIO_PROCESS, 0)
    assert scheduling(switch.pid, switch.pmd()["tid"]) == (os.SCHED_OTHER, 0, inherited)
    for text in (f"{switch.pmd()['name']}: no SCHED_FIFO (Operation not permitted): needs CAP_SYS_NICE or "
                 f"LimitRTPRIO={PRIORITY}", f"no nice {NICE} (Permission denied): needs CAP_SYS_NICE or LimitNICE=40"):
        assert switch.err().count(text) == 1, switch.err()
    wait_for(lambda: switch.command.port("p2")["tx_packets"] > 1000, what="packets")


@pytest.mark.parametrize("value", ["fifo", "fifo:0", "fifo:100", "nice:-19", "rr:5", ""])
def test_wrong_scheduling_is_refused(start_switch, value):
    switch = start_switch(lines=())
    before = scheduling(switch.pid, tids(switch)[0])
    assert "pmd-sched" in switch.command.refused("set", f"pmd-sched={value}")
    assert scheduling(switch.pid, tids(switch)[0]) == before


def meminfo(key):
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith(key + ":")).split()[1])


@pytest.fixture
def no_free_hugepages():
    """Reserves what is free of them, if any, without touching it."""
    for size in os.listdir("/sys/kernel/mm/hugepages"):
        with open(f"/sys/kernel/mm/hugepages/{size}/nr_overcommit_hugepages", encoding="ascii") as file:
            if int(file.read()):
                pytest.skip(f"the kernel makes more {size} on demand")
        with open(f"/sys/kernel/mm/hugepages/{size}/free_hugepages", encoding="ascii") as file:
            if int(file.read()) and size != f"hugepages-{meminfo('Hugepagesize')}kB":
                pytest.skip(f"there are free {size}, too")
    n_free = meminfo("HugePages_Free") - meminfo("HugePages_Rsvd")
    if n_free == 0:
        yield
        return
    with mmap.mmap(-1, n_free * meminfo("Hugepagesize") * 1024, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                   MAP_HUGETLB):
        yield


@pytest.mark.parametrize("is_root", [True, False], ids=["root", "ordinary-user"])
def test_falls_back_to_ordinary_memory(need_root, no_free_hugepages, processes, rundir, is_root):
    prefix = () if is_root else ordinary_user()
    if prefix:
        os.chown(rundir, NOBODY, NOBODY)
    switch = Switch(rundir, rundir, prefix=prefix, env={"HOME": "/", "XDG_RUNTIME_DIR": ""} if prefix else None,
                    is_awaited=False)
    processes.append(switch)
    # Asked directly: a stranger's ring is not believed.
    path = os.path.join(rundir, "default.ctl")
    wait_for(lambda: "instance default: 2 ports" in switch.err() or not switch.is_alive(), 60,
             lambda: f"the start:\n{switch.err()}")
    assert "running without hugepages: fewer than 64 free hugepages of 2 MiB (see vm.nr_hugepages)" in switch.err()
    assert request(path, "show")["data"]["hugepages"] is False
    wait_for(lambda: sum(pmd["packets_received"] for pmd in request(path, "pmd-stats-show")["data"]["pmds"]) > 1000,
             what="packets")
    assert switch.stop() == 0
    assert sorted(os.listdir(rundir)) == ["switch.conf", "switch.err", "switch.out"]
