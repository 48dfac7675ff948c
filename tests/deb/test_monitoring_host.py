# SPDX-License-Identifier: Apache-2.0
"""A monitoring host: what the packages for it bring by themselves, without any of a switch's."""

import os
import re

import pytest

from lib.wait import wait_for
from machine import CENTRE, FOLDER, MONITORING, Machine, packages

# A host of the fleet: sends what is put into its socket.
HOST = """
Hostname "host1"
BaseDir "/root/host1"
PIDFile "/root/host1/pid"
TypesDB "/usr/share/collectd/types.db" "/usr/share/collectd/pmdpulse_types.db"
LoadPlugin network
LoadPlugin unixsock
<Plugin network>
    <Server "127.0.0.1" "25826">
        SecurityLevel "Encrypt"
        Username "fleet"
        Password "PASSWORD"
    </Server>
</Plugin>
<Plugin unixsock>
    SocketFile "/root/host1/socket"
</Plugin>
"""
PUT = """
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/root/host1/socket")
s.sendall(b"PUTVAL host1/pmdpulse-default/switch_up interval=60 N:1\\n")
print(s.recv(100).decode())
"""


@pytest.fixture(scope="module")
def machine(clean_root):
    with Machine(clean_root) as machine:
        for path in packages(FOLDER):
            if os.path.basename(path).startswith(("pmdpulse-dashboards_", "pmdpulse-doc_")):
                machine.put(path, "/root/build/deb")
        yield machine


def ours(machine):
    return set(re.findall(r"^ii +(\S*pmdpulse\S*)", machine.do("dpkg -l"), re.M))


def test_runbook_links_lead_somewhere(machine):
    machine.do(MONITORING[1][0], timeout=600)
    assert ours(machine) == {"pmdpulse-dashboards", "pmdpulse-doc"}
    links = re.findall(r"runbook_url: file://(\S+)#(\S+)",
                       machine.do("cat /usr/share/pmdpulse/prometheus/pmdpulse.rules.yml"))
    assert len(links) > 20
    pages = {path: machine.do(f"cat {path}").lower() for path in {path for path, _ in links}}
    assert not [anchor for path, anchor in links if f"\n### {anchor}\n" not in pages[path]]
    # Nothing of a switch's host: no users, no run directory.
    assert "pmdpulse" not in machine.do("getent passwd") and machine.script("ls /run/pmdpulse").returncode


def test_central_collectd_without_the_plugin(machine):
    for line in CENTRE:
        machine.do(line, timeout=600)
    assert ours(machine) == {"pmdpulse-dashboards", "pmdpulse-doc"}
    assert machine.do("stat -c '%a %U' /etc/collectd/fleet.passwd").strip() == "600 root"
    machine.do("apt-get install python3 curl; mkdir -p host1", timeout=600)
    machine.do(f"cat > host1/collectd.conf <<'END'\n{HOST}\nEND\ncat > host1/put.py <<'END'\n{PUT}\nEND\n")
    machine.do("/usr/sbin/collectd -C host1/collectd.conf")
    wait_for(lambda: machine.script("test -S host1/socket").returncode == 0, 20, machine.last_words)

    def exposed():
        # UDP: put again until it came.
        assert "Success" in machine.do("python3 host1/put.py")
        return [line for line in machine.script("curl -s localhost:9103/metrics").stdout.splitlines()
                if line.startswith("collectd_pmdpulse_")]
    found = wait_for(exposed, 60, lambda: machine.last_words(), every=1)
    # The host's, and none of a switch that would have to be here.
    assert len(found) == 1 and 'instance="host1"' in found[0] and found[0].split()[1] == "1", found
    machine.do("kill $(cat host1/pid)")
