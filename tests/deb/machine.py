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
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDER = os.path.join(os.path.abspath(os.environ["BUILD"]), "deb")
SUITE = "bookworm"

sys.path.insert(0, os.path.join(TOP, "tests", "system"))
from lib.systemd import Container  # pylint: disable=wrong-import-position


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
    sh("chroot", root, "sh", "-c", f"apt-get -q --download-only install {' '.join(wanted)} /tmp/debs/*.deb")
    shutil.rmtree(inside)


class Machine(Container):
    """A booted root. script() and its relatives work in /root inside."""

    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                   "DEBIAN_FRONTEND": "noninteractive"}

    def __init__(self, root):
        super().__init__(root=root)
        # A host has an address of its own: collectd's write_prometheus does not listen without one, and
        # Alertmanager wants a private one for its peers.
        for words in ("link add eth0 type veth peer name eth1", "addr add 10.0.2.1/24 dev eth0",
                      "link set eth1 up", "link set eth0 up"):
            sh("nsenter", "-t", str(self.pid), "-n", "ip", *words.split())

    def put(self, path, folder):
        self.copy(path, os.path.join(folder, os.path.basename(path)))

    def path(self, inside):
        return os.path.join(self.root, inside.lstrip("/"))

    def script(self, text, timeout=120):
        """A shell script; CompletedProcess with stdout and stderr in one."""
        return self.run("sh", "-c", "cd /root; exec 2>&1\n" + text, check=False, timeout=timeout)

    def do(self, text, timeout=120):
        """Output of a script that must succeed."""
        done = self.script(text, timeout)
        assert done.returncode == 0, f"{text}\nexit {done.returncode}:\n{done.stdout}\n{self.last_words()}"
        return done.stdout

    def last_words(self):
        return self.script("journalctl -n 60 --no-pager -o short-monotonic").stdout

    def unit(self, name):
        """ActiveState, MainPID and NRestarts of a unit."""
        shown = self.do(f"systemctl show -p ActiveState,MainPID,NRestarts {name}")
        values = dict(line.split("=", 1) for line in shown.split())
        return values["ActiveState"], int(values["MainPID"]), int(values["NRestarts"])


def commands(document, heading):
    """What this part of a document tells to type: a list of lines a block."""
    with open(os.path.join(TOP, document), encoding="utf-8") as file:
        part = file.read().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [block.strip().split("\n") for block in re.findall(r"^```\n(.*?)^```", part, re.M | re.S)]


def installed_by(block):
    """The packages of Debian that this block installs."""
    lines = [line.split("apt-get install")[1] for line in block if "apt-get install" in line]
    return [word for line in lines for word in line.split() if not word.startswith("./")]


# Blocks that the tests follow to the letter.
README = commands("README.md", "Run it on a host")
MONITORING = commands("docs/prometheus.md", "Set up in five minutes")
CENTRE = commands("docs/collectd.md", "A fleet")[0]
assert len(README) == 3 and "apt-get install" in README[0][0], "the README's part has changed"


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
