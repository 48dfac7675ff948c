# SPDX-License-Identifier: Apache-2.0
"""A monitoring host: what the packages for it bring by themselves, without any of a switch's."""

import os
import re

import pytest

from machine import FOLDER, MONITORING, Machine, packages


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
