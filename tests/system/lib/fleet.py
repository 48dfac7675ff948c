# SPDX-License-Identifier: Apache-2.0
"""A fleet: hosts as network namespaces on a bridge, each with switch, agent and collectd; in the middle
a central collectd and Prometheus. The configurations are the shipped ones, but for addresses."""

import concurrent.futures
import contextlib
import ctypes
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.parse
import urllib.request

from . import collectd
from .events import json_lines
from .hosts import sh
from .process import Process, built
from .programs import Agent
from .switch import Switch
from .wait import wait_for

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "contrib/observe"))
import alerts  # pylint: disable=wrong-import-position
import scrape  # pylint: disable=wrong-import-position

CLONE_NEWNET = 0x40000000
CENTRE = "10.77.0.1"
DIVIDE = 10  # a window of two minutes becomes one of 12 s
WEB, SERVER = 9103, 9090
# One port that never receives: its PMD polls all the same.
LINES = ("set pmd-cpu-mask=0x2", "set keepalive-interval=500", "add-port p1 net_null1,no-rx=1 ofport=1")


def shipped(name, replace):
    """A configuration of contrib/collectd with other addresses and paths; each must be there."""
    with open(os.path.join(TOP, "contrib/collectd", name), encoding="utf-8") as file:
        text = file.read()
    for old, new in replace.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


class Namespace:
    def __init__(self, name):
        self.name = f"pmdp{os.getpid()}{name}"
        sh("ip", "netns", "add", self.name)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *argv):
        return ["nsenter", f"--net=/run/netns/{self.name}", *map(str, argv)]

    def run(self, *argv):
        return sh(*self.command(*argv))

    def delete(self):
        sh("ip", "netns", "del", self.name, check=False)


class Web:
    """Fetches from inside a namespace: a thread of its own that lives there."""

    def __init__(self, namespace):
        self.thread = concurrent.futures.ThreadPoolExecutor(1, initializer=self._enter, initargs=(namespace,))
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @staticmethod
    def _enter(namespace):
        fd = os.open(f"/run/netns/{namespace.name}", os.O_RDONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(fd)

    def _get(self, url):
        with self.opener.open(url, timeout=10) as reply:
            return reply.read().decode()

    def get(self, url):
        """The answer, or an empty string."""
        with contextlib.suppress(OSError):
            return self.thread.submit(self._get, url).result()
        return ""

    def close(self):
        self.thread.shutdown()


class HostCollectd(Process):
    """collectd of a host (our plugin) or of the centre (a receiver that keeps notifications)."""

    def __init__(self, namespace, folder, hostname, blocks):
        self.folder = os.path.join(folder, "collectd-" + hostname)
        self.notifications_path = os.path.join(self.folder, "notifications.json")
        os.makedirs(self.folder)
        path = os.path.join(self.folder, "collectd.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""
Hostname "{hostname}"
FQDNLookup false
BaseDir "{self.folder}"
PIDFile "{self.folder}/pid"
Interval 1
PluginDir "{collectd.STOCK_PLUGINS}"
LoadPlugin logfile
<Plugin logfile>
    LogLevel info
    File "{self.folder}/log"
</Plugin>
{blocks}""")
        super().__init__(namespace.command(collectd.DAEMON, "-f", "-C", path), folder,
                         "collectd-" + hostname, env=collectd.sanitizer_environment())

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read() + self.err()

    def notifications(self, **wanted):
        return [n for n in json_lines(self.notifications_path)
                if all(n.get(key) == value for key, value in wanted.items())]


class Host:
    """Switch, agent and collectd in a namespace, all for one run directory."""

    def __init__(self, name, number, centre, folder):
        self.name, self.port_device = name, f"pp{os.getpid()}{name}"
        self.namespace = Namespace(name)
        sh("ip", "link", "add", self.port_device, "netns", centre.name, "type", "veth", "peer", "name", "eth0",
           "netns", self.namespace.name)
        self.namespace.run("ip", "addr", "add", f"10.77.0.{10 + number}/24", "dev", "eth0")
        self.namespace.run("ip", "link", "set", "eth0", "up")
        centre.run("ip", "link", "set", self.port_device, "master", "br0")
        centre.run("ip", "link", "set", self.port_device, "up")
        self.centre = centre
        self.rundir = tempfile.mkdtemp(prefix=f"pmdpulse-{name}-", dir="/dev/shm")
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        self.processes = []

    def start(self):
        self.switch = Switch(self.rundir, self.folder, lines=LINES, eal=("--no-huge", "-m256", "--no-pci"),
                             is_awaited=False)
        self.processes.append(self.switch)
        # The three PMDs share a CPU here, which on one host would be an alarm.
        self.agent = Agent(self.rundir, self.folder, "--starve-percent=99", is_awaited=False)
        self.processes.append(self.agent)
        network = shipped("fleet-host.conf", {"collectd.example.net": CENTRE})
        plugin = f"""
PluginDir "{built('.')}"
LoadPlugin pmdpulse
<Plugin pmdpulse>
    RunDir "{self.rundir}"
</Plugin>
"""
        types = f'TypesDB "{collectd.TYPES_DB}"\n'
        self.processes.append(HostCollectd(self.namespace, self.folder, self.name, types + network + plugin))

    def wait(self):
        wait_for(self.switch.is_up, 60, lambda: f"the switch of {self.name}: {self.switch.err()}")
        wait_for(self.agent.answers, what=lambda: f"the agent of {self.name}: {self.agent.err()}")

    def cut(self):
        self.centre.run("ip", "link", "set", self.port_device, "down")

    def join(self):
        self.centre.run("ip", "link", "set", self.port_device, "up")

    def cleanup(self):
        for process in reversed(self.processes):
            process.cleanup()
        self.namespace.delete()
        shutil.rmtree(self.rundir, ignore_errors=True)


class Fleet:
    def __init__(self, names, folder):
        self.hosts, self.processes, self.web = {}, [], None
        self.centre = Namespace("centre")
        try:
            self.centre.run("ip", "link", "add", "br0", "type", "bridge")
            self.centre.run("ip", "addr", "add", f"{CENTRE}/24", "dev", "br0")
            self.centre.run("ip", "link", "set", "br0", "up")
            for number, name in enumerate(names):
                self.hosts[name] = Host(name, number, self.centre, folder)
            self.web = Web(self.centre)
            self._start(folder)
        except BaseException:
            self.cleanup()
            raise

    def _start(self, folder):
        secret = os.path.join(folder, "fleet.passwd")
        with open(secret, "w", encoding="ascii") as file:
            file.write("fleet: change me\n")
        os.chmod(secret, 0o600)
        blocks = shipped("fleet-central.conf", {
            "/etc/collectd/fleet.passwd": secret, "0.0.0.0": CENTRE,
            "/usr/share/collectd/pmdpulse_types.db": f"{TOP}/contrib/collectd/pmdpulse_types.db"})
        self.collectd = HostCollectd(self.centre, folder, "centre", blocks + f"""
PluginDir "{collectd.receiver()}"
LoadPlugin pmdptest
<Plugin pmdptest>
    Notifications "{folder}/collectd-centre/notifications.json"
</Plugin>
""")
        self.processes.append(self.collectd)
        for host in self.hosts.values():
            host.start()
        for host in self.hosts.values():
            host.wait()
        self.prometheus = self._prometheus(folder) if shutil.which("prometheus") else None

    def _prometheus(self, folder):
        rules, config = os.path.join(folder, "rules.yml"), os.path.join(folder, "prometheus.yml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(alerts.rules_yml(DIVIDE, "1s"))
        with open(config, "w", encoding="utf-8") as file:
            file.write(scrape.prometheus_yml(targets=(f"127.0.0.1:{WEB}",), interval="1s", rule_file=rules))
        process = Process(self.centre.command(
            shutil.which("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{SERVER}", "--log.level=warn"), folder, "prometheus")
        self.processes.append(process)
        return process

    # What the centre knows

    def exposed(self, name, **labels):
        """{host: value} of a metric at the central collectd's write_prometheus."""
        found = {}
        for line in self.web.get(f"http://127.0.0.1:{WEB}/metrics").splitlines():
            match = re.fullmatch(rf'{name}\{{(.*)\}} (\S+)( \d+)?', line)
            if not match:
                continue
            has = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match.group(1)))
            if all(has.get(key) == value for key, value in labels.items()):
                found[has["instance"]] = float(match.group(2))
        return found

    def ask(self, query):
        """[(labels, value)] of an instant query."""
        answer = self.web.get(f"http://127.0.0.1:{SERVER}/api/v1/query?" +
                              urllib.parse.urlencode({"query": query}))
        document = json.loads(answer) if answer else {"status": "no answer"}
        if document["status"] != "success":
            return []
        return [(series["metric"], float(series["value"][1])) for series in document["data"]["result"]]

    def firing(self, alert):
        return sorted({labels["instance"] for labels, _ in
                       self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing"}}')})

    def logs(self):
        parts = [f"centre:\n{self.collectd.log()[-2000:]}"]
        parts += [f"{host.name}:\n{host.processes[-1].log()[-1500:]}{host.agent.err()[-500:]}"
                  for host in self.hosts.values() if len(host.processes) == 3]
        return "\n".join(parts)

    def cleanup(self):
        for process in reversed(self.processes):
            process.cleanup()
        for host in self.hosts.values():
            host.cleanup()
        if self.web:
            self.web.close()
        self.centre.delete()
