# SPDX-License-Identifier: Apache-2.0
"""The real collectd with our plugin from the build folder, and a receiver that keeps what it gets."""

import os
import shutil
import subprocess

from .events import json_lines
from .process import Process, built
from .wait import TIMEOUT_S, wait_for

DAEMON = shutil.which("collectd", path="/usr/sbin:/usr/bin:/sbin") or ""
STOCK_PLUGINS = "/usr/lib/collectd"
HERE = os.path.dirname(os.path.abspath(__file__))
TYPES_DB = "/usr/share/collectd/types.db"


def missing():
    """Why these tests can't run here, or an empty string."""
    if not DAEMON:
        return "collectd is not installed (package collectd-core)"
    return ""


def receiver():
    """Folder with pmdptest.so, built when its source is newer."""
    folder = built("tests/collectd")
    target, source = os.path.join(folder, "pmdptest.so"), os.path.join(HERE, "collectd_receiver.c")
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        os.makedirs(folder, exist_ok=True)
        temporary = f"{target}.{os.getpid()}"
        subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall",
                        "-DHAVE_CONFIG_H", "-I/usr/include/collectd", "-fPIC", "-shared",
                        "-o", temporary, source, "-lyajl", "-lm"], check=True)
        os.replace(temporary, target)
    return folder


def sanitizer_environment():
    """What a daemon that was not built with the sanitizer needs to load a plugin that was."""
    if "address" not in os.environ.get("SANITIZE", ""):
        return None
    found = subprocess.run([os.environ.get("CC", "gcc"), "-print-file-name=libasan.so"], check=True,
                           capture_output=True, text=True).stdout.strip()
    # The daemon's own leaks are not ours.
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return {"LD_PRELOAD": found, "ASAN_OPTIONS": options}


class Collectd(Process):
    """collectd -f with its own configuration in folder. options: lines of our Plugin block."""

    def __init__(self, rundir, folder, options=(), interval=0.2, extra="", name="collectd",
                 arguments=("-f",), is_received=True, has_rundir=True, hostname="testhost"):
        self.folder, self.hostname = os.path.join(folder, name), hostname
        os.makedirs(self.folder, exist_ok=True)
        self.values_path = os.path.join(self.folder, "values.json")
        self.notifications_path = os.path.join(self.folder, "notifications.json")
        self.slow_path = os.path.join(self.folder, "slow")
        self.log_path = os.path.join(self.folder, "log")
        self.config_path = os.path.join(self.folder, "collectd.conf")
        lines = ([f'RunDir "{rundir}"'] if has_rundir else []) + list(options)
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(self.configuration(lines, interval, extra, is_received))
        super().__init__([DAEMON, *arguments, "-C", self.config_path], folder, name,
                         env=sanitizer_environment())

    def configuration(self, options, interval, extra, is_received):
        block = "\n".join("    " + line for line in options)
        receive = f"""
PluginDir "{receiver()}"
LoadPlugin pmdptest
<Plugin pmdptest>
    Values "{self.values_path}"
    Notifications "{self.notifications_path}"
    Slow "{self.slow_path}"
</Plugin>
""" if is_received else ""
        return f"""
Hostname "{self.hostname}"
FQDNLookup false
BaseDir "{self.folder}"
PIDFile "{self.folder}/pid"
TypesDB "{TYPES_DB}"
Interval {interval}
PluginDir "{STOCK_PLUGINS}"
LoadPlugin logfile
<Plugin logfile>
    LogLevel info
    File "{self.log_path}"
    Timestamp true
</Plugin>
{receive}
PluginDir "{built('.')}"
LoadPlugin pmdpulse
<Plugin pmdpulse>
{block}
</Plugin>
{extra}
"""

    def log(self):
        if not os.path.exists(self.log_path):
            return self.err()
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read() + self.err()

    def wait_log(self, text, timeout=TIMEOUT_S):
        wait_for(lambda: text in self.log(), timeout,
                 lambda: f"collectd to log {text!r}; it said:\n{self.log()}")

    def be_slow(self, seconds):
        with open(self.slow_path, "w", encoding="ascii") as file:
            file.write(str(seconds))

    def be_fast(self):
        os.unlink(self.slow_path)

    # Values

    def values(self, skip=0):
        """All value lists so far: dicts with object, type, detail, time, values."""
        return json_lines(self.values_path)[skip:]

    def latest(self):
        """{(object, type, detail): values} of the newest read that is complete."""
        values = self.values()
        times = sorted({v["time"] for v in values})
        if len(times) < 2:
            return {}
        return {(v["object"], v["type"], v["detail"]): v["values"]
                for v in values if v["time"] == times[-2]}

    def reads(self):
        """Complete reads, oldest first, each as latest() gives one."""
        rounds = {}
        for v in self.values():
            rounds.setdefault(v["time"], {})[v["object"], v["type"], v["detail"]] = v["values"]
        return [rounds[time] for time in sorted(rounds)[:-1]]

    def wait_value(self, name, condition, detail="", unit="value", timeout=TIMEOUT_S):
        """name: (object, type). The newest value for which condition holds."""
        key = (*name, detail)

        def look():
            found = self.latest().get(key)
            return [found[unit]] if found is not None and condition(found[unit]) else []
        return wait_for(look, timeout, lambda: f"{key} is {self.latest().get(key)}; log:\n"
                                               f"{self.log()}", every=0.05)[0]

    # Notifications

    def notifications(self, **wanted):
        """Those whose meta fields (or severity, object) equal wanted."""
        def matches(n):
            return all(n["meta"].get(key, n.get(key)) == value for key, value in wanted.items())
        return [n for n in json_lines(self.notifications_path)
                if n["plugin"] == "pmdpulse" and matches(n)]

    def wait_notification(self, count=1, timeout=TIMEOUT_S, **wanted):
        return wait_for(lambda: self.notifications(**wanted)[count - 1:count], timeout,
                        lambda: f"notification {wanted}; got:\n{self.describe()}\n{self.log()}")[0]

    def describe(self):
        return "\n".join(f"{n['meta'].get('id')} {n['meta'].get('kind')} {n['meta'].get('phase')} "
                         f"{n['object']}: {n['message']}" for n in self.notifications())
