# SPDX-License-Identifier: Apache-2.0
"""make install: what it lays down fits together, and leaves the operator's files alone."""

import glob
import os
import re
import subprocess

import pytest

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


def install(where, prefix):
    build = os.path.relpath(os.environ["BUILD"], TOP)
    # What is built is there already: -o keeps make from looking at it again. This is no part of the
    # make that runs the tests.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", "--no-print-directory", f"BUILD={build}", f"DESTDIR={where}", f"PREFIX={prefix}",
                    "DEPS=no", "-o", "all", "-o", "lib", "-o", "man", "install"], cwd=TOP, env=env, check=True,
                   stdout=subprocess.DEVNULL, timeout=120)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    where = str(tmp_path_factory.mktemp("install"))
    install(where, "/opt/pulse")
    return where


def test_units_start_what_is_installed(tree):
    units = glob.glob(tree + "/opt/pulse/lib/systemd/system/pmdpulse-*.service")
    assert len(units) >= 4
    for unit in units:
        with open(unit, encoding="utf-8") as file:
            program = re.search(r"^ExecStart=(\S+)", file.read(), re.M).group(1)
        assert program.startswith("/opt/pulse/sbin/") and os.access(tree + program, os.X_OK), unit


def test_pkg_config_leads_to_header_and_library(tree):
    env = dict(os.environ, PKG_CONFIG_PATH=tree + "/opt/pulse/lib/pkgconfig", PKG_CONFIG_SYSROOT_DIR=tree)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "pmdpulse"], env=env, check=True,
                           capture_output=True, text=True).stdout.split()
    include = next(flag[2:] for flag in flags if flag.startswith("-I"))
    folder = next(flag[2:] for flag in flags if flag.startswith("-L"))
    assert os.path.exists(include + "/pmdpulse.h") and os.path.exists(folder + "/libpmdpulse.so")


def test_settings_are_laid_down_once(tree):
    path = tree + "/etc/pmdpulse/switch.conf"
    with open(path, "w", encoding="utf-8") as file:
        file.write("# mine\n")
    install(tree, "/opt/pulse")
    with open(path, encoding="utf-8") as file:
        assert file.read() == "# mine\n"
    assert not [p for p in glob.glob(tree + "/opt/pulse/share/pmdpulse/**/*", recursive=True) if p.endswith(".py")]
