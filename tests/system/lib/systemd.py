# SPDX-License-Identifier: Apache-2.0
"""A machine that boots: systemd as PID 1 of a container (systemd-container.sh), and what a test does
with it: run a command, copy files, steer units, read the journal.

    with Container(trees=[staged(folder)]) as machine:
        machine.write("/etc/pmdpulse/switch.conf", "...")
        machine.start("pmdpulse-switch", "pmdpulse-agent")
        machine.wait(lambda: machine.pmdpulse("status")["switch"]["state"] == "up")
        machine.journal(PMDP_KIND="pmd-stall")
"""

import functools
import glob
import json
import os
import shutil
import subprocess

from .process import BUILD
from .wait import TIMEOUT_S, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "../systemd-container.sh")
TOP = os.path.join(HERE, "../../..")
BOOT_TIMEOUT_S = 60


def missing():
    """Why a test with a container can't run here, or an empty string."""
    if os.geteuid() != 0:
        return "needs root"
    for program, package in (("systemd-nspawn", "systemd-container"), ("nsenter", "util-linux")):
        if not shutil.which(program):
            return f"{program} is not installed (package {package})"
    if os.environ.get("SANITIZE"):
        return "the units' sandbox refuses what a sanitizer does at start"
    return does_not_boot()


@functools.cache
def does_not_boot():
    """Why a container with nothing of ours in it does not boot here (a chroot, fewer rights), or ""."""
    done = subprocess.run([SCRIPT, "true"], capture_output=True, text=True, timeout=2 * BOOT_TIMEOUT_S,
                          stdin=subprocess.DEVNULL, check=False)
    return "" if done.returncode == 0 else f"no container boots here: {' '.join(done.stderr.split())}"


def staged(folder):
    """The build as `make install` lays it out, in folder; builds nothing."""
    # -o: what is there is taken as it is, whatever flags a build now would have.
    subprocess.run(["make", "--no-print-directory", "-s", "-o", "all", "-o", "lib", "-C", TOP, "install",
                    f"BUILD={os.path.abspath(BUILD)}", "PREFIX=/usr", f"DESTDIR={folder}"],
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
    return str(folder)


def given_packages():
    """.deb files to test instead of the build: those of the folder $PMDP_DEBS."""
    folder = os.environ.get("PMDP_DEBS")
    if not folder:
        return []
    debs = set(glob.glob(f"{folder}/*.deb")) - set(glob.glob(f"{folder}/*-dbgsym_*.deb"))
    assert debs, f"PMDP_DEBS: there is no .deb in {folder}; `make deb` makes some"
    return sorted(debs)


class Container:
    """Booted when the constructor returns; trees are laid over its files before, debs installed after.

    root: a root file system other than this machine's.
    """

    environment = os.environ  # of the commands

    def __init__(self, trees=(), debs=(), root=None):
        options = ["-r", root] if root else []
        options += [word for tree in trees for word in ("-i", str(tree))]
        # The script ends the container when its stdin does: also when this process is killed.
        self.server = subprocess.Popen([SCRIPT, *options, "--serve"], stdin=subprocess.PIPE, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        words = self.server.stdout.readline().split()
        if words[:1] != ["ready"]:
            raise RuntimeError(f"no container: {self.server.communicate()[1]}")
        self.pid, self.root = int(words[1]), words[2]
        if debs:
            self.install(*debs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End everything inside, and forget all that was written."""
        try:
            self.server.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.communicate()

    # Commands

    def argv(self, *argv):
        """What runs a command inside, for Process() when it is to go on beside the test."""
        return ["nsenter", "-t", str(self.pid), "-a", *map(str, argv)]

    def run(self, *argv, check=True, timeout=60, text=None, env=None):
        """Run a command to its end; text goes to its stdin. Returns a CompletedProcess."""
        done = subprocess.run(self.argv(*argv), input=text, stdin=subprocess.DEVNULL if text is None else None,
                              capture_output=True, text=True, timeout=timeout, check=False,
                              env={**self.environment, **(env or {})}, start_new_session=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, argv))}: exit {done.returncode}:\n"
                                 f"{done.stdout}{done.stderr}")
        return done

    def output(self, *argv, **keywords):
        return self.run(*argv, **keywords).stdout.strip()

    def install(self, *debs):
        """As `apt-get install ./X.deb`: what they depend on must be installed on this machine."""
        paths = [f"/var/cache/{os.path.basename(deb)}" for deb in debs]
        for deb, path in zip(debs, paths):
            self.copy(deb, path)
        self.run("apt-get", "install", "-y", "--no-install-recommends",
                 "-o", "APT::Sandbox::User=root", *paths, timeout=120, env={"DEBIAN_FRONTEND": "noninteractive"})

    # Files

    def write(self, path, text, mode=0o644):
        self.run("install", "-D", "-m", f"{mode:o}", "/dev/stdin", path, text=text)

    def copy(self, source, target, mode=0o644):
        """A file of this machine, into the container."""
        with open(source, "rb") as file:
            subprocess.run(self.argv("install", "-D", "-m", f"{mode:o}", "/dev/stdin", target), stdin=file,
                           check=True, timeout=60)

    def read(self, path):
        """A file's text; empty where there is none."""
        return self.run("cat", path, check=False).stdout

    # Units

    def systemctl(self, *args, **keywords):
        return self.output("systemctl", "--no-pager", *args, **keywords)

    def start(self, *units):
        self.systemctl("start", *units)

    def stop(self, *units):
        self.systemctl("stop", *units)

    def restart(self, *units):
        self.systemctl("restart", *units)

    def show(self, unit, prop):
        """A property of a unit, as text."""
        return self.systemctl("show", "--value", "-p", prop, unit)

    def main_pid(self, unit):
        """As seen inside; 0: none."""
        return int(self.show(unit, "MainPID"))

    def main_pids(self, *units):
        """{unit: pid}, in one call."""
        lines = self.systemctl("show", "-p", "MainPID", "--value", *units).split()
        return dict(zip(units, map(int, lines)))

    def is_active(self, unit):
        return self.show(unit, "ActiveState") == "active"

    def kill(self, unit, signal="SIGKILL"):
        """A signal to the unit's main process."""
        self.systemctl("kill", "--kill-whom=main", "--signal", signal, unit)

    def wait(self, condition, timeout=TIMEOUT_S, what="condition", every=0.05):
        return wait_for(condition, timeout, what, every)

    def wait_active(self, *units, timeout=TIMEOUT_S):
        self.wait(lambda: all(self.is_active(unit) for unit in units), timeout, lambda: self.describe(*units))

    def wait_back(self, unit, old_pid, timeout=TIMEOUT_S):
        """Until the unit is active with another main process; its pid."""
        def look():
            pid = self.main_pid(unit)
            return pid if pid not in (0, old_pid) and self.is_active(unit) else 0
        return self.wait(look, timeout, lambda: f"{unit} to come back:\n{self.describe(unit)}")

    def describe(self, *units):
        """What systemd says of these units, and their last lines in the journal."""
        return self.run("systemctl", "--no-pager", "-l", "-n", "30", "status", *units, check=False).stdout

    # The journal

    def journal_end(self):
        """The time of the newest entry, for journal(after=...)."""
        out = self.output("journalctl", "-n", "1", "-o", "json")
        return int(json.loads(out)["__REALTIME_TIMESTAMP"]) if out else 0

    def journal(self, unit=None, after=0, **fields):
        """Entries as dicts, oldest first; fields are matched by name: PMDP_KIND="pmd-stall"."""
        argv = ["journalctl", "--no-pager", "-a", "-o", "json", f"--since=@{after // 1000000}"]
        argv += ["-u", unit] if unit else []
        out = self.output(*argv, *[f"{key}={value}" for key, value in fields.items()])
        # --after-cursor= loses the first entry when fields are matched too.
        entries = [json.loads(line) for line in out.splitlines()]
        return [entry for entry in entries if int(entry["__REALTIME_TIMESTAMP"]) > after]

    # The product

    def pmdpulse(self, *args, instance="default"):
        """The operator's command: its JSON document."""
        return json.loads(self.output("pmdpulse", "-j", "-i", instance, *args))

    def events(self, instance="default"):
        """All that the agent has told, oldest first."""
        done = self.run("pmdpulse", "-j", "-i", instance, "events", check=False)
        return [json.loads(line) for line in done.stdout.splitlines()]

    # HTTP

    def take_posts(self, unit, port, path):
        """A unit that takes every POST to this port of the loopback, into a file for posts()."""
        script = "/usr/local/bin/post-listener"
        self.copy(os.path.join(HERE, "post_listener.py"), script, 0o755)
        self.output("systemd-run", f"--unit={unit}", "python3", script, port, path)

    def posts(self, path):
        """[{"path", "body"}]; the line that is being written is left for later."""
        return [json.loads(line) for line in self.read(path).split("\n")[:-1]]
