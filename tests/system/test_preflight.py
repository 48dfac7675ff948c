# SPDX-License-Identifier: Apache-2.0
"""The pre-flight names what collectd would not: the library that a plugin lacks."""

import os
import shutil
import subprocess

import pytest

from lib.process import built

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


@pytest.fixture
def plugins(tmp_path):
    """A folder of plugins with the real one, and one that needs a library that is gone."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copy(built("pmdpulse.so"), folder)
    source = tmp_path / "empty.c"
    source.write_text("int absent(void); int absent(void) { return 0; }\n", encoding="utf-8")
    compiler = os.environ.get("CC") or "gcc"
    library = tmp_path / "libabsent.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libabsent.so.1", "-o", library, source], check=True)
    source.write_text("int absent(void); int module_register(void); int module_register(void) "
                      "{ return absent(); }\n", encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "needy.so", source, library], check=True)
    library.unlink()
    return folder


def preflight(plugins, config):
    env = dict(os.environ, PMDPULSE_PLUGINDIR=str(plugins))
    return subprocess.run([os.path.join(TOP, "contrib", "collectd", "preflight.sh"), config], env=env,
                          capture_output=True, text=True, timeout=60, check=False)


def test_all_is_well(plugins, tmp_path):
    if not shutil.which("collectd", path=os.environ["PATH"] + ":/usr/sbin"):
        pytest.skip("skipped: collectd is not installed")
    if os.environ.get("SANITIZE"):
        pytest.skip("skipped: collectd itself is not built with the sanitizer")
    config = tmp_path / "collectd.conf"
    config.write_text("LoadPlugin pmdpulse\n", encoding="utf-8")
    done = preflight(plugins, config)
    assert done.returncode == 0, done.stderr


def test_names_the_library(plugins, tmp_path):
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "needy.conf").write_text('<LoadPlugin "needy">\n</LoadPlugin>\n', encoding="utf-8")
    config = tmp_path / "collectd.conf"
    config.write_text(f'LoadPlugin pmdpulse\n<Include "{tmp_path}/conf.d">\n\tFilter "*.conf"\n</Include>\n',
                      encoding="utf-8")
    done = preflight(plugins, config)
    assert done.returncode == 1
    assert "plugin needy needs libabsent.so.1, which is missing" in done.stderr


def test_names_the_plugin_that_is_not_there(plugins, tmp_path):
    (plugins / "pmdpulse.so").unlink()
    done = preflight(plugins, tmp_path / "absent.conf")
    assert done.returncode == 1
    assert "pmdpulse.so is not there: install collectd-plugin-pmdpulse" in done.stderr
