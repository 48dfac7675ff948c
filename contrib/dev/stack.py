# SPDX-License-Identifier: Apache-2.0
"""Switch, agent and collectd as processes of one script: start, look, stop."""
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import stopping

INSTANCE = "default"
TMPFS_MAGIC = "tmpfs"


def say(text):
    print(f"run: {text}", flush=True)


def filesystem_of(path):
    """Type of the file system that holds path, or that would hold it."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    out = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True)
    return out.stdout.strip()


def product_rundir():
    """Where the programs look when nothing is said."""
    if os.environ.get("PMDPULSE_RUNDIR"):
        return os.environ["PMDPULSE_RUNDIR"]
    if os.getuid() == 0:
        return "/run/pmdpulse"
    base = os.environ.get("XDG_RUNTIME_DIR")
    return f"{base}/pmdpulse" if base else f"/dev/shm/pmdpulse-{os.getuid()}"


def choose_rundir():
    """The product's own folder when it is on a tmpfs and ours to write, else one in /dev/shm."""
    path = product_rundir()
    if os.environ.get("PMDPULSE_RUNDIR"):
        return path
    parent = os.path.dirname(path)
    if filesystem_of(path) == TMPFS_MAGIC and (os.path.isdir(path) or os.access(parent, os.W_OK)):
        return path
    return f"/dev/shm/pmdpulse-{os.getuid()}"


class Stack:
    """The three processes, their files under build/run and their segments in rundir."""

    def __init__(self, build):
        self.build = build
        self.dir = os.path.join(build, "run")
        self.rundir = choose_rundir()
        self.processes = {}
        self.lock = self.lock_folder()
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)

    def lock_folder(self):
        """Two runs would write each other's files; the kernel drops the lock with the process."""
        lock = open(f"{self.dir}.lock", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"make run or make demo is running from {self.build} already: stop it first (Ctrl-C)")
            sys.exit(1)
        return lock

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def spawn(self, name, argv):
        log = open(self.path(f"{name}.log"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
        env = dict(os.environ, PMDPULSE_RUNDIR=self.rundir)
        # A session of its own: Ctrl-C reaches this script alone, which stops the rest in order, and
        # priorities count beyond this terminal (autogroup scheduling).
        # A signal between the start and the entry would leave a process that nobody stops.
        with stopping.held():
            self.processes[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env,
                start_new_session=True)
        log.close()

    def log_tail(self, name, n=15):
        with open(self.path(f"{name}.log"), encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-n:])

    def dead(self):
        """Name of a process that ended by itself, or None."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                return name
        return None

    def ask(self, *argv):
        """A command of pmdpulse with -j: its document, or None."""
        try:
            out = subprocess.run(
                [os.path.join(self.build, "pmdpulse"), "--rundir", self.rundir, "-i", INSTANCE, "-j", *argv],
                capture_output=True, text=True, timeout=10, check=False)
            return json.loads(out.stdout) if out.returncode == 0 else None
        except (ValueError, subprocess.TimeoutExpired):
            return None

    def agent_follows(self):
        """Does the agent watch the threads of the switch yet? Asked over its control socket."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            try:
                sock.connect(os.path.join(self.rundir, f"{INSTANCE}.agent.ctl"))
                sock.sendall(b'{"id": 1, "cmd": "status", "args": []}\n')
                reply = json.loads(sock.makefile().readline())
            except (OSError, ValueError):
                return False
        return reply["ok"] and reply["data"]["switch"]["state"] == "up" and \
            reply["data"]["threads"]["alive"] > 0

    def wait(self, what, condition, seconds):
        """Poll until condition() is true; exits with the reason when it is not, or a process died."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            if self.dead():
                self.fail(f"{self.dead()} ended while waiting for {what}", self.dead())
            time.sleep(0.05)
        self.fail(f"no {what} within {seconds} s")
        return None

    def fail(self, why, name=None):
        say(why)
        for other in [name] if name else self.processes:
            sys.stdout.write(f"--- {self.path(other)}.log\n{self.log_tail(other)}")
        self.stop()
        sys.exit(1)

    def stop(self):
        """Clean stop in reverse order; what does not end in time is killed and told."""
        clean = True
        for name in reversed(list(self.processes)):
            process = self.processes[name]
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                rc = process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                rc = process.wait()
            del self.processes[name]  # only now: a signal in between must not let it go
            if rc != 0:
                say(f"{name} ended with status {rc}, see {self.path(name)}.log")
                clean = False
        return clean


def switch_argv(stack, build):
    """Two virtual ports replay a capture of 1000 mixed flows; each sends what the other receives."""
    here = os.path.dirname(os.path.abspath(__file__))
    capture = stack.path("flows.pcap")
    subprocess.run([sys.executable, os.path.join(here, "mkflows.py"), "1000", capture], check=True)
    lines = []
    for port, other in ((1, 2), (2, 1)):
        lines.append(f"add-port p{port} net_pcap{port},rx_pcap={capture},infinite_rx=1 ofport={port}")
        for match in ("ip,nw_dst=198.19.0.0/24,udp,tp_dst=63", "ip,tcp,tp_dst=63",
                      "ipv6,udp6,tp_dst=63"):
            lines.append(f"add-flow in_port={port},{match},actions=output:{other}")
    conf = stack.write("switch.conf", "\n".join(lines) + "\n")
    return [os.path.join(build, "pmdpulse-switch"), "--", "-c", conf, "--instance", INSTANCE,
            "--rundir", stack.rundir]


def agent_argv(stack, build):
    conf = stack.write("agent.conf", f"instance = {INSTANCE}\nrundir = {stack.rundir}\n"
                       f"json = {stack.path('incidents.jsonl')}\n")
    return [os.path.join(build, "pmdpulse-agent"), "-c", conf]


def collectd_argv(stack, build):
    conf = stack.write("collectd.conf", f"""\
Hostname "localhost"
BaseDir "{stack.dir}"
PIDFile "{stack.path('collectd.pid')}"
TypesDB "/usr/share/collectd/types.db"
Interval 1
PluginDir "/usr/lib/collectd"
LoadPlugin logfile
<Plugin logfile>
	LogLevel info
	File "{stack.path('collectd-notifications.log')}"
	Timestamp true
	PrintSeverity true
</Plugin>
LoadPlugin csv
<Plugin csv>
	DataDir "{stack.path('csv')}"
</Plugin>
PluginDir "{build}"
LoadPlugin pmdpulse
<Plugin pmdpulse>
	Instance "{INSTANCE}"
	RunDir "{stack.rundir}"
	SendNotification true
</Plugin>
""")
    daemon = shutil.which("collectd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if daemon is None:
        say("collectd is not installed: apt-get install collectd-core")
        sys.exit(1)
    return [daemon, "-f", "-C", conf]


def start(stack):
    """All three up and a PMD alive, or exit 1 with the reason."""
    build = stack.build
    say(f"segments in {stack.rundir}, files in {stack.dir}")
    stack.spawn("agent", agent_argv(stack, build))
    stack.spawn("switch", switch_argv(stack, build))
    stack.spawn("collectd", collectd_argv(stack, build))
    stack.wait("switch with a living PMD", lambda: alive(stack), 60)
    stack.wait("agent that follows the switch", stack.agent_follows, 10)
    for line in told(stack):
        say(line)


def alive(stack):
    status = stack.ask("status")
    return status and status["switch"]["state"] == "up" and status["threads"]["alive"] > 0 and \
        status["agent"]["state"] == "up" and status


def told(stack):
    """What switch and agent said about rights and means that they lack."""
    lines = []
    for name in ("switch", "agent"):
        program = f"pmdpulse-{name}"
        with open(stack.path(f"{name}.log"), encoding="utf-8", errors="replace") as log:
            lines += [f"{name}: {line[len(program) + 2:].strip()}" for line in log
                      if line.startswith(f"{program}: ")]
    return lines
