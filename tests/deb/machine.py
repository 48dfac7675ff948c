# SPDX-License-Identifier: Apache-2.0
"""A clean Debian, booted: nothing but what debootstrap lays down, and no network.

The root is made once, in the build folder, with the packages that ours depend on in apt's cache; a
machine writes into a layer of its own above it.
"""

import glob
import os
import re
import shutil
import subprocess

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CONTAINER = os.path.join(TOP, "tests", "system", "systemd-container.sh")
SUITE = "bookworm"


def sh(*argv, **options):
    """Output of a command that must succeed."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}:\n{done.stdout}"
    return done.stdout


def mirror():
    """Debian's mirror that this machine uses."""
    if os.environ.get("DEBIAN_MIRROR"):
        return os.environ["DEBIAN_MIRROR"].rstrip("/")
    sites = sh("apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN) $(SUITE)", "Created-By: Packages")
    for line in sites.splitlines():
        site, _, rest = line.partition(" ")
        if rest.startswith("Debian ") and "security" not in site + rest:
            return site.rstrip("/")
    raise AssertionError("apt knows no mirror of Debian here: give one in DEBIAN_MIRROR")


def packages(folder):
    return sorted(p for p in glob.glob(os.path.join(folder, "*.deb")) if "-dbgsym_" not in p)


def prepare(root, debs, wanted):
    """Make the root if it is not there, and fetch what installing these will need."""
    if not os.path.exists(os.path.join(root, "etc", "debian_version")):
        shutil.rmtree(root, ignore_errors=True)
        site = mirror()
        unfinished = root + ".new"
        sh("debootstrap", "--variant=minbase", "--include=systemd-sysv,dbus", SUITE, unfinished, site)
        with open(os.path.join(unfinished, "etc/apt/sources.list"), "w", encoding="utf-8") as file:
            file.write(f"deb {site} {SUITE} main\ndeb {site} {SUITE}-updates main\n"
                       f"deb {site}-security {SUITE}-security main\n")
        # Nobody answers here.
        with open(os.path.join(unfinished, "etc/apt/apt.conf.d/90unattended"), "w", encoding="utf-8") as file:
            file.write('APT::Get::Assume-Yes "true";\nDPkg::Options {"--force-confold";};\n')
        # As Debian's installer leaves it: collectd wants to know the host's full name.
        for name, text in (("hostname", "switch1\n"),
                           ("hosts", "127.0.0.1 localhost\n127.0.1.1 switch1.example switch1\n")):
            with open(os.path.join(unfinished, "etc", name), "w", encoding="utf-8") as file:
                file.write(text)
        os.rename(unfinished, root)
    inside = os.path.join(root, "tmp", "debs")
    shutil.rmtree(inside, ignore_errors=True)
    os.mkdir(inside)
    for path in debs:
        shutil.copy(path, inside)
    sh("chroot", root, "apt-get", "update", "-q")
    sh("chroot", root, "sh", "-c", f"apt-get -q --download-only install {wanted} /tmp/debs/*.deb")
    shutil.rmtree(inside)


class Machine:
    """A booted root. run() and its relatives work inside."""

    def __init__(self, root):
        self.popen = subprocess.Popen([CONTAINER, "-r", root, "--serve"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        ready = self.popen.stdout.readline().split()
        assert ready[:1] == ["ready"], "the container did not boot"
        self.pid1, self.root = ready[1], ready[2]
        # A host has an address of its own; collectd's write_prometheus does not listen without one.
        for words in ("link add eth0 type veth peer name eth1", "addr add 192.0.2.1/24 dev eth0",
                      "link set eth1 up", "link set eth0 up"):
            sh("nsenter", "-t", self.pid1, "-n", "ip", *words.split())

    def stop(self):
        self.popen.stdin.close()
        self.popen.wait(60)

    def put(self, path, folder):
        target = self.path(folder)
        os.makedirs(target, exist_ok=True)
        shutil.copy(path, target)

    def path(self, inside):
        return os.path.join(self.root, inside.lstrip("/"))

    def run(self, script, timeout=120):
        """A shell script in /root; CompletedProcess with stdout and stderr in one."""
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(["nsenter", "-t", self.pid1, "-a", "sh", "-c", "cd /root\n" + script], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=timeout, check=False)

    def do(self, script, timeout=120):
        """Output of a script that must succeed."""
        done = self.run(script, timeout)
        assert done.returncode == 0, f"{script}\nexit {done.returncode}:\n{done.stdout}\n{self.journal()}"
        return done.stdout

    def journal(self):
        return self.run("journalctl -n 60 --no-pager -o short-monotonic 2>&1").stdout

    def unit(self, name):
        """ActiveState, MainPID and NRestarts of a unit."""
        shown = self.do(f"systemctl show -p ActiveState,MainPID,NRestarts {name}")
        values = dict(line.split("=", 1) for line in shown.split())
        return values["ActiveState"], int(values["MainPID"]), int(values["NRestarts"])


def newer(path, folder, version):
    """The same package with a higher version: what an upgrade brings."""
    work = os.path.join(folder, "repack")
    shutil.rmtree(work, ignore_errors=True)
    sh("dpkg-deb", "-R", path, work)
    control = os.path.join(work, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    old = re.search(r"^Version: (.*)$", text, re.M).group(1)
    text = text.replace(f"Version: {old}", f"Version: {version}").replace(f"(= {old})", f"(= {version})")
    with open(control, "w", encoding="utf-8") as file:
        file.write(text)
    sh("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", work, folder)
    shutil.rmtree(work)
