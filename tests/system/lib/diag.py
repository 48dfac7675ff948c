# SPDX-License-Identifier: Apache-2.0
"""The diagnosis alone: a probe whose thread spins on core 1, and the faults that are done to it.

Each fault is a function (probe) -> list of Truth: what was really done, by the clock of who did it;
empty when something else came between.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time

from .process import Process, built
from .wait import wait_for

CORE = 1
THRESHOLD_MS = 20


@dataclasses.dataclass
class Truth:
    begin_ns: int
    end_ns: int
    cause: str
    pids: tuple = ()  # any of them may be named
    comm: str = None
    took_s: float = None
    function: str = None
    sched_class: str = None

    def overlap(self, stall):
        """The part of the fault that lies inside the stall."""
        both = min(self.end_ns, stall["end_ns"]) - max(self.begin_ns, stall["begin_ns"])
        return both / (self.end_ns - self.begin_ns)

    def anonymous(self):
        """The same, without a culprit."""
        return dataclasses.replace(self, pids=(), comm=None, took_s=None, sched_class=None)

    def fault_of(self, incident, took_tolerance):
        """What is wrong in an answer about this fault, or an empty string."""
        culprit = incident["culprit"] or {"pid": None, "comm": None, "class": None, "took_s": 0}
        if incident["cause"] != self.cause:
            return f"cause {incident['cause']}, not {self.cause}"
        if (culprit["pid"] in self.pids) != bool(self.pids):
            return f"culprit {culprit}, not {self.pids}"
        if self.comm and culprit["comm"] != self.comm:
            return f"comm {culprit['comm']}, not {self.comm}"
        if self.sched_class and culprit["class"] != self.sched_class:
            return f"class {culprit['class']}, not {self.sched_class}"
        # A hog has the CPU some time before and after its spin, too: its start and its last words.
        allowed_s = max(took_tolerance * self.took_s, 0.003) if self.took_s else 0
        if self.took_s and abs(culprit["took_s"] - self.took_s) > allowed_s:
            return f"took {culprit['took_s']} s, not {self.took_s}"
        if self.function and incident["evidence"].get("function") != self.function:
            return f"function {incident['evidence'].get('function')}, not {self.function}"
        return ""


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Probe(Process):
    """ag_diag_probe; drop: capabilities that it must do without."""

    def __init__(self, folder, *options, drop=(), seconds=60, name="probe"):
        argv = [built("tests/tools/ag_diag_probe"), "--core", CORE, "--threshold-ms", THRESHOLD_MS,
                "--seconds", seconds, *options]
        if drop:
            less = ",".join("-" + cap for cap in drop)
            argv = ["setpriv", "--bounding-set", less, "--inh-caps", less, *argv]
        # Without switch records the time of others in the same stall can't be told from the culprit's.
        self.took_tolerance = 0.3 if drop else 0.1
        self.ran_part = 0.0
        super().__init__(argv, folder, name, stdin=subprocess.PIPE)
        wait_for(lambda: self._lines("ready"), what=lambda: f"the probe to start: {self.err()}")
        self.thread = self._lines("ready")[0]
        # It must have beaten for a while before anything is done to it.
        time.sleep(0.3)

    def _lines(self, kind):
        found = []
        for line in self.out().split("\n")[:-1]:
            document = json.loads(line)
            if kind in document:
                found.append(document[kind])
        return found

    def stalls(self):
        return self._lines("stall")

    def order(self, text):
        self.popen.stdin.write((text + "\n").encode())
        self.popen.stdin.flush()

    def do(self, text):
        """A misbehaviour of the thread itself; returns when it did it, by its own clock."""
        n_done = len(self._lines("did"))
        self.order(text)
        wait_for(lambda: len(self._lines("did")) > n_done, what=f"the probe to {text}")
        did = self._lines("did")[n_done]
        self.ran_part = did["ran_ns"] / (did["end_ns"] - did["begin_ns"])
        return did["begin_ns"], did["end_ns"]

    def stall_of(self, truth, timeout=4):
        """The stall that this fault made."""
        return wait_for(lambda: [s for s in self.stalls() if truth.overlap(s) > 0.5], timeout,
                        lambda: f"a stall for {truth}; told were {self.stalls()[-3:]}")[0]


def hogs(*options, core=CORE, ms=100):
    """Run hogs to their end; their own word on what they did."""
    out = subprocess.run([built("tests/tools/hog"), "--core", str(core), "--ms", str(ms),
                          *map(str, options)], check=True, capture_output=True, text=True,
                         timeout=20).stdout
    return [json.loads(line) for line in out.splitlines()]


def _taken(hog, sched_class=None):
    return Truth(hog["begin_ns"], hog["end_ns"], "preempted", (hog["pid"],), hog["comm"],
                 hog["spun_ns"] / 1e9, sched_class=sched_class)


def fifo(_probe):
    return [_taken(hog, "SCHED_FIFO") for hog in hogs("--class", "fifo", ms=150)]


def round_robin(_probe):
    return [_taken(hog, "SCHED_RR") for hog in hogs("--class", "rr", ms=80)]


def thread_of_many(_probe):
    """A thread beside others that do nothing; its tid is what ran, its pid that of the process."""
    return [_taken(hog) for hog in hogs("--class", "fifo", "--threads", ms=80)]


def short(_probe):
    """Shorter than the threshold: nobody looks while it lasts, and the hog is gone when asked."""
    return [_taken(hog) for hog in hogs("--class", "fifo", ms=10)]


def crowd(_probe):
    """Three that take turns; the one with most time is to be named."""
    at = now_ns() + 300_000_000
    runs = [subprocess.Popen([built("tests/tools/hog"), "--core", str(CORE), "--ms", "120", "--class",
                              "fifo", "--at", str(at), "--burst-us", str(burst), "--pause-us", "200"],
                             stdout=subprocess.PIPE, text=True) for burst in (2000, 3000, 9000)]
    told = [json.loads(run.communicate(timeout=20)[0]) for run in runs]
    if max(t["begin_ns"] for t in told) > at + 20_000_000:
        return []  # on a machine this busy they did not meet
    most = max(told, key=lambda hog: hog["spun_ns"])
    return [Truth(min(t["begin_ns"] for t in told), min(t["end_ns"] for t in told), "preempted",
                  (most["pid"],), most["comm"])]


def stop(probe):
    pid = probe.thread["pid"]
    os.kill(pid, signal.SIGSTOP)
    begin = now_ns()
    time.sleep(0.12)
    end = now_ns()
    os.kill(pid, signal.SIGCONT)
    return [Truth(begin, end, "stopped")]


def debugger(probe):
    """gdb attaches and looks around."""
    marks = "python import time; print('MARK', time.clock_gettime_ns(time.CLOCK_MONOTONIC))"
    with subprocess.Popen(["gdb", "-q", "-batch", "-nx", "-p", str(probe.thread["pid"]), "-ex", marks,
                           "-ex", "shell sleep 0.15", "-ex", marks], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True) as gdb:
        out = gdb.communicate(timeout=20)[0]
    begin, end = [int(line.split()[1]) for line in out.splitlines() if line.startswith("MARK")]
    return [Truth(begin, end, "stopped", (gdb.pid,), "gdb")]


def nap(probe):
    return [Truth(*probe.do("nap 100"), "blocked")]


def pipe(probe):
    return [Truth(*probe.do("pipe 100"), "blocked")]


def _looped(probe, ms):
    """The loop was a loop only if it had the CPU: others on a busy machine may have taken it."""
    truth = Truth(*probe.do(f"loop {ms}"), "own-code", function="stuck_in_a_loop")
    return [truth] if probe.ran_part > 0.65 else []


def loop(probe):
    return _looped(probe, 100)


def loop_and_a_little_hog(probe):
    """Its own loop for most of the time and a hog for a twentieth of it: the loop is to blame."""
    with subprocess.Popen([built("tests/tools/hog"), "--core", str(CORE), "--ms", "6", "--class", "fifo",
                           "--at", str(now_ns() + 60_000_000)], stdout=subprocess.DEVNULL) as hog:
        truths = _looped(probe, 120)
        hog.wait(20)
    return truths


def loop_and_a_decoy(probe):
    """A hog on the other core while the thread loops: the hog has nothing to do with it."""
    with subprocess.Popen([built("tests/tools/hog"), "--core", "0", "--ms", "80", "--class", "other"],
                          stdout=subprocess.DEVNULL) as decoy:
        truths = _looped(probe, 100)
        decoy.wait(20)
    return truths


def nap_under_a_guest(probe):
    """While the thread sleeps another task uses its CPU: that one is no culprit."""
    with subprocess.Popen([built("tests/tools/hog"), "--core", str(CORE), "--ms", "60"],
                          stdout=subprocess.DEVNULL) as guest:
        truth = Truth(*probe.do("nap 120"), "blocked")
        guest.wait(20)
    return [truth]


# Cgroups: version 1 where the controller is mounted so, else version 2.

def _mount(controller):
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    for _, path, kind, options, *_ in mounts:
        if kind == "cgroup" and controller in options.split(","):
            return path, 1
    for _, path, kind, *_ in mounts:
        if kind == "cgroup2":
            with open(os.path.join(path, "cgroup.controllers"), encoding="utf-8") as file:
                if controller == "freezer" or controller in file.read().split():
                    return path, 2
    return None, 0


def has_cgroup(controller):
    return _mount(controller)[1] > 0 and os.geteuid() == 0


@contextlib.contextmanager
def _cgroup(probe, controller):
    """The probe's child in a cgroup of its own; gives functions that write and read its files."""
    root, version = _mount(controller)
    path = os.path.join(root, f"pmdpulse-test-{os.getpid()}")
    home = _own_cgroup(probe.thread["pid"], root, controller, version)
    os.mkdir(path)

    def write(name, value, folder=path):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def read(name):
        with open(os.path.join(path, name), encoding="ascii") as file:
            return file.read()

    try:
        if version == 2 and controller != "freezer":
            write("cgroup.subtree_control", "+" + controller, root)
        write("cgroup.procs", probe.thread["pid"])
        yield write, read, version
    finally:
        write("cgroup.procs", probe.thread["pid"], home)

        def is_removed():
            with contextlib.suppress(OSError):
                os.rmdir(path)
            return not os.path.exists(path)
        wait_for(is_removed, what=f"{path} to be empty")


def _own_cgroup(pid, root, controller, version):
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            if (controller in names.split(",")) if version == 1 else not names:
                return root + path
    return root


def _throttled_ns(read):
    for line in read("cpu.stat").splitlines():
        name, value = line.split()
        if name in ("throttled_time", "throttled_usec"):
            return int(value) * (1000 if name.endswith("usec") else 1)
    return 0


def quota(probe):
    """Half of every 200 ms: it stalls at the end of each period."""
    with _cgroup(probe, "cpu") as (write, read, version):
        if version == 1:
            write("cpu.cfs_period_us", 200000)
            write("cpu.cfs_quota_us", 100000)
        else:
            write("cpu.max", "100000 200000")
        begin = now_ns()
        time.sleep(0.62)
        end = now_ns()
        write(*(("cpu.cfs_quota_us", -1) if version == 1 else ("cpu.max", "max")))
        throttled_ns = _throttled_ns(read)
    time.sleep(0.1)
    # Which part of each period is lost is the kernel's choice: long stalls of that time are its, if
    # they add up to what it says that it held back.
    found = [s for s in probe.stalls() if s["begin_ns"] >= begin and s["end_ns"] <= end and
             s["end_ns"] - s["begin_ns"] > 6e7]
    if throttled_ns < 0.8 * sum(s["end_ns"] - s["begin_ns"] for s in found):
        return []
    return [Truth(s["begin_ns"], s["end_ns"], "cpu-quota") for s in found]


def freezer(probe):
    with _cgroup(probe, "freezer") as (write, _, version):
        name, on, off = (("freezer.state", "FROZEN", "THAWED") if version == 1 else
                         ("cgroup.freeze", "1", "0"))
        write(name, on)
        begin = now_ns()
        time.sleep(0.15)
        end = now_ns()
        write(name, off)
    return [Truth(begin, end, "frozen")]


FAULTS = {f.__name__: f for f in (fifo, round_robin, thread_of_many, short, crowd, stop, debugger, nap,
                                  pipe, loop, loop_and_a_little_hog, loop_and_a_decoy,
                                  nap_under_a_guest, quota, freezer)}


def missing(name):
    """Why a fault can't be made here, or an empty string."""
    if name == "debugger" and not shutil.which("gdb"):
        return "gdb is not installed"
    if name in ("quota", "freezer") and not has_cgroup("cpu" if name == "quota" else name):
        return "no cgroup controller to write to"
    if os.geteuid() != 0:
        return "needs root"
    if os.cpu_count() < 2:
        return "needs two cores"
    return ""
