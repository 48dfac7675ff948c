# SPDX-License-Identifier: Apache-2.0
"""The packages in a clean Debian: installed as the README says, used, upgraded, removed, purged.

The tests of one machine go in order, each from where the one before has left it.
"""

import json
import lzma
import os
import re
import subprocess
import tempfile

import pytest

from lib.wait import wait_for
from machine import FOLDER, README, TOP, newer, packages, sh

CONF = "/etc/collectd/collectd.conf.d/pmdpulse.conf"


@pytest.fixture(scope="module")
def machine(booted):
    return booted


@pytest.fixture(scope="module")
def upgrade(tmp_path_factory):
    """Path of each package with a version one higher, by name."""
    folder = str(tmp_path_factory.mktemp("newer"))
    for path in packages(FOLDER):
        newer(path, folder, "0.1.0+1")
    return {os.path.basename(path).split("_")[0]: path for path in packages(folder)}


def packets(machine):
    stats = json.loads(machine.do("pmdpulse -j pmd-stats-show"))
    return sum(pmd["packets_received"] for pmd in stats["pmds"])


def test_readme_install(machine):
    for line in README[0]:
        machine.do(line, timeout=600)
    state, _, restarts = machine.unit("pmdpulse-agent")
    assert state == "active" and restarts == 0, machine.last_words()
    assert machine.unit("collectd")[0] == "active", machine.last_words()
    assert machine.unit("pmdpulse-switch")[0] == "inactive", "nobody asked for a switch yet"
    assert machine.script("systemctl is-enabled pmdpulse-switch").stdout.strip() == "disabled"
    assert machine.do("stat -c '%A %U:%G' /run/pmdpulse").strip() == "drwxrws--T root:pmdpulse"
    assert machine.do("id -nG pmdpulse-agent").strip() == "pmdpulse-agent pmdpulse"


def test_readme_switch(machine):
    for line in README[1]:
        output = machine.do(line)
    assert "pmd-c01" in output and "ALIVE" in output, output
    status = json.loads(machine.do("pmdpulse -j status"))
    assert status["switch"]["state"] == "up" and status["agent"]["state"] == "up", status
    wait_for(lambda: (json.loads(machine.do("pmdpulse -j status"))["collectd"] or {}).get("relaying"),
             30, "relay by collectd")
    # Where this machine itself may not raise limits (no CAP_SYS_RESOURCE), systemd's Limit* do nothing.
    may_raise = int(re.search(r"CapEff:\s*(\w+)", machine.do("cat /proc/1/status")).group(1), 16) >> 24 & 1
    missing = [right for right in status["agent"]["rights"] if right.startswith("-")]
    assert not missing if may_raise else all(right.startswith("-mlock:") for right in missing), missing
    before = packets(machine)
    wait_for(lambda: packets(machine) > before, what="packets")


def test_readme_alarm(machine):
    steal, *look = README[2]
    assert machine.script(steal).returncode == 124, "timeout ended the hog"

    def clear():
        return [e for e in machine.events() if e["phase"] == "clear" and e["kind"] == "pmd-stall"]
    done = wait_for(clear, 30, lambda: f"a clear; events: {machine.events()}")[-1]
    assert done["cause"] == "preempted" and done["culprit"]["comm"] == "sh", done
    assert done["culprit"]["class"] == "SCHED_FIFO", done
    assert 0.2 < done["duration_s"] < 1, done
    output = machine.do(look[0])
    assert "preempted" in output and "sh" in output, output
    output = machine.do(look[1] + " --no-pager")
    assert re.search(r"stalled \((raise|update|clear), cause: preempted\)", output), "the catalog's text"


def test_what_belongs_to_a_package(machine):
    """Pages, completion, documents, and no plugin that collectd could not load."""
    for page in ("man1/pmdpulse.1.gz", "man3/pmdpulse.3.gz", "man5/collectd-pmdpulse.5.gz",
                 "man5/pmdpulse-agent.conf.5.gz", "man7/pmdpulse-commands.7.gz", "man8/pmdpulse-switch.8.gz",
                 "man8/pmdpulse-agent.8.gz", "man8/pmdpulse-ves.8.gz"):
        assert os.path.exists(machine.path("/usr/share/man/" + page)), page
    assert os.path.exists(machine.path("/usr/share/doc/pmdpulse/operations.md"))
    offered = machine.do("""bash -c '. /usr/share/bash-completion/completions/pmdpulse
        COMP_WORDS=(pmdpulse del-port ""); COMP_CWORD=2; _pmdpulse; echo "${COMPREPLY[@]}"'""")
    assert offered.split() == ["p1", "p2"]
    machine.do("/usr/lib/pmdpulse/collectd-preflight")
    assert "needrestart" in machine.do("dpkg -L pmdpulse-switch")


def test_preflight_names_a_missing_library(machine):
    machine.do("cp /usr/share/pmdpulse/collectd/pmdpulse-prometheus.conf "
               f"{os.path.dirname(CONF)}/prometheus.conf")
    library = machine.do("ls -d /usr/lib/x86_64-linux-gnu/libmicrohttpd.so.12").strip()
    machine.do(f"mv {library} {library}.away")
    try:
        done = machine.script("/usr/lib/pmdpulse/collectd-preflight")
        assert done.returncode == 1
        assert "libmicrohttpd.so.12" in done.stdout and "apt-get install libmicrohttpd12" in done.stdout
        machine.do("dpkg-reconfigure collectd-plugin-pmdpulse 2>&1 | grep libmicrohttpd12")
    finally:
        machine.do(f"mv {library}.away {library}")
    machine.do("/usr/lib/pmdpulse/collectd-preflight")
    machine.do("systemctl restart collectd")


def test_prometheus_gets_the_values(machine):
    ask = """bash -c 'exec 3<>/dev/tcp/127.0.0.1/9103
        printf "GET /metrics HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'"""
    wait_for(lambda: re.search(r'^collectd_pmdpulse_switch_up\{.*pmdpulse="default".*\} 1 ',
                               machine.script(ask).stdout, re.M), 60, "collectd_pmdpulse_switch_up 1")


@pytest.mark.parametrize("package", ["pmdpulse-agent", "collectd-plugin-pmdpulse", "pmdpulse-switch"])
def test_upgrade_leaves_the_switch_alone(machine, upgrade, package):
    names = ["pmdpulse-common", package] if package == "pmdpulse-agent" else [package]
    for name in names:
        machine.put(upgrade[name], "/root/newer")
    before = {name: machine.unit(name) for name in ("pmdpulse-switch", "pmdpulse-agent", "collectd")}
    beats, received = len(machine.events()), packets(machine)
    # The common package ties its users to its version; dpkg sees that when all are there.
    output = machine.do("dpkg --force-depends -i " +
                        " ".join("/root/newer/" + os.path.basename(upgrade[name]) for name in names))
    after = {name: machine.unit(name) for name in before}
    assert after["pmdpulse-switch"] == before["pmdpulse-switch"]
    assert packets(machine) > received, "the counters went on"
    assert not [e for e in machine.events()[beats:] if e["kind"] in ("switch-gone", "switch-stopped")]
    restarted = {"pmdpulse-agent": "pmdpulse-agent", "collectd-plugin-pmdpulse": "collectd"}.get(package)
    for name in ("pmdpulse-agent", "collectd"):
        assert after[name][0] == "active"
        assert (after[name][1] != before[name][1]) == (name == restarted), name
    if package == "pmdpulse-switch":
        assert "systemctl restart pmdpulse-switch.service" in output


def test_upgrade_of_the_rest(machine, upgrade):
    for path in upgrade.values():
        machine.put(path, "/root/newer")
    before = machine.unit("pmdpulse-switch")
    machine.do("dpkg -i /root/newer/*.deb")
    machine.do("apt-get check")
    assert machine.unit("pmdpulse-switch") == before
    assert machine.unit("pmdpulse-ves")[0] == "inactive", "it was never enabled"


def test_agent_upgrade_does_not_start_a_stopped_switch(machine):
    machine.do("systemctl stop pmdpulse-switch")
    machine.do("dpkg -i /root/newer/pmdpulse-agent_*.deb")
    assert machine.unit("pmdpulse-agent")[0] == "active"
    assert machine.unit("pmdpulse-switch")[0] == "inactive", "its operator stopped it"
    machine.do("systemctl start pmdpulse-switch")


def test_remove_plugin(machine):
    """collectd goes on; a file of the operator's own comes back with the package."""
    assert machine.do(f"readlink {CONF}").strip() == "/usr/share/pmdpulse/collectd/pmdpulse.conf"
    machine.do("apt-get remove collectd-plugin-pmdpulse")
    assert machine.script(f"ls {CONF} {CONF}.removed").returncode == 2
    assert machine.unit("collectd")[0] == "active"
    machine.do("dpkg -i /root/newer/collectd-plugin-pmdpulse_*.deb")
    assert not os.path.lexists(machine.path(CONF)), "one who took the link away does not get it again"
    machine.do(f"printf 'LoadPlugin pmdpulse\\n# mine\\n' > {CONF}")
    machine.do("systemctl restart collectd; apt-get remove collectd-plugin-pmdpulse")
    assert machine.unit("collectd")[0] == "active"
    machine.do("dpkg -i /root/newer/collectd-plugin-pmdpulse_*.deb")
    assert "# mine" in machine.do(f"cat {CONF}")
    assert machine.unit("collectd")[0] == "active"


def test_remove_and_purge(machine):
    pid = machine.unit("pmdpulse-switch")[1]
    machine.do("apt-get remove pmdpulse-agent")
    assert machine.unit("pmdpulse-switch")[1] == pid, "without an agent the switch goes on"
    machine.do("apt-get remove pmdpulse-switch")
    assert machine.script(f"kill -0 {pid}").returncode != 0, "stopped before its file was removed"
    assert os.path.exists(machine.path("/etc/pmdpulse/switch.conf")), "settings stay until the purge"
    machine.do("apt-get purge 'pmdpulse*' 'libpmdpulse*' 'collectd-plugin-pmdpulse'")
    left = machine.script("find / -xdev -iname '*pmdpulse*' -not -path '/proc/*' -not -path '/sys/*' "
                       "-not -path '/root/*' -not -path '/var/cache/*' -not -path '/var/log/*' "
                       "-not -path '/var/lib/collectd/*'").stdout.split()
    # Logs and collectd's own records of the past are not ours to delete.
    assert not left, left
    assert "pmdpulse" in machine.do("getent passwd"), "users stay, as files may belong to them"
    machine.do("test ! -e /run/pmdpulse")
    assert machine.unit("collectd")[0] == "active"
    assert not machine.do("dpkg --audit")


def test_library_package(tmp_path):
    """A program builds against the development package and runs with the library package."""
    where = str(tmp_path / "root")
    for name in ("libpmdpulse1", "libpmdpulse-dev"):
        sh("dpkg-deb", "-x", next(p for p in packages(FOLDER) if os.path.basename(p).startswith(name + "_")),
           where)
    triplet = sh("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=where, LD_LIBRARY_PATH=f"{where}/usr/lib/{triplet}",
               PKG_CONFIG_PATH=f"{where}/usr/lib/{triplet}/pkgconfig")
    flags = sh("pkg-config", "--cflags", "--libs", "pmdpulse", env=env).split()
    program = str(tmp_path / "publish")
    sh(os.environ.get("CC") or "gcc", "-o", program, os.path.join(TOP, "tests/foreign/publish.c"), *flags)
    assert "libpmdpulse.so.1" in sh("ldd", program, env=env)
    with tempfile.TemporaryDirectory(prefix="pmdpulse-test-", dir="/dev/shm") as rundir:
        env["PMDPULSE_RUNDIR"] = rundir
        done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stripped_switch_keeps_its_function_names(tmp_path):
    where = str(tmp_path / "root")
    sh("dpkg-deb", "-x", next(p for p in packages(FOLDER) if "/pmdpulse-switch_" in p), where)
    program = where + "/usr/sbin/pmdpulse-switch"
    assert "no symbols" in sh("nm", program), "stripped"
    section = str(tmp_path / "mini.xz")
    sh("objcopy", "--dump-section", f".gnu_debugdata={section}", program)
    with lzma.open(section) as packed, open(tmp_path / "mini", "wb") as plain:
        plain.write(packed.read())
    address = next(line.split()[0] for line in sh("nm", str(tmp_path / "mini")).splitlines()
                   if line.endswith(" sw_switch_apply"))
    # elfutils, as the agent uses it, without any file of debug information.
    named = sh("eu-addr2line", "--debuginfo-path=:/nonexistent", "-S", "-e", program, "0x" + address)
    assert named.startswith("sw_switch_apply"), named
