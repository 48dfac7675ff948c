# SPDX-License-Identifier: Apache-2.0
"""The clean root that the machines of the tests boot from, each in a layer of its own."""

import os

import pytest

from machine import CENTRE, FOLDER, MONITORING, README, Machine, installed_by, packages, prepare


@pytest.fixture(scope="session")
def clean_root():
    if os.geteuid() != 0:
        pytest.skip("skipped: making and booting a root needs root")
    root = os.path.join(FOLDER, "root")
    # python3 is for what the tests themselves run inside.
    wanted = {name for block in (*README, *MONITORING, CENTRE) for name in installed_by(block)} | {"python3"}
    prepare(root, packages(FOLDER), sorted(wanted))
    return root


@pytest.fixture(scope="module")
def booted(clean_root):
    """A machine that has nothing but the files of our packages."""
    with Machine(clean_root) as machine:
        for path in packages(FOLDER):
            machine.put(path, "/root/build/deb")
        yield machine
