# SPDX-License-Identifier: Apache-2.0
"""Real Prometheus and Alertmanager with our rules and routes, on loopback ports, and a webhook receiver."""

import http.server
import json
import os
import shutil
import socket
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

import yaml

from .process import Process
from .wait import TIMEOUT_S, wait_for

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "contrib/observe"))
import alerts  # pylint: disable=wrong-import-position
import scrape  # pylint: disable=wrong-import-position


def missing():
    """Why these tests can't run here, or an empty string."""
    for program, package in (("prometheus", "prometheus"),
                             ("prometheus-alertmanager", "prometheus-alertmanager")):
        if not shutil.which(program):
            return f"{program} is not installed (package {package})"
    if not os.path.exists("/usr/lib/collectd/write_prometheus.so"):
        return "collectd has no write_prometheus (package collectd-core)"
    return ""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def write_prometheus(port):
    """Lines for the configuration of collectd."""
    return f"""
PluginDir "/usr/lib/collectd"
LoadPlugin write_prometheus
<Plugin write_prometheus>
    Host "127.0.0.1"
    Port "{port}"
</Plugin>"""


def fetch(url, timeout=10):
    with urllib.request.urlopen(url, timeout=timeout) as reply:
        return reply.read().decode()


def is_ready(url):
    try:
        return "" != fetch(url)
    except (urllib.error.URLError, OSError):
        return False


def wait_ready(process):
    def look():
        assert process.is_alive(), f"{process.name} ended:\n{process.err()}"
        return is_ready(f"http://127.0.0.1:{process.port}/-/ready")
    wait_for(look, 60, lambda: f"{process.name} to be ready; it said:\n{process.err()}")


class Posts:
    """What Alertmanager posts, as .alerts: (receiver, status, labels, annotations) in the order of coming."""

    alerts = ()

    @staticmethod
    def alerts_of(path, body):
        return [(path.strip("/"), a["status"], a["labels"], a["annotations"]) for a in body["alerts"]]

    def got(self, name, status, **labels):
        return [a for a in self.alerts if a[1] == status and a[2]["alertname"] == name and
                all(a[2].get(key) == value for key, value in labels.items())]

    def wait(self, name, status, timeout=TIMEOUT_S, **labels):
        return wait_for(lambda: self.got(name, status, **labels), timeout,
                        lambda: f"{name} {labels} {status} at the receiver; got:\n{self.describe()}")[0]

    def describe(self):
        return "\n".join(f"{receiver} {status} {labels}" for receiver, status, labels, _ in self.alerts)


class Receiver(Posts):
    """Takes them itself."""

    def __init__(self):
        self.alerts, outer = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.alerts.extend(outer.alerts_of(self.path, body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Alertmanager(Process):
    """With the shipped routes and inhibitions; all receivers are ours, and nothing waits long."""

    def __init__(self, folder, receiver):
        self.port = free_port()
        with open(os.path.join(TOP, "contrib/alertmanager/alertmanager.yml"), encoding="utf-8") as file:
            config = yaml.safe_load(file)
        for one in config["receivers"]:
            one["webhook_configs"] = [{"url": f"{receiver.url}/{one['name']}", "send_resolved": True}]
        for route in (config["route"], *config["route"]["routes"]):
            route["group_wait"], route["group_interval"] = "0s", "500ms"
        path = os.path.join(folder, "alertmanager.yml")
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(config, file)
        super().__init__(
            [shutil.which("prometheus-alertmanager"), f"--config.file={path}",
             f"--storage.path={os.path.join(folder, 'alertmanager')}", "--cluster.listen-address=",
             f"--web.listen-address=127.0.0.1:{self.port}"], folder, "alertmanager")
        wait_ready(self)

    def get(self, path):
        return json.loads(fetch(f"http://127.0.0.1:{self.port}/api/v2/{path}"))

    def take(self, *alerts):
        """These labels fire, as Prometheus would say it."""
        body = json.dumps([{"labels": labels} for labels in alerts]).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v2/alerts", data=body,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10):
            pass

    def hidden_by(self, name):
        """{name of an alert that is held back because of this one}"""
        found = self.get("alerts")
        sources = {a["fingerprint"] for a in found if a["labels"]["alertname"] == name}
        return {a["labels"]["alertname"] for a in found if sources & set(a["status"]["inhibitedBy"])}


class Queries:
    """Questions to a Prometheus; fetch(path) gives the document."""

    def fetch(self, path):
        raise NotImplementedError

    def get(self, path, **params):
        return json.loads(self.fetch(f"api/v1/{path}?{urllib.parse.urlencode(params, doseq=True)}"))["data"]

    def query(self, expr, time=None):
        """[(labels, value)] now or at a time."""
        result = self.get("query", query=expr, **({"time": time} if time else {}))["result"]
        return [(r["metric"], float(r["value"][1])) for r in result]

    def query_range(self, expr, start, end, step=1):
        """[(labels, [(time, value)])]"""
        result = self.get("query_range", query=expr, start=start, end=end, step=step)["result"]
        return [(r["metric"], [(float(t), float(v)) for t, v in r["values"]]) for r in result]

    def wait_value(self, expr, condition, timeout=TIMEOUT_S):
        """Until one series of expr has such a value; that value."""
        found = []

        def look():
            found[:] = self.query(expr)
            return [value for _, value in found if condition(value)]
        return wait_for(look, timeout, lambda: f"{expr} gives {found}", every=0.1)[0]

    def firing(self):
        """Names of the alerts that fire."""
        return {a["labels"]["alertname"] for a in self.get("alerts")["alerts"] if a["state"] == "firing"}


class Prometheus(Process, Queries):
    """With the shipped scrape configuration and rules, all durations of the latter divided."""

    def __init__(self, folder, targets, alertmanager, divide, interval="1s"):
        self.port, self.manager = free_port(), alertmanager
        rules, path = os.path.join(folder, "pmdpulse.rules.yml"), os.path.join(folder, "prometheus.yml")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(alerts.rules_yml(divide, interval))
        with open(path, "w", encoding="utf-8") as file:
            file.write(scrape.prometheus_yml([f"127.0.0.1:{port}" for port in targets],
                                             f"127.0.0.1:{alertmanager.port}", interval, rules))
        super().__init__(
            [shutil.which("prometheus"), f"--config.file={path}",
             f"--storage.tsdb.path={os.path.join(folder, 'tsdb')}", "--rules.alert.resend-delay=1s",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            folder, "prometheus")
        wait_ready(self)

    def fetch(self, path):
        try:
            return fetch(f"http://127.0.0.1:{self.port}/{path}")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from None
